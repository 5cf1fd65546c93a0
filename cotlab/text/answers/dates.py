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

from cotlab.text.answers.qualifiers import is_other_value, qualified_number
from cotlab.text.answers.quantities import find_numbers
from cotlab.text.steps import label_spans
from cotlab.text.written_numbers import word_list

_MONTH_NAMES = (
    "january february march april may june july august september october november december"
)
_MONTH_NUMBER_BY_NAME = {
    name[:n]: i for i, name in enumerate(_MONTH_NAMES.split(), 1) for n in range(3, len(name) + 1)
}
_DAYS_AND_MONTHS = frozenset(
    word_list(f"monday tuesday wednesday thursday friday saturday sunday {_MONTH_NAMES}")
)
_MONTH_PATTERN = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_WEEKDAY_PATTERN = r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|satur|sat|sun)(?:day)?,?\s+)?"
_DAY_PATTERN = r"(\d{1,2})(?:st|nd|rd|th)?"
# "2024-03-05", "2024/3/5", "2024-03-05T12:00:00Z"
_ISO_DATE_RE = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?:T[\d:.Z+-]{2,24})?", re.ASCII)
# "March 5th, 2024", "Tue, Mar. 5"
_MONTH_FIRST_DATE_RE = re.compile(
    rf"{_WEEKDAY_PATTERN}({_MONTH_PATTERN})\s+(?:the\s+)?{_DAY_PATTERN}(?:,?\s+(\d{{4}}))?",
    re.IGNORECASE | re.ASCII,
)
# "5 March 2024", "the 5th of March"
_DAY_FIRST_DATE_RE = re.compile(
    rf"{_WEEKDAY_PATTERN}(?:the\s+)?{_DAY_PATTERN}[.]?\s+(?:of\s+)?({_MONTH_PATTERN})(?:,?\s+(\d{{4}}))?",
    re.IGNORECASE | re.ASCII,
)
# "03/05/2024", "5.3.24"
_SLASHED_DATE_RE = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4}|\d{2})", re.ASCII)
# "3:30 PM", "15h30", "3 o'clock", "7 in the evening"
_TIME_OF_DAY_RE = re.compile(
    r"(\d{1,2})(?:[:.h](\d{2}))?(?::(\d{2}))?"
    r"\s*(a\.?m\.?|p\.?m\.?|in the (?:morning|afternoon|evening)|at night|hours|hrs?"
    r"|o'?clock(?:\s(?:in the (?:morning|afternoon|evening)|at night|[ap]\.?m\.?))?)?"
    r"(?:\s(?:in the (?:morning|afternoon|evening)|sharp))?",
    re.IGNORECASE | re.ASCII,
)
# "6:8", "2 : 4 : 6", "6 to 8"
_RATIO_RE = re.compile(r"\d{1,9}(?:(?:\s?:\s?\d{1,9}){1,5}|\sto\s\d{1,9})", re.ASCII)
_HOUR_NAMES = word_list("twelve one two three four five six seven eight nine ten eleven")
_MINUTES_BY_NAME = {
    "half": 30,
    "quarter": 15,
    "five": 5,
    "ten": 10,
    "twenty": 20,
    "twenty-five": 25,
    "twenty five": 25,
}
_DAYTIME_PATTERN = r"(?:[ap]\.?m\b\.?|in the (?:morning|afternoon|evening)|at night)"
# "half past six in the morning", "a quarter to 7", "ten minutes to five"; not "five to ten"
_SPOKEN_TIME_RE = re.compile(
    r"(?:a\s)?(?:(half|quarter|twenty[- ]five|five|ten|twenty)(?:\sminutes)?\s(past|after)"
    r"|(quarter|(?:twenty[- ]five|five|ten|twenty)(?=\sminutes))(?:\sminutes)?\s(to|before))\s"
    rf"({'|'.join(_HOUR_NAMES)}|\d{{1,2}})\b(?:\s?({_DAYTIME_PATTERN}|o'?clock))?",
    re.IGNORECASE | re.ASCII,
)
_SECONDS_BY_TIME_NAME = {
    "noon": 12 * 3600,
    "12 noon": 12 * 3600,
    "midday": 12 * 3600,
    "midnight": 0,
    "12 midnight": 0,
}
# "2024-03-05", "March 5, 2024", "5th of March", "3/5/24", "3:30 pm", "3 pm" in running text
_DATE_IN_TEXT_RE = re.compile(
    rf"(?<!\w)(?:\d{{4}}-\d{{1,2}}-\d{{1,2}}|{_MONTH_PATTERN}\s+{_DAY_PATTERN}(?:,?\s+\d{{4}})?"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH_PATTERN}(?:,?\s+\d{{4}})?"
    rf"|\d{{1,2}}/\d{{1,2}}/(?:\d{{4}}|\d{{2}})|\d{{1,2}}:\d{{2}}(?::\d{{2}})?(?:\s?{_DAYTIME_PATTERN})?"
    rf"|\d{{1,2}}\s?(?:o'?clock\s)?{_DAYTIME_PATTERN}|{_SPOKEN_TIME_RE.pattern})(?!\w)",
    re.IGNORECASE | re.ASCII,
)
# "+", "not", "more than", "between", "over": the clause does not state one number
_NOT_SINGLE_VALUE_RE = re.compile(
    r"(?i)[+*/^<>=≤≥≠±×÷\\|\d(){}\[\]!_√∞]|(?<![\w'’.-])(?![aiAI]\b)[A-Za-z](?![\w'’.])"
    r"|\b(?:sqrt|(?:square|cube|fourth) root|factorial|times|twice|thrice|double|triple|half"
    r"|quarter|third"
    r"|(?:square|cube|root|reciprocal|inverse|opposite|sum|product) of"
    r"|minus|negative|plus|divided|log|ln|sin|cos|tan|mod|modulo|choose|power|pi|base|dozen|hundred"
    r"|thousand|million|billion|percent|per cent)\b"
    r"|\b(?:not|never|no|nor|or|between|except|at least|at most|up to)\b|n't\b"
    r"|\b(?:more|less|fewer|greater|other) than\b|\b(?:over|under|above|below)\s*$"
)


