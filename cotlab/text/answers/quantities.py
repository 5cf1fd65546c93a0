"""Quantities as people and models write them: $18.00, 50%, 5 km, 2 hours 30 minutes, 3 red apples.

Values are fractions, so 0.1 + 0.2 would be 0.3. Nothing is evaluated: what is not one written
quantity is None, and the work is bounded whatever the text says (at most 600 digits, exponents of
at most 400, nouns of at most 8 words).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

from cotlab.text.answers.numbers import (
    NUMERALS,
    SCALES,
    TENS,
    read_digits,
    read_spelled_number,
    word_list,
)

_MAX_NOUN_LENGTH = 8

Unit = tuple[tuple[tuple[str, int], ...], Fraction]
"""Exponents by base, such as (("length", 1), ("time", -1)), and size in units of the base."""
# "about ", "a total of ", "~"
_ABOUT = re.compile(
    r"(?:about|approximately|approx\.?|roughly|around|nearly|almost|exactly|only|just|(?:a )?total"
    r" of|[~≈])\s*",
    re.IGNORECASE,
)
# "$", "US$", "EUR "
_MONEY = re.compile(r"(US\$|[$€£¥₹₩]|USD|EUR|GBP|JPY|INR|Rs\.?)\s*", re.IGNORECASE)
# " million", "k", "bn"
_SCALED = re.compile(r"\s?([A-Za-z]{1,8})(?![\w^/])")
# " " of "2 hours 30 minutes", " and " of "1 hour and 5 minutes", "" in "2h30m"
_PART = re.compile(r",?(?:\s+and)?\s+(?=\d)|(?<=[A-Za-z])(?=\d)")
# "square " of "square metres", "cu. " of "cu. ft", "° " of "° C", "fl " of "fl oz"
_SQUARE = re.compile(
    r"\s*(sq|cu|fl|de|°)(?:uare|\.|bic|uid|g|grees?)?\s+(?=[A-Za-z])", re.IGNORECASE
)
# "km", "m^2", "s-1", "%"
_TERM = re.compile(r"\s*([A-Za-zµ°%$€£]+\.?)(?:\^?(-?[1-4])(?!\d))?")
# " squared", " cubed"
_SQUARED = re.compile(r"\s+(squared|cubed)\b")
# "/" of "km/h", " per " of "$5 per hour", " each " of "3 each day"
_PER = re.compile(r"\s*(?:/|\b(?:per|an?|each|every)\b)\s*(?=[A-Za-zµ])")
# "+", "=", "a12" and other signs that no unit or noun contains
_ODD = re.compile(r"[^\w\s/^.,'’()%°$€£-]|(?<![A-Za-z^-])\d|[A-Za-z]\d\d")
# "18", "-$1,080.50", "3/4", "1e6" in running text; not the 2 of "x2"
_FREE = re.compile(
    r"(?<![\w.)^/\]])[-+−]?[$€£¥₹]?[-+−]?"
    r"(?:\d{1,3}(?:[,’\u00a0\u2009\u202f]\d{3})++(?!\d)|\d++|(?=\.\d))(?:\.\d++)?"
    r"(?:[eE][+-]?\d{1,9}(?!\w))?(?:\s?/\s?\d++)?"
)
# " km/h", "%", "°C", "-m^2" after a number
_AFTER = re.compile(
    r"(\s?)-?(?:%|°[CF]?|([A-Za-zµ]{1,15})(?:(?:/|\sper\s)([A-Za-z]{1,15}))?(?:[²³]|\^[23])?)"
)
_SCALE_LETTERS = {"k": 10**3, "K": 10**3, "M": 10**6, "B": 10**9, "bn": 10**9, "mn": 10**6}
_SIGNS = {"-": -1, "−": -1, "+": 1, "minus": -1, "negative": -1, "plus": 1}
# "-", "minus ", "plus "
_SIGN = re.compile(r"([-+−]|(?:minus|negative|plus)\b)\s*", re.IGNORECASE)
_DROP = frozenset(word_list("the more additional extra full whole different other"))
"""Words that are no part of a noun: 3 more apples are 3 apples."""
_END = frozenset(
    word_list(
        "of in at on for from by with to that which who is are was were will would could should"
        " left remaining as so or and a an altogether but because since per each every if than"
        " then after before during between while total overall"
    )
)
"""Words that end a noun."""
_LISTED = (
    ("length", 1, "m metre meter=1 km kilometre kilometer=1000 cm centimetre centimeter=.01"),
    ("length", 1, "mm millimetre millimeter=.001 µm micrometre micrometer=1e-6"),
    ("length", 1, "nm nanometre nanometer=1e-9 inch inches=.0254 ft foot feet=.3048"),
    ("length", 1, "yd yard=.9144 mi mile=1609.344"),
    ("length", 2, "ha hectare=10000 acre=4046.8564224"),
    ("length", 3, "l litre liter=.001 cl centilitre=.00001 ml millilitre milliliter cc=1e-6"),
    ("length", 3, "gal gallon=.003785411784 qt quart=.000946352946 pt pint=.000473176473"),
    ("length", 3, "cup=.0002365882365 oz ounce=.0000295735295625"),
    ("length", 3, "tbsp tablespoon=.00001478676478125 tsp teaspoon=.00000492892159375"),
    ("mass", 1, "g gram gramme=1 kg kgs kilogram kilo=1000 mg milligram=.001 tonne=1000000"),
    ("mass", 1, "lb lbs pound=453.59237 oz ounce=28.349523125 ton=907184.74 stone=6350.29318"),
    ("time", 1, "s sec second secs=1 min minute mins=60 h hr hour hrs=3600 day=86400"),
    ("time", 1, "week wk=604800 ms millisecond=.001"),
    ("month", 1, "month=1 year yr=12 decade=120 century centuries=1200"),
    ("percent", 1, "% percent pct=1"),
    ("angle", 1, "° deg degree=1"),
    ("celsius", 1, "° °c celsius degree=1"),
    ("fahrenheit", 1, "° °f fahrenheit degree=1"),
    ("usd", 1, "usd dollar buck $ us$=1 cent penny pennies=.01"),
    ("eur", 1, "eur euro €=1 cent=.01"),
    ("gbp", 1, "gbp £ pound quid=1 pence penny pennies=.01"),
    ("jpy", 1, "jpy yen ¥=1"),
    ("inr", 1, "inr rupee ₹ rs=1"),
    ("krw", 1, "krw ₩=1"),
    ("joule", 1, "j joule=1 kj kilojoule=1000 kcal=4184 kwh=3600000"),
)
"""Base, power, and names with their size: a litre is .001 of the third power of a length."""
_CURRENCIES = frozenset(word_list("usd eur gbp jpy inr krw"))


def _table() -> Mapping[str, tuple[Unit, ...]]:
    """Build the meanings of each name of a unit, without plurals; "pound" has two."""
    table: dict[str, tuple[Unit, ...]] = {
        "mph": (((("length", 1), ("time", -1)), Fraction("0.44704")),)
    }
    table["kph"] = table["kmh"] = (((("length", 1), ("time", -1)), Fraction(5, 18)),)
    for base, power, groups in _LISTED:
        for names, size in re.findall(r"([^=]+)=(\S+)", groups):
            for name in names.split():
                table[name] = (*table.get(name, ()), (((base, power),), Fraction(size)))
    return table


_UNITS = _table()


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with what it counts."""

    value: Fraction
    """The number as written."""
    units: tuple[Unit, ...] = ()
    """Possible meanings of its unit; empty if the unit is unknown or not given."""
    nouns: frozenset[str] = frozenset()
    """The noun after it, without endings."""
    rate: str = ""
    """What follows "per"."""
    bare: tuple[Fraction, ...] = ()
    """Numbers without a unit that mean the same: 50 and 0.5 for 50%."""
    rounded: bool = False
    """Whether it has 12 or more decimals, as floating-point noise does."""


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
    return _compound(text) or _simple(text)


