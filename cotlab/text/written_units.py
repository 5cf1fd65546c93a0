"""Units as they are written: one table for the comparison of answers and for dimensions.

Answers compare sizes (5 km is 5000 m) and read any case and plural; equations want dimensions, and
read a unit only as it is spelled here, since "N" and "n" are different things there.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from cotlab.text.written_numbers import word_list

Unit = tuple[tuple[tuple[str, int], ...], Fraction]
"""Exponents by base, such as (("length", 1), ("time", -1)), and size in units of the base."""


class WrittenUnit(NamedTuple):
    """A unit with its size and its spellings."""

    size: str
    """What it measures in answers, its power and its size; "-" where answers do not know it."""
    pint_name: str
    """Its name in pint; "-" where equations do not know it."""
    names: str
    """Spellings that both read."""
    answer_names: str
    """Spellings that answers alone read, without plurals."""
    equation_names: str
    """Spellings that equations alone read."""


_TABLE = """
length 1 1 | meter | m metre meter | - | metres meters
length 1 1000 | kilometer | km kilometre kilometer | - | kilometres kilometers
length 1 .01 | centimeter | cm centimetre centimeter | - | centimetres centimeters
length 1 .001 | millimeter | mm millimetre millimeter | - | millimetres millimeters
length 1 1e-6 | micrometer | µm micrometre | micrometer | μm micrometres
length 1 1e-9 | nanometer | nm nanometre | nanometer | nanometres
length 1 .0254 | inch | inch inches | - | -
length 1 .3048 | foot | ft foot feet | - | -
length 1 .9144 | yard | yd yard | - | yards
length 1 1609.344 | mile | mi mile | - | miles
length 2 10000 | hectare | ha hectare | - | hectares
length 2 4046.8564224 | acre | acre | - | acres
length 3 .001 | liter | l litre liter | - | L litres liters
length 3 .00001 | centiliter | cl | centilitre | cL
length 3 1e-6 | milliliter | ml millilitre milliliter | cc | mL millilitres milliliters
length 3 .003785411784 | gallon | gal gallon | - | gallons
length 3 .000946352946 | - | - | qt quart | -
length 3 .000473176473 | - | - | pt pint | -
length 3 .0002365882365 | - | - | cup | -
length 3 .0000295735295625 | - | - | oz ounce | -
length 3 .00001478676478125 | - | - | tbsp tablespoon | -
length 3 .00000492892159375 | - | - | tsp teaspoon | -
mass 1 1 | gram | g gram gramme | - | grams grammes
mass 1 1000 | kilogram | kg kgs kilogram kilo | - | kilograms kilos
mass 1 .001 | milligram | mg milligram | - | milligrams
mass 1 1000000 | tonne | tonne | - | tonnes
mass 1 453.59237 | lb | lb lbs | pound | -
mass 1 28.349523125 | - | - | oz ounce | -
mass 1 907184.74 | - | - | ton | -
mass 1 6350.29318 | - | - | stone | -
time 1 1 | second | s sec second secs | - | seconds
time 1 60 | minute | min minute mins | - | minutes
time 1 3600 | hour | h hr hour hrs | - | hours
time 1 86400 | day | day | - | days
time 1 604800 | week | week | wk | weeks
time 1 .001 | millisecond | ms | millisecond | -
month 1 1 | month | month | - | months
month 1 12 | year | year yr | - | years yrs
month 1 120 | - | - | decade | -
month 1 1200 | - | - | century centuries | -
percent 1 1 | - | - | % percent pct | -
angle 1 1 | - | - | ° deg degree | -
angle 1 .9 | - | - | gradian | -
radian 1 1 | - | - | rad radian | -
celsius 1 1 | - | - | ° °c celsius degree | -
fahrenheit 1 1 | - | - | ° °f fahrenheit degree | -
usd 1 1 | - | - | usd dollar buck $ us$ | -
usd 1 .01 | - | - | cent penny pennies | -
eur 1 1 | - | - | eur euro € | -
eur 1 .01 | - | - | cent | -
gbp 1 1 | - | - | gbp £ pound quid | -
gbp 1 .01 | - | - | pence penny pennies | -
jpy 1 1 | - | - | jpy yen ¥ | -
inr 1 1 | - | - | inr rupee ₹ rs | -
krw 1 1 | - | - | krw ₩ | -
joule 1 1 | joule | joule | j | J joules
joule 1 1000 | - | - | kj kilojoule | -
joule 1 4184 | kcal | kcal | - | -
joule 1 3600000 | - | - | kwh | -
- | deciliter | - | - | dl dL
- | microliter | - | - | µl µL μL
- | microgram | - | - | µg μg mcg microgram micrograms
- | newton | - | - | N newton newtons
- | kilojoule | - | - | kJ
- | watt | - | - | W watt watts
- | kilowatt | - | - | kW
- | kilowatt_hour | - | - | kWh
- | volt | - | - | V volt volts
- | pascal | - | - | Pa
- | kilopascal | - | - | kPa
- | mmHg | - | - | mmHg
- | mole | - | - | mol mole moles
- | millimole | - | - | mmol
- | hertz | - | - | Hz hertz
- | mile/hour | - | - | mph
- | kilometer/hour | - | - | kmh kph
- | money | - | - | $ € £ ¥ ₹ USD EUR GBP CHF dollar
- | money | - | - | dollars euro euros cent cents pence yen rupee rupees francs
"""
"""A litre is .001 of the third power of a length; the other columns are those of `WrittenUnit`."""
_UNITS = tuple(
    WrittenUnit(*(cell.strip() for cell in line.split("|"))) for line in _TABLE.strip().split("\n")
)
CURRENCIES = frozenset(word_list("usd eur gbp jpy inr krw"))


def _names(*cells: str) -> list[str]:
    """Return the names in cells of the table, which have "-" where there are none."""
    return [name for cell in cells for name in cell.split() if name != "-"]


def _build_unit_table() -> Mapping[str, tuple[Unit, ...]]:
    """Build the meanings of each name of a unit, without plurals; "pound" has two."""
    units_by_name: dict[str, tuple[Unit, ...]] = {
        "mph": (((("length", 1), ("time", -1)), Fraction("0.44704")),)
    }
    units_by_name["kph"] = units_by_name["kmh"] = (
        ((("length", 1), ("time", -1)), Fraction(5, 18)),
    )
    for unit in _UNITS:
        if unit.size == "-":
            continue
        base, power, size = unit.size.split()
        meaning = (((base, int(power)),), Fraction(size))
        for name in _names(unit.names, unit.answer_names):
            units_by_name[name] = (*units_by_name.get(name, ()), meaning)
    return units_by_name


UNITS_BY_NAME = _build_unit_table()
PINT_NAME_BY_SPELLING: Mapping[str, str] = {
    name: unit.pint_name
    for unit in _UNITS
    if unit.pint_name != "-"
    for name in _names(unit.names, unit.equation_names)
}
"""The name in pint of each unit as equations write it."""


def unit_sizes(dimension: tuple[tuple[str, int], ...]) -> frozenset[Fraction]:
    """Return the sizes of the units of a dimension, in units of its base."""
    return _SIZES_BY_DIMENSION.get(dimension, frozenset())


_SIZES_BY_DIMENSION = {
    dimension: frozenset(
        size for units in UNITS_BY_NAME.values() for base, size in units if base == dimension
    )
    for dimension in {base for units in UNITS_BY_NAME.values() for base, _ in units}
}


def find_units(name: str) -> tuple[Unit, ...]:
    """Return the meanings of a unit's name, singular or plural."""
    name = name.rstrip(".").replace("μ", "µ")
    lower_name = name.lower()
    return (
        UNITS_BY_NAME.get(name)
        or UNITS_BY_NAME.get(lower_name)
        or (
            UNITS_BY_NAME.get(lower_name[:-1], ())
            if len(lower_name) > 3 and lower_name.endswith("s")
            else ()
        )
    )


def multiply_units(u: Unit, v: Unit) -> Unit:
    """Multiply two units."""
    exponents = dict(u[0])
    for base, n in v[0]:
        exponents[base] = exponents.get(base, 0) + n
    return tuple(sorted((base, n) for base, n in exponents.items() if n)), u[1] * v[1]
