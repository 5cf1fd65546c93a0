"""Numbers as they are written in English text and LaTeX: 18, 1,080.5, .5, 1{,}080, twenty-one.

`NUMBER_PATTERN` is what every reader of text takes for a number; an answer may also group its
digits with spaces or apostrophes, and spell them (`read_digits`, `read_spelled_number`).
"""

from __future__ import annotations

import re
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


def word_list(text: str) -> list[str]:
    """Split a string of words."""
    return text.split()


_MAX_DIGITS, _MAX_EXPONENT = 600, 400
# "1,080.5", "1 080", "1'080", "1,00,000", "18", ".5"
_DECIMAL_RE = re.compile(
    r"(?:\d{1,3}([, '’])\d{3}(?:\1\d{3})*+(?!\d)|\d{1,3}(?:,\d{2}){1,9},\d{3}(?!\d)|\d++)"
    r"(?:\.\d++)?|\.\d++",
    re.ASCII,
)
# "e6", " x 10^6", "*10**-3"
_POWER_OF_TEN_RE = re.compile(
    r"[eE]([+-]?\d{1,9})(?![\w.])|\s?[*x×]\s?10\s?(?:\^|\*\*)\s?[({]?([+-]?\d{1,9})[)}]?(?![\w.])",
    re.ASCII,
)
# " 1/2" of "3 1/2"
_MIXED_FRACTION_RE = re.compile(r"\s(\d{1,9})\s?/\s?(\d{1,9})(?![\d.])", re.ASCII)
# "/" of "3/4" and "3 / .5"
_FRACTION_SLASH_RE = re.compile(r"\s?/\s?(?=[\d.])")
_SMALL_NUMERALS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen"
)
NUMERAL_VALUES = {
    word: n
    for n, word in enumerate([*word_list(_SMALL_NUMERALS), "seventeen", "eighteen", "nineteen"])
}
TENS_VALUES = {
    word: 10 * n
    for n, word in enumerate(word_list("twenty thirty forty fifty sixty seventy eighty ninety"), 2)
}
SCALE_FACTORS = {
    "dozen": 12,
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
}
COUNT_NUMERALS = frozenset(
    NUMERAL_VALUES.keys() - {"zero"} | TENS_VALUES.keys() | {"dozen", "hundred"}
)
"""Words of which counts below a thousand are made."""
DENOMINATORS = {
    word: n
    for n, word in enumerate(
        word_list("half third quarter fifth sixth seventh eighth ninth tenth"), 2
    )
}
DENOMINATORS |= {"halve": 2, "fourth": 4, "hundredth": 100}
"""Denominators by the word for one of their parts."""
# "twenty", "-one"
_NUMBER_WORD_RE = re.compile(r"[\s-]*([A-Za-z]{1,12})(?![\w'’])")


def _read_decimal(text: str, position: int) -> tuple[Fraction, int, int] | None:
    """Read a decimal number at ``position``: its value, its end and its number of decimals."""
    match = _DECIMAL_RE.match(text, position)
    if not match:
        return None
    integer_digits, _, decimal_digits = re.sub(r"[, '’]", "", match.group()).partition(".")
    if len(integer_digits) + len(decimal_digits) > _MAX_DIGITS:
        return None
    value = Fraction(int(integer_digits + decimal_digits), 10 ** len(decimal_digits))
    power_match = _POWER_OF_TEN_RE.match(text, match.end())
    if not power_match:
        return value, match.end(), len(decimal_digits)
    exponent = int(power_match[1] or power_match[2])
    return (
        (value * Fraction(10) ** exponent, power_match.end(), len(decimal_digits))
        if abs(exponent) <= _MAX_EXPONENT
        else None
    )


def read_digits(text: str, position: int) -> tuple[Fraction, int, int] | None:
    """Read 1,080.5, 3/4 or 1 1/2 at ``position``: its value, its end and its number of decimals."""
    decimal_reading = _read_decimal(text, position)
    if decimal_reading is None:
        return None
    value, end, _ = decimal_reading
    mixed_match = _MIXED_FRACTION_RE.match(text, end)
    if mixed_match:
        numerator, denominator = int(mixed_match[1]), int(mixed_match[2])
        is_mixed = numerator < denominator and "." not in text[position:end]
        # "11 7/6" and "1.5 1/2" are no numbers
        return (
            (value + Fraction(numerator, denominator), mixed_match.end(), 0) if is_mixed else None
        )
    if slash_match := _FRACTION_SLASH_RE.match(text, end):
        denominator_reading = _read_decimal(text, slash_match.end())
        return (
            (value / denominator_reading[0], denominator_reading[1], 0)
            if denominator_reading and denominator_reading[0]
            else None
        )
    return decimal_reading


