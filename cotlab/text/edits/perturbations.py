"""Named, seeded perturbations of a step: some keep its meaning, some change what it states."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from typing import NamedTuple

from cotlab.core.errors import UnknownName
from cotlab.text.edits import ablations
from cotlab.text.edits.names import swap_name
from cotlab.text.written_numbers import NUMBER_PATTERN, read_number

MIN_RELATIVE_NOISE, MAX_RELATIVE_NOISE = 0.01, 0.05
"""Relative size of numeric noise; at least one unit of the number's last place."""
_MAX_DECIMALS = 6


class _Unit(NamedTuple):
    """A unit and its size relative to the others of its family."""

    singular: str
    plural: str
    size: Fraction


def _unit_family(*units: tuple[str, str, int | Fraction]) -> tuple[_Unit, ...]:
    """Build units from (singular, plural, size)."""
    return tuple(_Unit(singular, plural, Fraction(size)) for singular, plural, size in units)


def _symbol_family(size_by_symbol: Mapping[str, int]) -> tuple[_Unit, ...]:
    """Build units from symbols, which have no plural."""
    return _unit_family(*((symbol, symbol, size) for symbol, size in size_by_symbol.items()))


def _metric_family(root: str, size_by_prefix: Mapping[str, int]) -> tuple[_Unit, ...]:
    """Build units from the prefixes of one metric unit."""
    return _unit_family(
        *((prefix + root, f"{prefix}{root}s", size) for prefix, size in size_by_prefix.items())
    )


_UNIT_FAMILIES = (
    _symbol_family({"mm": 1, "cm": 10, "m": 1000, "km": 10**6}),
    _symbol_family({"mg": 1, "g": 1000, "kg": 10**6}),
    _symbol_family({"ml": 1, "cl": 10, "l": 1000}),
    _symbol_family({"mL": 1, "L": 1000}),
    _symbol_family({"s": 1, "min": 60, "h": 3600}),
    _metric_family("meter", {"milli": 1, "centi": 10, "": 1000, "kilo": 10**6}),
    _metric_family("metre", {"milli": 1, "centi": 10, "": 1000, "kilo": 10**6}),
    _metric_family("gram", {"milli": 1, "": 1000, "kilo": 10**6}),
    _metric_family("liter", {"milli": 1, "": 1000}),
    _metric_family("litre", {"milli": 1, "": 1000}),
    _unit_family(
        ("second", "seconds", 1),
        ("minute", "minutes", 60),
        ("hour", "hours", 3600),
        ("day", "days", 86400),
    ),
    _unit_family(
        ("inch", "inches", 1), ("foot", "feet", 12), ("yard", "yards", 36), ("mile", "miles", 63360)
    ),
    _unit_family(("ounce", "ounces", 1), ("pound", "pounds", 16)),
    _unit_family(("cent", "cents", 1), ("dollar", "dollars", 100)),
)
_FAMILY_AND_UNIT_BY_WORD = {
    word: (family, unit)
    for family in _UNIT_FAMILIES
    for unit in family
    for word in (unit.singular, unit.plural)
}
_LONG_UNIT_PATTERN = "|".join(
    sorted((word for word in _FAMILY_AND_UNIT_BY_WORD if len(word) > 1), key=len, reverse=True)
)
_SHORT_UNIT_PATTERN = "|".join(sorted(word for word in _FAMILY_AND_UNIT_BY_WORD if len(word) == 1))
# "5 km", "2 hours", "12-inch"; not "5 m^2" or "5 m per second", whose unit goes on
_QUANTITY_RE = re.compile(
    rf"({ablations.NUMBER_RE.pattern})(?:([ -]?)({_LONG_UNIT_PATTERN})|("
    rf" )({_SHORT_UNIT_PATTERN}))(?![\w^²³/*'’]| per\b)"
)

