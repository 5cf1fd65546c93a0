"""Quantities in a text, and whether the units of what is added, equated or named belong together.

A unit is judged by its dimension alone (pint): metres and kilometres agree, metres and square
metres do not. A number without a unit, or with a word that is no known unit (apples, tablets,
percent), may stand for anything, and so does all that is computed from it: what cannot be known is
never called a mismatch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

Span = tuple[int, int]
Dimension = tuple[tuple[str, float], ...]
"""Exponents by base, such as (("[length]", 1), ("[time]", -1)); empty for a pure number."""


class Quantity(NamedTuple):
    """A number with its unit, or something computed from such; ``dimension`` is None where the unit is not known."""

    start: int
    end: int
    dimension: Dimension | None
    number: str = ""
    unit: str = ""


class Mismatch(NamedTuple):
    """The span whose unit does not belong, and what was expected there."""

    start: int
    end: int
    reason: str


_LISTED = {
    "meter": "m metre meter metres meters",
    "kilometer": "km kilometre kilometer kilometres kilometers",
    "centimeter": "cm centimetre centimeter centimetres centimeters",
    "millimeter": "mm millimetre millimeter millimetres millimeters",
    "micrometer": "µm μm micrometre micrometres",
    "nanometer": "nm nanometre nanometres",
    "inch": "inch inches",
    "foot": "ft foot feet",
    "yard": "yd yard yards",
    "mile": "mi mile miles",
    "hectare": "ha hectare hectares",
    "acre": "acre acres",
    "liter": "l L litre liter litres liters",
    "milliliter": "ml mL millilitre milliliter millilitres milliliters",
    "deciliter": "dl dL",
    "centiliter": "cl cL",
    "microliter": "µl µL μL",
    "gallon": "gal gallon gallons",
    "gram": "g gram grams gramme grammes",
    "kilogram": "kg kgs kilogram kilograms kilo kilos",
    "milligram": "mg milligram milligrams",
    "microgram": "µg μg mcg microgram micrograms",
    "tonne": "tonne tonnes",
    "lb": "lb lbs",
    "second": "s sec secs second seconds",
    "millisecond": "ms",
    "minute": "min mins minute minutes",
    "hour": "h hr hrs hour hours",
    "day": "day days",
    "week": "week weeks",
    "month": "month months",
    "year": "year years yr yrs",
    "newton": "N newton newtons",
    "joule": "J joule joules",
    "kilojoule": "kJ",
    "kcal": "kcal",
    "watt": "W watt watts",
    "kilowatt": "kW",
    "kilowatt_hour": "kWh",
    "volt": "V volt volts",
    "pascal": "Pa",
    "kilopascal": "kPa",
    "mmHg": "mmHg",
    "mole": "mol mole moles",
    "millimole": "mmol",
    "hertz": "Hz hertz",
    "mile/hour": "mph",
    "kilometer/hour": "kmh kph",
    "money": (
        "$ € £ ¥ ₹ USD EUR GBP CHF dollar dollars euro euros cent cents pence yen rupee rupees"
        " francs"
    ),
}
UNITS = {word: unit for unit, names in _LISTED.items() for word in names.split()}
_WORD = "|".join(
    sorted(
        (re.escape(word) for word in UNITS if word.isalpha() or word[0] in "µμ"),
        key=len,
        reverse=True,
    )
)
_POWER = (
    r"(?:\s?(?:\^|\*\*)\s?[({]?(?P<{0}>-?[1-4])[)}]?(?!\d)|(?P<{0}s>[²³])|(?P<{0}d>[23](?!\d|[.,]\d))"
    r"|\s+(?P<{0}w>squared|cubed)\b)?"
)
_UNIT_PATTERN = (
    r"(?:(?P<{0}q>square|sq\.?|cubic|cu\.?)\s+)?(?P<{0}u>"
    + _WORD
    + r")(?:(?=\s?(?:\^|\*\*)|[²³23])|(?![A-Za-z0-9µμ]))"
    + _POWER.replace("{0}", "{0}p")
)
_FIRST, _NEXT = (
    re.compile(_UNIT_PATTERN.replace("{0}", "a")),
    re.compile(_UNIT_PATTERN.replace("{0}", "a")),
)
_JOIN = re.compile(
    r"\s?(?P<per>/)\s?(?=[A-Za-zµμ])|\s+(?P<word>per|an?|each|every)\s+(?=[A-Za-zµμ])|(?P<dot>[·⋅])"
)
_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+")
_BEGINS = re.compile(r"(?:(?:US)?[$€£¥₹]\s?|(?<![\w.,]))(?=\.?\d)")
_MONEY = re.compile(r"(?:US)?[$€£¥₹]\s?(?=[\d.])")
_LATEX = re.compile(r"\$\s|\\[a-zA-Z]{2,}|\$\$|\$[^$\s]{0,20}[A-Za-z]\$")
_BLANK = re.compile(r"-(?=[a-z])|\s?(?=\S)")
_SCALE = re.compile(r"\s?(?:[kKMB]\b|bn\b|mn\b|m\b|thousand\b|million\b|billion\b|trillion\b)")
_UNKNOWN = re.compile(r"\s?[%°‰]|\s+(?!x\s+\d|by\b|times\b|and\b|is\b)[A-Za-z]+|[A-Za-z]+")
_OPERATOR = re.compile(
    r"\s*([*×·⋅/÷+=≈−–-]|x(?=\s)|times\b|multiplied by\b|divided by\b|plus\b|minus\b|equals\b)\s*"
)
_CUT_OFF = re.compile(r"[*×·/÷^]\s?[$€£]?$")
"""Before a calculation: it goes on to the left with something that is no quantity, so its unit is
not known."""
_RAISED = re.compile(r"\s?(?:\^|\*\*)\s?(\d)|([²³])")
_SIGNS = {
    "×": "*",
    "·": "*",
    "⋅": "*",
    "x": "*",
    "times": "*",
    "multiplied by": "*",
    "÷": "/",
    "divided by": "/",
    "−": "-",
    "–": "-",
    "plus": "+",
    "minus": "-",
    "≈": "=",
    "equals": "=",
}
_MAX_DEPTH, _MAX_UNIT_LENGTH = 4, 60

_L, _T, _M = "[length]", "[time]", "[mass]"
_TIME: Dimension = ((_T, 1),)
_WAGES: set[Dimension | None] = {(("[money]", 1),), (("[money]", 1), (_T, -1))}
"""Of $10 + $2 = $12 per hour the left side is per hour too: nobody repeats it."""
_STARTS = re.compile(r"(?i)(?:^|[.;\n])\s*(?:step\s+\d+\s*[:.]\s*)?(?:the\s+|its\s+)?$")
KINDS: dict[str, tuple[Dimension, ...]] = {
    "area": (((_L, 2),),),
    "volume": (((_L, 3),), ((_L, 3), (_T, -1))),
    "perimeter circumference radius diameter height width depth": (((_L, 1),),),
    "length distance": (((_L, 1),), ((_T, 1),)),
    "speed velocity": (((_L, 1), (_T, -1)), ((_T, -1),)),
    "weight mass": (((_M, 1),), ((_L, 1), (_M, 1), (_T, -2))),
    "duration": (((_T, 1),),),
    "price cost": (),
}
"""What a named kind of quantity is measured in; a price is anything with money in it, or a time."""
_KIND = {word: dimensions for names, dimensions in KINDS.items() for word in names.split()}
_KIND_PATTERN = "|".join(_KIND)
_NAMED = re.compile(
    rf"(?i)\b(?:an?\s+(?:[a-z]+\s+)?(?P<a>{_KIND_PATTERN})\s+of"
    rf"|(?P<b>{_KIND_PATTERN})(?:\s+(?:of|for|to|from|between|around)\s[^.;,=:]{{1,40}}?)?\s*(?:=|:|\b(?:is|was|equals|"
    rf"becomes|comes to|amounts to)\b))"
    r"\s*(?:now |then |thus |therefore |only"
    r" |(?:about|approximately|approx\.|around|roughly|nearly|exactly|≈|"
    r"~)\s*)?(?=[\d.$€£¥₹])"
)
_OF_KIND = re.compile(rf"\s+(?:of|in)\s+(?:[a-z]+\s+)?(?P<a>{_KIND_PATTERN})\b", re.IGNORECASE)
_ANY_KIND = re.compile(rf"(?i)\b(?:{_KIND_PATTERN}|side|long|wide|high|deep|each|per|by)\b")


@lru_cache(1)
def _registry() -> Any:
    import pint

    registry: Any = pint.UnitRegistry()
    registry.define("money = [money]")
    return registry


@lru_cache(4096)
def dimension_of(unit: str) -> Dimension:
    """Give the dimension of a unit in pint's words, such as ``meter**2/hour``.

    Raises
    ------
    pint.UndefinedUnitError
        If pint does not know it.
    """
    if not unit:
        return ()
    exponents = _registry().parse_units(unit).dimensionality
    return tuple(sorted((base, float(power)) for base, power in exponents.items() if power))


def quantities(text: str) -> tuple[Quantity, ...]:
    """Give every number of a text with its unit, in order."""
    result, at = [], 0
    while number := _BEGINS.search(text, at):
        quantity = _quantity(text, number.start())
        if quantity is None:
            at = number.end() + 1
            continue
        result.append(quantity)
        at = quantity.end
    return tuple(result)


def without_dollars(text: str) -> str:
    """The text with a space for each dollar sign where these mark LaTeX and not money; every place stays where it was."""
    return text.replace("$", " ") if _LATEX.search(text) else text


def unit_mismatches(text: str) -> tuple[Mismatch, ...]:
    """Find the quantities of a text whose unit does not belong.

    Parameters
    ----------
    text : str
        One step.

    Returns
    -------
    tuple of Mismatch
        Ascending, disjoint. A term that is added to another dimension; a side of an equation of
        another dimension than the side before (where something is computed: ``1 kg = $4`` states a
        rate); an area in metres, a speed in kilometres and the like; the same number with another
        power of the same length, as 60 m² and then 60 m.
    """
    text = without_dollars(text)
    mismatches: list[Mismatch] = []
    at = 0
    for quantity in quantities(text):
        if quantity.start < at:
            continue
        end, sides, wrong = _run(text, quantity.start)
        if not _CUT_OFF.search(text[max(0, quantity.start - 4) : quantity.start]):
            mismatches += wrong
        at = max(at, end)
        mismatches += _named(text, quantity.start, end, sides)
    mismatches += _restated(text)
    disjoint: list[Mismatch] = []
    for mismatch in sorted(mismatches):
        if not disjoint or mismatch.start >= disjoint[-1].end:
            disjoint.append(mismatch)
    return tuple(disjoint)


# --- reading
# ----------------------------------------------------------------------------------------


def _quantity(text: str, at: int) -> Quantity | None:
    """The quantity that begins at ``at``, if one does."""
    money = _MONEY.match(text, at)
    number = _NUMBER.match(text, money.end() if money else at)
    if number is None:
        return None
    end = number.end()
    if money:
        if scale := _SCALE.match(text, end):
            end = scale.end()
        return _with_unit(text, at, end, "money", number[0], joined=True)
    blank = _BLANK.match(text, end)
    unit = _FIRST.match(text, blank.end() if blank else end)
    if unit is None:
        unknown = _UNKNOWN.match(text, end)
        return Quantity(at, end, None, number[0], "?" if unknown else "")
    return _with_unit(text, at, unit.end(), _pint_name(unit), number[0], joined=True)


def _with_unit(
    text: str, start: int, end: int, unit: str, number: str, *, joined: bool
) -> Quantity:
    """The quantity with all that its unit goes on with: per hour, /kg, ·m."""
    while joined and (link := _JOIN.match(text, end)):
        following = _NEXT.match(text, link.end())
        if following is None:
            if link["per"] or (link["word"] == "per"):
                return Quantity(start, end, None, number, "?")
            break
        if (
            link["word"] and link["word"] != "per"
        ):  # $40 an hour; but "$90 a day" may tell when, and not a rate
            return (
                Quantity(start, following.end(), None, number, "?")
                if unit == "money"
                else Quantity(start, end, dimension_of(unit), number, unit)
            )
        unit, end = f"{unit}{'*' if link['dot'] else '/'}({_pint_name(following)})", following.end()
        if len(unit) > _MAX_UNIT_LENGTH:
            return Quantity(start, end, None, number, "?")
    counted = (
        joined
        and unit.count("/") == 1
        and all(dimension_of(part.strip("()")) == _TIME for part in unit.split("/"))
    )
    return Quantity(
        start, end, None if counted else dimension_of(unit), number, unit
    )  # 30 days/month is a count


def _pint_name(match: re.Match[str]) -> str:
    """A matched unit in pint's words."""
    unit = UNITS[match["au"]]
    power = match["ap"] or {"²": "2", "³": "3"}.get(match["aps"] or "") or match["apd"]
    power = power or {"squared": "2", "cubed": "3"}.get(match["apw"] or "")
    if match["aq"]:
        power = "2" if match["aq"].startswith("s") else "3"
    return f"({unit})**{power}" if power else unit


