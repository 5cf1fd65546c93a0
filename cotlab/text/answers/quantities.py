"""Quantities as people and models write them: $18.00, 50%, 5 km, 2 hours 30 minutes, 3 red apples.

Values are fractions, so 0.1 + 0.2 would be 0.3. Nothing is evaluated: what is not one written
quantity is None, and the work is bounded whatever the text says (at most 600 digits, exponents of
at most 400, nouns of at most 8 words).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from cotlab.text.answers.qualifiers import follows_other_value, is_decade
from cotlab.text.written_numbers import (
    DENOMINATORS,
    NUMERAL_VALUES,
    SCALE_FACTORS,
    TENS_VALUES,
    read_digits,
    read_spelled_number,
    word_list,
)
from cotlab.text.written_units import CURRENCIES, UNITS_BY_NAME, Unit, find_units, multiply_units

_MAX_NOUN_TOKENS = 8

# "about ", "a total of ", "~"
_APPROXIMATION_RE = re.compile(
    r"(?:about|approximately|approx\.?|roughly|around|nearly|almost|exactly|only|just|(?:a )?total"
    r" of|[~≈])\s*",
    re.IGNORECASE,
)
# "$", "US$", "EUR "
_CURRENCY_RE = re.compile(r"(US\$|[$€£¥₹₩]|USD|EUR|GBP|JPY|INR|Rs\.?)\s*", re.IGNORECASE)
# " million", "k", "bn"
_SCALE_WORD_RE = re.compile(r"\s?([A-Za-z]{1,8})(?![\w^/])")
# " " of "2 hours 30 minutes", " and " of "1 hour and 5 minutes", "" in "2h30m"
_PART_SEPARATOR_RE = re.compile(r",?(?<!\s)(?:\s+and)?\s+(?=\d)|(?<=[A-Za-z])(?=\d)")
# "square " of "square metres", "cu. " of "cu. ft", "° " of "° C", "fl " of "fl oz"
_UNIT_PREFIX_RE = re.compile(
    r"\s*(sq|cu|fl|de|°)(?:uare|\.|bic|uid|g|grees?)?\s+(?=[A-Za-z])", re.IGNORECASE
)
# "km", "m^2", "s-1", "%"
_UNIT_TERM_RE = re.compile(r"\s*([A-Za-zµ°%$€£]+\.?)(?:\^?(-?[1-4])(?!\d))?")
# " squared", " cubed"
_UNIT_POWER_RE = re.compile(r"\s+(squared|cubed)\b")
# "/" of "km/h", " per " of "$5 per hour", " each " of "3 each day"
_PER_RE = re.compile(r"\s*(?:/|\b(?:per|an?|each|every)\b)\s*(?=[A-Za-zµ])")
# "+", "=", "a12" and other signs that no unit or noun contains
_NON_UNIT_SIGN_RE = re.compile(r"[^\w\s/^.,'’()%°$€£-]|(?<![A-Za-z^-])\d|[A-Za-z]\d\d")
# "18", "-$1,080.50", "3/4", "1e6" in running text; not the 2 of "x2"
_NUMBER_IN_TEXT_RE = re.compile(
    r"(?<![\w.)^/\]])[-+−]?[$€£¥₹]?[-+−]?"
    r"(?:\d{1,3}(?:[,’\u00a0\u2009\u202f]\d{3}){1,60}+(?!\d)|\d++|(?=\.\d))(?:\.\d++)?"
    r"(?:[eE][+-]?\d{1,9}(?!\w))?(?:\s?/\s?\d++)?(?!\.?\d*_)"
)
# "2 3/4", "2½": one number in an answer
_MIXED_IN_TEXT_RE = re.compile(
    r"(?<![\w.)^/\]])[-+−]?\d{1,3}(?:\s\d{1,3}\s?/\s?\d{1,3}(?!\.?\d|[\w/])|\s?[¼-¾⅐-⅞])"
    rf"|{_NUMBER_IN_TEXT_RE.pattern}"
)
# " km/h", "%", "°C", "-m^2" after a number
_UNIT_AFTER_NUMBER_RE = re.compile(
    r"(\s?)-?(?:%|°[CF]?|([A-Za-zµ]{1,15})(?:(?:/|\sper\s)([A-Za-z]{1,15}))?(?:[²³]|\^[23])?)"
)
# "!" of "4!", "squared" of "three squared", "-" of "3-"
_OPERATION_RE = re.compile(
    r"(?i)\s*(?:!|-$|(?:squared|cubed|factorial|times|plus|minus|divided|choose|mod|modulo|over"
    r"|raised|to the)\b)"
)
# " of an " of "a quarter of an hour"
_OF_UNIT_RE = re.compile(
    r"\sof\san?\s(?=(?:hour|minute|day|week|year|mile|kilomet|met|pound|dozen|dollar)[a-z]*)"
)
# " - y" of "15 - y", "(y)" of "15 (y)", not " (eggs)"
_TERM_RE = re.compile(r"\s*[-(]\s*(?:[A-Za-z](?![A-Za-z]|\s[A-Za-z]{2})|[\d(\\]|sqrt|pi\b)")
# "/x" of "3/x", " pi" of "7 pi", " x" of "7 x + 1", " a" of "3 a" and not of "3 a day"
_LETTER_RE = re.compile(r"\s*(?:/\s*)?([A-Zb-z]|pi|a(?=\s*$))(?![A-Za-z'’.])")
# " degrees below zero" of "12 degrees below zero"
BELOW_ZERO_RE = re.compile(
    r"(?i)((?:\s?(?:degrees?|°))?(?:\s?(?:celsius|fahrenheit|[CF]\b))?)\s+(?:below|under)\s+zero\b"
)
# " and a half" of "12 and a half"
_AND_FRACTION_RE = re.compile(
    rf"\sand\s(?:an?|one)[\s-]({'|'.join(DENOMINATORS)})\b(?!\sof\b)", re.IGNORECASE
)
_SCALE_LETTER_FACTORS = {"k": 10**3, "K": 10**3, "M": 10**6, "B": 10**9, "bn": 10**9, "mn": 10**6}
_SIGN_VALUES = {"-": -1, "−": -1, "+": 1, "minus": -1, "negative": -1, "plus": 1}
# "-", "minus ", "plus "
_SIGN_RE = re.compile(r"([-+−]|(?:minus|negative|plus)\b)\s*", re.IGNORECASE)
_IGNORED_TERMS = frozenset(word_list("the more additional extra full whole different other"))
"""Words that are no part of a noun: 3 more apples are 3 apples."""
_TERMS_AFTER_NOUN = frozenset(
    word_list(
        "of in at on for from by with to that which who is are was were will would could should"
        " left remaining as so or and a an altogether but because since per each every if than"
        " then after before during between while total overall"
    )
)
"""Words that end a noun."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with what it counts."""

    value: Fraction
    """The number as written."""
    units: tuple[Unit, ...] = ()
    """Possible meanings of its unit; empty if the unit is unknown or not given."""
    nouns: frozenset[str] = frozenset()
    """The noun after it, without endings."""
    rate_unit: str = ""
    """What follows "per"."""
    unitless_values: tuple[Fraction, ...] = ()
    """Numbers without a unit that mean the same: 50 and 0.5 for 50%."""
    has_float_noise: bool = False
    """Whether it has 12 or more decimals, as floating-point noise does."""


