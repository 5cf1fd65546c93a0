"""Whether two sides of an equation are equal, or whether that cannot be told: units, rounding, percentages, words beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from cotlab.text.answers.numbers import read_quantity, same_quantity
from cotlab.text.arithmetic.lexer import Evaluation, Token

_LISTED = (
    "remainder r mod modulo or to of less more fewer greater larger smaller times out with and half"
    " base choose squared cubed percent percentage dozen dozens hundred thousand million billion"
    " trillion k m bn plus minus over am pm o'clock binary octal hexadecimal hex"
)
SPEAKS_RIGHT = frozenset(_LISTED.split())
"""Words that, after an expression, may be a part of it or change what it means."""
_DATE = re.compile(
    r"(?<![\d-])(?:19|20)\d\d-(?:0\d|1[0-2])-[0-3]\d(?![\d-])|(?<![\d/])\d\d?/\d\d?/(?:19|20)\d\d(?![\d/])"
)
_DOTTED, _OTHER_DOT = (
    re.compile(r"(?<![\d.])[1-9]\d{0,2}(?:\.\d{3})+(?!\d)"),
    re.compile(r"(?<!\d)0?\.\d|\.(?!\d{3}(?!\d))\d"),
)
_SPELLED_OPERATOR = re.compile(r"divided|multiplied|plus|minus|times")


@dataclass(frozen=True, slots=True)
class Side:
    """One side of an equation: its value, units read as none, and what speaks for another reading of it."""

    start: int
    end: int
    evaluation: Evaluation
    bare: Evaluation
    units: tuple[str, ...]
    doubt: str = ""
    text: str = ""

    @property
    def letter(self) -> str:
        """The letter that it is, where it is one letter alone."""
        return (
            self.evaluation.names[0]
            if len(self.evaluation.names) == 1
            and not self.evaluation.operations
            and not self.evaluation.numbers
            else ""
        )


def compare_sides(left: Side, right: Side, sign: Token) -> tuple[bool | None, str]:
    """Whether two sides are equal, or None with the reason why that cannot be told."""
    a, b = left.evaluation.value, right.evaluation.value
    if a is None or b is None:
        letters = [name for side in (left, right) for name in side.evaluation.names]
        return (
            None,
            (
                f"the value of {letters[0]} is not known"
                if letters
                else "it has no value that can be computed"
            ),
        )
    operations = left.evaluation.operations + right.evaluation.operations
    if not operations:
        left_quantity, right_quantity = (
            read_quantity(f"{side.text} {' '.join(side.units)}") for side in (left, right)
        )
        if (
            left_quantity is not None
            and right_quantity is not None
            and left_quantity.units
            and right_quantity.units
            and same_quantity(left_quantity, right_quantity)
        ):
            return True, ""
        same = a == b and not left.units and not right.units and not left.doubt and not right.doubt
        return (True, "") if same else (None, "it computes nothing")
    if sign.kind == "says" and not sign.text.startswith("equal") and not left.evaluation.operations:
        return None, "it computes nothing"
    if (
        sign.kind == "says"
        and left.evaluation.operations == 1
        and left.evaluation.divides
        and " " not in left.text
    ):
        return (True, "") if a == b else (None, "a share may be said to be an amount")
    readings = {
        (x, y)
        for x in (a, left.bare.value)
        for y in (b, right.bare.value)
        if x is not None and y is not None
    }
    if any(_adds_units(side) for side in (left, right)):
        return None, "units that may be converted"
    if any(x == y for x, y in readings) or any(
        _rounds(x, y, left, right, sign) for x, y in readings
    ):
        return True, ""
    doubt = left.doubt or right.doubt or _doubt(a, b, left, right)
    return (None, doubt) if doubt else (False, "")


def _rounds(a: Fraction, b: Fraction, left: Side, right: Side, sign: Token) -> bool:
    """Whether one value is the other one, cut or rounded to the decimals that it shows."""
    for exact, rounded, side in ((a, b, right), (b, a, left)):
        last = Fraction(1, 10**side.evaluation.decimals)
        is_truncated = (
            abs(exact) >= abs(rounded) and exact * rounded >= 0 and abs(exact - rounded) < last
        )
        if (
            not side.evaluation.operations
            and side.evaluation.decimals
            and (is_truncated or 2 * abs(exact - rounded) <= last)
        ):
            return True
    return sign.kind == "near" and abs(a - b) <= Fraction(1, 20) * max(abs(a), abs(b))


def _doubt(a: Fraction, b: Fraction, left: Side, right: Side) -> str:
    """Why two unequal values may be meant to be equal all the same."""
    if any(
        side.evaluation.percent and re.search(r"[+−/-]|plus|minus", side.text)
        for side in (left, right)
    ):
        return "a percentage of something that is not said"
    if any(len(unit.partition("^")[0]) == 1 for unit in (*left.units, *right.units)):
        return "a letter may be a unit or a value"
    if any(_DATE.search(side.text) for side in (left, right)):
        return "it may be a date"
    if not any(re.search(_OTHER_DOT, side.text) for side in (left, right)) and _DOTTED.search(
        left.text + right.text
    ):
        return "a dot may mark thousands"
    if (
        right.evaluation.operations
        and _SPELLED_OPERATOR.search(right.text)
        and not _SPELLED_OPERATOR.search(left.text)
    ):
        return "it goes on in words"
    if any(re.search(r"\d\s+/\s+\d+\s?/\s?\d", side.text) for side in (left, right)):
        return "a fraction of fractions without brackets"
    if _converts((*left.units, *right.units)):
        return "units that may be converted"
    broken = a.denominator > 1 or b.denominator > 1
    near = abs(a - b) < Fraction(1, 100) * max(abs(a), abs(b)) and (
        broken or left.evaluation.divides or right.evaluation.divides
    )
    has_integer = any(
        not side.evaluation.operations and not side.evaluation.decimals for side in (left, right)
    )
    if near or (broken and has_integer and abs(a - b) < 1):
        return "a value that may be rounded"
    return ""


def _adds_units(side: Side) -> bool:
    """Whether a sum has units of one kind and different size: 2 hours + 30 minutes."""
    plain = bool(side.evaluation.operations) and not re.search(
        r"[*/×·∙⋅÷^]|\bx\b|times|by\b|frac|of\b", side.text
    )
    return plain and _differ_in_size(side.units)


def _converts(unit_names: Sequence[str]) -> bool:
    """Whether two words are units of one kind and different size, or a word is a number."""
    return any(word.lower().strip(".") in SPEAKS_RIGHT for word in unit_names) or _differ_in_size(
        unit_names
    )


def _differ_in_size(unit_names: Sequence[str]) -> bool:
    readings = [
        read_quantity(f"1 {word}")
        for word in dict.fromkeys(word.lower().strip(".") for word in unit_names)
    ]
    units = [quantity for quantity in readings if quantity is not None and quantity.units]
    return any(
        u[0] == v[0] and u[1] != v[1] for x, y in pairwise(units) for u in x.units for v in y.units
    )