_OPERAND_PATTERN = rf"[$€£]?{NUMBER_PATTERN}%?"
# "3 + 4", "$5×2"
_SUM_OR_PRODUCT_RE = re.compile(
    rf"(?<![\w.,$€£])({_OPERAND_PATTERN})( ?([+×*·]) ?)({_OPERAND_PATTERN})(?![\w]|[.,]\d)"
)
# "; ", ", and "
_CLAUSE_SEPARATOR_RE = re.compile(r"; |, and | and ")
# "=", "is", "costs"
_FINITE_VERB_RE = re.compile(
    r"=|\b(?:is|are|was|were|has|have|had|can|will|gives?|makes?|leaves?|costs?|needs?|uses?"
    r"|holds?|equals?|becomes?|gets?|buys?|sells?|eats?|pays?|earns?|takes?|adds?)\b"
)
# "so", "which": the clause depends on another
_DEPENDENT_CLAUSE_RE = re.compile(
    r"(?:so|thus|hence|therefore|then|it|this|that|these|those|they|which|if|when|both|between)\b",
    re.IGNORECASE,
)
_LOWERED_WORDS = frozenset(["the", "a", "an", "each", "every", "one", "two", "her", "his"])
"""Words of a clause that surely name nothing: in lower case where it is no longer first."""
# "“Often” means ...", "$x$ is ...", "(a) is ..."; not a question
_OPENING_MARK_RE = re.compile(r"[“\"‘'$\\(\[−-]+\w(?!.*\?\s*$)", re.DOTALL)
# " = ", " equals "
_EQUALS_RE = re.compile(r" (=|equals) ")


class Perturbation(NamedTuple):
    """One way to change a step."""

    name: str
    """Name of the perturbation."""
    keeps_meaning: bool
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
    start = ablations.find_label_end(step)
    changed_body = PERTURBATIONS[name].apply(step[start:], names, rng)
    is_changed = changed_body is not None and changed_body != step[start:]
    return f"{step[:start]}{changed_body}" if is_changed else None


def _paraphrase_body(body: str, names: Sequence[str], rng: random.Random) -> str | None:
    """Paraphrase the step; one that opens with a quotation or a formula gets a connective."""
    paraphrased_body = ablations.paraphrase_step(body, rng)
    if paraphrased_body is None and _OPENING_MARK_RE.match(body):
        return f"So {body}"
    return paraphrased_body


def _add_numeric_noise(body: str, names: Sequence[str], rng: random.Random) -> str | None:
    """Change the number that the step states by 1 to 5 %, and later repetitions with it.

    The change is at least one unit of its last place.
    """
    found = ablations.NUMBER_RE.finditer(body)
    number_matches = [match for match in found if body[match.start() - 1 : match.start()] != "^"]
    if not number_matches:
        return None
    stated_match = ablations.find_stated_number(body, number_matches)
    return ablations.replace_stated_number(
        body, number_matches, stated_match, _noisy_number(stated_match.group(), rng)
    )


def _noisy_number(number: str, rng: random.Random) -> str:
    """Change a number by 1 to 5 %, not below zero."""
    with localcontext(prec=len(number) + 6):
        value, last_digit_unit = ablations.value_and_last_place(number)
        relative_change = Decimal(
            repr(round(rng.uniform(MIN_RELATIVE_NOISE, MAX_RELATIVE_NOISE), 6))
        )
        change = max(
            last_digit_unit,
            (value * relative_change / last_digit_unit).to_integral_value() * last_digit_unit,
        )
        new_value = value + change if rng.random() < 0.5 or value < change else value - change
    return ablations.format_number_like(new_value, number)


def _change_unit(
    body: str, names: Sequence[str], rng: random.Random, *, convert: bool
) -> str | None:
    """Write the last quantity with another unit of its dimension, exactly converted or not."""
    matches = list(_QUANTITY_RE.finditer(body))
    if not matches:
        return None
    number, hyphen, long_name, blank, short_name = matches[-1].groups()
    separator, word = hyphen or blank or "", long_name or short_name
    family, unit = _FAMILY_AND_UNIT_BY_WORD[word]
    choices = []
    for other_unit in family:
        formatted_number = (
            _format_decimal(read_number(number).value * unit.size / other_unit.size)
            if convert
            else number
        )
        if other_unit != unit and formatted_number is not None:
            is_singular = (formatted_number == "1") if convert else word == unit.singular
            space = separator or " " * (len(other_unit.singular) == 1)
            choices.append(
                f"{formatted_number}{space}"
                f"{other_unit.singular if is_singular else other_unit.plural}"
            )
    if not choices:
        return None
    return body[: matches[-1].start()] + rng.choice(choices) + body[matches[-1].end() :]