@lru_cache(4096)  # the same few answers are compared at every step of a chain
def read_quantity(text: str) -> Quantity | None:
    """Read a text that is one quantity and nothing else.

    Parameters
    ----------
    text : str
        Plain text, LaTeX already resolved.

    Returns
    -------
    Quantity or None
        None where the text is not one written quantity; a formula such as ``3 + 4`` is not
        evaluated.
    """
    return _read_compound_quantity(text) or _read_simple_quantity(text)


def same_quantity(a: Quantity, b: Quantity) -> bool:
    """Return whether two quantities are equal.

    A unit that only one of them has is no difference; two different units are. Numbers are compared
    exactly, except that numbers with 12 or more decimals may differ by 1e-9 (relative below 1).
    """
    is_approximate = a.has_float_noise or b.has_float_noise
    no_unit_a, no_unit_b = not (a.units or a.nouns), not (b.units or b.nouns)
    if a.rate_unit and b.rate_unit and a.rate_unit != b.rate_unit:
        return False
    if no_unit_a or no_unit_b:
        values_a = a.unitless_values if no_unit_b else (a.value,)
        values_b = b.unitless_values if no_unit_a else (b.value,)
        return any(_values_equal(x, y, is_approximate) for x in values_a for y in values_b)
    if a.units and b.units:
        unit_pairs = [(u, v) for u in a.units for v in b.units if u[0] == v[0]]
        return any(
            _values_equal(a.value * u[1], b.value * v[1], is_approximate) for u, v in unit_pairs
        )
    is_same_noun = bool(a.nouns and b.nouns) and (a.nouns <= b.nouns or b.nouns <= a.nouns)
    return is_same_noun and _values_equal(a.value, b.value, is_approximate)


