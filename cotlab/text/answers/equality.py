"""Whether two answers are the same, where conventions decide it: True, False, else None.

Numbers are exact fractions and units are pint's. Different words are None, and so are formulas
that are not written alike: `formula_pair` says which of them a computation can decide.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, NamedTuple

from cotlab.core.requests import SAME_ANSWER_SIGN
from cotlab.text.answers.normal import plain_text, tidy, word_key, word_list

_MAX_FORMULA_CHARACTERS = 400
_N_ROUNDED_DIGITS = 9
"""Significant digits that no one writes but a computer that rounds."""
_CONVERSIONS = frozenset({60, 3600, 24, 7, 12, 10, 100, 1000})
"""Ratios of two units of one kind."""
_SMALL_NUMBERS = word_list(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen"
)
_TENS = word_list("twenty thirty forty fifty sixty seventy eighty ninety")
_NUMBER_WORDS = {word: i for i, word in enumerate(_SMALL_NUMBERS)} | {
    word: 10 * i for i, word in enumerate(_TENS, start=2)
}
# "minus five", "twenty-one"
_WORDS_RE = re.compile(
    rf"(?i)(minus\s|negative\s)?(?:({'|'.join(sorted(_NUMBER_WORDS, reverse=True))})"
    rf"(?:(?<=y)[-\s]({'|'.join(_SMALL_NUMBERS[1:10])}))?\b|(?=\d))"
)
_SCALES = {
    "hundred": 100,
    "thousand": 10**3,
    "k": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
    "dozen": 12,
}
# "1,000", "1,00,000", "1 250", "1'250"
_INTEGER = r"[1-9]\d{0,2}(?:,\d{2,3})*,\d{3}(?!\d)|[1-9]\d{0,2}(?:[ ']\d{3})+(?!\d)|\d+"
_NUMBER_RE = re.compile(
    r"(?P<currency>[$€£¥₹])?\s?(?P<sign>[-+])?\s?(?P<inner>[$€£¥₹])?\s?"
    rf"(?:(?P<whole>\d+) (?=\d+/\d))?(?P<digits>(?:{_INTEGER})(?:\.\d+)?|\.\d+)"
    r"(?:\s?/\s?(?P<denominator>\d+))?"
    r"(?:[eE](?P<exponent>[-+]?\d{1,3})|\s?(?:×|x|\*|·|\\times|\\cdot)\s?10\s?\^\s?\{?(?P<power>[-+]?\d{1,3})\}?)?"
    r"(?:\s?(?P<scale>(?i:(?:hundred|thousand|million|billion|trillion|dozen)s?)|k)\b)?"
    r"\s*(?P<unit>%|percent(?:age)?|pct"
    r"|(?:(?<=\s)|(?![A-Z]{1,2}$))[A-Za-z°µ$€£](?:[A-Za-z°µ/^. ]|(?<=[A-Za-z^])[23](?!\d)){0,30})?"
)
_LATEX_FRACTION_RE = re.compile(r"\\[dtc]?frac\s?\{(-?\d+)\}\s?\{(\d+)\}(?=\s?(?:$|\\?%|[A-Za-z]))")
# "about 5", "a total of 5", "x = 5", "m+n = 256+37 = 293"
_BEFORE_NUMBER_RE = re.compile(
    r"(?i)^(?:about|approximately|roughly|exactly|only|just|a total of|[a-z]\s?=|≈|~|=)\s?"
)
_SUM_RE = re.compile(r"[\w+*/(). -]{1,60}=[\d+*/(). -]{1,80}=\s?(-?[\d.,]+)")
# " of", " or more": no unit
_NO_UNIT_RE = re.compile(
    r"(?i)\b(?:and|or|to|is|not|more|less|at|than)\b|^(?:[a-z]|st|nd|rd|th)$"
    r"|^(?:hal(?:f|ves)|thirds?|quarters?|(?:four|fif|six|seven|eigh|nin|ten)ths?|hundred|thousand)\b"
)
_LETTER_UNIT_RE = re.compile(r"[mgslhcMGSLHCNKAWJV]")
_CURRENCIES = {"$": "dollar", "€": "euro", "£": "pound", "¥": "yen", "₹": "rupee"} | {
    "usd": "dollar",
    "eur": "euro",
    "percent": "%",
    "percentage": "%",
    "pct": "%",
}
_YES_NO = {"yes": True, "true": True, "no": False, "false": False}
_OPTION_RE = re.compile(r"(?i)(?:(?:option|choice)\s)?[(\[]?([A-J])[)\].:]?(?:(?<=[)\].:])\s(.+))?")
# "J. Smith", which is no option J
_INITIAL_RE = re.compile(r"[A-Z][.:]\s")
_UNIT_ERRORS = (ValueError, TypeError, AttributeError, AssertionError, ArithmeticError)
"""What pint raises beside its own errors on words that are no units."""
_CALENDAR_RE = re.compile(r"\b(?:month|year)\b")
_CLOCK_RE = re.compile(r"\d{1,4}(?::\d{1,4})+")
# what a formula has: a command, an operator, a letter that stands alone
_FORMULA_RE = re.compile(r"\\[a-zA-Z]|[\d^_=+*/<>∞π√°!]|^\(?-?[a-zA-Z]\)?$")
_WORD_RE = re.compile(r"(?<!\\)\b[A-Za-z]{3,}\b")
_FORMULA_WORDS = frozenset(word_list("sin cos tan sec csc cot log exp sqrt and infty"))
_UNIT_END_RE = re.compile(
    r"(?<=[\w}]) (?:square |cubic )?(?:inches|inch|feet|cm|units?|degrees|miles|meters|dollars"
    r"|cents|hours|minutes|years)(?:\^?[23])?$"
)
# "…" of a list that goes on, an index, "1,22", which is one number or two, a time, a ratio, a date
_OPEN_RE = re.compile(
    rf"\\[lc]?dots|\.\.\.|…|_|\d[MB]$|^-?\d+,\d+$|:|\b[ap]\.?m\b|\d[-/]\d{{1,2}}[-/]\d|\d [a-z]+ \d"
    rf"|{SAME_ANSWER_SIGN}"
)
# "5" of "f(x) = 5", "|AB| = 5"
_NAMED_RE = re.compile(r"([A-Za-z]\w?'?(?:\([a-z]\))?|\|[A-Z]{2}\|)\s?=\s?([^=]+)")
_SPACE_RE = re.compile(r"(?<!\w)\s+|\s+(?!\w)")
_COMMAND_RE = re.compile(r"\\(?:begin|end)\{[a-z]+\}|\\[a-zA-Z]+")
_LARGE_POWER_RE = re.compile(r"\^\s?\{?\s?-?\d{4,}|(?:\^[^+\-*/=,]*){3,}")


class Number(NamedTuple):
    """A number with what it counts."""

    value: Fraction
    """The number."""
    unit: str
    """Its unit in lower case and the singular, "%", or ""."""
    written: Fraction = Fraction(0)
    """The number without the factor of "million", "dozen" or "cents"."""
    n_digits: int = 0
    """Significant digits of a number that is written with decimals."""


@lru_cache(8192)
def same_value(a: str, b: str) -> bool | None:
    """Return whether two answers are the same; None where conventions cannot tell."""
    plain_a, plain_b = plain_text(a), plain_text(b)
    if not plain_a or not plain_b:
        return None
    key_a, key_b = word_key(a), word_key(b)
    has_signs = re.search(r"[\d|\[({\\=<>]", plain_a + plain_b)
    if _SPACE_RE.sub("", plain_a) == _SPACE_RE.sub("", plain_b):
        return True
    names = [match[1] if (match := _NAMED_RE.fullmatch(t)) else "" for t in (plain_a, plain_b)]
    if all(names) and names[0] != names[1]:
        return None  # x = 5, y = 5
    if key_a and key_a == key_b and not has_signs:
        return True
    first, second = _yes_or_no(key_a, plain_a), _yes_or_no(key_b, plain_b)
    if first is not None or second is not None:
        return None if first is None or second is None else first is second
    options = [_OPTION_RE.fullmatch(text) for text in (plain_a, plain_b)]
    if options[0] and options[1] and not (options[0][2] and options[1][2]):
        has_initial = any(_INITIAL_RE.match(text) for text in (plain_a, plain_b))
        return None if has_initial else options[0][1].lower() == options[1][1].lower()
    for option, key in zip(options, (key_b, key_a), strict=True):
        if option and option[2] and word_key(option[2]) == key:
            return True  # "(b) stress", "stress"
    if options[0] and options[1]:  # "(B) kitchen", "E. coli"
        is_same = options[0][1].lower() == options[1][1].lower()
        if word_key(options[0][2]) == word_key(options[1][2]):
            return is_same
        return False if plain_a[0] == plain_b[0] == "(" and not is_same else None
    number_a, number_b = read_number(a), read_number(b)
    if number_a and number_b:
        return _same_number(number_a, number_b)
    if _CLOCK_RE.fullmatch(plain_a) and _CLOCK_RE.fullmatch(plain_b):
        (a1, *a2), (b1, *b2) = ([int(n) for n in t.split(":")] for t in (plain_a, plain_b))
        is_ratio = len(a2) == len(b2) == 1 and a1 * b2[0] == b1 * a2[0] != 0
        return True if (a1, a2) == (b1, b2) else None if is_ratio else False
    return None


def formula_pair(a: str, b: str) -> tuple[str, str] | None:
    """Return two answers that a computation can compare, as LaTeX; None where one is no formula."""
    if read_number(a) and read_number(b):
        return None
    sides = [_UNIT_END_RE.sub("", plain_text(text)).strip() for text in (a, b)]
    named = [_NAMED_RE.fullmatch(side) for side in sides]
    if bool(named[0]) != bool(named[1]) and sum("=" in side for side in sides) == 1:
        sides = [match[2] if match else side for match, side in zip(named, sides, strict=True)]
    brackets = {side.removeprefix("\\")[:1] for side in sides}
    if brackets == {"(", "{"}:  # a tuple and a set
        return None
    for side in sides:
        words = set(_WORD_RE.findall(_COMMAND_RE.sub(" ", side))) - _FORMULA_WORDS
        if words or not _FORMULA_RE.search(side) or len(side) > _MAX_FORMULA_CHARACTERS:
            return None
        if _OPEN_RE.search(side) or _LARGE_POWER_RE.search(side):
            return None
    is_equation = ["=" in side and not re.match(r"[A-Za-z]\w?\s?=|\(", side) for side in sides]
    if any(is_equation) and not all("=" in side for side in sides):
        return None
    return sides[0], sides[1]


@lru_cache(8192)
def read_number(text: str) -> Number | None:
    """Read an answer that is one number, with or without a unit; None for anything else.

    Examples
    --------
    >>> read_number("$1,250.50").value
    Fraction(2501, 2)
    >>> read_number("3 dozen eggs")[:2]
    (Fraction(36, 1), 'egg')
    """
    text = _LATEX_FRACTION_RE.sub(r" \1/\2", plain_text(text)).strip()
    if match := _SUM_RE.fullmatch(text):
        text = match[1]
    text = _with_digits(_BEFORE_NUMBER_RE.sub("", text).strip())
    match = _NUMBER_RE.fullmatch(text)
    if match is None:
        return None
    unit = (match["unit"] or "").strip(" .")
    if _NO_UNIT_RE.search(unit) and not _LETTER_UNIT_RE.fullmatch(unit):
        return None
    if not _NUMBER_WORDS.keys().isdisjoint(unit.casefold().split()):
        return None
    value = Fraction(re.sub(r"[, ']", "", match["digits"]))
    if match["denominator"]:
        if int(match["denominator"]) == 0:
            return None
        value /= int(match["denominator"])
    value += int(match["whole"] or 0)
    value *= Fraction(10) ** int(match["exponent"] or match["power"] or 0)
    if match["sign"] == "-":
        value = -value
    written = value
    value *= _SCALES.get((match["scale"] or "").lower().removesuffix("s"), 1)
    words = [_CURRENCIES.get(word.casefold(), _singular(word)) for word in unit.split()]
    if currency := match["currency"] or match["inner"]:
        words = [_CURRENCIES[currency], *(word for word in words if word != _CURRENCIES[currency])]
    if words[:1] == ["cent"]:
        value, words = value / 100, ["dollar", *words[1:]]
    n_digits = len(re.sub(r"\D", "", match["digits"]).lstrip("0")) if "." in match["digits"] else 0
    return Number(value, " ".join(words), written, n_digits)


def _singular(word: str) -> str:
    """Return a word in lower case without its plural ending; a unit's sign as it is."""
    return word.casefold().removesuffix("s") if len(word) > 3 else word