def same_quantity(a: Quantity, b: Quantity) -> bool:
    """Return whether two quantities are equal.

    A unit that only one of them has is no difference; two different units are. Numbers are compared
    exactly, except that numbers with 12 or more decimals may differ by 1e-9 (relative below 1).
    """
    loose = a.rounded or b.rounded
    no_unit_a, no_unit_b = not (a.units or a.nouns), not (b.units or b.nouns)
    if a.rate and b.rate and a.rate != b.rate:
        return False
    if no_unit_a or no_unit_b:
        values_a, values_b = (
            a.bare if no_unit_b else (a.value,),
            b.bare if no_unit_a else (b.value,),
        )
        return any(_equal(x, y, loose) for x in values_a for y in values_b)
    if a.units and b.units:
        pairs = [(u, v) for u in a.units for v in b.units if u[0] == v[0]]
        return any(_equal(a.value * u[1], b.value * v[1], loose) for u, v in pairs)
    nested = bool(a.nouns and b.nouns) and (a.nouns <= b.nouns or b.nouns <= a.nouns)
    return nested and _equal(a.value, b.value, loose)


def free_numbers(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges (start, end) of the numbers in running text, in order.

    Each range includes the currency sign and the known unit that follows. Ordinals (2nd),
    coefficients (2x) and digits within words are left out.
    """
    for match in _FREE.finditer(text):
        after = _AFTER.match(text, match.end())
        name = after[2] if after else None
        if after is None or name is None:
            yield match.start(), after.end() if after else match.end()
        elif (
            name in _SCALE_LETTERS
            or name.lower() in SCALES
            or (_lookup(name) and (not after[3] or _lookup(after[3])))
        ):
            yield match.start(), after.end()
        elif after[1]:
            yield match.span()


def _equal(x: Fraction, y: Fraction, loose: bool) -> bool:
    """Compare two numbers, exactly or up to floating-point noise."""
    return x == y or (
        loose and abs(x - y) <= Fraction(1, 10**9) * min(Fraction(1), max(abs(x), abs(y)))
    )


def _compound(text: str) -> Quantity | None:
    """Read "2 hours 30 minutes" as 150 minutes.

    It has two to four parts of one dimension, each smaller than the one before; the value is in the
    unit of the last.
    """
    pieces = _PART.split(text.strip()) if len(text) <= 100 else []
    read = [
        quantity
        for part in pieces
        if (quantity := _simple(part)) and quantity.units and quantity.value >= 0
    ]
    if not 2 <= len(pieces) <= 4 or len(read) < len(pieces):
        return None
    for dims, size in read[-1].units:
        sizes = [
            next((size for other, size in quantity.units if other == dims), Fraction(0))
            for quantity in read
        ]
        if all(sizes) and all(x > y for x, y in pairwise(sizes)):
            total = sum(
                (quantity.value * each for quantity, each in zip(read, sizes, strict=True)),
                Fraction(0),
            )
            return Quantity(total / size, ((dims, size),), bare=(total / size, total / sizes[0]))
    return None


def _simple(text: str) -> Quantity | None:
    """Read one number with what it counts: "about -$5", "1.5 million people", "5 km/h"."""
    at, sign, money, text = 0, 1, "", text.strip()
    for _ in range(5):  # "about -$5", "$ -5", "minus 5 dollars"
        if lead := _ABOUT.match(text, at):
            at = lead.end()
        elif not money and (lead := _MONEY.match(text, at)):
            money, at = lead[1].lower().rstrip("."), lead.end()
        elif lead := _SIGN.match(text, at):
            sign, at = sign * _SIGNS[lead[1].lower()], lead.end()
    number = read_digits(text, at) or read_spelled_number(text, at)
    if number is None:
        return None
    value, end, decimals = number
    rest = text[end:]
    if scaled := _SCALED.match(rest):
        letter = (
            10**6
            if money and scaled[1] == "m"
            else _SCALE_LETTERS.get(scaled[1])
            if not rest[0].isspace()
            else None
        )
        if by := SCALES.get(scaled[1].lower()) or letter:
            value, rest = value * by, rest[scaled.end() :]
    if rest[:1].isalpha() and not ((unit := _TERM.match(rest)) and _lookup(unit[1])):  # 2nd, 2x
        return None
    value *= sign
    read = _counted(value, rest, money)
    return replace(read, rounded=decimals >= 12) if read else None


def _lookup(name: str) -> tuple[Unit, ...]:
    """Return the meanings of a unit's name, singular or plural."""
    name = name.rstrip(".").replace("μ", "µ")
    low = name.lower()
    return (
        _UNITS.get(name)
        or _UNITS.get(low)
        or (_UNITS.get(low[:-1], ()) if len(low) > 3 and low.endswith("s") else ())
    )


def _counted(value: Fraction, rest: str, money: str) -> Quantity | None:
    """Read what follows a number: a unit, a noun or nothing; None for anything else."""
    rest = rest.strip().removeprefix("-").strip(" .,;:!?")
    if (
        len(rest) > 120
        or _ODD.search(rest)
        or any(word in NUMERALS or word in TENS for word in rest.lower().split())
    ):
        return None
    rest = "inch" if rest == "in" else rest  # elsewhere "in" is a preposition
    nouns, noun_end = _noun(rest)
    if money:
        units, at = _UNITS[money], 0
        named = _TERM.match(rest)
        if named and set(_lookup(named[1])) & set(units):
            at = named.end()
        nouns = frozenset()
    else:
        units, at = _expression(rest)
        if not units:
            if len(rest.split()) > _MAX_NOUN_LENGTH or re.search(r"[\d^%°$€£]", rest):
                return None
            units = tuple(
                unit for word in rest[:noun_end].split() if len(word) > 2 for unit in _lookup(word)
            )
            at = noun_end
    per = _PER.match(rest, at)
    rate = _stem(rest[per.end() :].split()[0]) if per else ""
    bare = (value, value / 100) if any(dims == (("percent", 1),) for dims, _ in units) else (value,)
    return Quantity(value, units, nouns, rate, bare)


def _noun(rest: str) -> tuple[frozenset[str], int]:
    """Read the noun after a number, up to a preposition, an article or a verb, and its end."""
    stems, at = set(), 0
    for match in re.finditer(r"[^\s/,()]+", rest):
        word = match.group().lower().strip(".'’-")
        if word in _END or rest[at : match.start()].strip():
            break
        at = match.end()
        if word and word not in _DROP:
            stems.add(_stem(word))
    return frozenset(stems), at


def _stem(word: str) -> str:
    """Return a word in lower case without its plural ending."""
    word = word.lower().strip(".,'’()")
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("shes", "ches", "xes", "sses", "oes")):
        return word[:-2]
    return word[:-1] if len(word) > 2 and word.endswith("s") and not word.endswith("ss") else word


