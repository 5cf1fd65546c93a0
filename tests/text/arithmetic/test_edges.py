"""Equations at whose edge something stands that may belong to them: they are not called true."""

from __future__ import annotations

import pytest

from cotlab.text.arithmetic.equations import read_equations


@pytest.mark.parametrize(
    "text",
    [
        *(r"3 \times 4 = 12 \pi", "3 * 4 = 12π", "3 * 4 = 12 π", "3 * 4 = 12 x", "3 * 4 = 12ab"),
        *(r"\(3 \cdot 4 = 12 ab\)", r"3 \cdot 4 = 12 \sin x", "3 * 4 = 12√2", "3 * 4 = 12 sqrt(2)"),
        *("3 * 4 = 12 (x + 1)", "3 * 4 = 12_5", "3 * 4 = 12 squared", "2 * 3 = 6 * rate"),
        *("2 * 5 = 10!", "3 + 4 = 7!", "(3 + 4)! = 7", r"2 + 3 = 5\%", "20 + 5 = 25%"),
        *("log 8 / 2 = 4", r"\log 3 + 4 = 7", r"\pi 3 + 4 = 7", "x 3 + 4 = 7", r"x + x = 2x \pi"),
    ],
)
def test_a_factor_at_the_edge_leaves_it_undecided(text: str) -> None:
    assert {equation.holds for equation in read_equations(text).equations} == {None}


@pytest.mark.parametrize(
    "text",
    [
        *("3! = 6", "1/4 * 100 = 25%", "5% + 2% = 7%", "100% - 25% = 75%", "6 / 24 = 25%"),
        *("3 * 4 = 12 times a week", "3 * 4 = 12 square feet", "3 * 4 = 12 dozen", "4 + 1 = 5th"),
        *("3 * 4 = 12 ✓", r"3 \cdot 4 = 12 \checkmark", "3 + 4 = 7 (four and three)"),
        *(r"3 + 4 = 7 \neq 8", "3 + 4 = 7 - right", "120 / 5 = 24 min"),
    ],
)
def test_what_is_no_factor_leaves_it_true(text: str) -> None:
    assert {equation.holds for equation in read_equations(text).equations} == {True}
