"""Whether statements with "=" follow from others: algebra by sympy, plain numbers by math-verify, units by pint.

Slow and unbounded by nature: `python -m cotlab.providers.symbolic_worker` is the worker of `cotlab.providers.symbolic`, which kills it
when late. It reads a JSON list of premise and hypothesis a line and writes true, false or a reason a line. Text reaches
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

LONGEST, MOST_STATEMENTS = 2000, 24
MOST_BYTES, MOST_S = 4 << 30, 60
"""Memory of the worker, and how long it computes once nobody waits for it."""
_FAILURES = (ArithmeticError, ValueError, TypeError, AttributeError, LookupError, RuntimeError, AssertionError, MemoryError)
_SPLIT, _EQUALS = re.compile(r"[;\n]"), re.compile(r"(?<![<>!=])==?(?!=)|\\approx|≈")
_WORD = re.compile(r"(?<!\\)\b[A-Za-zµ°]{2,}")
_QUANTITY = re.compile(r"\s*([-+−]?\d[\d,]*(?:\.\d+)?)\s*([A-Za-zµ°%$][A-Za-zµ°/^*\d\s]{0,40})\s*")
_CALENDAR = re.compile(r"\b(?:months?|years?)\b", re.IGNORECASE)
_LIGHT = re.compile(r"[\d\s.,+\-*/^(){}\[\]=a-zA-Z\\_$%×·÷−²³]*")
_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "$": " ", "²": "^2", "³": "^3"})
_POWER = re.compile(r"\^\s*\{?\s*-?\d{3,}|(?:\^[^+\-*/=]*){2,}|\*\*[^=]*\*\*")


class Statement(NamedTuple):
    """One "left = right" as written."""

    left: str
    right: str


def decide(premise: str, hypothesis: str) -> bool | str:
    """Say whether the premise's statements support the hypothesis'.

    Returns
    -------
    bool or str
        True where every statement of the hypothesis holds by itself or follows; False where one is false by itself or
        contradicts the premise; else the reason why that cannot be decided.
    """
    if len(premise) > LONGEST or len(hypothesis) > LONGEST:
        return f"it has more than {LONGEST} characters"
    wanted = list(statements(hypothesis))
    if not wanted:
        return "the hypothesis holds no equation"
    given = list(statements(premise))[-MOST_STATEMENTS:]
    told = [_one(given, statement) for statement in wanted[:MOST_STATEMENTS]]
    if False in told:
        return False
    return next((one for one in told if one is not True), True)


def statements(text: str) -> Iterator[Statement]:
    """The equations of a list; a = b = c is two."""
    for part in _SPLIT.split(text):
        sides = [side.strip().rstrip(".,") for side in _EQUALS.split(part)]
        yield from (Statement(left, right) for left, right in pairwise(sides) if left and right)


def _one(given: Sequence[Statement], wanted: Statement) -> bool | str:
    if _WORD.search(wanted.left) or _WORD.search(wanted.right) or (_with_unit(wanted.left) and _with_unit(wanted.right)):
        return _by_units(wanted)
    target = _difference(wanted)
    if target is None:
        return f"{wanted.left} = {wanted.right} cannot be read"
    return _by_algebra([d for d in map(_difference, given) if d is not None], target, wanted)


# --- units ------------------------------------------------------------------------------------------


@cache
def _registry() -> Any:
    import pint

    return pint.UnitRegistry(autoconvert_offset_to_baseunit=True)


def _with_unit(side: str) -> bool:
    found = _QUANTITY.fullmatch(side)
    return found is not None and found[2].strip() not in ("x", "X")


def _by_units(wanted: Statement) -> bool | str:
    """Compare two single quantities whose units pint knows."""
    import pint

    values = []
    for side in wanted:
        found = _QUANTITY.fullmatch(side)
        if found is None:
            return f"{side} is not one quantity"
        try:
            unit = found[2].strip().replace("^", "**")
            if "**" in re.sub(r"\*\*\s*-?[1-4](?!\d)", "", unit):
                return f"{side} has no unit that is known"
            values.append(_registry().Quantity(float(found[1].replace(",", "").replace("−", "-")), unit))
        except (pint.PintError, ValueError, TypeError, AttributeError, AssertionError):
            return f"{side} has no unit that is known"
    if values[0].dimensionality != values[1].dimensionality:
        return "the units measure different things"
    one, other = values[0].to_base_units().magnitude, values[1].to_base_units().magnitude
    if any(_CALENDAR.search(side) for side in wanted) and 0 < abs(one - other) < 0.1 * max(abs(one), abs(other)):
        return "a month or a year has no fixed length"  # 1 month = 4 weeks
    return _close(one, other)


def _close(one: float, other: float) -> bool | str:
    """Equal, unequal, or so near that it may be rounded."""
    gap, size = abs(one - other), max(abs(one), abs(other))
    if gap <= 1e-9 * size:
        return True
    return "the two sides are equal only when rounded" if gap < 0.02 * size else False


# --- algebra ----------------------------------------------------------------------------------------


def _difference(statement: Statement) -> Any:
    """Left minus right as a sympy expression; None where either side cannot be read."""
    sides = [_expression(side) for side in statement]
    return None if None in sides else sides[0] - sides[1]


def _expression(side: str) -> Any:
    import sympy
    from math_verify import parse
    from math_verify.parser import LatexExtractionConfig

    text = side.translate(_SIGNS).replace("\\$", " ").strip()
    if not text or not _LIGHT.fullmatch(text) or _WORD.search(text) or _POWER.search(text):
        return None
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text).replace("**", "^")
    logging.getLogger("math_verify").setLevel(logging.CRITICAL)
    found = parse(f"${text}$", extraction_config=[LatexExtractionConfig()], parsing_timeout=None)
    value = next((one for one in found if isinstance(one, sympy.Expr)), None)
    return value if value is not None and not value.has(sympy.zoo, sympy.nan, sympy.oo) else None


def _by_algebra(given: Sequence[Any], target: Any, wanted: Statement) -> bool | str:
    """Does ``target`` = 0 follow from every expression of ``given`` being 0?"""
    import sympy

    target = sympy.nsimplify(sympy.simplify(target), rational=True)
    if target == 0:
        return True
    if not target.free_symbols:
        return _plain(wanted)
    useful = _related([sympy.nsimplify(d, rational=True) for d in given if d.free_symbols], set(target.free_symbols))
    if not useful:
        return "nothing that is given speaks of " + ", ".join(sorted(map(str, target.free_symbols)))
    symbols = sorted(set().union(*(d.free_symbols for d in useful)), key=str)
    try:
        solutions = sympy.solve(useful, symbols, dict=True)
    except NotImplementedError:
        return "the equations cannot be solved"
    if not solutions:
        return "what is given contradicts itself"
    left = [sympy.simplify(target.subs(solution)) for solution in solutions]
    if all(one == 0 for one in left):
        return True
    if all(one.is_number and one != 0 for one in left):
        return False
    return "it does not follow from what is given, nor contradicts it"


def _related(given: Sequence[Any], symbols: set[Any]) -> list[Any]:
    """The equations that share a symbol with the target, or with one that does."""
    found: list[Any] = []
    while more := [d for d in given if d not in found and d.free_symbols & symbols]:
        found += more
        symbols = symbols.union(*(d.free_symbols for d in more))
    return found


def _plain(wanted: Statement) -> bool | str:
    """Two sides without symbols: math-verify's comparison, then the sizes."""
    from math_verify import verify

    one, other = (_expression(side) for side in wanted)
    if verify(one, other, timeout_seconds=None):
        return True
    try:
        return _close(float(one), float(other))
    except (TypeError, ValueError, OverflowError):
        return "the two sides have no plain value"


def main() -> None:
    """Answer line by line until the input ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    decide("x + 1 = 2", "x = 1; 1 km = 1000 m")  # loads the libraries
    print("ready", flush=True)
    for line in sys.stdin:
        signal.alarm(MOST_S)
        try:
            told = decide(*json.loads(line))
        except _FAILURES as error:
            told = f"the computation fails with {type(error).__name__}"
        signal.alarm(0)
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
