"""A number that is denied, bounded, multiplied or of another base is another value."""

from __future__ import annotations

import pytest

from cotlab.core.types import Item
from cotlab.text.answers.extract import same_answer
from cotlab.text.answers.qualifiers import follows_other_value, is_other_value, qualified_number
from cotlab.text.answers.targets import answer_to, is_right_answer


@pytest.mark.parametrize(
    "reply",
    [
        "not 12",
        "It isn't 12.",
        "anything but 12",
        "unknown, but not 12",
        "less than 12",
        "no more than 12",
        "at most 12",
        "12 at least",
        "12 or more",
        "12+",
        "≥ 12",
        "> 12",
        "12 times as many",
        "12-fold",
        "(12)_3",
        "12₃",
        "12 (base 3)",
        "12 hundred",
        "12 squared",
        "12 sin x",
        "a multiple of 12",
        "a third of 12",
        "|x| = 12",
        "12%",
        "12 BC",
        "12 is not the answer.",
        "12 is wrong.",
        "almost 12 but not quite",
        "I don't think the answer is 12.",
        "It is false that the answer is 12.",
        "It is not the case that the answer is 12.",
        "The answer would be 12 if he had not lost any, so it is 10.",
        "In the end he certainly has more than 12.",
        "The number of apples that they have left is surely not 12.",
    ],
)
def test_what_is_not_twelve(reply: str) -> None:
    item = Item("1", "How many?", "12", ())
    assert is_right_answer(item, answer_to(item, reply)) is not True


@pytest.mark.parametrize(
    ("question", "key", "reply"),
    [
        ("At most how many can he buy?", "12", "at most 12"),
        ("What is the minimum number of boxes?", "12", "at least 12"),
        ("How many times did he jump?", "12", "12 times"),
        ("How many times did he jump?", "12", "So he jumped 8 + 4 = 12 times."),
        ("How many rides will he need?", "26", "He should ride at least 25 + 1 = 26 times."),
        ("How long?", "12", "about 12"),
        ("How many?", "1200", "12 hundred"),
        ("When?", "1990", "In 1990."),
        ("In which decade?", "1990s", "the 1990s"),
        ("How many seconds?", "10", "10s"),
    ],
)
def test_what_the_question_asks_for(question: str, key: str, reply: str) -> None:
    item = Item("1", question, key, ())
    assert is_right_answer(item, answer_to(item, reply)) is True


@pytest.mark.parametrize(
    ("key", "reply"),
    [
        ("1990", "1990s"),
        ("1990", "the 1990s"),
        ("1990", "It was in the 1990s."),
        ("90", "the 90s"),
        ("1990", "before 1990"),
        ("1990", "late 1990"),
        ("1990", "1990 BC"),
    ],
)
def test_a_decade_is_no_year(key: str, reply: str) -> None:
    item = Item("1", "When was it?", key, ())
    assert is_right_answer(item, answer_to(item, reply)) is not True
    assert same_answer(key, reply) is not True


@pytest.mark.parametrize("part", ["not ", "at most ", "1 ", "the ", "or more ", ")", "a ", "'"])
def test_qualifiers_of_long_texts_come_to_an_end(part: str) -> None:
    # in seconds; with a pattern that goes back over the text, in hours
    text = part * (100_000 // len(part))
    for written in (text, text + "12", "12" + text):
        qualified_number(written)
        is_other_value(written, written)
        follows_other_value(written)
