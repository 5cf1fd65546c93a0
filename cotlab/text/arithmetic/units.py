"""Quantities in a text and the dimensions of their units (by pint): 5 km, 3 m^2, $4/hour.

A number without a unit, or with an unknown one (apples, tablets, percent), has no known dimension.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

from cotlab.text.written_numbers import NUMBER_PATTERN
from cotlab.text.written_units import PINT_NAME_BY_SPELLING

_MAX_UNIT_LENGTH = 60
"""Characters of a unit as pint writes it."""

Dimension = tuple[tuple[str, float], ...]
"""Exponents by base, such as (("[length]", 1), ("[time]", -1)); empty for a pure number."""
TIME_DIMENSION: Dimension = (("[time]", 1),)


class PhysicalQuantity(NamedTuple):
    """A number with its unit, or what is computed from such."""

    start: int
    """First character of the text."""
    end: int
    """Character after the last."""
    dimension: Dimension | None
    """None if the unit is not known."""
    number: str = ""
    """The number as written."""
    unit: str = ""
    """The unit as pint writes it; "?" for an unknown one."""


_UNIT_WORD_PATTERN = "|".join(
    sorted(
        (re.escape(word) for word in PINT_NAME_BY_SPELLING if word.isalpha() or word[0] in "µμ"),
        key=len,
        reverse=True,
    )
)
# "km", "square metres", "m^2", "m²", "m2", "cm squared"
_UNIT_RE = re.compile(
    rf"(?:(?P<prefix>square|sq\.?|cubic|cu\.?)\s+)?(?P<unit>{_UNIT_WORD_PATTERN})"
    r"(?:(?=\s?(?:\^|\*\*)|[²³23])|(?![A-Za-z0-9µμ]))"
    r"(?:\s?(?:\^|\*\*)\s?[({]?(?P<power>-?[1-4])[)}]?(?!\d)|(?P<superscript>[²³])"
    r"|(?P<digit>[23](?!\d|[.,]\d))|\s+(?P<spelled>squared|cubed)\b)?"
)
# "/" of "km/h", " per " of "$5 per hour", "·" of "N·m"
_UNIT_JOIN_RE = re.compile(
    r"\s?(?P<per>/)\s?(?=[A-Za-zµμ])|\s+(?P<word>per|an?|each|every)\s+(?=[A-Za-zµμ])|(?P<dot>[·⋅])"
)
# "18", "1,080.5", ".5"
_NUMBER_RE = re.compile(NUMBER_PATTERN)
# "$" of "$18", "" before "18"
_QUANTITY_START_RE = re.compile(r"(?:(?:US)?[$€£¥₹]\s?|(?<![\w.,]))(?=\.?\d)")
# "$", "US$ " before a number
_CURRENCY_RE = re.compile(r"(?:US)?[$€£¥₹]\s?(?=[\d.])")
# "$ ", "\\frac", "$$", "$x$": dollar signs mark LaTeX and not money
_LATEX_DOLLAR_RE = re.compile(r"\$\s|\\[a-zA-Z]{2,}|\$\$|\$[^$\s]{0,20}[A-Za-z]\$")
# "-" of "5-km", " " of "5 km"
_UNIT_SPACING_RE = re.compile(r"-(?=[a-z])|\s?(?=\S)")
# " million", "k", "bn"
_SCALE_RE = re.compile(r"\s?(?:[kKMB]\b|bn\b|mn\b|m\b|thousand\b|million\b|billion\b|trillion\b)")
# "%", " apples", "x" of "3x"
_UNKNOWN_UNIT_RE = re.compile(r"\s?[%°‰]|\s+(?!x\s+\d|by\b|times\b|and\b|is\b)[A-Za-z]+|[A-Za-z]+")


@lru_cache(1)
def _unit_registry() -> Any:
    """Return pint's registry of units with a unit of money."""
    import pint

    registry: Any = pint.UnitRegistry()
    registry.define("money = [money]")
    return registry


