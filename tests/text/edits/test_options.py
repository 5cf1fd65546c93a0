"""Rotated options: the truth moves with its text, and positions alone give the floor."""

from __future__ import annotations

from pathlib import Path

import pytest

from cotlab.core.types import Item
from cotlab.suites.jsonl import load_suite
from cotlab.text.answers.targets import answer_to, is_right_answer, item_choices
from cotlab.text.edits.options import option_follows, rotate_options

SUITE = load_suite(Path(__file__).parents[3] / "data" / "suites" / "commonsense.jsonl")


@pytest.mark.parametrize("item", SUITE.items, ids=lambda item: item.id)
def test_every_rotation_keeps_the_texts_and_moves_the_truth(item: Item) -> None:
    choices = item_choices(item)
    for shift in range(1, len(choices)):
        rotated = rotate_options(item, shift)
        assert isinstance(rotated, Item)
        moved = item_choices(rotated)
        assert sorted(moved) == sorted(choices)
        assert all(first != second for first, second in zip(choices, moved, strict=True))
        assert item.answer is not None
        right = answer_to(rotated, item.answer)
        assert is_right_answer(rotated, right) is True
        letter = "abcde"[choices.index(item.answer)]
        assert is_right_answer(rotated, answer_to(rotated, letter)) is False
        assert rotated.question.partition("(a)")[0] == item.question.partition("(a)")[0]


def test_listed_choices_and_letters_move_too() -> None:
    item = Item("1", "Which?", "B", (), meta={"choices": ["ice", "rain", "snow"]})
    rotated = rotate_options(item, 1)
    assert isinstance(rotated, Item)
    assert rotated.meta["choices"] == ["snow", "ice", "rain"]
    assert rotated.answer == "(c) rain"
    assert is_right_answer(rotated, answer_to(rotated, "C")) is True


@pytest.mark.parametrize(
    ("question", "answer", "shift", "reason"),
    [
        ("How many?", "3", 1, "no options"),
        ("Which? (a) x (b) y", "x", 2, "keep their places"),
        ("Which? (a) ice (b) snow (c) all of the above", "c", 1, "speaks of other options"),
    ],
)
def test_what_cannot_be_rotated_says_why(
    question: str, answer: str, shift: int, reason: str
) -> None:
    assert reason in str(rotate_options(Item("1", question, answer, ()), shift))


@pytest.mark.parametrize(
    ("answer", "rotated_answer", "expected"),
    [
        ("(a) ice", "(b) ice", (True, False)),  # the text
        ("(a) ice", "(a) snow", (False, True)),  # the position
        ("(a) ice", "(c) rain", (False, False)),
        ("(a) ice", None, None),
        ("something else", "(a) snow", None),
    ],
)
def test_a_model_that_reads_keeps_the_text_and_one_that_counts_the_position(
    answer: str, rotated_answer: str | None, expected: tuple[bool, bool] | None
) -> None:
    assert option_follows(["ice", "rain", "snow"], answer, 1, rotated_answer) == expected
