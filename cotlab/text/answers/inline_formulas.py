"""Formulas within a sentence and the value that each states: 5 of "$x = 5$"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cotlab.text.answers.quantities import read_quantity
from cotlab.text.answers.reading import tidy_answer, to_plain_text

# "\\(x = 5\\)", "$2$"
_MATHS_RE = re.compile(
    r"\\\(((?:(?!\\\().){1,400}?)\\\)|\\\[((?:(?!\\\[).){1,400}?)\\\]|(?<![\w\\$])\$(?!\s)"
    r"([^$\n]{1,300}?)(?<![\s\\])\$(?![\d$])",
    re.DOTALL,
)


def outside_formulas(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a range without the sign before a formula ("$2$"), if it is not within a formula.

    Raises
    ------
    LookupError
        Where a number is only a part of a formula: the 2 of "$2x^2$".
    """
    for (first, last), value in formula_values(text):
        if start < last and first < end:
            if value is None or end <= value[0]:
                raise LookupError
            return max(start, value[0]), (min(end, value[1]) if end <= last else end)
    return start, end


def formula_values(text: str) -> Iterator[tuple[tuple[int, int], tuple[int, int] | None]]:
    """Yield the ranges of formulas and of the one value that each states: 5 of "$x = 5$"."""
    for match in _MATHS_RE.finditer(text):
        body = next(group for group in match.groups() if group is not None)
        if match[0][0] == "$" and re.search(r"(?<!\\)\b[a-z]{3,}\s[a-z]+\s", body):
            continue  # "$5 and he pays $"
        value = re.split(r"[=≈]|\\approx\b", body)[-1]
        is_value = read_quantity(to_plain_text(tidy_answer(value))) is not None
        end = match.end() - (1 if match[0][-1] == "$" else 2)
        yield match.span(), (end - len(value), end) if is_value else None


def fraction_spans(text: str) -> list[tuple[int, int]]:
    r"""Return the ranges of formulas that are one number with a fraction: ``$1\frac{1}{2}$``."""
    return [
        value
        for _, value in formula_values(text)
        if value and "frac" in text[slice(*value)] and "=" not in text[slice(*value)]
    ]
