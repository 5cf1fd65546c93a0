"""What a question asks for, and numbers that are written out in words."""

from __future__ import annotations

import pytest

from cotlab.text.answers.extract import same_answer
from cotlab.text.answers.question import read_expected
from cotlab.text.answers.reading import to_plain_text


@pytest.mark.parametrize("word", ["sixth", "seventh", "ninth", "tenth", "half"])
def test_a_number_and_a_fraction_is_not_the_number(word: str) -> None:
    assert not same_answer(f"12 and a {word}", "12")
    assert same_answer("12 and a sixth", "73/6")


def test_a_question_for_a_total_is_one_whatever_its_word() -> None:
    terms = read_expected("How many apples do Ann and Bob have combined?").terms
    assert "together" in terms and not {"apple", "appl"} & terms


def test_formulas_behind_a_length_are_read() -> None:
    assert "$" not in to_plain_text("5'6" + " " * 20 + "$x$")