def find_numbers(text: str, *, mixed: bool = False) -> Iterator[tuple[int, int]]:
    """Yield the ranges (start, end) of the numbers in running text, in order.

    With ``mixed``, "2 3/4" is one number.
    Each range includes the currency sign and the known unit that follows. Ordinals (2nd),
    coefficients (2x) and digits within words are left out.
    """
    for match in (_MIXED_IN_TEXT_RE if mixed else _NUMBER_IN_TEXT_RE).finditer(text):
        unit_match = _UNIT_AFTER_NUMBER_RE.match(text, match.end())
        unit_name = unit_match[2] if unit_match else None
        if is_decade(text, match.start()):
            continue
        if unit_match is None or unit_name is None:
            yield match.start(), unit_match.end() if unit_match else match.end()
        elif (
            unit_name in _SCALE_LETTER_FACTORS
            or unit_name.lower() in SCALE_FACTORS
            or (find_units(unit_name) and (not unit_match[3] or find_units(unit_match[3])))
        ):
            yield match.start(), unit_match.end()
        elif unit_match[1]:
            yield match.span()


def _values_equal(x: Fraction, y: Fraction, is_approximate: bool) -> bool:
    """Compare two numbers, exactly or up to floating-point noise."""
    return x == y or (
        is_approximate and abs(x - y) <= Fraction(1, 10**9) * min(Fraction(1), max(abs(x), abs(y)))
    )


def _read_compound_quantity(text: str) -> Quantity | None:
    """Read "2 hours 30 minutes" as 150 minutes.

    It has two to four parts of one dimension, each smaller than the one before; the value is in the
    unit of the last.
    """
    pieces = _PART_SEPARATOR_RE.split(text.strip()) if len(text) <= 100 else []
    quantities = [
        quantity
        for part in pieces
        if (quantity := _read_simple_quantity(part)) and quantity.units and quantity.value >= 0
    ]
    if not 2 <= len(pieces) <= 4 or len(quantities) < len(pieces):
        return None
    for dimension, size in quantities[-1].units:
        sizes = [
            next(
                (size for other_dimension, size in quantity.units if other_dimension == dimension),
                Fraction(0),
            )
            for quantity in quantities
        ]
        if all(sizes) and all(x > y for x, y in pairwise(sizes)):
            total = sum(
                (
                    quantity.value * part_size
                    for quantity, part_size in zip(quantities, sizes, strict=True)
                ),
                Fraction(0),
            )
            return Quantity(
                total / size, ((dimension, size),), unitless_values=(total / size, total / sizes[0])
            )
    return None


def _read_simple_quantity(text: str) -> Quantity | None:
    """Read one number with what it counts: "about -$5", "1.5 million people", "5 km/h"."""
    position, sign, currency, text = 0, 1, "", text.strip()
    for _ in range(5):  # "about -$5", "$ -5", "minus 5 dollars"
        if match := _APPROXIMATION_RE.match(text, position):
            position = match.end()
        elif not currency and (match := _CURRENCY_RE.match(text, position)):
            currency, position = match[1].lower().rstrip("."), match.end()
        elif match := _SIGN_RE.match(text, position):
            sign, position = sign * _SIGN_VALUES[match[1].lower()], match.end()
    number_reading = read_digits(text, position) or read_spelled_number(text, position)
    if number_reading is None:
        return None
    value, end, n_decimals = number_reading
    if is_decade(text, position):
        return None
    if value.denominator == 1 and (half := _AND_FRACTION_RE.match(text, end)):  # 12 and a half
        value, end = value + Fraction(1, DENOMINATORS[half[1].lower()]), half.end()
    remaining_text = text[end:]
    if value.denominator > 1 and (of_match := _OF_UNIT_RE.match(remaining_text)):
        remaining_text = f" {remaining_text[of_match.end() :]}"  # three quarters of an hour
    if below_match := BELOW_ZERO_RE.match(remaining_text):
        sign, remaining_text = -1, below_match[1] + remaining_text[below_match.end() :]
    if scale_match := _SCALE_WORD_RE.match(remaining_text):
        letter_factor = (
            10**6
            if currency and scale_match[1] == "m"
            else _SCALE_LETTER_FACTORS.get(scale_match[1])
            if not remaining_text[0].isspace()
            else None
        )
        hundred = 100 if scale_match[1].lower() == "hundred" else None
        if factor := SCALE_FACTORS.get(scale_match[1].lower()) or hundred or letter_factor:
            value, remaining_text = value * factor, remaining_text[scale_match.end() :]
    if remaining_text[:1].isalpha() and not (
        (unit_match := _UNIT_TERM_RE.match(remaining_text)) and find_units(unit_match[1])
    ):  # 2nd, 2x
        return None
    value *= sign
    quantity = _build_quantity(value, remaining_text, currency)
    return replace(quantity, has_float_noise=n_decimals >= 12) if quantity else None


