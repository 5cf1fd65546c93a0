"""Dates, times of day and ratios, and the one number or date that a text states.

An ambiguous text is not guessed: 03/05/2024 equals only itself, and 12:15 is a time when compared
with a time and a ratio when compared with a ratio.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from cotlab.text.answers.quantities import free_numbers
from cotlab.text.steps import label_spans

_NAMES = "january february march april may june july august september october november december"
_MONTHS = {name[:n]: i for i, name in enumerate(_NAMES.split(), 1) for n in range(3, len(name) + 1)}
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_WEEKDAY = r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|satur|sat|sun)(?:day)?,?\s+)?"
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
# "2024-03-05", "2024/3/5", "2024-03-05T12:00:00Z"
_ISO = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?:T[\d:.Z+-]{2,24})?", re.ASCII)
# "March 5th, 2024", "Tue, Mar. 5"
_MONTH_FIRST = re.compile(
    rf"{_WEEKDAY}({_MONTH})\s+(?:the\s+)?{_DAY}(?:,?\s+(\d{{4}}))?", re.IGNORECASE | re.ASCII
)
# "5 March 2024", "the 5th of March"
_DAY_FIRST = re.compile(
    rf"{_WEEKDAY}(?:the\s+)?{_DAY}[.]?\s+(?:of\s+)?({_MONTH})(?:,?\s+(\d{{4}}))?",
    re.IGNORECASE | re.ASCII,
)
# "03/05/2024", "5.3.24"
_SLASHED = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4}|\d{2})", re.ASCII)
# "3:30 PM", "15h30", "3 o'clock", "7 in the evening"
_CLOCK = re.compile(
    r"(\d{1,2})(?:[:.h](\d{2}))?(?::(\d{2}))?"
    r"\s*(a\.?m\.?|p\.?m\.?|o'?clock|in the (?:morning|afternoon|evening)|hours|hrs?)?"
    r"(?:\s(?:in the (?:morning|afternoon|evening)|sharp))?",
    re.IGNORECASE | re.ASCII,
)
# "6:8", "2 : 4 : 6", "6 to 8"
_RATIO = re.compile(r"\d{1,9}(?:(?:\s?:\s?\d{1,9}){1,5}|\sto\s\d{1,9})", re.ASCII)
_NAMED = {
    "noon": 12 * 3600,
    "12 noon": 12 * 3600,
    "midday": 12 * 3600,
    "midnight": 0,
    "12 midnight": 0,
}
# "2024-03-05", "March 5, 2024", "5th of March", "3/5/24", "3:30 pm", "3 pm" in running text
_FREE = re.compile(
    rf"(?<!\w)(?:\d{{4}}-\d{{1,2}}-\d{{1,2}}|{_MONTH}\s+{_DAY}(?:,?\s+\d{{4}})?"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}(?:,?\s+\d{{4}})?"
    r"|\d{1,2}/\d{1,2}/(?:\d{4}|\d{2})|\d{1,2}:\d{2}(?::\d{2})?(?:\s?[ap]\.?m\b)?"
    r"|\d{1,2}\s?[ap]\.?m\b)(?!\w)",
    re.IGNORECASE | re.ASCII,
)
# "+", "not", "more than", "between", "over": the clause does not state one number
_NOT_SINGLE = re.compile(
    r"(?i)[+*/^<>=≤≥≠±×÷\\|\d]"
    r"|\b(?:not|never|no|nor|or|between|except|at least|at most|up to)\b|n't\b"
    r"|\b(?:more|less|fewer|greater|other) than\b|\b(?:over|under|above|below)\s*$"
)


@dataclass(frozen=True, slots=True)
class Date:
    """A day of the calendar."""

    year: int | None
    """None if it is not given."""
    month: int
    day: int
    ambiguous: bool = False
    """Whether day and month could be exchanged, as in 03/05/2024 (here month 3, day 5)."""


@dataclass(frozen=True, slots=True)
class Clock:
    """A time of day."""

    second: int
    """Seconds since midnight."""
    half_known: bool
    """Whether it is certain that the time is before or after noon."""
    hour_written: int
    """The hour as written: 3 of 3 pm."""


def read_date(text: str) -> Date | None:
    """Read a text that is one date; None for other text and for days that do not exist."""
    text = text.strip()
    if len(text) > 60:
        return None
    if iso := _ISO.fullmatch(text):
        return _date(int(iso[1]), int(iso[3]), int(iso[4]))
    if named := _MONTH_FIRST.fullmatch(text):
        return _date(int(named[3]) if named[3] else None, _month(named[1]), int(named[2]))
    if named := _DAY_FIRST.fullmatch(text):
        return _date(int(named[3]) if named[3] else None, _month(named[2]), int(named[1]))
    slashed = _SLASHED.fullmatch(text)
    if slashed is None:
        return None
    first, second, year = int(slashed[1]), int(slashed[3]), int(slashed[4])
    if first > 12:
        return _date(year, second, first, short=len(slashed[4]) == 2)
    return _date(
        year, first, second, ambiguous=second <= 12 and first != second, short=len(slashed[4]) == 2
    )


def same_moment(a: Date | Clock, b: Date | Clock) -> bool:
    """Return whether two dates, or two times of day, are the same.

    A year that only one of them has is no difference, nor is am or pm (3:30, 3:30 PM); 3:30 is not
    15:30.
    """
    if isinstance(a, Clock) and isinstance(b, Clock):
        if a.half_known == b.half_known:
            return a.second == b.second
        return (a.second - b.second) % (12 * 3600) == 0 and a.hour_written == b.hour_written
    if isinstance(a, Clock) or isinstance(b, Clock):
        return False
    years = a.year == b.year or a.year is None or b.year is None
    return a.ambiguous == b.ambiguous and (a.month, a.day) == (b.month, b.day) and years


def read_clock(text: str) -> Clock | None:
    """Read a text that is one time of day: 3:30 PM, 15:30, 3 o'clock, noon; not a bare hour."""
    text = " ".join(text.lower().split())[:61]
    if text in _NAMED:
        return Clock(_NAMED[text], True, 12)
    match = _CLOCK.fullmatch(text)
    if not match or not (match[2] or match[4]):
        return None
    hour, minute, second = int(match[1]), int(match[2] or 0), int(match[3] or 0)
    half = re.sub(r"[.\s]", "", match[4] or "")
    half = {"inthemorning": "am", "intheafternoon": "pm", "intheevening": "pm"}.get(half, half)
    if half in ("hours", "hr", "hrs") and not (match[2] and ":" in text):
        return None
    if "." in text[: match.end(2)] and half not in ("am", "pm"):
        return None
    if hour > 23 or minute > 59 or second > 59 or (half in ("am", "pm") and not 1 <= hour <= 12):
        return None
    written = hour
    if half in ("am", "pm"):
        hour = hour % 12 + (12 if half == "pm" else 0)
    known = (
        half in ("am", "pm", "hours", "hr", "hrs")
        or written == 0
        or written > 12
        or text.startswith("0")
    )
    return Clock(hour * 3600 + minute * 60 + second, known, written)