def _expression(rest: str) -> tuple[tuple[Unit, ...], int]:
    """Read a unit such as km/h, "square metres" or m^2: its possible meanings and its end."""
    units: tuple[Unit, ...] = ()
    at, sign = 0, 1
    for _ in range(4):
        square = _SQUARE.match(rest, at)
        term = _TERM.match(rest, square.end() if square else at)
        kind = square[1].lower() if square else ""
        meanings = _lookup(term[1]) if term else ()
        if term and kind in ("de", "°"):
            meanings = (
                _UNITS.get("°" + term[1][0].lower(), ())
                if term[1].lower() in ("c", "f", "celsius", "fahrenheit")
                else ()
            )
            if not meanings and (term := _TERM.match(rest, at)):
                meanings = _lookup(term[1])
        if not term or not meanings:
            break
        at, power = term.end(), sign * int(term[2] or {"sq": 2, "cu": 3}.get(kind, 1))
        if squared := _SQUARED.match(rest, at):
            at, power = squared.end(), power * (2 if squared[1] == "squared" else 3)
        raised = [
            (tuple((base, n * power) for base, n in dims), size**power) for dims, size in meanings
        ]
        units = tuple(_product(u, v) for u in units or (((), Fraction(1)),) for v in raised)
        link = _PER.match(rest, at)
        following = _TERM.match(rest, link.end()) if link else None
        if (
            not link
            or not following
            or not _lookup(following[1])
            or meanings[0][0][0][0] in _CURRENCIES
        ):
            break
        at, sign = link.end(), -1
    return units, at


def _product(u: Unit, v: Unit) -> Unit:
    """Multiply two units."""
    dims = dict(u[0])
    for base, n in v[0]:
        dims[base] = dims.get(base, 0) + n
    return tuple(sorted((base, n) for base, n in dims.items() if n)), u[1] * v[1]