def _run(text: str, at: int) -> tuple[int, list[Quantity], list[Mismatch]]:
    """The calculation that begins at ``at``: its end, its sides between equals signs, and what does not fit in it."""
    sides: list[Quantity] = []
    wrong: list[Mismatch] = []
    computed, end = False, at
    while (side := _side(text, at, wrong)) is not None:
        quantity, several = side
        sides.append(quantity)
        computed, end = computed or several, quantity.end
        sign = _OPERATOR.match(text, end)
        if sign is None or _SIGNS.get(sign[1], sign[1]) != "=":
            break
        at = sign.end()
    known = [quantity for quantity in sides if quantity.dimension is not None]
    if computed and known:
        first = known[0]
        wrong += [
            Mismatch(
                quantity.start,
                quantity.end,
                f"{dimension_text(quantity.dimension)}, but {dimension_text(first.dimension)}"
                " before the equals sign",
            )
            for quantity in known[1:]
            if quantity.dimension != first.dimension
            and not {quantity.dimension, first.dimension} <= _WAGES
        ]
    return max(end, at if not sides else end), sides, wrong


def _side(
    text: str, at: int, wrong: list[Mismatch], depth: int = 0
) -> tuple[Quantity, bool] | None:
    """One side of an equation, and whether it computes; terms that do not fit are added to ``wrong``."""
    terms: list[Quantity] = []
    several = False
    while (term := _term(text, at, wrong, depth)) is not None:
        terms.append(term[0])
        several = several or term[1]
        sign = _OPERATOR.match(text, term[0].end)
        if sign is None or _SIGNS.get(sign[1], sign[1]) not in ("+", "-"):
            break
        if sign[1] in "–-−" and not (sign[0].startswith(" ") and sign[0].endswith(" ")):
            break  # a range: 3-5 km
        at = sign.end()
    if not terms:
        return None
    known = [term for term in terms if term.dimension is not None]
    wrong += [
        Mismatch(
            other.start,
            other.end,
            f"{dimension_text(other.dimension)} added to {dimension_text(known[0].dimension)}",
        )
        for other in known[1:]
        if other.dimension != known[0].dimension
    ]
    dimension = known[0].dimension if known else None
    total = Quantity(terms[0].start, terms[-1].end, dimension, terms[0].number, terms[0].unit)
    return total, several or len(terms) > 1


