"""Worker process of the symbolic provider: decides whether statements follow from others.

Computation with sympy, math-verify and pint is slow and unbounded, so that
`cotlab.providers.symbolic` runs this module as a process and kills it when it is late. It reads a
JSON list of premise and hypothesis a line and writes true, false or a reason a line. Text reaches
sympy through math-verify's LaTeX grammar alone, never through an interpreter.
"""

from __future__ import annotations

import json
import logging
import re
import resource
import signal
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

MAX_CHARS, MAX_STATEMENTS = 2000, 24
MAX_BYTES, MAX_SECONDS = 4 << 30, 60
"""Limits of the worker: bytes of memory, and seconds of a computation nobody waits for."""
_FAILURES = (
    ArithmeticError,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    RuntimeError,
    AssertionError,
    MemoryError,
)
_SPLIT = re.compile(r"[;\n]")
"""Between two statements: 2*x = 4; x = 2."""
_EQUALS = re.compile(r"(?<![<>!=])==?(?!=)|\\approx|≈")
"""A sign between two sides: 1 km = 1000 m, a == b, x ≈ 3; not >= or !=."""
_WORD = re.compile(r"(?<!\\)\b[A-Za-zµ°]{2,}")
"""A word or a unit: apples, km; not the command of LaTeX in \\frac."""
_QUANTITY = re.compile(r"\s*([-+−]?\d[\d,]*(?:\.\d+)?)\s*([A-Za-zµ°%$][A-Za-zµ°/^*\d\s]{0,40})\s*")
"""A number with a unit: 5 km, 1,200.5 m/s, 20 %."""
_CALENDAR = re.compile(r"\b(?:months?|years?)\b", re.IGNORECASE)
"""A unit without a fixed length: 3 months."""
_PLAIN_CHARS = re.compile(r"[\d\s.,+\-*/^(){}\[\]=a-zA-Z\\_$%×·÷−²³]*")
"""Characters of arithmetic and LaTeX: 2*(x + 3), \\frac{1}{2}."""
_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "$": " ", "²": "^2", "³": "^3"})
_POWER = re.compile(r"\^\s*\{?\s*-?\d{3,}|(?:\^[^+\-*/=]*){2,}|\*\*[^=]*\*\*")
"""A power that takes too long to compute: 2^1000, x^2^3, 2**3**4."""


class Statement(NamedTuple):
    """One equation as written."""

    left: str
    """Text left of the sign."""
    right: str
    """Text right of the sign."""


def check_statements(premise: str, hypothesis: str) -> bool | str:
    """Decide whether the premise's statements support those of the hypothesis.

    Returns
    -------
    bool or str
        True where every statement of the hypothesis holds by itself or follows; False where one is
        false by itself or contradicts the premise; else the reason why that cannot be decided.
    """
    if len(premise) > MAX_CHARS or len(hypothesis) > MAX_CHARS:
        return f"it has more than {MAX_CHARS} characters"
    required = list(statements(hypothesis))
    if not required:
        return "the hypothesis holds no equation"
    premises = list(statements(premise))[-MAX_STATEMENTS:]
    verdicts = [_check_statement(premises, statement) for statement in required[:MAX_STATEMENTS]]
    if False in verdicts:
        return False
    return next((verdict for verdict in verdicts if verdict is not True), True)


def statements(text: str) -> Iterator[Statement]:
    """Yield the equations of a text; a = b = c is two."""
    for part in _SPLIT.split(text):
        sides = [side.strip().rstrip(".,") for side in _EQUALS.split(part)]
        yield from (Statement(left, right) for left, right in pairwise(sides) if left and right)


def _check_statement(premises: Sequence[Statement], statement: Statement) -> bool | str:
    if (
        _WORD.search(statement.left)
        or _WORD.search(statement.right)
        or (_with_unit(statement.left) and _with_unit(statement.right))
    ):
        return _by_units(statement)
    target = _difference(statement)
    if target is None:
        return f"{statement.left} = {statement.right} cannot be read"
    return _by_algebra([d for d in map(_difference, premises) if d is not None], target, statement)


# Units


@cache
def _registry() -> Any:
    import pint

    return pint.UnitRegistry(autoconvert_offset_to_baseunit=True)


def _with_unit(side: str) -> bool:
    match = _QUANTITY.fullmatch(side)
    return match is not None and match[2].strip() not in ("x", "X")


