r"""Solutions with an integer parameter: ``x = \frac{\pi}{4} + k\pi, k \in \mathbb{Z}``.

Each is an arithmetic progression without ends, known by one of its numbers and its step, so that
the letter of the parameter, its sign and where it starts make no difference.
"""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

from cotlab.text.answers.formula_values import compare_reals, real_value
from cotlab.text.answers.formulas import Formula, Node, read_formula
from cotlab.text.answers.notation import split_items

_MAX_CHARACTERS, _MAX_FAMILIES = 300, 8
_INTEGERS_PATTERN = r"(?:\\mathbb\s?\{?Z\}?|ℤ|Z|(?:the\s)?integers)"
# ", k ∈ ℤ", " where n is any integer", " (k an integer)", " for all integers k"
_PARAMETER_RE = re.compile(
    r"[\s,;]{0,4}\(?(?:where|with|for|and)?\s?(?:some|any|all|every|each)?\s?"
    r"(?:(?P<a>[k-nt])\s?(?:∈|\\in\b|\bin\b|is\sin|belongs\sto)\s?" + _INTEGERS_PATTERN + r"|"
    r"(?P<b>[k-nt])\s(?:is\s|being\s)?(?:an\s|any\s|some\s|an\sarbitrary\s)?integer"
    r"|(?:integers?|integer\svalues\sof)\s(?P<c>[k-nt]))\)?[\s.$]{0,4}$"
)
_NAME_RE = re.compile(r"(?:(?<!\s)\s+)?(?:[A-Za-z]|\\?theta|θ)\s?=(?!=)")
_PROBES = (-2, -1, 0, 1, 2, 3)
"""Values of the parameter at which a formula is computed."""


class _Family(NamedTuple):
    """The numbers start + n * step for all integers n, or what a formula has for them."""

    start: Any
    """The number for n = 0; the numbers for all probes where the steps differ."""
    step: Any
    """The positive step; None where the steps differ."""


def same_general_solution(first_text: str, second_text: str) -> bool | None:
    """Return whether two texts are the same progressions; None unless one names its parameter."""
    parameters = [_parameter(text) for text in (first_text, second_text)]
    if not any(parameters) or len(first_text) + len(second_text) > _MAX_CHARACTERS:
        return None
    families = [_families(first_text, parameters[0]), _families(second_text, parameters[1])]
    if families[0] is None or families[1] is None:
        return None
    return all(any(_same(x, y) for y in families[1]) for x in families[0]) and all(
        any(_same(x, y) for x in families[0]) for y in families[1]
    )


def names_integer_parameter(text: str) -> bool:
    """Return whether a text ends by saying that a letter is an integer."""
    return len(text) <= _MAX_CHARACTERS and _parameter(text) != ""


def _parameter(text: str) -> str:
    """Return the letter that a text says is an integer; "" without one."""
    match = _PARAMETER_RE.search(text) if len(text) <= _MAX_CHARACTERS else None
    return (match["a"] or match["b"] or match["c"]) if match else ""


def _families(text: str, parameter: str) -> list[_Family] | None:
    """Return the progressions of a text; ``parameter`` is "" where it does not say which it is."""
    body = _PARAMETER_RE.sub("", text) if parameter else text
    body = re.sub(r"(?<!\s)\s+(?:or|and)\s+", ", ", body.strip(" {}\\"))
    families: list[_Family] = []
    pieces = split_items(body)
    if not 0 < len(pieces) <= _MAX_FAMILIES // 2:
        return None
    for piece in pieces:
        piece = _NAME_RE.sub("", piece).strip()
        signs = (("±", "+"), ("±", "-")) if piece.count("±") == 1 else (("", ""),)
        for sign, replacement in signs:
            family = _read_family(piece.replace(sign, replacement) if sign else piece, parameter)
            if family is None:
                return None
            families.append(family)
    return families


def _read_family(text: str, parameter: str) -> _Family | None:
    """Read one progression: a formula of one letter, linear in it."""
    formula = read_formula(text)
    if formula is None or formula.unit:
        return None
    names = _symbols(formula.tree)
    if not parameter:
        parameter = "".join(names) if len(names) == 1 and names <= set("klmnt") else ""
    if not parameter or names != {parameter}:
        return None
    values = []
    for probe in _PROBES:
        tree = _with_number(formula.tree, parameter, probe)
        value = real_value(Formula(tree, ""))
        if value is None:
            return None
        values.append(value)
    step = values[1] - values[0]
    if any(compare_reals(y - x, step) for x, y in pairwise(values)):
        return _Family(values, None)
    return _Family(values[2], abs(step)) if compare_reals(step, 0 * step) else None


def _symbols(node: Node) -> set[str]:
    """Return the names of the letters of an expression."""
    if node[0] == "symbol":
        return {node[1]}
    return {name for part in node[1:] if isinstance(part, tuple) for name in _symbols(part)}


def _with_number(node: Node, name: str, value: int) -> Node:
    """Return an expression with a number in place of a letter."""
    if node == ("symbol", name):
        return ("number", Fraction(value))
    return tuple(
        _with_number(part, name, value) if isinstance(part, tuple) else part for part in node
    )


def _same(x: _Family, y: _Family) -> bool:
    """Return whether two progressions have the same numbers."""
    if x.step is None or y.step is None:
        return x.step is y.step and not any(map(compare_reals, x.start, y.start))
    if compare_reals(x.step, y.step):
        return False
    shift = (x.start - y.start) / x.step
    return compare_reals(shift, 0 * shift + round(float(shift))) == 0