def _term(text: str, at: int, wrong: list[Mismatch], depth: int) -> tuple[Quantity, bool] | None:
    """A product; its dimension is unknown as soon as one factor's is."""
    first = _factor(text, at, wrong, depth)
    if first is None:
        return None
    start, end, several = first.start, first.end, False
    exponents: dict[str, float] | None = None if first.dimension is None else dict(first.dimension)
    while sign := _OPERATOR.match(text, end):
        operator = _SIGNS.get(sign[1], sign[1])
        factor = _factor(text, sign.end(), wrong, depth) if operator in ("*", "/") else None
        if factor is None:
            break
        several, end = True, factor.end
        if (
            exponents is None
            or factor.dimension is None
            or _implied(exponents, dict(factor.dimension), operator)
        ):
            exponents = None
            continue
        for base, power in factor.dimension:
            exponents[base] = exponents.get(base, 0.0) + (power if operator == "*" else -power)
    dimension = (
        None
        if exponents is None
        else tuple(sorted((base, power) for base, power in exponents.items() if power))
    )
    return Quantity(start, end, dimension, first.number, first.unit), several


def _implied(first: dict[str, float], other: dict[str, float], operator: str) -> bool:
    """Whether a product of a time or of money leaves out a rate (14 hours * $10), or a quotient of two of a kind is a count."""
    if operator == "/":  # of $600 per year / 12 months the months are a count too
        return (first == other and set(first) <= {"[money]", _T}) or (
            first == {"[money]": 1, _T: -1} and other == {_T: 1}
        )
    for pure, rest in ((first, other), (other, first)):
        for base in ("[money]", _T):
            if pure == {base: 1} and rest and rest.get(base, 0) >= 0:
                return True
    return False


