r"""Notations of combinations and permutations: C(6, 3), 7C2, ^7C_2, {6 \choose 3}, P(6, 3)."""

from __future__ import annotations

import re

from cotlab.text.answers.formulas import Formula, is_plain_number, read_formula
from cotlab.text.answers.quantities import read_quantity

_NUMBER = r"\{?\s?(\d{1,4})\s?\}?"
# "C(6, 3)", "P(6, 3)", "nCr(6, 3)"
_FUNCTION_RE = re.compile(rf"n?([CP])r?\s?\(\s?{_NUMBER}\s?,\s?{_NUMBER}\s?\)", re.ASCII)
# "7C2", "^7C_2", "{}_{7}P_{2}"
_INDEXED_RE = re.compile(
    rf"(?:\{{\}}\s?)?[_^]?\s?{_NUMBER}\s?(?:\\mathrm)?\{{?([CP])\}}?\s?_?\s?{_NUMBER}", re.ASCII
)
# "{6 \choose 3}"
_CHOOSE_RE = re.compile(r"\{\s?([^{}]{1,40}?)\s?\\choose\s?([^{}]{1,40}?)\s?\}")


def as_formulas(first: str, second: str) -> tuple[str, str]:
    r"""Return notations of combinations beside a number or a formula as formulas.

    Other texts come back as they are: C(6, 3) beside (6, 3) is a point.

    Examples
    --------
    >>> as_formulas("C(6, 3)", "20")
    ('\\binom{6}{3}', '20')
    """
    first, second = (_CHOOSE_RE.sub(r"\\binom{\1}{\2}", text) for text in (first, second))
    rewritten = _rewrite(first), _rewrite(second)
    is_number = [
        new != text or read_quantity(text) is not None or read_formula(text) is not None
        for text, new in zip((first, second), rewritten, strict=True)
    ]
    return rewritten if all(is_number) else (first, second)


def _rewrite(text: str) -> str:
    """Return the formula of a text that is one combination or permutation."""
    text = text.strip()
    if match := _FUNCTION_RE.fullmatch(text):
        kind, n, k = match.groups()
    elif match := _INDEXED_RE.fullmatch(text):
        n, kind, k = match.groups()
    else:
        return text
    if int(k) > int(n):
        return text
    return f"\\binom{{{n}}}{{{k}}}" if kind == "C" else f"({n}!)/(({int(n) - int(k)})!)"


def counted_formula(text: str) -> Formula | None:
    """Return the number that a text with a noun counts, as a formula: 10 of "10 ways"."""
    quantity = read_quantity(text)
    if quantity is None or quantity.units or quantity.rate_unit or not quantity.nouns:
        return None
    formula = Formula(("number", quantity.value), "")
    return formula if is_plain_number(formula) else None
