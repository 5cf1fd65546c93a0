"""Quantities in a text and the dimensions of their units (by pint): 5 km, 3 m^2, $4/hour.

A number without a unit, or with a word that is no known unit (apples, tablets, percent), has no
dimension that is known: it may stand for anything.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

_MAX_UNIT_LENGTH = 60

Span = tuple[int, int]
Dimension = tuple[tuple[str, float], ...]
"""Exponents by base, such as (("[length]", 1), ("[time]", -1)); empty for a pure number."""
TIME: Dimension = (("[time]", 1),)


class PhysicalQuantity(NamedTuple):
    """A number with its unit, or something computed from such; ``dimension`` is None where the unit is not known."""

    start: int
    end: int
    dimension: Dimension | None
    number: str = ""
    unit: str = ""


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


def quantities(text: str) -> tuple[PhysicalQuantity, ...]:
    """Give every number of a text with its unit, in order."""
    result, at = [], 0
    while number := _BEGINS.search(text, at):
        quantity = quantity_at(text, number.start())
        if quantity is None:
            at = number.end() + 1
            continue
        result.append(quantity)
        at = quantity.end
    return tuple(result)


def without_dollars(text: str) -> str:
    """The text with a space for each dollar sign where these mark LaTeX and not money; every place stays where it was."""
    return text.replace("$", " ") if _LATEX.search(text) else text


def quantity_at(text: str, at: int) -> PhysicalQuantity | None:
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
        return PhysicalQuantity(at, end, None, number[0], "?" if unknown else "")
    return _with_unit(text, at, unit.end(), _pint_name(unit), number[0], joined=True)


def _with_unit(
    text: str, start: int, end: int, unit: str, number: str, *, joined: bool
) -> PhysicalQuantity:
    """The quantity with all that its unit goes on with: per hour, /kg, ·m."""
    while joined and (link := _JOIN.match(text, end)):
        following = _NEXT.match(text, link.end())
        if following is None:
            if link["per"] or (link["word"] == "per"):
                return PhysicalQuantity(start, end, None, number, "?")
            break
        if (
            link["word"] and link["word"] != "per"
        ):  # $40 an hour; but "$90 a day" may tell when, and not a rate
            return (
                PhysicalQuantity(start, following.end(), None, number, "?")
                if unit == "money"
                else PhysicalQuantity(start, end, dimension_of(unit), number, unit)
            )
        unit, end = f"{unit}{'*' if link['dot'] else '/'}({_pint_name(following)})", following.end()
        if len(unit) > _MAX_UNIT_LENGTH:
            return PhysicalQuantity(start, end, None, number, "?")
    counted = (
        joined
        and unit.count("/") == 1
        and all(dimension_of(part.strip("()")) == TIME for part in unit.split("/"))
    )
    return PhysicalQuantity(
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