def _format_decimal(value: Fraction) -> str | None:
    """Write a number exactly, or None if that takes more than six decimals."""
    scaled_value = value * 10**_MAX_DECIMALS
    if scaled_value.denominator != 1:
        return None
    integer, decimals = divmod(scaled_value.numerator, 10**_MAX_DECIMALS)
    return f"{integer}.{decimals:0{_MAX_DECIMALS}d}".rstrip("0").rstrip(".")


def _swap_order(body: str, names: Sequence[str], rng: random.Random) -> str | None:
    """Exchange the operands of one sum or product, or else two whole clauses."""
    pairs = [
        pair
        for pair in _SUM_OR_PRODUCT_RE.finditer(body)
        if pair[1] != pair[4] and _is_swappable(body, pair)
    ]
    if pairs:
        pair = rng.choice(pairs)
        return body[: pair.start()] + pair[4] + pair[2] + pair[1] + body[pair.end() :]
    return _swap_clauses(body, names)


def _is_swappable(body: str, pair: re.Match[str]) -> bool:
    """Return whether no neighbour binds one of the operands more tightly or subtracts the first."""
    left_character = body[: pair.start()].rstrip()[-1:]
    right_character = body[pair.end() :].lstrip()[:1]
    if "%" in (pair[1][-1], pair[4][-1]):
        return False
    if pair[3] == "+":
        return (not left_character or left_character not in "*×·/÷^x−-–") and (
            not right_character or right_character not in "*×·/÷^x%("
        )
    return (not left_character or left_character not in "/÷^") and (
        not right_character or right_character not in "^(%"
    )


def _swap_clauses(body: str, names: Sequence[str]) -> str | None:
    """Exchange two clauses that each have a verb or an equation and do not depend on each other."""
    text = body.rstrip()
    end_mark = text[-1:] if text[-1:] in ".!" else ""
    text = text.removesuffix(end_mark) if end_mark else text
    separators = list(_CLAUSE_SEPARATOR_RE.finditer(text))
    if len(separators) != 1 or re.search(r"[.!?:]\s", text):
        return None
    separator = separators[0].group()
    clauses = first_clause, second_clause = text.split(separator)
    if not all(_FINITE_VERB_RE.search(clause) and clause[:1].isalnum() for clause in clauses):
        return None
    if _FINITE_VERB_RE.match(second_clause) or any(map(_DEPENDENT_CLAUSE_RE.match, clauses)):
        return None
    if "," in first_clause + second_clause:
        return None
    if first_clause.split()[0].lower() in _LOWERED_WORDS:
        first_clause = first_clause[0].lower() + first_clause[1:]
    elif first_clause[0].isalpha() and first_clause.split()[0] not in names:
        return None
    second_clause = second_clause[0].upper() + second_clause[1:]
    return second_clause + separator + first_clause + end_mark + body[len(body.rstrip()) :]


def _negate_body(body: str, names: Sequence[str], rng: random.Random) -> str | None:
    """Add or remove "not" at the first verb that can take it, else deny the last equation."""
    changed_body = ablations.negate_text(body)
    if changed_body is not None:
        return changed_body
    equals_signs = list(_EQUALS_RE.finditer(body))
    if not equals_signs:
        return None
    negated_sign = " does not equal " if equals_signs[-1][1] == "equals" else " ≠ "
    return body[: equals_signs[-1].start()] + negated_sign + body[equals_signs[-1].end() :]


PERTURBATIONS: Mapping[str, Perturbation] = {
    perturbation.name: perturbation
    for perturbation in (
        Perturbation("paraphrase", True, _paraphrase_body),
        Perturbation("numeric", False, _add_numeric_noise),
        Perturbation("unit_swap", False, partial(_change_unit, convert=False)),
        Perturbation("unit_conversion", True, partial(_change_unit, convert=True)),
        Perturbation("order", True, _swap_order),
        Perturbation("negation", False, _negate_body),
        Perturbation("entity_swap", False, swap_name),
    )
}
"""Every perturbation by its name."""