@dataclass(frozen=True, slots=True)
class Date:
    """A day of the calendar."""

    year: int | None
    """None if it is not given."""
    month: int
    """Month, 1 to 12."""
    day: int
    """Day of the month."""
    is_ambiguous: bool = False
    """Whether day and month could be exchanged, as in 03/05/2024 (here month 3, day 5)."""


@dataclass(frozen=True, slots=True)
class TimeOfDay:
    """A time of day."""

    seconds: int
    """Seconds since midnight."""
    is_am_pm_known: bool
    """Whether it is certain that the time is before or after noon."""
    written_hour: int
    """The hour as written: 3 of 3 pm."""


def read_date(text: str) -> Date | None:
    """Read a text that is one date; None for other text and for days that do not exist."""
    text = text.strip()
    if len(text) > 60:
        return None
    if iso_match := _ISO_DATE_RE.fullmatch(text):
        return _make_date(int(iso_match[1]), int(iso_match[3]), int(iso_match[4]))
    for pattern, month_group, day_group in (
        (_MONTH_FIRST_DATE_RE, 1, 2),
        (_DAY_FIRST_DATE_RE, 2, 1),
    ):
        if month_name_match := pattern.fullmatch(text):
            month_number = _MONTH_NUMBER_BY_NAME.get(
                month_name_match[month_group].lower().rstrip("."), 0
            )
            return _make_date(
                int(month_name_match[3]) if month_name_match[3] else None,
                month_number,
                int(month_name_match[day_group]),
            )
    slashed_match = _SLASHED_DATE_RE.fullmatch(text)
    if slashed_match is None:
        return None
    first_number = int(slashed_match[1])
    second_number = int(slashed_match[3])
    year = int(slashed_match[4])
    is_two_digit_year = len(slashed_match[4]) == 2
    if first_number > 12:
        return _make_date(year, second_number, first_number, is_two_digit_year=is_two_digit_year)
    return _make_date(
        year,
        first_number,
        second_number,
        is_ambiguous=second_number <= 12 and first_number != second_number,
        is_two_digit_year=is_two_digit_year,
    )


def same_date_or_time(a: Date | TimeOfDay, b: Date | TimeOfDay) -> bool:
    """Return whether two dates, or two times of day, are the same.

    A year that only one of them has is no difference, nor is am or pm (3:30, 3:30 PM); 3:30 is not
    15:30.
    """
    if isinstance(a, TimeOfDay) and isinstance(b, TimeOfDay):
        if a.is_am_pm_known == b.is_am_pm_known:
            return a.seconds == b.seconds
        return (a.seconds - b.seconds) % (12 * 3600) == 0 and a.written_hour == b.written_hour
    if isinstance(a, TimeOfDay) or isinstance(b, TimeOfDay):
        return False
    same_year = a.year == b.year or a.year is None or b.year is None
    return a.is_ambiguous == b.is_ambiguous and (a.month, a.day) == (b.month, b.day) and same_year


def same_abbreviation(first: str, second: str) -> bool:
    """Return whether one of two texts is short for the day or the month that the other names."""
    short, full = sorted((first.strip(" .").lower(), second.strip(" .").lower()), key=len)
    return full in _DAYS_AND_MONTHS and short in (
        full[:3],
        *(short for short in ("tues", "wednes", "thur", "thurs", "sept") if full.startswith(short)),
    )