def _factor(text: str, at: int, wrong: list[Mismatch], depth: int) -> Quantity | None:
    """A quantity, or a calculation in brackets, with its exponent."""
    if text[at : at + 1] != "(":
        return _quantity(text, at)
    inner = _side(text, at + 1, wrong, depth + 1) if depth < _MAX_DEPTH else None
    if inner is None or text[inner[0].end : inner[0].end + 1] != ")":
        return None
    end, dimension = inner[0].end + 1, inner[0].dimension
    if raised := _RAISED.match(text, end):
        power = int(raised[1] or {"²": 2, "³": 3}[raised[2]])
        dimension = (
            None
            if dimension is None
            else tuple((base, p * power) for base, p in dimension if power)
        )
        end = raised.end()
    return Quantity(at, end, dimension)


# --- judging
# ----------------------------------------------------------------------------------------


def _named(text: str, start: int, end: int, sides: Sequence[Quantity]) -> Iterator[Mismatch]:
    """The value of a calculation that is called an area, a speed, a price … in another unit than that has."""
    if not sides or sides[-1].dimension is None:
        return
    value = sides[-1]
    before = max(0, start - 90)
    kinds = [
        match["a"] or match["b"]
        for match in _NAMED.finditer(text, before, start + 1)
        if match.end() == start and (":" not in match[0] or _STARTS.search(text[: match.start()]))
    ]
    if (after := _OF_KIND.match(text, end)) and len(sides) == 1:
        kinds.append(after["a"])
    for kind in kinds[:1]:
        if not _fits(kind.lower(), value.dimension or ()):
            yield Mismatch(
                value.start, value.end, f"{dimension_text(value.dimension)} for {kind.lower()}"
            )


