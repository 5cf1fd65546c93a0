"""The options that an item has only in ``choices`` stand in the question that a model reads."""

from __future__ import annotations

import pytest

from cotlab.core.types import Item, Suite
from cotlab.text.prompts.options import with_listed_options


def asked(question: str, choices: object) -> str:
    suite = Suite.from_items("s", [Item("i", question, "tea", (), meta={"choices": choices})])
    (item,) = with_listed_options(suite).items
    return item.question


def test_options_that_the_question_does_not_show_are_listed() -> None:
    assert asked("Which is warm?", ["ice", "tea"]) == "Which is warm?\n\nA) ice\nB) tea"
    assert asked("What is 2 + 4?", ["2", "4"]).endswith("\n\nA) 2\nB) 4")
    assert asked("Ice melts. Which is warm?", ["ice", "tea"]).endswith("A) ice\nB) tea")


@pytest.mark.parametrize(
    "question",
    [
        "Which is warm? (a) ice (b) tea",
        "Which is warm?\nA. Ice\nB. Tea",
        "Which is warm: ice or tea?",
        "Which is warm?\n- ice\n- tea\n",
    ],
)
def test_options_that_the_question_shows_are_not_listed_again(question: str) -> None:
    assert asked(question, ["ice", "tea"]) == question


@pytest.mark.parametrize("choices", [[], ["ice"], "ice", [1, 2], ["ice", ""]])
def test_what_is_no_list_of_options_adds_nothing(choices: object) -> None:
    assert asked("Which is warm?", choices) == "Which is warm?"


def test_a_suite_without_options_stays_the_same() -> None:
    suite = Suite.from_items("s", [Item("i", "Which is warm?", "tea", ())])
    assert with_listed_options(suite) is suite
