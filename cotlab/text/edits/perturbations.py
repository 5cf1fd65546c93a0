"""Named, seeded perturbations of a step: some keep its meaning, some change what it states."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import NamedTuple

from cotlab.core.errors import UnknownName
from cotlab.text.edits.ablations import NUMBER, label_end, negated, paraphrase_step, stated_number
from cotlab.text.edits.names import swapped_name

MIN_NOISE, MAX_NOISE = 0.01, 0.05
"""Relative size of numeric noise; at least one unit of the number's last place."""
_MAX_DECIMALS = 6


class _Unit(NamedTuple):
    """A unit and its size relative to the others of its family."""

    singular: str
    plural: str
    size: Fraction


def _family(*units: tuple[str, str, int | Fraction]) -> tuple[_Unit, ...]:
    """Build units from (singular, plural, size)."""
    return tuple(_Unit(singular, plural, Fraction(size)) for singular, plural, size in units)


def _symbols(listed: Mapping[str, int]) -> tuple[_Unit, ...]:
    """Build units from symbols, which have no plural."""
    return _family(*((symbol, symbol, size) for symbol, size in listed.items()))


def _metric(root: str, listed: Mapping[str, int]) -> tuple[_Unit, ...]:
    """Build units from the prefixes of one metric unit."""
    return _family(*((prefix + root, f"{prefix}{root}s", size) for prefix, size in listed.items()))


_FAMILIES = (
    _symbols({"mm": 1, "cm": 10, "m": 1000, "km": 10**6}),
    _symbols({"mg": 1, "g": 1000, "kg": 10**6}),
    _symbols({"ml": 1, "cl": 10, "l": 1000}),
    _symbols({"mL": 1, "L": 1000}),
    _symbols({"s": 1, "min": 60, "h": 3600}),
    _metric("meter", {"milli": 1, "centi": 10, "": 1000, "kilo": 10**6}),
    _metric("metre", {"milli": 1, "centi": 10, "": 1000, "kilo": 10**6}),
    _metric("gram", {"milli": 1, "": 1000, "kilo": 10**6}),
    _metric("liter", {"milli": 1, "": 1000}),
    _metric("litre", {"milli": 1, "": 1000}),
    _family(
        ("second", "seconds", 1),
        ("minute", "minutes", 60),
        ("hour", "hours", 3600),
        ("day", "days", 86400),
    ),
    _family(
        ("inch", "inches", 1), ("foot", "feet", 12), ("yard", "yards", 36), ("mile", "miles", 63360)
    ),
    _family(("ounce", "ounces", 1), ("pound", "pounds", 16)),
    _family(("cent", "cents", 1), ("dollar", "dollars", 100)),
)
_BY_WORD = {
    word: (family, unit)
    for family in _FAMILIES
    for unit in family
    for word in (unit.singular, unit.plural)
}
_LONG = "|".join(sorted((word for word in _BY_WORD if len(word) > 1), key=len, reverse=True))
_SHORT = "|".join(sorted(word for word in _BY_WORD if len(word) == 1))
# "5 km", "2 hours", "12-inch"; not "5 m^2" or "5 m per second", whose unit goes on
_QUANTITY = re.compile(
    rf"({NUMBER.pattern})(?:([ -]?)({_LONG})|( )({_SHORT}))(?![\w^²³/*'’]| per\b)"
)

_OPERAND = r"[$€£]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?%?"
# "3 + 4", "$5×2"
_SUM = re.compile(rf"(?<![\w.,$€£])({_OPERAND})( ?([+×*·]) ?)({_OPERAND})(?![\w]|[.,]\d)")
# "; ", ", and "
_CLAUSES = re.compile(r"; |, and | and ")
# "=", "is", "costs"
_FINITE = re.compile(
    r"=|\b(?:is|are|was|were|has|have|had|can|will|gives?|makes?|leaves?|costs?|needs?|uses?"
    r"|holds?|equals?|becomes?|gets?|buys?|sells?|eats?|pays?|earns?|takes?|adds?)\b"
)
# "so", "which": the clause depends on another
_DEPENDENT = re.compile(
    r"(?:so|thus|hence|therefore|then|it|this|that|these|those|they|which|if|when|both|between)\b",
    re.IGNORECASE,
)
# " = ", " equals "
_EQUALS = re.compile(r" (=|equals) ")