def _by_units(statement: Statement) -> bool | str:
    """Compare two single quantities whose units pint knows."""
    import pint

    values = []
    for side in statement:
        match = _QUANTITY.fullmatch(side)
        if match is None:
            return f"{side} is not one quantity"
        try:
            unit = match[2].strip().replace("^", "**")
            # Small exponents are units (m**2); larger ones, like m**99, take too long.
            if "**" in re.sub(r"\*\*\s*-?[1-4](?!\d)", "", unit):
                return f"{side} has no unit that is known"
            values.append(
                _registry().Quantity(float(match[1].replace(",", "").replace("−", "-")), unit)
            )
        except (pint.PintError, ValueError, TypeError, AttributeError, AssertionError):
            return f"{side} has no unit that is known"
    if values[0].dimensionality != values[1].dimensionality:
        return "the units measure different things"
    left, right = values[0].to_base_units().magnitude, values[1].to_base_units().magnitude
    if any(_CALENDAR.search(side) for side in statement) and 0 < abs(left - right) < 0.1 * max(
        abs(left), abs(right)
    ):
        return "a month or a year has no fixed length"  # 1 month = 4 weeks
    return _compare_sizes(left, right)


def _compare_sizes(left: float, right: float) -> bool | str:
    """Return True, False, or that the sides are equal only when rounded."""
    difference, size = abs(left - right), max(abs(left), abs(right))
    if difference <= 1e-9 * size:
        return True
    return "the two sides are equal only when rounded" if difference < 0.02 * size else False


# Algebra


def _difference(statement: Statement) -> Any:
    """Return left minus right as a sympy expression; None where a side cannot be parsed."""
    sides = [_expression(side) for side in statement]
    return None if None in sides else sides[0] - sides[1]


def _expression(side: str) -> Any:
    import sympy
    from math_verify import parse
    from math_verify.parser import LatexExtractionConfig

    text = side.translate(_SIGNS).replace("\\$", " ").strip()
    if not text or not _PLAIN_CHARS.fullmatch(text) or _WORD.search(text) or _POWER.search(text):
        return None
    # Thousands separators: 1,200 is 1200.
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text).replace("**", "^")
    logging.getLogger("math_verify").setLevel(logging.CRITICAL)
    parsed = parse(f"${text}$", extraction_config=[LatexExtractionConfig()], parsing_timeout=None)
    value = next((candidate for candidate in parsed if isinstance(candidate, sympy.Expr)), None)
    return value if value is not None and not value.has(sympy.zoo, sympy.nan, sympy.oo) else None


def _by_algebra(premises: Sequence[Any], target: Any, statement: Statement) -> bool | str:
    """Decide whether ``target`` is 0 where all ``premises`` are 0."""
    import sympy

    target = sympy.nsimplify(sympy.simplify(target), rational=True)
    if target == 0:
        return True
    if not target.free_symbols:
        return _compare_numbers(statement)
    useful = _related(
        [sympy.nsimplify(d, rational=True) for d in premises if d.free_symbols],
        set(target.free_symbols),
    )
    if not useful:
        return "nothing that is given speaks of " + ", ".join(sorted(map(str, target.free_symbols)))
    symbols = sorted(set().union(*(d.free_symbols for d in useful)), key=str)
    try:
        solutions = sympy.solve(useful, symbols, dict=True)
    except NotImplementedError:
        return "the equations cannot be solved"
    if not solutions:
        return "what is given contradicts itself"
    remainders = [sympy.simplify(target.subs(solution)) for solution in solutions]
    if all(remainder == 0 for remainder in remainders):
        return True
    if all(remainder.is_number and remainder != 0 for remainder in remainders):
        return False
    return "it does not follow from what is given, nor contradicts it"


def _related(premises: Sequence[Any], symbols: set[Any]) -> list[Any]:
    """Return the premises that share a symbol with the target, directly or through others."""
    related: list[Any] = []
    while more := [d for d in premises if d not in related and d.free_symbols & symbols]:
        related += more
        symbols = symbols.union(*(d.free_symbols for d in more))
    return related


def _compare_numbers(statement: Statement) -> bool | str:
    """Compare sides without symbols by math-verify, then by size."""
    from math_verify import verify

    left, right = (_expression(side) for side in statement)
    if verify(left, right, timeout_seconds=None):
        return True
    try:
        return _compare_sizes(float(left), float(right))
    except (TypeError, ValueError, OverflowError):
        return "the two sides have no plain value"


def answer_lines() -> None:
    """Answer requests line by line until the input ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
    check_statements("x + 1 = 2", "x = 1; 1 km = 1000 m")  # loads the libraries
    print("ready", flush=True)
    for line in sys.stdin:
        signal.alarm(MAX_SECONDS)
        try:
            verdict = check_statements(*json.loads(line))
        except _FAILURES as error:
            verdict = f"the computation fails with {type(error).__name__}"
        signal.alarm(0)
        print(json.dumps(verdict), flush=True)


if __name__ == "__main__":
    answer_lines()