def _build_quantity(value: Fraction, remaining_text: str, currency: str) -> Quantity | None:
    """Read what follows a number: a unit, a noun or nothing; None for anything else."""
    if _OPERATION_RE.match(remaining_text) or _TERM_RE.match(remaining_text):
        return None
    if follows_other_value(remaining_text):
        return None  # 12 or more, 12 BC
    letter_match = _LETTER_RE.match(remaining_text)
    if letter_match and not find_units(letter_match[1]):
        return None  # 3/x, 7 x and 7 pi are expressions
    remaining_text = remaining_text.strip().removeprefix("-").strip(" .,;:!?")
    if (
        len(remaining_text) > 120
        or _NON_UNIT_SIGN_RE.search(remaining_text)
        or any(
            word in NUMERAL_VALUES or word in TENS_VALUES for word in remaining_text.lower().split()
        )
    ):
        return None
    remaining_text = (
        "inch" if remaining_text == "in" else remaining_text
    )  # elsewhere "in" is a preposition
    nouns, noun_end = read_noun(remaining_text)
    if currency:
        units, unit_end = UNITS_BY_NAME[currency], 0
        unit_match = _UNIT_TERM_RE.match(remaining_text)
        if unit_match and set(find_units(unit_match[1])) & set(units):
            unit_end = unit_match.end()
        nouns = frozenset()
    else:
        units, unit_end = _read_unit(remaining_text)
        if not units:
            if len(remaining_text.split()) > _MAX_NOUN_TOKENS or re.search(
                r"[\d^%°$€£]", remaining_text
            ):
                return None
            units = tuple(
                unit
                for word in remaining_text[:noun_end].split()
                if len(word) > 2
                for unit in find_units(word)
            )
            unit_end = noun_end
    per_match = _PER_RE.match(remaining_text, unit_end)
    rate_unit = _singular_form(remaining_text[per_match.end() :].split()[0]) if per_match else ""
    unitless_values = (
        (value, value / 100) if any(dims == (("percent", 1),) for dims, _ in units) else (value,)
    )
    return Quantity(value, units, nouns, rate_unit, unitless_values)


def read_noun(remaining_text: str) -> tuple[frozenset[str], int]:
    """Read the noun after a number, up to a preposition, an article or a verb, and its end."""
    stems, noun_end = set(), 0
    for match in re.finditer(r"[^\s/,()]+", remaining_text):
        word = match.group().lower().strip(".'’-")
        is_sign = bool(word) and not any(c.isalpha() or c in "%°" for c in word)  # "+", "16"
        if is_sign or word in _TERMS_AFTER_NOUN or remaining_text[noun_end : match.start()].strip():
            break
        noun_end = match.end()
        if word and word not in _IGNORED_TERMS:
            stems.add(_singular_form(word))
    return frozenset(stems), noun_end


def _singular_form(word: str) -> str:
    """Return a word in lower case without its plural ending."""
    word = word.lower().strip(".,'’()")
    if word == "mol":
        return "mole"
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("shes", "ches", "xes", "sses", "oes")):
        return word[:-2]
    return word[:-1] if len(word) > 2 and word.endswith("s") and not word.endswith("ss") else word


def _read_unit(remaining_text: str) -> tuple[tuple[Unit, ...], int]:
    """Read a unit such as km/h, "square metres" or m^2: its possible meanings and its end."""
    units: tuple[Unit, ...] = ()
    position, sign = 0, 1
    for _ in range(4):
        prefix_match = _UNIT_PREFIX_RE.match(remaining_text, position)
        term_match = _UNIT_TERM_RE.match(
            remaining_text, prefix_match.end() if prefix_match else position
        )
        prefix = prefix_match[1].lower() if prefix_match else ""
        meanings = find_units(term_match[1]) if term_match else ()
        if term_match and prefix in ("de", "°"):
            meanings = (
                UNITS_BY_NAME.get("°" + term_match[1][0].lower(), ())
                if term_match[1].lower() in ("c", "f", "celsius", "fahrenheit")
                else ()
            )
            if not meanings and (term_match := _UNIT_TERM_RE.match(remaining_text, position)):
                meanings = find_units(term_match[1])
        if not term_match or not meanings:
            break
        position = term_match.end()
        power = sign * int(term_match[2] or {"sq": 2, "cu": 3}.get(prefix, 1))
        if power_match := _UNIT_POWER_RE.match(remaining_text, position):
            position, power = power_match.end(), power * (2 if power_match[1] == "squared" else 3)
        powered_units = [
            (tuple((base, n * power) for base, n in dims), size**power) for dims, size in meanings
        ]
        units = tuple(
            multiply_units(u, v) for u in units or (((), Fraction(1)),) for v in powered_units
        )
        per_match = _PER_RE.match(remaining_text, position)
        next_term_match = (
            _UNIT_TERM_RE.match(remaining_text, per_match.end()) if per_match else None
        )
        if (
            not per_match
            or not next_term_match
            or not find_units(next_term_match[1])
            or meanings[0][0][0][0] in CURRENCIES
        ):
            break
        position, sign = per_match.end(), -1
    return units, position