def _fits(kind: str, dimension: Dimension) -> bool:
    if kind in ("price", "cost"):
        bases = {base for base, _ in dimension}
        return "[money]" in bases or bases == {_T}
    return dimension in _KIND[kind]


def _restated(text: str) -> Iterator[Mismatch]:
    """The same number with another power of a length, with no other kind of quantity named between."""
    known = [
        quantity
        for quantity in quantities(text)
        if quantity.dimension and [base for base, _ in quantity.dimension] == [_L]
    ]
    for i, quantity in enumerate(known):
        for earlier in known[max(0, i - 20) : i]:
            same = (
                quantity.number == earlier.number
                and len(quantity.number) > 1
                and quantity.dimension != earlier.dimension
            )
            if same and not _ANY_KIND.search(text, earlier.end, quantity.end):
                around = text[earlier.end : quantity.end + 6]
                if not re.search(r"[*×/÷+=]", around) and not _ANY_KIND.match(
                    text, min(len(text), quantity.end + 1)
                ):
                    yield Mismatch(
                        quantity.start,
                        quantity.end,
                        f"{dimension_text(quantity.dimension)}, but"
                        f" {dimension_text(earlier.dimension)} before",
                    )
                    break


def dimension_text(dimension: Dimension | None) -> str:
    """A dimension in words: length^2, length/time."""
    factors = [
        base.strip("[]") + (f"^{power:g}" if power != 1 else "") for base, power in dimension or ()
    ]
    return "·".join(factors) or "a pure number"
