"""Quantities in a text and the dimensions of their units (by pint): 5 km, 3 m^2, $4/hour.

A number without a unit, or with an unknown one (apples, tablets, percent), has no known dimension.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

_MAX_UNIT_LENGTH = 60
"""Characters of a unit as pint writes it."""

Dimension = tuple[tuple[str, float], ...]
"""Exponents by base, such as (("[length]", 1), ("[time]", -1)); empty for a pure number."""
TIME: Dimension = (("[time]", 1),)


class PhysicalQuantity(NamedTuple):
    """A number with its unit, or what is computed from such."""

    start: int
    end: int
    dimension: Dimension | None
    """None if the unit is not known."""
    number: str = ""
    """The number as written."""
    unit: str = ""
    """The unit as pint writes it; "?" for an unknown one."""


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
"""The name in pint of each written unit."""
_WORD = "|".join(
    sorted(
        (re.escape(word) for word in UNITS if word.isalpha() or word[0] in "µμ"),
        key=len,
        reverse=True,
    )
)
# "km", "square metres", "m^2", "m²", "m2", "cm squared"
_UNIT = re.compile(
    rf"(?:(?P<prefix>square|sq\.?|cubic|cu\.?)\s+)?(?P<unit>{_WORD})"
    r"(?:(?=\s?(?:\^|\*\*)|[²³23])|(?![A-Za-z0-9µμ]))"
    r"(?:\s?(?:\^|\*\*)\s?[({]?(?P<power>-?[1-4])[)}]?(?!\d)|(?P<superscript>[²³])"
    r"|(?P<digit>[23](?!\d|[.,]\d))|\s+(?P<spelled>squared|cubed)\b)?"
)
# "/" of "km/h", " per " of "$5 per hour", "·" of "N·m"
_JOIN = re.compile(
    r"\s?(?P<per>/)\s?(?=[A-Za-zµμ])|\s+(?P<word>per|an?|each|every)\s+(?=[A-Za-zµμ])|(?P<dot>[·⋅])"
)
# "18", "1,080.5", ".5"
_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+")
# "$" of "$18", "" before "18"
_BEGINS = re.compile(r"(?:(?:US)?[$€£¥₹]\s?|(?<![\w.,]))(?=\.?\d)")
# "$", "US$ " before a number
_MONEY = re.compile(r"(?:US)?[$€£¥₹]\s?(?=[\d.])")
# "$ ", "\\frac", "$$", "$x$": dollar signs mark LaTeX and not money
_LATEX = re.compile(r"\$\s|\\[a-zA-Z]{2,}|\$\$|\$[^$\s]{0,20}[A-Za-z]\$")
# "-" of "5-km", " " of "5 km"
_BLANK = re.compile(r"-(?=[a-z])|\s?(?=\S)")
# " million", "k", "bn"
_SCALE = re.compile(r"\s?(?:[kKMB]\b|bn\b|mn\b|m\b|thousand\b|million\b|billion\b|trillion\b)")
# "%", " apples", "x" of "3x"
_UNKNOWN = re.compile(r"\s?[%°‰]|\s+(?!x\s+\d|by\b|times\b|and\b|is\b)[A-Za-z]+|[A-Za-z]+")


@lru_cache(1)
def _registry() -> Any:
    """Return pint's registry of units with a unit of money."""
    import pint

    registry: Any = pint.UnitRegistry()
    registry.define("money = [money]")
    return registry


@lru_cache(4096)
def dimension_of(unit: str) -> Dimension:
    """Return the dimension of a unit as pint writes it, such as ``meter**2/hour``.

    Raises
    ------
    pint.UndefinedUnitError
        If pint does not know the unit.
    """
    if not unit:
        return ()
    exponents = _registry().parse_units(unit).dimensionality
    return tuple(sorted((base, float(power)) for base, power in exponents.items() if power))


def quantities(text: str) -> tuple[PhysicalQuantity, ...]:
    """Return the numbers of a text with their units, in order."""
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
    """Replace dollar signs by spaces if they mark LaTeX and not money; positions stay the same."""
    return text.replace("$", " ") if _LATEX.search(text) else text


def quantity_at(text: str, at: int) -> PhysicalQuantity | None:
    """Read the quantity that begins at ``at``, or None."""
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
    unit = _UNIT.match(text, blank.end() if blank else end)
    if unit is None:
        unknown = _UNKNOWN.match(text, end)
        return PhysicalQuantity(at, end, None, number[0], "?" if unknown else "")
    return _with_unit(text, at, unit.end(), _pint_name(unit), number[0], joined=True)


def _with_unit(
    text: str, start: int, end: int, unit: str, number: str, *, joined: bool
) -> PhysicalQuantity:
    """Read the rest of the unit of a quantity: per hour, /kg, ·m."""
    while joined and (link := _JOIN.match(text, end)):
        following = _UNIT.match(text, link.end())
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
    """Write a matched unit as pint does."""
    unit = UNITS[match["unit"]]
    power = match["power"] or {"²": "2", "³": "3"}.get(match["superscript"] or "") or match["digit"]
    power = power or {"squared": "2", "cubed": "3"}.get(match["spelled"] or "")
    if match["prefix"]:
        power = "2" if match["prefix"].startswith("s") else "3"
    return f"({unit})**{power}" if power else unit
