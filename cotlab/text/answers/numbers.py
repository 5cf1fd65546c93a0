"""Numbers as people and models write them: 1,080.5, 1 1/2, 3/4, 2.5e3, twenty-one, half a dozen."""

from __future__ import annotations

import re
from fractions import Fraction


def word_list(listed: str) -> list[str]:
    """Split a string of words."""
    return listed.split()


_MAX_DIGITS, _MAX_EXPONENT = 600, 400
# "1,080.5", "1 080", "1'080", "1,00,000", "18", ".5"
_DECIMAL = re.compile(
    r"(?:\d{1,3}([, '’])\d{3}(?:\1\d{3})*+(?!\d)|\d{1,3}(?:,\d{2}){1,9},\d{3}(?!\d)|\d++)"
    r"(?:\.\d++)?|\.\d++",
    re.ASCII,
)
# "e6", " x 10^6", "*10**-3"
_POWER = re.compile(
    r"[eE]([+-]?\d{1,9})(?![\w.])|\s?[*x×]\s?10\s?(?:\^|\*\*)\s?[({]?([+-]?\d{1,9})[)}]?(?![\w.])",
    re.ASCII,
)
# " 1/2" of "3 1/2"
_MIXED = re.compile(r"\s(\d{1,9})\s?/\s?(\d{1,9})(?![\d.])", re.ASCII)
# "/" of "3/4" and "3 / .5"
_SLASH = re.compile(r"\s?/\s?(?=[\d.])")
_SMALL_NUMERALS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen"
)
NUMERALS = {
    word: n
    for n, word in enumerate([*word_list(_SMALL_NUMERALS), "seventeen", "eighteen", "nineteen"])
}
TENS = {
    word: 10 * n
    for n, word in enumerate(word_list("twenty thirty forty fifty sixty seventy eighty ninety"), 2)
}
SCALES = {"dozen": 12, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_FRACTION_NAMES = {
    word: n
    for n, word in enumerate(
        word_list("half third quarter fifth sixth seventh eighth ninth tenth"), 2
    )
}
_FRACTION_NAMES |= {"halve": 2, "fourth": 4, "hundredth": 100}
# "twenty", "-one"
_WORD = re.compile(r"[\s-]*([A-Za-z]{1,12})(?![\w'’])")


def _decimal(text: str, at: int) -> tuple[Fraction, int, int] | None:
    """Read a decimal number at ``at``: its value, its end and its number of decimals."""
    match = _DECIMAL.match(text, at)
    if not match:
        return None
    integer, _, decimals = re.sub(r"[, '’]", "", match.group()).partition(".")
    if len(integer) + len(decimals) > _MAX_DIGITS:
        return None
    value = Fraction(int(integer + decimals), 10 ** len(decimals))
    power = _POWER.match(text, match.end())
    if not power:
        return value, match.end(), len(decimals)
    exponent = int(power[1] or power[2])
    return (
        (value * Fraction(10) ** exponent, power.end(), len(decimals))
        if abs(exponent) <= _MAX_EXPONENT
        else None
    )


def read_digits(text: str, at: int) -> tuple[Fraction, int, int] | None:
    """Read 1,080.5, 3/4 or 1 1/2 at ``at``: its value, its end and its number of decimals."""
    first = _decimal(text, at)
    if first is None:
        return None
    value, end, _ = first
    mixed = _MIXED.match(text, end)
    if mixed and value.denominator == 1 and int(mixed[2]):
        return value + Fraction(int(mixed[1]), int(mixed[2])), mixed.end(), 0
    if slash := _SLASH.match(text, end):
        below = _decimal(text, slash.end())
        return (value / below[0], below[1], 0) if below and below[0] else None
    return first


def read_spelled_number(text: str, at: int) -> tuple[Fraction, int, int] | None:
    """Read a spelled number at ``at``: its value, its end and 0.

    Examples: twenty-one, one hundred and five, two thirds, half a dozen, two and a half.
    """
    ends: list[int] = []
    names: list[str] = []
    while len(names) < 24 and (word := _WORD.match(text, at)):
        at = word.end()
        ends.append(at)
        names.append(word[1].lower())
    names += ["", "", ""]
    total = current = used = 0
    if names[0] in ("a", "an") and (names[1] == "hundred" or names[1] in SCALES or _part(names[1])):
        current, used = 1, 1
    while name := names[used]:
        before = names[used - 1] if used else ""
        if (
            name in NUMERALS
            and before not in NUMERALS
            and (before not in TENS or 0 < NUMERALS[name] < 10)
        ):
            current += NUMERALS[name]
        elif name in TENS and before not in NUMERALS and before not in TENS:
            current += TENS[name]
        elif name == "hundred" and 0 < current < 100:
            current *= 100
        elif name in SCALES and current:
            total, current = total + current * SCALES[name], 0
        elif (
            name != "and"
            or not (before == "hundred" or before in SCALES)
            or names[used + 1] not in NUMERALS | TENS
        ):
            break
        used += 1
    value = Fraction(total + current)
    if not used and names[0] == "half":
        used = next(
            (n for n, tail in ((3, ["a", "dozen"]), (2, ["dozen"])) if names[1:n] == tail), 1
        )
        return (Fraction(6) if used > 1 else Fraction(1, 2)), ends[used - 1], 0
    if used and (size := _part(names[used])):
        value, used = value / size, used + 1
    elif used and names[used] == "and" and (size := _part(names[used + 2])):
        value, used = value + Fraction(NUMERALS.get(names[used + 1], 1), size), used + 3
    return (value, ends[used - 1], 0) if used else None


def _part(word: str) -> int:
    """Return the denominator that a word names (3 for "third" and "thirds"), or 0."""
    return _FRACTION_NAMES.get(word) or _FRACTION_NAMES.get(word.removesuffix("s"), 0)