def read_spelled_number(text: str, position: int) -> tuple[Fraction, int, int] | None:
    """Read a spelled number at ``position``: its value, its end and 0.

    Examples: twenty-one, one hundred and five, two thirds, half a dozen, two and a half.
    """
    name_ends: list[int] = []
    number_names: list[str] = []
    while len(number_names) < 24 and (name_match := _NUMBER_WORD_RE.match(text, position)):
        position = name_match.end()
        name_ends.append(position)
        number_names.append(name_match[1].lower())
    number_names += ["", "", ""]
    total = group_total = n_names_used = 0
    if number_names[0] in ("a", "an") and (
        number_names[1] == "hundred"
        or number_names[1] in SCALE_FACTORS
        or _find_denominator(number_names[1])
    ):
        group_total, n_names_used = 1, 1
    while current_name := number_names[n_names_used]:
        previous_name = number_names[n_names_used - 1] if n_names_used else ""
        if (
            current_name in NUMERAL_VALUES
            and previous_name not in NUMERAL_VALUES
            and (previous_name not in TENS_VALUES or 0 < NUMERAL_VALUES[current_name] < 10)
        ):
            group_total += NUMERAL_VALUES[current_name]
        elif (
            current_name in TENS_VALUES
            and previous_name not in NUMERAL_VALUES
            and previous_name not in TENS_VALUES
        ):
            group_total += TENS_VALUES[current_name]
        elif current_name == "hundred" and 0 < group_total < 100:
            group_total *= 100
        elif current_name in SCALE_FACTORS and group_total:
            total, group_total = total + group_total * SCALE_FACTORS[current_name], 0
        elif (
            current_name != "and"
            or not (previous_name == "hundred" or previous_name in SCALE_FACTORS)
            or number_names[n_names_used + 1] not in NUMERAL_VALUES | TENS_VALUES
        ):
            break
        n_names_used += 1
    value = Fraction(total + group_total)
    if not n_names_used and number_names[0] == "half":
        n_names_used = next(
            (n for n, tail in ((3, ["a", "dozen"]), (2, ["dozen"])) if number_names[1:n] == tail), 1
        )
        if n_names_used == 1 and number_names[1] in ("a", "an"):  # half an hour
            return Fraction(1, 2), name_ends[1], 0
        return (Fraction(6) if n_names_used > 1 else Fraction(1, 2)), name_ends[n_names_used - 1], 0
    if n_names_used and (denominator := _find_denominator(number_names[n_names_used])):
        value, n_names_used = value / denominator, n_names_used + 1
    elif (
        n_names_used
        and number_names[n_names_used] == "and"
        and (denominator := _find_denominator(number_names[n_names_used + 2]))
    ):
        value, n_names_used = (
            value + Fraction(NUMERAL_VALUES.get(number_names[n_names_used + 1], 1), denominator),
            n_names_used + 3,
        )
    return (value, name_ends[n_names_used - 1], 0) if n_names_used else None


_ORDINAL_RE = re.compile(
    r"(?:the\s)?(?:(\d{1,9})(?:st|nd|rd|th)|([a-z]+(?:[- ][a-z]+){0,3}))", re.I
)
_ORDINAL_NAMES = {
    "first": 1,
    "second": 2,
    "third": 3,
    "fifth": 5,
    "eighth": 8,
    "ninth": 9,
    "twelfth": 12,
}


ORDINAL_PATTERN = (
    r"(?:(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)[- ])?"
    r"(?:first|second|third|[a-z]{1,8}th)"
)
"""Regular expression of what may be an ordinal in letters; ``read_ordinal`` tells whether it is."""


def read_ordinal(text: str) -> int | None:
    """Read 21st, second, "the twenty-first" as a number; None for other text."""
    match = _ORDINAL_RE.fullmatch(text.strip())
    if match is None or match[1]:
        return int(match[1]) if match else None
    terms = re.split(r"[- ]", match[2].lower())
    last = terms.pop()
    tens = TENS_VALUES.get(terms[0], 0) if len(terms) == 1 else 0
    if terms and not tens:
        return None
    stem = last.removesuffix("th")
    units = _ORDINAL_NAMES.get(last) or (NUMERAL_VALUES.get(stem, 0) if stem != last else 0)
    if not tens and last.endswith("ieth"):
        return TENS_VALUES.get(last[:-4] + "y")
    return tens + units if units and (not tens or units < 10) else None


def _find_denominator(word: str) -> int:
    """Return the denominator that a word names (3 for "third" and "thirds"), or 0."""
    return DENOMINATORS.get(word) or DENOMINATORS.get(word.removesuffix("s"), 0)
