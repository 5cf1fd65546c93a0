"""A bare number is in the unit that the question asks for."""

from __future__ import annotations

import pytest

from cotlab.core.types import Item
from cotlab.text.answers.asked_units import question_unit
from cotlab.text.answers.targets import answer_to, is_right_answer, same_answer_to


@pytest.mark.parametrize(
    ("question", "unit"),
    [
        ("How many km?", "km"),
        ("How many square feet of carpet does she need?", "square feet"),
        ("How many miles per hour did he drive?", "miles per hour"),
        ("What is its speed in m/s?", "m/s"),
        ("What is the area in cm^2?", "cm^2"),
        ("What is the area in $\\text{cm}^2$?", "cm^2"),
        ("What is the temperature in degrees Celsius?", "degrees Celsius"),
        ("How long is it, in m?", "m"),
        ("How many games in m rounds?", ""),
        ("How many apples are in the box?", ""),
        ("What is it in percent?", ""),
        ("How many dozens of eggs?", "dozen"),
    ],
)
def test_the_unit_that_a_question_asks_for(question: str, unit: str) -> None:
    assert question_unit(question) == unit


@pytest.mark.parametrize(
    ("question", "key", "reply"),
    [
        ("How many km?", "5", "5 miles"),
        ("How many km is it?", "5", "5 hours"),
        ("What is the speed in m/s?", "20", "20 km/h"),
        ("What is the speed in km/h?", "50", "50 mph"),
        ("How much does it weigh in kg?", "2", "2 pounds"),
        ("How much does it weigh in kg?", "2", "2 g"),
        ("What is the area in square meters?", "20", "20 m"),
        ("What is the length in km?", r"5\sqrt{2}", r"$5\sqrt{2}$ miles"),
        ("How old is he?", "24", "24 months"),
        ("How far did he run?", "5", "5 hours"),
        ("How much money did he save?", "5", "5 hours"),
        ("What fraction is red?", "1/2", "1/2%"),
        ("What fraction is it?", "3/2", "1.5%"),
        ("What is the angle?", "60", "60 radians"),
    ],
)
def test_another_unit_than_the_question_asks_for_is_wrong(
    question: str, key: str, reply: str
) -> None:
    item = Item("1", question, key, ())
    assert is_right_answer(item, answer_to(item, reply)) is False
    assert same_answer_to(item, key, answer_to(item, reply)) is False


@pytest.mark.parametrize(
    ("question", "key", "reply"),
    [
        ("How many km?", "5", "5 kilometers"),
        ("How many km?", "5", "5000 m"),
        ("What is the speed in m/s?", "20", "72 km/h"),
        ("How many miles per hour?", "60", "60 mph"),
        ("How many miles per hour?", "60", "60 miles"),
        ("How many dollars per hour?", "18", "$18"),
        ("How many hours a week does he work?", "20", "20 hours"),
        ("How old is he?", "24", "24 years old"),
        ("The pup was 3 months old in May. How old is it?", "5", "5 months"),
        ("How much time did he save?", "5", "5 hours"),
        ("How far did he run?", "5", "5 km"),
        ("What is the probability?", "1/2", "50%"),
        ("What is the angle in radians?", "2", "2 radians"),
        ("How many pounds do they need per day?", "5", "5 pounds per day"),
        ("How long does he walk each day?", "20", "20 minutes/day"),
        ("How many dozens of eggs?", "20", "20 dozen eggs"),
        ("How many shoes can she buy?", "6", "6 pair of shoes"),
        ("Jim has 52 games. How many does Bob have?", "40", "40 games"),
    ],
)
def test_the_unit_that_is_asked_for_is_right(question: str, key: str, reply: str) -> None:
    item = Item("1", question, key, ())
    assert is_right_answer(item, answer_to(item, reply)) is True


@pytest.mark.parametrize(
    ("question", "reply", "expected"),
    [
        ("How many apples are left?", "5 apples", True),
        ("How many apples are left?", "5 red apples", True),
        ("How many apples are left?", "5 oranges", None),
        ("He has 5 oranges and 3 apples. How many apples?", "5 oranges", False),
        ("How many kids came?", "5 children", None),
        ("How many people came?", "5 students", True),
        ("How many apples are left?", "6 oranges", False),
    ],
)
def test_a_number_of_something_else_is_not_right(
    question: str, reply: str, expected: bool | None
) -> None:
    item = Item("1", question, "5", ())
    assert is_right_answer(item, answer_to(item, reply)) is expected
