"""Derived units of the SI in their base units: 49 kg·m/s² is 49 N, 9 kg·m²/s² is 9 J."""

from __future__ import annotations

import re
from fractions import Fraction

from cotlab.text.answers.reading import tidy_answer, to_plain_text
from cotlab.text.written_numbers import read_digits

_MAX_CHARACTERS = 80
_DERIVED_UNITS = {
    "N": {"kg": 1, "m": 1, "s": -2},
    "J": {"kg": 1, "m": 2, "s": -2},
    "W": {"kg": 1, "m": 2, "s": -3},
    "Pa": {"kg": 1, "m": -1, "s": -2},
    "C": {"A": 1, "s": 1},
    "V": {"kg": 1, "m": 2, "s": -3, "A": -1},
    "Ω": {"kg": 1, "m": 2, "s": -3, "A": -2},
}
_NAMES = {
    "newton": "N",
    "joule": "J",
    "watt": "W",
    "pascal": "Pa",
    "coulomb": "C",
    "volt": "V",
    "ohm": "Ω",
}
_QUANTITY_QUESTION_RE = re.compile(
    r"(?i)\b(?:forces?|weight|tension|friction|thrust|energy|work|heat|power|pressure|stress|charge"
    r"|voltage|potential|resistance|newtons?|joules?|watts?|pascals?|volts?|ohms?|coulombs?)\b"
)
# "kg", "m^2", "s^-2"
_UNIT_RE = re.compile(r"(kg|mol|m|s|A|K)(?:\^?\(?(-?[1-4])\)?)?")
_SEPARATOR_RE = re.compile(r"\s?[*·⋅]\s?|\s")


def same_in_base_units(first: str, second: str) -> bool | None:
    """Return whether "49 N" and "49 kg*m/s^2" are the same; None unless they are so written.

    One has a derived unit and the other its name or base units: torque in N m is no energy.
    """
    quantity, other = _read(first), _read(second)
    if quantity is None or other is None:
        return None
    (value, unit), (other_value, other_unit) = quantity, other
    symbols = [_symbol(name) for name in (unit, other_unit)]
    powers = [_DERIVED_UNITS.get(symbol) for symbol in symbols]
    if powers[0] and powers[1]:  # 49 newtons
        return value == other_value and symbols[0] == symbols[1]
    if not (powers[0] or powers[1]):
        return None
    based = _powers(other_unit if powers[0] else unit)
    return value == other_value and based == (powers[0] or powers[1]) if based else None


def without_derived_unit(text: str, other: str, question: str) -> str:
    """Return "12" for "12 N" beside a bare number, where a question asks for such a quantity."""
    quantity, bare = _read(text), tidy_answer(other)
    if quantity is None or not _QUANTITY_QUESTION_RE.search(question):
        return text
    is_bare = (number := read_digits(bare.lstrip("-"), 0)) and number[1] == len(bare.lstrip("-"))
    if not is_bare or _symbol(quantity[1]) not in _DERIVED_UNITS:
        return text
    plain = to_plain_text(tidy_answer(text)).rpartition("=")[2].strip()
    return plain.removesuffix(quantity[1]).strip()


def _symbol(unit: str) -> str:
    """Return "N" for newton and newtons; another unit as it is."""
    name = unit.lower().removesuffix("s") if len(unit) > 2 else unit
    return _NAMES.get(name, unit)


def _read(text: str) -> tuple[Fraction, str] | None:
    """Return the number and the unit of a quantity as written; None for other text."""
    plain = to_plain_text(tidy_answer(text)).rpartition("=")[2].strip()
    if len(plain) > _MAX_CHARACTERS:
        return None
    sign = -1 if plain[:1] == "-" else 1
    plain = plain.lstrip("-+ ")
    number = read_digits(plain, 0)
    unit = plain[number[1] :].strip(" .~") if number else ""
    return (sign * number[0], unit) if number and unit else None


def _powers(unit: str) -> dict[str, int]:
    """Return the powers of base units in "kg*m/s^2"; nothing for other text."""
    powers: dict[str, int] = {}
    for i, side in enumerate(unit.split("/", 1)):
        side = side.strip()
        side = side[1:-1] if side[:1] == "(" and side[-1:] == ")" else side
        for term in _SEPARATOR_RE.split(side):
            match = _UNIT_RE.fullmatch(term)
            if match is None:
                return {}
            power = int(match[2] or 1) * (-1 if i else 1)
            powers[match[1]] = powers.get(match[1], 0) + power
    return {name: power for name, power in powers.items() if power}