def read_ratio(text: str) -> tuple[int, ...] | None:
    """Read a ratio in lowest terms: 6:8 and "6 to 8" are (3, 4), 2:4:6 is (1, 2, 3)."""
    match = _RATIO.fullmatch(text.strip()) if len(text) <= 60 else None
    terms = [int(part) for part in re.findall(r"\d+", text)] if match else []
    shared = math.gcd(*terms)
    return tuple(part // shared for part in terms) if shared else None


def free_dates(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the dates and times in running text, in order."""
    return (match.span() for match in _FREE.finditer(text))


def last_stated(text: str) -> tuple[int, int] | None:
    """Return the range of the last number, date or time in a text, step labels excluded."""
    masked = list(text)
    for start, end in label_spans(text):
        masked[start:end] = " " * (end - start)
    text = "".join(masked)
    *_, number = (None, *free_numbers(text))
    *_, date = (None, *free_dates(text))
    return date if date and number and date[0] <= number[0] < date[1] else number


def only_stated(text: str) -> tuple[int, int] | None:
    """Return the range of the one number, date or time of a clause: "she makes $18 every day".

    None if there are several, or if the clause computes ("18 + x"), denies or compares ("not 18",
    "more than 18") or names something ("Apollo 11").
    """
    spans = list(free_dates(text)) or list(free_numbers(text))
    if len(spans) != 1:
        return None
    start, end = spans[0]
    before = text[:start].split()
    named = len(before) == 1 and before[0][:1].isupper() and text[start].isdigit()
    return (
        None
        if named or _NOT_SINGLE.search(text[:start]) or _NOT_SINGLE.search(text[end:])
        else (start, end)
    )


def _month(name: str) -> int:
    """Return the number of a month from its name or abbreviation; 0 if there is none."""
    return _MONTHS.get(name.lower().rstrip("."), 0)


def _date(
    year: int | None, month: int, day: int, *, ambiguous: bool = False, short: bool = False
) -> Date | None:
    """Return a date if the day exists; ``short`` years have two digits."""
    try:
        datetime.date(2000 if year is None or short else year, month, day)
    except ValueError:
        return None
    return Date(year, month, day, ambiguous)
