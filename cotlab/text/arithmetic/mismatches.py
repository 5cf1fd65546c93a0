"""Find units in a text that do not fit what they are added to, equated with or named.

Only dimensions are compared: metres and kilometres agree, metres and square metres do not. A
quantity of unknown dimension, or anything computed from it, is never a mismatch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cotlab.text.arithmetic.units import (
    Dimension,
    PhysicalQuantity,
    quantities,
    quantity_at,
    without_dollars,
)


class Mismatch(NamedTuple):
    """A quantity whose unit does not fit."""

    start: int
    """First character of the text."""
    end: int
    """Character after the last."""
    reason: str
    """What the unit is and what it should be."""


# "x * " before a calculation: its unit depends on something that is no quantity
_CUT_OFF = re.compile(r"[*×·/÷^]\s?[$€£]?$")
# "^2", "²" after a bracket
_RAISED = re.compile(r"\s?(?:\^|\*\*)\s?(\d)|([²³])")
# " + ", " x ", " divided by "
_OPERATOR = re.compile(
    r"\s*([*×·⋅/÷+=≈−–-]|x(?=\s)|times\b|multiplied by\b|divided by\b|plus\b|minus\b|equals\b)\s*"
)
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
_MAX_DEPTH = 4
_L, _T, _M = "[length]", "[time]", "[mass]"
_WAGES: set[Dimension | None] = {(("[money]", 1),), (("[money]", 1), (_T, -1))}
"""The two sides of $10 + $2 = $12 per hour: "per hour" is usually written once."""
# "Step 2: the " before "area: 5 m"
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
"""Dimensions of each named kind of quantity; a price is anything with money in it, or a time."""
_KIND = {word: dimensions for names, dimensions in KINDS.items() for word in names.split()}
_KIND_PATTERN = "|".join(_KIND)
# "an area of ", "The area of the roof is ", "speed = about " before a number
_NAMED = re.compile(
    rf"(?i)\b(?:an?\s+(?:[a-z]+\s+)?(?P<a>{_KIND_PATTERN})\s+of"
    rf"|(?P<b>{_KIND_PATTERN})(?:\s+(?:of|for|to|from|between|around)\s[^.;,=:]{{1,40}}?)?"
    rf"\s*(?:=|:|\b(?:is|was|equals|becomes|comes to|amounts to)\b))"
    r"\s*(?:now |then |thus |therefore |only "
    r"|(?:about|approximately|approx\.|around|roughly|nearly|exactly|≈|~)\s*)?(?=[\d.$€£¥₹])"
)
# " of area" of "60 m² of area", " in length"
_DIMENSION_SUFFIX = re.compile(
    rf"\s+(?:of|in)\s+(?:[a-z]+\s+)?(?P<a>{_KIND_PATTERN})\b", re.IGNORECASE
)
# "area", "side", "each"
_ANY_KIND = re.compile(rf"(?i)\b(?:{_KIND_PATTERN}|side|long|wide|high|deep|each|per|by)\b")


def unit_mismatches(text: str) -> tuple[Mismatch, ...]:
    """Find the quantities of a step whose unit does not fit.

    Returns
    -------
    tuple of Mismatch
        Ascending, disjoint. A mismatch is a term added to another dimension; a side of an equation
        of another dimension than the side before (if something is computed: ``1 kg = $4`` states a
        rate); an area in metres, a speed in kilometres and the like; or the same number with
        another power of a length, as 60 m² and then 60 m.
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


def _run(text: str, at: int) -> tuple[int, list[PhysicalQuantity], list[Mismatch]]:
    """Read the calculation at ``at``: its end, its sides, and the mismatches in it."""
    sides: list[PhysicalQuantity] = []
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
) -> tuple[PhysicalQuantity, bool] | None:
    """Read one side of an equation, and whether it computes; add its mismatches to ``wrong``."""
    terms: list[PhysicalQuantity] = []
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
    total = PhysicalQuantity(
        terms[0].start, terms[-1].end, dimension, terms[0].number, terms[0].unit
    )
    return total, several or len(terms) > 1


def _term(
    text: str, at: int, wrong: list[Mismatch], depth: int
) -> tuple[PhysicalQuantity, bool] | None:
    """Read a product, and whether it computes; one unknown factor makes its dimension unknown."""
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
    return PhysicalQuantity(start, end, dimension, first.number, first.unit), several


def _implied(first: dict[str, float], other: dict[str, float], operator: str) -> bool:
    """Return whether a rate is left out (14 hours * $10), or a quotient is a count.

    A quotient of two amounts of money or two times is a count.
    """
    if operator == "/":  # of $600 per year / 12 months the months are a count too
        return (first == other and set(first) <= {"[money]", _T}) or (
            first == {"[money]": 1, _T: -1} and other == {_T: 1}
        )
    for pure, rest in ((first, other), (other, first)):
        for base in ("[money]", _T):
            if pure == {base: 1} and rest and rest.get(base, 0) >= 0:
                return True
    return False


def _factor(text: str, at: int, wrong: list[Mismatch], depth: int) -> PhysicalQuantity | None:
    """Read a quantity, or a calculation in brackets with its exponent."""
    if text[at : at + 1] != "(":
        return quantity_at(text, at)
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
    return PhysicalQuantity(at, end, dimension)


def _named(
    text: str, start: int, end: int, sides: Sequence[PhysicalQuantity]
) -> Iterator[Mismatch]:
    """Yield the value of a calculation that is called an area, a speed … in a wrong unit."""
    if not sides or sides[-1].dimension is None:
        return
    value = sides[-1]
    before = max(0, start - 90)
    kinds = [
        match["a"] or match["b"]
        for match in _NAMED.finditer(text, before, start + 1)
        if match.end() == start and (":" not in match[0] or _STARTS.search(text[: match.start()]))
    ]
    if (after := _DIMENSION_SUFFIX.match(text, end)) and len(sides) == 1:
        kinds.append(after["a"])
    for kind in kinds[:1]:
        if not _fits(kind.lower(), value.dimension or ()):
            yield Mismatch(
                value.start, value.end, f"{dimension_text(value.dimension)} for {kind.lower()}"
            )


def _fits(kind: str, dimension: Dimension) -> bool:
    """Return whether a kind of quantity can have a dimension."""
    if kind in ("price", "cost"):
        bases = {base for base, _ in dimension}
        return "[money]" in bases or bases == {_T}
    return dimension in _KIND[kind]


def _restated(text: str) -> Iterator[Mismatch]:
    """Yield numbers repeated with another power of a length, with no kind of quantity between."""
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
    """Write a dimension: length^2, length·time^-1."""
    factors = [
        base.strip("[]") + (f"^{power:g}" if power != 1 else "") for base, power in dimension or ()
    ]
    return "·".join(factors) or "a pure number"
