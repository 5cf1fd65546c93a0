"""Amounts with a half in words: "two hours and a half" is 2.5 hours."""

from __future__ import annotations

import re

from cotlab.text.written_numbers import NUMERAL_VALUES

_HALVED = {"a": 1, "an": 1} | {word: n for word, n in NUMERAL_VALUES.items() if 0 < n < 7}
# "an hour and a half", "2 years and a half"
_AND_HALF_RE = re.compile(
    rf"(?i)\b({'|'.join(_HALVED)}|\d{{1,4}})\s((?:second|minute|hour|day|week|month|year"
    r"|metre|meter|kilometre|kilometer|mile|foot|litre|liter|gallon|cup|dozen)s?) and a half\b"
)


def with_half_units(text: str) -> str:
    """Return a text with its amounts "and a half" as decimals."""
    return _AND_HALF_RE.sub(
        lambda m: f"{_HALVED.get(m[1].lower(), m[1])}.5 {m[2].rstrip('s')}s", text
    )