class Perturbation(NamedTuple):
    """One way to change a step."""

    name: str
    keeps: bool
    """Whether the meaning stays, so that nothing after the step has to change."""
    apply: Callable[[str, Sequence[str], random.Random], str | None]
    """Function of the step without its label, the item's names and a generator."""


def perturb(name: str, step: str, names: Sequence[str], rng: random.Random) -> str | None:
    """Apply one of the PERTURBATIONS to a step.

    Parameters
    ----------
    name : one of PERTURBATIONS
    names : sequence of str
        Names in the item; only an entity swap uses them.
    rng : random.Random
        The same state gives the same text.

    Returns
    -------
    str or None
        Never the step itself; its label ("Step 2:") stays. None if the perturbation does not apply.

    Raises
    ------
    UnknownName
        If there is no such perturbation.
    """
    if name not in PERTURBATIONS:
        raise UnknownName("perturbation", name, tuple(PERTURBATIONS))
    start = label_end(step)
    changed = PERTURBATIONS[name].apply(step[start:], names, rng)
    return None if changed is None or changed == step[start:] else step[:start] + changed


def _paraphrase(body: str, names: Sequence[str], rng: random.Random) -> str | None:
    """Paraphrase the step."""
    return paraphrase_step(body, rng)


def _numeric(body: str, names: Sequence[str], rng: random.Random) -> str | None:
    """Change the number that the step states by 1 to 5 %, and later repetitions with it.

    The change is at least one unit of its last place.
    """
    numbers = [
        number
        for number in NUMBER.finditer(body)
        if body[number.start() - 1 : number.start()] != "^"
    ]
    if not numbers:
        return None
    stated = stated_number(body, numbers)
    moved = _noisy(stated.group(), rng)
    for number in reversed(numbers):
        if number.start() >= stated.start() and number.group() == stated.group():
            body = body[: number.start()] + moved + body[number.end() :]
    return body


def _noisy(number: str, rng: random.Random) -> str:
    """Change a number by 1 to 5 %, not below zero."""
    with localcontext(prec=len(number) + 6):
        value = Decimal(number.replace(",", ""))
        exponent = value.as_tuple().exponent
        last_digit = Decimal(1).scaleb(exponent if isinstance(exponent, int) else 0)
        share = Decimal(repr(round(rng.uniform(MIN_NOISE, MAX_NOISE), 6)))
        change = max(last_digit, (value * share / last_digit).to_integral_value() * last_digit)
        moved = value + change if rng.random() < 0.5 or value < change else value - change
    formatted = f"{moved:,f}" if "," in number else f"{moved:f}"
    return formatted.removeprefix("0") if number.startswith(".") else formatted


def _unit_swap(body: str, names: Sequence[str], rng: random.Random) -> str | None:
    """Give the last quantity another unit of its dimension and keep its number."""
    return _with_unit(body, rng, convert=False)


def _unit_conversion(body: str, names: Sequence[str], rng: random.Random) -> str | None:
    """Convert the last quantity exactly to another unit of its dimension."""
    return _with_unit(body, rng, convert=True)


def _with_unit(body: str, rng: random.Random, *, convert: bool) -> str | None:
    """Write the last quantity with another unit, its number converted or not."""
    matches = list(_QUANTITY.finditer(body))
    if not matches:
        return None
    number, separator, word = (
        matches[-1][1],
        matches[-1][2] or matches[-1][4] or "",
        matches[-1][3] or matches[-1][5],
    )
    family, unit = _BY_WORD[word]
    choices = []
    for other in family:
        formatted = (
            _decimal(Fraction(number.replace(",", "")) * unit.size / other.size)
            if convert
            else number
        )
        if other != unit and formatted is not None:
            single = (formatted == "1") if convert else word == unit.singular
            blank = separator or " " * (len(other.singular) == 1)
            choices.append(f"{formatted}{blank}{other.singular if single else other.plural}")
    if not choices:
        return None
    return body[: matches[-1].start()] + rng.choice(choices) + body[matches[-1].end() :]