@lru_cache(4096)
def unit_dimension(unit: str) -> Dimension:
    """Return the dimension of a unit as pint writes it, such as ``meter**2/hour``.

    Raises
    ------
    pint.UndefinedUnitError
        If pint does not know the unit.
    """
    if not unit:
        return ()
    exponents = _unit_registry().parse_units(unit).dimensionality
    return tuple(sorted((base, float(power)) for base, power in exponents.items() if power))


def find_quantities(text: str) -> tuple[PhysicalQuantity, ...]:
    """Return the numbers of a text with their units, in order."""
    quantities, position = [], 0
    while number_match := _QUANTITY_START_RE.search(text, position):
        quantity = read_quantity_at(text, number_match.start())
        if quantity is None:
            position = number_match.end() + 1
            continue
        quantities.append(quantity)
        position = quantity.end
    return tuple(quantities)


def mask_latex_dollars(text: str) -> str:
    """Replace dollar signs by spaces if they mark LaTeX and not money; positions stay the same."""
    return text.replace("$", " ") if has_latex_dollars(text) else text


def has_latex_dollars(text: str) -> bool:
    """Return whether dollar signs mark LaTeX and not money."""
    return _LATEX_DOLLAR_RE.search(text) is not None


def read_quantity_at(text: str, position: int) -> PhysicalQuantity | None:
    """Read the quantity that begins at ``position``, or None."""
    currency_match = _CURRENCY_RE.match(text, position)
    number_match = _NUMBER_RE.match(text, currency_match.end() if currency_match else position)
    if number_match is None:
        return None
    end = number_match.end()
    if currency_match:
        if scale_match := _SCALE_RE.match(text, end):
            end = scale_match.end()
        return _read_compound_unit(text, position, end, "money", number_match[0])
    spacing_match = _UNIT_SPACING_RE.match(text, end)
    unit_match = _UNIT_RE.match(text, spacing_match.end() if spacing_match else end)
    if unit_match is None:
        unknown_match = _UNKNOWN_UNIT_RE.match(text, end)
        return PhysicalQuantity(position, end, None, number_match[0], "?" if unknown_match else "")
    return _read_compound_unit(
        text, position, unit_match.end(), _format_pint_name(unit_match), number_match[0]
    )


def _read_compound_unit(
    text: str, start: int, end: int, unit: str, number: str
) -> PhysicalQuantity:
    """Read the rest of the unit of a quantity: per hour, /kg, ·m."""
    while join_match := _UNIT_JOIN_RE.match(text, end):
        next_unit_match = _UNIT_RE.match(text, join_match.end())
        if next_unit_match is None:
            if join_match["per"] or (join_match["word"] == "per"):
                return PhysicalQuantity(start, end, None, number, "?")
            break
        if join_match["word"] and join_match["word"] != "per":  # $40 an hour
            if unit == "money":  # "$90 a day" may tell when, and not a rate
                return PhysicalQuantity(start, next_unit_match.end(), None, number, "?")
            return PhysicalQuantity(start, end, unit_dimension(unit), number, unit)
        unit, end = (
            f"{unit}{'*' if join_match['dot'] else '/'}({_format_pint_name(next_unit_match)})",
            next_unit_match.end(),
        )
        if len(unit) > _MAX_UNIT_LENGTH:
            return PhysicalQuantity(start, end, None, number, "?")
    # 30 days/month is a count
    is_count = unit.count("/") == 1 and all(
        unit_dimension(part.strip("()")) == TIME_DIMENSION for part in unit.split("/")
    )
    return PhysicalQuantity(start, end, None if is_count else unit_dimension(unit), number, unit)


def _format_pint_name(match: re.Match[str]) -> str:
    """Write a matched unit as pint does."""
    unit = PINT_NAME_BY_SPELLING[match["unit"]]
    power = match["power"] or {"²": "2", "³": "3"}.get(match["superscript"] or "") or match["digit"]
    power = power or {"squared": "2", "cubed": "3"}.get(match["spelled"] or "")
    if match["prefix"]:
        power = "2" if match["prefix"].startswith("s") else "3"
    return f"({unit})**{power}" if power else unit
