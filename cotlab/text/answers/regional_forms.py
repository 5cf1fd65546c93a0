"""Numbers and dates as they are written in other regions, where what is meant is written beside it.

"1.234,50 €" has a comma before its cents, and "04/03/2025 (dd/mm/yyyy)" says which is the day.
"""

from __future__ import annotations

import re

_CURRENCY = r"(?:€|EUR\b|[Ee]uros?\b)"
# "1.234,50 €", "12,50 EUR", "€ 1.234,50"
_DECIMAL_COMMA_RE = re.compile(
    rf"(?<![\d.,])(\d{{1,3}}(?:\.\d{{3}}){{0,5}}),(\d{{2}})(?=\s?{_CURRENCY})"
    r"|(?<=€)(\s?)(\d{1,3}(?:\.\d{3}){1,5}),(\d{2})(?![\d,]|\.\d)"
)
_YEAR, _DAY, _JOINT = r"(\d{4})", r"(\d{1,2})", r"[/.-]"
_OPTIONAL = r"\s?(?:\(|,\s?in\s(?:the\s)?(?:form(?:at)?\s)?|\sin\s(?:the\s)?(?:form(?:at)?\s)?)"
# "04/03/2025 (dd/mm/yyyy)"
_DAY_FIRST_RE = re.compile(
    rf"(?<!\d){_DAY}{_JOINT}{_DAY}{_JOINT}{_YEAR}{_OPTIONAL}(?:dd?{_JOINT}mm?{_JOINT}yyyy"
    r"|day\s?[/-]\s?month\s?[/-]\s?year|day first)\)?",
    re.IGNORECASE,
)
_MONTH_FIRST_RE = re.compile(
    rf"(?<!\d){_DAY}{_JOINT}{_DAY}{_JOINT}{_YEAR}{_OPTIONAL}(?:mm?{_JOINT}dd?{_JOINT}yyyy"
    r"|month\s?[/-]\s?day\s?[/-]\s?year|month first)\)?",
    re.IGNORECASE,
)


def with_decimal_points(text: str) -> str:
    """Return "1.234,50 €" as "1,234.50 €"; other text as it is.

    Examples
    --------
    >>> with_decimal_points("Total: 1.234,50 €")
    'Total: 1,234.50 €'
    """
    if "," not in text:
        return text
    return _DECIMAL_COMMA_RE.sub(
        lambda m: f"{m[3] or ''}{(m[1] or m[4]).replace('.', ',')}.{m[2] or m[5]}", text
    )


def with_iso_dates(text: str) -> str:
    """Return "04/03/2025 (dd/mm/yyyy)" as "2025-03-04"; what is no such date as it is.

    Examples
    --------
    >>> with_iso_dates("due on 04/03/2025 (mm/dd/yyyy)")
    'due on 2025-04-03'
    """
    text = _DAY_FIRST_RE.sub(lambda m: _iso_date(m[0], m[3], m[2], m[1]), text)
    return _MONTH_FIRST_RE.sub(lambda m: _iso_date(m[0], m[3], m[1], m[2]), text)


def _iso_date(written: str, year: str, month: str, day: str) -> str:
    """Return a date in ISO 8601; as it is written where the month or day is none."""
    is_date = 1 <= int(month) <= 12 and 1 <= int(day) <= 31
    return f"{year}-{month:0>2}-{day:0>2}" if is_date else written