def _decimal(value: Fraction) -> str | None:
    """Write a number exactly, or None if that takes more than six decimals."""
    scaled = value * 10**_MAX_DECIMALS
    if scaled.denominator != 1:
        return None
    integer, rest = divmod(scaled.numerator, 10**_MAX_DECIMALS)
    return f"{integer}.{rest:0{_MAX_DECIMALS}d}".rstrip("0").rstrip(".")


def _order(body: str, names: Sequence[str], rng: random.Random) -> str | None:
    """Exchange the operands of one sum or product, or else two whole clauses."""
    pairs = [pair for pair in _SUM.finditer(body) if pair[1] != pair[4] and _free(body, pair)]
    if pairs:
        pair = rng.choice(pairs)
        return body[: pair.start()] + pair[4] + pair[2] + pair[1] + body[pair.end() :]
    return _clauses(body, names)


def _free(body: str, pair: re.Match[str]) -> bool:
    """Return whether no neighbour binds one of the operands more tightly or subtracts the first."""
    left, right = body[: pair.start()].rstrip()[-1:], body[pair.end() :].lstrip()[:1]
    if "%" in (pair[1][-1], pair[4][-1]):
        return False
    if pair[3] == "+":
        return (not left or left not in "*×·/÷^x−-–") and (not right or right not in "*×·/÷^x%(")
    return (not left or left not in "/÷^") and (not right or right not in "^(%")


def _clauses(body: str, names: Sequence[str]) -> str | None:
    """Exchange two clauses that each have a verb or an equation and do not depend on each other."""
    text = body.rstrip()
    end = text[-1:] if text[-1:] in ".!" else ""
    text = text.removesuffix(end) if end else text
    cuts = list(_CLAUSES.finditer(text))
    if len(cuts) != 1 or re.search(r"[.!?:]\s", text):
        return None
    first, joint, second = text[: cuts[0].start()], cuts[0].group(), text[cuts[0].end() :]
    if not (_FINITE.search(first) and _FINITE.search(second)) or "," in first + second:
        return None
    if _FINITE.match(second) or _DEPENDENT.match(first) or _DEPENDENT.match(second):
        return None
    if not (second[:1].isalnum() and first[:1].isalnum()):
        return None
    if first.split()[0].lower() in ("the", "a", "an", "each", "every", "one", "two", "her", "his"):
        first = first[0].lower() + first[1:]
    elif first[0].isalpha() and first.split()[0] not in names:
        return None
    return second[0].upper() + second[1:] + joint + first + end + body[len(body.rstrip()) :]


def _negation(body: str, names: Sequence[str], rng: random.Random) -> str | None:
    """Add or remove "not" at the first verb that can take it, else deny the last equation."""
    changed = negated(body)
    if changed is not None:
        return changed
    signs = list(_EQUALS.finditer(body))
    if not signs:
        return None
    denied = " does not equal " if signs[-1][1] == "equals" else " ≠ "
    return body[: signs[-1].start()] + denied + body[signs[-1].end() :]


def _entity_swap(body: str, names: Sequence[str], rng: random.Random) -> str | None:
    """Replace a name by another of the item."""
    return swapped_name(body, names, rng)


PERTURBATIONS: Mapping[str, Perturbation] = {
    perturbation.name: perturbation
    for perturbation in (
        Perturbation("paraphrase", True, _paraphrase),
        Perturbation("numeric", False, _numeric),
        Perturbation("unit_swap", False, _unit_swap),
        Perturbation("unit_conversion", True, _unit_conversion),
        Perturbation("order", True, _order),
        Perturbation("negation", False, _negation),
        Perturbation("entity_swap", False, _entity_swap),
    )
}
"""Every perturbation by its name."""
