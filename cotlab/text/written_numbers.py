"""Numbers as they are written in English text and LaTeX: 18, 1,080.5, .5, 1{,}080."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

NUMBER_PATTERN = r"(?:(?:\d{1,3}(?:(?:,|\{,\})\d{3}){1,60}+(?!\d)|\d++)(?:\.\d++)?|\.\d++)"
"""Regular expression of a number without sign, currency and exponent; it has no group."""


class WrittenNumber(NamedTuple):
    """A number with the decimals that it was written with."""

    value: Fraction
    """The number."""
    n_decimals: int
    """Number of decimals."""


def without_separators(text: str) -> str:
    """Return a text that `NUMBER_PATTERN` matches without separators of thousands."""
    return text.replace("{,}", "").replace(",", "")


def read_number(text: str) -> WrittenNumber:
    """Read a text that `NUMBER_PATTERN` matches."""
    digits, _, decimals = without_separators(text).partition(".")
    return WrittenNumber(Fraction(int(digits + decimals), 10 ** len(decimals)), len(decimals))
