"""Whether the two sides of an equation are equal: true, false, or undecided with the reason.

A false verdict needs that no reading of the two sides makes them equal.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

from cotlab.text.answers.quantities import read_quantity, same_quantity
from cotlab.text.arithmetic.expressions import Number
from cotlab.text.arithmetic.lexer import Token
from cotlab.text.arithmetic.phrases import PART_REASON
from cotlab.text.arithmetic.sides import Side, may_convert_units, mixes_units
from cotlab.text.written_units import find_units, unit_sizes

# "2024-03-05", "3/5/2024"
_DATE_RE = re.compile(
    r"(?<![\d-])(?:19|20)\d\d-(?:0\d|1[0-2])-[0-3]\d(?![\d-])"
    r"|(?<![\d/])\d\d?/\d\d?/(?:19|20)\d\d(?![\d/])"
)
# "1.080", "1.080.000": a dot that may mark thousands
_THOUSANDS_DOT_RE = re.compile(r"(?<![\d.])[1-9]\d{0,2}(?:\.\d{3})+(?!\d)")
# "0.5", ".5", "1.08": a dot that marks decimals
_DECIMAL_DOT_RE = re.compile(r"(?<!\d)0?\.\d|\.(?!\d{3}(?!\d))\d")
# "plus" of "7 plus 5"
_SPELLED_OPERATOR_RE = re.compile(r"divided|multiplied|plus|minus|times")


_TRANSCENDENTAL_LETTERS = frozenset({"\\pi"})
"""Letters in which two expressions are equal only if they are identical."""
_COMPLEX_UNITS = frozenset({"i", "j", "\\omega"})


def compare_sides(
    left: Side, right: Side, sign: Token, *, is_derived: bool = False
) -> tuple[bool | None, str]:
    """Return whether two sides are equal, or None with the reason why it is undecided.

    Parameters
    ----------
    left, right : Side
    sign : Token
        The sign or verb between them.
    is_derived : bool
        Whether a side stands before them in their chain a = b = c: then an equation in letters is
        no condition on the letters.
    """
    left_value, right_value = left.evaluation.value, right.evaluation.value
    if left_value is None or right_value is None:
        return _compare_with_letters(left, right, sign, is_derived)
    if right.remainder is not None:
        return _compare_with_remainder(left, right_value, right.remainder)
    n_operations = left.evaluation.n_operations + right.evaluation.n_operations
    if not n_operations:
        return _compare_quantities(left, right)
    is_verb = sign.kind == "says" and not sign.text.startswith("equal")
    if is_verb and not left.evaluation.n_operations:
        return None, "it computes nothing"
    values_are_equal = any(
        is_equal(x, y) or _is_rounding(Fraction(x), Fraction(y), left, right, sign)
        for x in left.values
        for y in right.values
    )
    is_share = left.evaluation.n_operations == 1 and left.evaluation.has_division
    if is_verb and is_share and " " not in left.text:
        if left_value == right_value:
            return True, ""
        return None, "a share may be said to be an amount"
    if any(mixes_units(side) for side in (left, right)):
        return None, "units that may be converted"
    if values_are_equal:
        doubt = _truth_doubt(left, right, sign)
        return (None, doubt) if doubt else (True, "")
    if sign.kind == "says" and not left.begins_clause:
        doubt = "it may be said of something else"
    elif left.is_compared and right.is_compared:
        doubt = "two relations may be meant side by side"
    else:
        doubt = left.doubt or right.doubt
        doubt = doubt or _doubt_reason(Fraction(left_value), Fraction(right_value), left, right)
    return (None, doubt) if doubt else (False, "")


def _truth_doubt(left: Side, right: Side, sign: Token) -> str:
    """Return why two sides with equal values may be unequal as they are written, or ""."""
    if left.has_factor or right.has_factor:
        return "a factor or a function stands next to it"
    is_at_its_word = any(
        is_equal(x, y) or _is_rounding(Fraction(x), Fraction(y), left, right, sign)
        for x in left.values - left.loose_values
        for y in right.values - right.loose_values
    )
    if is_at_its_word or all(_is_of_hundred(*sides) for sides in ((left, right), (right, left))):
        return ""
    return "a percentage or a factorial may be meant"


def _is_of_hundred(side: Side, other: Side) -> bool:
    """Return whether the percentages of a side may be numbers: 1/4 * 100 = 25%."""
    if not side.loose_values:
        return True
    is_exclamation = side.text.endswith("!")
    return not is_exclamation and (other.evaluation.has_percent or 100 in other.evaluation.numbers)


def is_equal(left_value: Number, right_value: Number) -> bool:
    """Return whether two values are equal: exactly, or up to the precision of a root."""
    if isinstance(left_value, float) or isinstance(right_value, float):
        return math.isclose(left_value, right_value, rel_tol=1e-9, abs_tol=1e-12)
    return left_value == right_value


def _compare_with_letters(
    left: Side, right: Side, sign: Token, is_derived: bool
) -> tuple[bool | None, str]:
    """Return whether two sides are equal for all values of their letters."""
    left_letters, right_letters = set(left.evaluation.letters), set(right.evaluation.letters)
    if not left_letters | right_letters:
        return None, "it has no value that can be computed"
    unknown = (
        None,
        f"the value of {(left.evaluation.letters + right.evaluation.letters)[0]} is not known",
    )
    sample_pairs = list(zip(_sample_values(left), _sample_values(right), strict=True))
    n_operations = left.evaluation.n_operations + right.evaluation.n_operations
    if sign.kind != "eq" or left.units or right.units or not n_operations or not sample_pairs:
        return unknown
    if any(x is None or y is None for x, y in sample_pairs):
        return unknown
    if all(is_equal(x, y) for x, y in sample_pairs if x is not None and y is not None):
        is_whole = not (left.has_factor or right.has_factor)
        return (True, "") if is_whole else (None, "a factor or a function stands next to it")
    is_identity_claim = is_derived or left_letters <= _TRANSCENDENTAL_LETTERS
    if left_letters != right_letters or not is_identity_claim or n_operations < 2:
        return unknown
    doubt = left.doubt or right.doubt
    if left_letters & _COMPLEX_UNITS:
        doubt = doubt or "a letter may be the imaginary unit"
    if any("." in side.text for side in (left, right)):
        doubt = doubt or "a value that may be rounded"
    return (None, doubt) if doubt else (False, "")


def _sample_values(side: Side) -> tuple[Number | None, ...]:
    """Return the values of a side for two choices of values of the letters."""
    return side.samples if side.evaluation.letters else (side.evaluation.value,) * 2


def _compare_with_remainder(
    left: Side, quotient: Number, remainder: Fraction
) -> tuple[bool | None, str]:
    """Return whether 17 / 5 = 3 remainder 2 holds."""
    numbers = left.evaluation.numbers
    is_division = left.evaluation.n_operations == 1 and left.evaluation.has_division
    if not is_division or len(numbers) != 2 or left.doubt or left.evaluation.letters:
        return None, "a remainder of something that is no division"
    sign = -1 if (left.evaluation.value or 0) * numbers[0] * numbers[1] < 0 else 1
    return sign * numbers[0] == quotient * numbers[1] + remainder, ""


def _compare_quantities(left: Side, right: Side) -> tuple[bool | None, str]:
    """Return True for two equal quantities; anything else computes nothing."""
    readings = (read_quantity(f"{side.text} {' '.join(side.units)}") for side in (left, right))
    quantities = [quantity for quantity in readings if quantity is not None and quantity.units]
    if len(quantities) == 2 and same_quantity(*quantities):
        return True, ""
    is_same = (
        left.evaluation.value == right.evaluation.value
        and not left.units
        and not right.units
        and not left.doubt
        and not right.doubt
    )
    return (True, "") if is_same else (None, "it computes nothing")


def _is_rounding(
    left_value: Fraction, right_value: Fraction, left: Side, right: Side, sign: Token
) -> bool:
    """Return whether one value is the other one, truncated or rounded to its decimals."""
    for exact_value, rounded_value, side in (
        (left_value, right_value, right),
        (right_value, left_value, left),
    ):
        unit_of_last_decimal = Fraction(1, 10**side.evaluation.n_decimals)
        is_truncated = (
            abs(exact_value) >= abs(rounded_value)
            and exact_value * rounded_value >= 0
            and abs(exact_value - rounded_value) < unit_of_last_decimal
        )
        if (
            not side.evaluation.n_operations
            and side.evaluation.n_decimals
            and (is_truncated or 2 * abs(exact_value - rounded_value) <= unit_of_last_decimal)
        ):
            return True
    return sign.kind == "near" and abs(left_value - right_value) <= Fraction(1, 20) * max(
        abs(left_value), abs(right_value)
    )


def _doubt_reason(left_value: Fraction, right_value: Fraction, left: Side, right: Side) -> str:
    """Return why two unequal values may still be meant to be equal; "" if they cannot."""
    if any(
        side.evaluation.has_percent and re.search(r"[+−/-]|plus|minus", side.text)
        for side in (left, right)
    ):
        return "a percentage of something that is not said"
    if any(len(unit.partition("^")[0]) == 1 for unit in (*left.units, *right.units)):
        return "a letter may be a unit or a value"
    if any(_DATE_RE.search(side.text) for side in (left, right)):
        return "it may be a date"
    if not any(
        re.search(_DECIMAL_DOT_RE, side.text) for side in (left, right)
    ) and _THOUSANDS_DOT_RE.search(left.text + right.text):
        return "a dot may mark thousands"
    if (
        right.evaluation.n_operations
        and _SPELLED_OPERATOR_RE.search(right.text)
        and not _SPELLED_OPERATOR_RE.search(left.text)
    ):
        return "it goes on in words"
    if any(re.search(r"\d\s+/\s+\d+\s?/\s?\d", side.text) for side in (left, right)):
        return "a fraction of fractions without brackets"
    if may_convert_units((*left.units, *right.units)):
        return "units that may be converted"
    if not left.evaluation.has_division and right.is_rate:
        return PART_REASON
    if _may_be_converted_silently(left_value, right_value, left, right):
        return "units that may be converted"
    if _is_amount(left) and _is_amount(right) and _unit_name(left) != _unit_name(right):
        return "one amount may stand for another"
    has_fraction = left_value.denominator > 1 or right_value.denominator > 1
    is_close = abs(left_value - right_value) < Fraction(1, 100) * max(
        abs(left_value), abs(right_value)
    ) and (has_fraction or left.evaluation.has_division or right.evaluation.has_division)
    has_integer = any(
        not side.evaluation.n_operations and not side.evaluation.n_decimals
        for side in (left, right)
    )
    if is_close or (has_fraction and has_integer and abs(left_value - right_value) < 1):
        return "a value that may be rounded"
    return ""


def _may_be_converted_silently(
    left_value: Fraction, right_value: Fraction, left: Side, right: Side
) -> bool:
    """Return whether one side alone has a unit, to which the other is converted: 120 = 2 hours."""
    if not left_value or not right_value or bool(left.units) == bool(right.units):
        return False
    ratio = abs(left_value / right_value if left.units else right_value / left_value)
    return any(
        other_size == ratio * size
        for name in (left.units or right.units)
        for dimension, size in find_units(name)
        for other_size in unit_sizes(dimension)
    )


def _is_amount(side: Side) -> bool:
    """Return whether a side is one number or one fraction, with a unit: 1/2 inch."""
    evaluation = side.evaluation
    is_number = evaluation.n_operations == evaluation.has_division and not evaluation.letters
    return is_number and bool(side.units)


def _unit_name(side: Side) -> str:
    """Return the first unit of a side without its plural."""
    return side.units[0].lower().rstrip("s.")