def _with_digits(text: str) -> str:
    """Return a text whose first words are a number with the number in digits."""
    match = _WORDS_RE.match(text)
    if match is None:
        return text
    sign, words = "-" if match[1] else "", [word.lower() for word in match.groups()[1:] if word]
    value = str(sum(_NUMBER_WORDS[word] for word in words)) if words else ""
    return f"{sign}{value}{text[match.end() :]}"


def _yes_or_no(key: str, text: str) -> bool | None:
    """Return what an answer of yes, no, true or false says, with or without a reason after it."""
    word, _, reason = key.partition(" ")
    says_more = re.search(r"\d", reason) or not _YES_NO.keys().isdisjoint(reason.split())
    is_whole = not reason or (f"{word}," in text.lower() and not says_more)
    return _YES_NO.get(word) if is_whole else None


def _same_number(x: Number, y: Number) -> bool | None:
    if x.unit == y.unit or (not (x.unit and y.unit) and "%" not in (x.unit, y.unit)):
        is_same = _same_size(x, y)
        return is_same if is_same or not _may_be_same(x, y) else None
    if "%" in (x.unit, y.unit):
        if x.unit and y.unit:
            return None
        share, number = (x, y) if x.unit == "%" else (y, x)
        return number.value in (share.value, share.value / 100)
    words_x, words_y = set(x.unit.split()), set(y.unit.split())
    if words_x <= words_y or words_y <= words_x:  # 5 eggs, 5 duck eggs
        return _same_size(x, y)
    import pint

    if any(_CALENDAR_RE.search(n.unit) for n in (x, y)):
        return None  # a month or a year has no fixed length
    try:  # None where pint does not know both
        left, right = (_unit_registry().Quantity(n.value, n.unit).to_base_units() for n in (x, y))
        if left.dimensionality != right.dimensionality:
            return None
        size = max(abs(left.magnitude), abs(right.magnitude))
        return bool(abs(left.magnitude - right.magnitude) <= 1e-9 * size)
    except (pint.PintError, *_UNIT_ERRORS):
        return None


def _may_be_same(x: Number, y: Number) -> bool:
    """Return whether two numbers of other sizes may count in other units: 50 cents, 50."""
    if x.unit and y.unit:
        return False
    if x.written == y.written:
        return True
    low, high = sorted((x.value, y.value))
    return x.unit != y.unit and low > 0 and high / low in _CONVERSIONS


def _same_size(x: Number, y: Number) -> bool:
    """Compare exactly, or beside many digits up to their rounding: 0.08333333333 is 1/12."""
    n_digits = max(x.n_digits, y.n_digits)
    share = Fraction(1, 10 ** (n_digits - 1)) if n_digits >= _N_ROUNDED_DIGITS else 0
    return abs(x.value - y.value) <= share * max(abs(x.value), abs(y.value))


@cache
def _unit_registry() -> Any:
    import pint

    return pint.UnitRegistry(autoconvert_offset_to_baseunit=True)


def has_number(text: str) -> bool:
    """Return whether an answer has a digit or is a number in words."""
    return any(c.isdecimal() for c in text) or read_number(tidy(text)) is not None
