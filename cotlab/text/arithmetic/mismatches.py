"""Find units in a text that do not fit what they are added to, equated with or named.

Only dimensions are compared: metres and kilometres agree, metres and square metres do not. A
quantity of unknown dimension, or anything computed from it, is never a mismatch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cotlab.text.arithmetic.lexer import operator_sign
from cotlab.text.arithmetic.units import (
    Dimension,
    PhysicalQuantity,
    find_quantities,
    mask_latex_dollars,
    read_quantity_at,
)


class UnitMismatch(NamedTuple):
    """A quantity whose unit does not fit."""

    start: int
    """First character of the text."""
    end: int
    """Character after the last."""
    reason: str
    """What the unit is and what it should be."""


# "x * " before a calculation: its unit depends on something that is no quantity
_OPERATOR_BEFORE_RE = re.compile(r"[*×·/÷^]\s?[$€£]?$")
# "^2", "²" after a bracket
_EXPONENT_RE = re.compile(r"\s?(?:\^|\*\*)\s?(\d)|([²³])")
# " + ", " x ", " divided by "
_OPERATOR_RE = re.compile(
    r"\s*([*×·⋅/÷+=≈−–-]|x(?=\s)|times\b|multiplied by\b|divided by\b|plus\b|minus\b|equals\b)\s*"
)
_MAX_DEPTH = 4
_LENGTH, _TIME, _MASS = "[length]", "[time]", "[mass]"
_WAGE_DIMENSIONS: set[Dimension | None] = {(("[money]", 1),), (("[money]", 1), (_TIME, -1))}
"""The two sides of $10 + $2 = $12 per hour: "per hour" is usually written once."""
# "Step 2: the " before "area: 5 m"
_SENTENCE_START_RE = re.compile(r"(?i)(?:^|[.;\n])\s*(?:step\s+\d+\s*[:.]\s*)?(?:the\s+|its\s+)?$")
MEASURE_DIMENSIONS: dict[str, tuple[Dimension, ...]] = {
    "area": (((_LENGTH, 2),),),
    "volume": (((_LENGTH, 3),), ((_LENGTH, 3), (_TIME, -1))),
    "perimeter circumference radius diameter height width depth": (((_LENGTH, 1),),),
    "length distance": (((_LENGTH, 1),), ((_TIME, 1),)),
    "speed velocity": (((_LENGTH, 1), (_TIME, -1)), ((_TIME, -1),)),
    "weight mass": (((_MASS, 1),), ((_LENGTH, 1), (_MASS, 1), (_TIME, -2))),
    "duration": (((_TIME, 1),),),
    "price cost": (),
}
"""Dimensions of each named kind of quantity; a price is anything with money in it, or a time."""
_DIMENSIONS_BY_MEASURE = {
    word: dimensions for names, dimensions in MEASURE_DIMENSIONS.items() for word in names.split()
}
_MEASURE_PATTERN = "|".join(_DIMENSIONS_BY_MEASURE)
# "an area of ", "The area of the roof is ", "speed = about " before a number
_NAMED_MEASURE_RE = re.compile(
    rf"(?i)\b(?:an?\s+(?:[a-z]+\s+)?(?P<a>{_MEASURE_PATTERN})\s+of"
    rf"|(?P<b>{_MEASURE_PATTERN})(?:\s+(?:of|for|to|from|between|around)\s[^.;,=:]{{1,40}}?)?"
    rf"\s*(?:=|:|\b(?:is|was|equals|becomes|comes to|amounts to)\b))"
    r"\s*(?:now |then |thus |therefore |only "
    r"|(?:about|approximately|approx\.|around|roughly|nearly|exactly|≈|~)\s*)?(?=[\d.$€£¥₹])"
)
# " of area" of "60 m² of area", " in length"
_MEASURE_SUFFIX_RE = re.compile(
    rf"\s+(?:of|in)\s+(?:[a-z]+\s+)?(?P<a>{_MEASURE_PATTERN})\b", re.IGNORECASE
)
# "area", "side", "each"
_ANY_MEASURE_RE = re.compile(
    rf"(?i)\b(?:{_MEASURE_PATTERN}|side|long|wide|high|deep|each|per|by)\b"
)


def unit_mismatches(text: str) -> tuple[UnitMismatch, ...]:
    """Find the quantities of a step whose unit does not fit.

    Returns
    -------
    tuple of Mismatch
        Ascending, disjoint. A mismatch is a term added to another dimension; a side of an equation
        of another dimension than the side before (if something is computed: ``1 kg = $4`` states a
        rate); an area in metres, a speed in kilometres and the like; or the same number with
        another power of a length, as 60 m² and then 60 m.
    """
    text = mask_latex_dollars(text)
    mismatches: list[UnitMismatch] = []
    position = 0
    for quantity in find_quantities(text):
        if quantity.start < position:
            continue
        end, sides, side_mismatches = _read_calculation(text, quantity.start)
        if not _OPERATOR_BEFORE_RE.search(text[max(0, quantity.start - 4) : quantity.start]):
            mismatches += side_mismatches
        position = max(position, end)
        mismatches += _measure_mismatches(text, quantity.start, end, sides)
    mismatches += _restated_mismatches(text)
    disjoint_mismatches: list[UnitMismatch] = []
    for mismatch in sorted(mismatches):
        if not disjoint_mismatches or mismatch.start >= disjoint_mismatches[-1].end:
            disjoint_mismatches.append(mismatch)
    return tuple(disjoint_mismatches)


def _read_calculation(
    text: str, position: int
) -> tuple[int, list[PhysicalQuantity], list[UnitMismatch]]:
    """Read the calculation at ``position``: its end, its sides, and the mismatches in it."""
    sides: list[PhysicalQuantity] = []
    mismatches: list[UnitMismatch] = []
    is_computed, end = False, position
    while (side_reading := _read_side(text, position, mismatches)) is not None:
        quantity, has_operator = side_reading
        sides.append(quantity)
        is_computed, end = is_computed or has_operator, quantity.end
        operator_match = _OPERATOR_RE.match(text, end)
        if operator_match is None or operator_sign(operator_match[1]) != "=":
            break
        position = operator_match.end()
    known_quantities = [quantity for quantity in sides if quantity.dimension is not None]
    if is_computed and known_quantities:
        first_quantity = known_quantities[0]
        reason = f"but {dimension_text(first_quantity.dimension)} before the equals sign"
        mismatches += [
            _make_mismatch(quantity, f", {reason}")
            for quantity in known_quantities[1:]
            if quantity.dimension != first_quantity.dimension
            and not {quantity.dimension, first_quantity.dimension} <= _WAGE_DIMENSIONS
        ]
    return max(end, position if not sides else end), sides, mismatches


def _read_side(
    text: str, position: int, mismatches: list[UnitMismatch], depth: int = 0
) -> tuple[PhysicalQuantity, bool] | None:
    """Read one side of an equation, and whether it computes; extend ``mismatches``."""
    terms: list[PhysicalQuantity] = []
    has_operator = False
    while (term_reading := _read_term(text, position, mismatches, depth)) is not None:
        terms.append(term_reading[0])
        has_operator = has_operator or term_reading[1]
        operator_match = _OPERATOR_RE.match(text, term_reading[0].end)
        if operator_match is None or operator_sign(operator_match[1]) not in ("+", "-"):
            break
        if operator_match[1] in "–-−" and not (
            operator_match[0].startswith(" ") and operator_match[0].endswith(" ")
        ):
            break  # a range: 3-5 km
        position = operator_match.end()
    if not terms:
        return None
    known_terms = [term_reading for term_reading in terms if term_reading.dimension is not None]
    dimension = known_terms[0].dimension if known_terms else None
    reason = f" added to {dimension_text(dimension)}"
    mismatches += [
        _make_mismatch(term_reading, reason)
        for term_reading in known_terms
        if term_reading.dimension != dimension
    ]
    total = terms[0]._replace(end=terms[-1].end, dimension=dimension)
    return total, has_operator or len(terms) > 1


def _read_term(
    text: str, position: int, mismatches: list[UnitMismatch], depth: int
) -> tuple[PhysicalQuantity, bool] | None:
    """Read a product, and whether it computes; one unknown factor makes its dimension unknown."""
    first_factor = _read_factor(text, position, mismatches, depth)
    if first_factor is None:
        return None
    end, has_operator = first_factor.end, False
    exponents = None if first_factor.dimension is None else dict(first_factor.dimension)
    while operator_match := _OPERATOR_RE.match(text, end):
        operator = operator_sign(operator_match[1])
        factor = (
            _read_factor(text, operator_match.end(), mismatches, depth)
            if operator in ("*", "/")
            else None
        )
        if factor is None:
            break
        has_operator, end = True, factor.end
        if (
            exponents is None
            or factor.dimension is None
            or _implies_rate_or_count(exponents, dict(factor.dimension), operator)
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
    return first_factor._replace(end=end, dimension=dimension), has_operator


def _implies_rate_or_count(
    first_exponents: dict[str, float], other_exponents: dict[str, float], operator: str
) -> bool:
    """Return whether a rate is left out (14 hours * $10), or a quotient is a count.

    A quotient of two amounts of money or two times is a count.
    """
    if operator == "/":  # of $600 per year / 12 months the months are a count too
        return (
            first_exponents == other_exponents and set(first_exponents) <= {"[money]", _TIME}
        ) or (first_exponents == {"[money]": 1, _TIME: -1} and other_exponents == {_TIME: 1})
    for amount_exponents, factor_exponents in (
        (first_exponents, other_exponents),
        (other_exponents, first_exponents),
    ):
        for base in ("[money]", _TIME):
            if (
                amount_exponents == {base: 1}
                and factor_exponents
                and factor_exponents.get(base, 0) >= 0
            ):
                return True
    return False


def _read_factor(
    text: str, position: int, mismatches: list[UnitMismatch], depth: int
) -> PhysicalQuantity | None:
    """Read a quantity, or a calculation in brackets with its exponent."""
    if text[position : position + 1] != "(":
        return read_quantity_at(text, position)
    inner_side = (
        _read_side(text, position + 1, mismatches, depth + 1) if depth < _MAX_DEPTH else None
    )
    if inner_side is None or text[inner_side[0].end : inner_side[0].end + 1] != ")":
        return None
    end, dimension = inner_side[0].end + 1, inner_side[0].dimension
    if exponent_match := _EXPONENT_RE.match(text, end):
        power = int(exponent_match[1] or {"²": 2, "³": 3}[exponent_match[2]])
        if dimension is not None:
            dimension = tuple((base, exponent * power) for base, exponent in dimension if power)
        end = exponent_match.end()
    return PhysicalQuantity(position, end, dimension)


def _measure_mismatches(
    text: str, start: int, end: int, sides: Sequence[PhysicalQuantity]
) -> Iterator[UnitMismatch]:
    """Yield the value of a calculation that is called an area, a speed … in a wrong unit."""
    if not sides or sides[-1].dimension is None:
        return
    last_side = sides[-1]
    search_start = max(0, start - 90)
    measures = [
        match["a"] or match["b"]
        for match in _NAMED_MEASURE_RE.finditer(text, search_start, start + 1)
        if match.end() == start
        and (":" not in match[0] or _SENTENCE_START_RE.search(text[: match.start()]))
    ]
    if (suffix_match := _MEASURE_SUFFIX_RE.match(text, end)) and len(sides) == 1:
        measures.append(suffix_match["a"])
    for measure in measures[:1]:
        if not _measure_has_dimension(measure.lower(), last_side.dimension or ()):
            yield _make_mismatch(last_side, f" for {measure.lower()}")


def _measure_has_dimension(measure: str, dimension: Dimension) -> bool:
    """Return whether a kind of quantity can have a dimension."""
    if measure in ("price", "cost"):
        bases = {base for base, _ in dimension}
        return "[money]" in bases or bases == {_TIME}
    return dimension in _DIMENSIONS_BY_MEASURE[measure]


def _restated_mismatches(text: str) -> Iterator[UnitMismatch]:
    """Yield numbers repeated with another power of a length, with no kind of quantity between."""
    length_quantities = [
        quantity
        for quantity in find_quantities(text)
        if quantity.dimension and [base for base, _ in quantity.dimension] == [_LENGTH]
    ]
    for i, quantity in enumerate(length_quantities):
        for earlier_quantity in length_quantities[max(0, i - 20) : i]:
            is_restated = (
                quantity.number == earlier_quantity.number
                and len(quantity.number) > 1
                and quantity.dimension != earlier_quantity.dimension
            )
            if is_restated and not _ANY_MEASURE_RE.search(text, earlier_quantity.end, quantity.end):
                text_between = text[earlier_quantity.end : quantity.end + 6]
                if not re.search(r"[*×/÷+=]", text_between) and not _ANY_MEASURE_RE.match(
                    text, min(len(text), quantity.end + 1)
                ):
                    yield _make_mismatch(
                        quantity, f", but {dimension_text(earlier_quantity.dimension)} before"
                    )
                    break


def _make_mismatch(quantity: PhysicalQuantity, reason: str) -> UnitMismatch:
    """Return a mismatch whose reason begins with the dimension of the quantity."""
    text = f"{dimension_text(quantity.dimension)}{reason}"
    return UnitMismatch(quantity.start, quantity.end, text)


def dimension_text(dimension: Dimension | None) -> str:
    """Write a dimension: length^2, length·time^-1."""
    factors = [
        base.strip("[]") + (f"^{power:g}" if power != 1 else "") for base, power in dimension or ()
    ]
    return "·".join(factors) or "a pure number"