def read_time_of_day(text: str) -> TimeOfDay | None:
    """Read a text that is one time of day: 3:30 PM, 15:30, 3 o'clock, noon; not a bare hour."""
    text = " ".join(text.lower().split())[:61]
    if text in _SECONDS_BY_TIME_NAME:
        return TimeOfDay(_SECONDS_BY_TIME_NAME[text], True, 12)
    if spoken := _SPOKEN_TIME_RE.fullmatch(text):
        return _read_spoken_time(spoken)
    match = _TIME_OF_DAY_RE.fullmatch(text)
    if not match or not (match[2] or match[4]):
        return None
    hour, minute, second = int(match[1]), int(match[2] or 0), int(match[3] or 0)
    am_pm = _am_or_pm(match[4] or "", hour)
    if am_pm in ("hours", "hr", "hrs") and not (match[2] and ":" in text):
        return None
    if "." in text[: match.end(2)] and am_pm not in ("am", "pm"):
        return None
    if hour > 23 or minute > 59 or second > 59 or (am_pm in ("am", "pm") and not 1 <= hour <= 12):
        return None
    written_hour = hour
    if am_pm in ("am", "pm"):
        hour = hour % 12 + (12 if am_pm == "pm" else 0)
    is_24_hour = written_hour == 0 or written_hour > 12 or text.startswith("0")
    is_am_pm_known = am_pm in ("am", "pm", "hours", "hr", "hrs") or is_24_hour
    return TimeOfDay(hour * 3600 + minute * 60 + second, is_am_pm_known, written_hour)


def _am_or_pm(text: str, hour: int) -> str:
    """Return "am" or "pm" for "in the morning" or "at night"; other texts without spaces."""
    text = re.sub(r"^o'?clock\s", "", text)
    text = re.sub(r"[.\s]", "", text)
    at_night = "pm" if 6 <= hour < 12 else "am"
    return {
        "inthemorning": "am",
        "intheafternoon": "pm",
        "intheevening": "pm",
        "atnight": at_night,
    }.get(text, text)


def _read_spoken_time(match: re.Match[str]) -> TimeOfDay | None:
    """Read "half past six in the morning" and "a quarter to 7"."""
    minutes = _MINUTES_BY_NAME[match[1] or match[3]]
    hour = int(match[5]) if match[5].isdigit() else _HOUR_NAMES.index(match[5]) or 12
    if not 1 <= hour <= 12:
        return None
    if match[4]:
        hour, minutes = hour - 1 or 12, 60 - minutes
    daytime = match[6] if match[6] and not match[6].startswith("o") else ""
    return read_time_of_day(f"{hour}:{minutes:02} {daytime}".strip())


def read_ratio(text: str) -> tuple[int, ...] | None:
    """Read a ratio in lowest terms: 6:8 and "6 to 8" are (3, 4), 2:4:6 is (1, 2, 3)."""
    match = _RATIO_RE.fullmatch(text.strip()) if len(text) <= 60 else None
    terms = [int(part) for part in re.findall(r"\d+", text)] if match else []
    divisor = math.gcd(*terms)
    return tuple(part // divisor for part in terms) if divisor else None


def find_dates(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the dates and times in running text, in order."""
    return (match.span() for match in _DATE_IN_TEXT_RE.finditer(text))


def find_values(text: str) -> list[tuple[int, int]]:
    """Return the ranges of the numbers in a text, step labels excluded."""
    return list(find_numbers(_without_labels(text), mixed=True))


def _without_labels(text: str) -> str:
    """Return a text of the same length with spaces in place of step labels."""
    characters = list(text)
    for start, end in label_spans(text):
        characters[start:end] = " " * (end - start)
    return "".join(characters)


def find_only_value(text: str) -> tuple[int, int] | None:
    """Return the range of the one number, date or time of a clause: "she makes $18 every day".

    None if there are several, or if the clause computes ("18 + x"), denies or compares ("not 18",
    "more than 18") or names something ("Apollo 11").
    """
    spans = list(find_dates(text)) or list(find_numbers(text, mixed=True))
    if len(spans) != 1:
        return None
    start, end = spans[0]
    if text[:start].endswith("-"):
        return None  # -1:16
    tokens_before = text[:start].split()
    is_part_of_name = (
        len(tokens_before) == 1 and tokens_before[0][:1].isupper() and text[start].isdigit()
    )
    if tokens_before in (["a"], ["A"]) and end == len(text):
        return None  # "a 5" is a name and a number
    if qualified_number(text) or is_other_value(text[:start], text[end:]):
        return None
    has_no_single_value = _NOT_SINGLE_VALUE_RE.search(text[:start]) or _NOT_SINGLE_VALUE_RE.search(
        text[end:]
    )
    return None if is_part_of_name or has_no_single_value else (start, end)


def _make_date(
    year: int | None,
    month: int,
    day: int,
    *,
    is_ambiguous: bool = False,
    is_two_digit_year: bool = False,
) -> Date | None:
    """Return a date if the day exists; ``is_two_digit_year`` years have two digits."""
    try:
        datetime.date(2000 if year is None or is_two_digit_year else year, month, day)
    except ValueError:
        return None
    return Date(year, month, day, is_ambiguous)
