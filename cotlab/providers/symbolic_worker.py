"""Decide whether statements follow from others, by sympy, math-verify and pint.

Computation with these is slow and unbounded, so that `cotlab.providers.symbolic` starts this module
as a process of its own, which divides the checks among forked workers with a limit of CPU time and
memory. Text reaches sympy through math-verify's LaTeX grammar alone, never through an interpreter.
"""

from __future__ import annotations

import ctypes
import json
import logging
import multiprocessing
import os
import re
import resource
import signal
import sys
from collections.abc import Iterator, Sequence
from functools import cache, partial
from itertools import pairwise
from typing import Any, NamedTuple

from pebble import ProcessExpired, ProcessFuture, ProcessPool

from cotlab.core.requests import SAME_ANSWER_SIGN

MAX_MEMORY_BYTES = 4 << 30
"""Limit of the memory of one worker, in bytes."""
_PR_SET_PDEATHSIG = 1
_WARM_UP_STATEMENTS = (
    ("x + 1 = 2", "x = 1; 1 km = 1000 m"),
    ("x^2 - 5x + 6 = 0; y = \\frac{x}{2}", "y = \\sqrt{4}"),
    ("", "\\frac{1}{2} + \\left(\\frac{1}{3}\\right) = \\frac{5}{6}; (x + y)^2 = x^2 + 2xy + y^2"),
)
"""Checks that load the libraries and fill the tables of the parser before the first fork."""
MAX_CHARS, MAX_STATEMENTS = 2000, 24
"""A longer text is not read; of a premise the last statements count."""
COMPUTATION_ERRORS = (
    ArithmeticError,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    RuntimeError,
    AssertionError,
    MemoryError,
)
"""What the libraries raise on input that they cannot process."""
_SEPARATOR_PATTERN = re.compile(r"[;\n]")
"""Between two statements: 2*x = 4; x = 2."""
_EQUALS_PATTERN = re.compile(r"(?<![<>!=])==?(?!=)|\\approx|≈")
"""A sign between two sides: 1 km = 1000 m, a == b, x ≈ 3; not >= or !=."""
_WORD_PATTERN = re.compile(r"(?<!\\)\b[A-Za-zµ°]{2,}")
"""A word or a unit: apples, km; not the command of LaTeX in \\frac."""
_LETTER_PATTERN = re.compile(r"(?<![\\A-Za-z])[A-Za-z](?![A-Za-z])")
"""A letter that stands for a number: x; not one of \\pi."""
_CONSTANT_LETTERS = frozenset("eiEI")
_QUANTITY_PATTERN = re.compile(
    r"\s*([-+−]?\d[\d,]*(?:\.\d+)?)\s*([A-Za-zµ°%$][A-Za-zµ°/^*\d\s]{0,40})\s*"
)
"""A number with a unit: 5 km, 1,200.5 m/s, 20 %."""
_CALENDAR_UNIT_PATTERN = re.compile(r"\b(?:months?|years?)\b", re.IGNORECASE)
"""A unit without a fixed length: 3 months."""
_PLAIN_TEXT_PATTERN = re.compile(r"[\d\s.,+\-*/^(){}\[\]=a-zA-Z\\_$%×·÷−²³]*")
"""Characters of arithmetic and LaTeX: 2*(x + 3), \\frac{1}{2}."""
_SIGN_REPLACEMENTS = str.maketrans(
    {"×": "*", "·": "*", "÷": "/", "−": "-", "$": " ", "²": "^2", "³": "^3"}
)
_LARGE_POWER_PATTERN = re.compile(r"\^\s*\{?\s*-?\d{3,}|(?:\^[^+\-*/=]*){2,}|\*\*[^=]*\*\*")
"""A power that takes too long to compute: 2^1000, x^2^3, 2**3**4."""

_UNREADABLE_PATTERN = re.compile(r"\d\s+[.\d]|\d[eE][+-]?\d|\d/\d{1,2}/\d{4}(?!\d)")
"""What LaTeX reads as a product or a quotient: 3 1/2, 1.5e3, 3/5/2020."""
_SECOND_NUMBER_PATTERN = re.compile(r"\s\d")
"""A number inside of a unit, so that there are two quantities: hour 20 min."""

_ANSWER_REPLACEMENTS = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"(?:\s*,)?\s*\b(?:and|or)\b", ","),
        ("π", r"\\pi "),
        ("√", r"\\sqrt "),
        ("°", r"^\\circ"),
        (r"(?:\\|\b)sqrt\(([^()]*)\)", r"\\sqrt{\1}"),
        ("[·*]{1,2}", r"\\cdot "),
        ("×", r"\\times "),
    )
)
"""Signs of an answer as LaTeX writes them."""


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
        false by itself or contradicts the premise; else why that cannot be decided.
    """
    if len(premise) > MAX_CHARS or len(hypothesis) > MAX_CHARS:
        return f"it has more than {MAX_CHARS} characters"
    first, is_comparison, second = hypothesis.partition(SAME_ANSWER_SIGN)
    if is_comparison:
        return same_formulas(first, second)
    hypotheses = list(split_statements(hypothesis))
    if not hypotheses:
        return "the hypothesis holds no equation"
    premises = list(split_statements(premise))[-MAX_STATEMENTS:]
    verdicts = [_check_statement(premises, statement) for statement in hypotheses[:MAX_STATEMENTS]]
    if False in verdicts:
        return False
    return next((verdict for verdict in verdicts if verdict is not True), True)


def split_statements(text: str) -> Iterator[Statement]:
    """Yield the equations of a text; a = b = c is two."""
    for piece in _SEPARATOR_PATTERN.split(text):
        sides = [side.strip().rstrip(".,") for side in _EQUALS_PATTERN.split(piece)]
        yield from (Statement(left, right) for left, right in pairwise(sides) if left and right)


def _check_statement(premises: Sequence[Statement], statement: Statement) -> bool | str:
    if (
        _WORD_PATTERN.search(statement.left)
        or _WORD_PATTERN.search(statement.right)
        or (_has_unit(statement.left) and _has_unit(statement.right))
    ):
        return _compare_quantities(statement)
    target_difference = _parse_difference(statement)
    if target_difference is None:
        return f"{statement.left} = {statement.right} cannot be read"
    return _decide_by_algebra(
        [difference for difference in map(_parse_difference, premises) if difference is not None],
        target_difference,
        statement,
    )


# Answers


def same_formulas(first: str, second: str) -> bool | str:
    """Return whether two answers in LaTeX are the same, by math-verify; or why that is not known.

    Sets, intervals, tuples, matrices and equations are compared as math-verify compares them, in
    both directions.
    """
    import sympy
    from math_verify import verify

    sides = [_parse_answer(text) for text in (first, second)]
    if not all(sides):
        return "a side cannot be read"
    values: list[Any] = [
        next((value for value in side if isinstance(value, sympy.Expr)), None) for side in sides
    ]
    letters = [value.free_symbols if value is not None else set() for value in values]
    if all(letters) and letters[0] - letters[1] and letters[1] - letters[0]:
        return "the sides have different letters"
    if not any(verify(x, y, timeout_seconds=None) for x, y in (sides, sides[::-1])):
        return False
    if None in values or any(letters):
        return True
    # math-verify rounds: to it 1/2^88 and 1/2^87 are both 0
    difference = (values[0] - values[1]).evalf(30)
    return bool(abs(difference) <= 1e-6 * max(abs(value.evalf(30)) for value in values))


def _parse_answer(text: str) -> list[Any]:
    """Return what math-verify reads in an answer; empty where it reads nothing."""
    from math_verify import LatexExtractionConfig, parse

    logging.getLogger("math_verify").setLevel(logging.CRITICAL)
    for pattern, replacement in _ANSWER_REPLACEMENTS:
        text = pattern.sub(replacement, text)
    configs = [LatexExtractionConfig()]
    return list(parse(f"${text}$", extraction_config=configs, parsing_timeout=None))


# Units


@cache
def _unit_registry() -> Any:
    import pint

    return pint.UnitRegistry(autoconvert_offset_to_baseunit=True)


def _has_unit(side: str) -> bool:
    match = _QUANTITY_PATTERN.fullmatch(side)
    return match is not None and match[2].strip() not in ("x", "X")


def _compare_quantities(statement: Statement) -> bool | str:
    """Compare two single quantities whose units pint knows."""
    import pint

    quantities = []
    for side in statement:
        match = _QUANTITY_PATTERN.fullmatch(side)
        if match is None:
            return f"{side} is not one quantity"
        if _SECOND_NUMBER_PATTERN.search(match[2]):
            return f"{side} is not one quantity"
        try:
            unit = match[2].strip().replace("^", "**")
            # Small exponents are units (m**2); larger ones, like m**99, take too long.
            if "**" in re.sub(r"\*\*\s*-?[1-4](?!\d)", "", unit):
                return f"{side} has no unit that is known"
            quantities.append(
                _unit_registry().Quantity(float(match[1].replace(",", "").replace("−", "-")), unit)
            )
        except (pint.PintError, ValueError, TypeError, AttributeError, AssertionError):
            return f"{side} has no unit that is known"
    if quantities[0].dimensionality != quantities[1].dimensionality:
        return "the units measure different things"
    left, right = quantities[0].to_base_units().magnitude, quantities[1].to_base_units().magnitude
    if any(_CALENDAR_UNIT_PATTERN.search(side) for side in statement) and 0 < abs(
        left - right
    ) < 0.1 * max(abs(left), abs(right)):
        return "a month or a year has no fixed length"  # 1 month = 4 weeks
    return _compare_sizes(left, right)


def _compare_sizes(left: float, right: float) -> bool | str:
    """Return True, False, or that the sides are equal only when rounded."""
    difference, larger_size = abs(left - right), max(abs(left), abs(right))
    if difference <= 1e-9 * larger_size:
        return True
    return "the two sides are equal only when rounded" if difference < 0.02 * larger_size else False


# Algebra


def _parse_difference(statement: Statement) -> Any:
    """Return left minus right as a sympy expression; None where a side cannot be parsed."""
    sides = [_parse_expression(side) for side in statement]
    return None if None in sides else sides[0] - sides[1]


def _parse_expression(side: str) -> Any:
    import sympy
    from math_verify import parse
    from math_verify.parser import LatexExtractionConfig

    text = side.translate(_SIGN_REPLACEMENTS).replace("\\$", " ").strip()
    if (
        not text
        or not _PLAIN_TEXT_PATTERN.fullmatch(text)
        or _WORD_PATTERN.search(text)
        or _LARGE_POWER_PATTERN.search(text)
        or _UNREADABLE_PATTERN.search(text)
    ):
        return None
    # Thousands separators: 1,200 is 1200.
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text).replace("**", "^")
    logging.getLogger("math_verify").setLevel(logging.CRITICAL)
    parsed_candidates = parse(
        f"${text}$", extraction_config=[LatexExtractionConfig()], parsing_timeout=None
    )
    value = next(
        (candidate for candidate in parsed_candidates if isinstance(candidate, sympy.Expr)), None
    )
    if value is None or value.has(sympy.zoo, sympy.nan, sympy.oo):
        return None
    # a letter that is gone was read as a unit (2m) or cancelled (x/x); R and r are read as one
    letters = {*_LETTER_PATTERN.findall(text)} - _CONSTANT_LETTERS
    folded_letters = {letter.lower() for letter in letters}
    read_letters = {str(symbol).lower() for symbol in value.free_symbols}
    return value if folded_letters <= read_letters and len(folded_letters) == len(letters) else None


def _decide_by_algebra(premises: Sequence[Any], target: Any, statement: Statement) -> bool | str:
    """Decide whether ``target`` is 0 where all ``premises`` are 0."""
    import sympy

    target = sympy.nsimplify(_simplify(target), rational=True)
    if target == 0:
        return True
    if not target.free_symbols:
        return _compare_numbers(statement)
    related_premises = _related_premises(
        [sympy.nsimplify(premise, rational=True) for premise in premises if premise.free_symbols],
        set(target.free_symbols),
    )
    if not related_premises:
        return "no given equation contains " + ", ".join(sorted(map(str, target.free_symbols)))
    symbols = sorted(set().union(*(premise.free_symbols for premise in related_premises)), key=str)
    # sympy.solve does not end on an equation that holds for all values
    conditions = [premise for premise in related_premises if not _is_identity(premise)]
    if not conditions:
        return "it does not follow from what is given, nor contradicts it"
    try:
        solutions = sympy.solve(conditions, symbols, dict=True)
    except NotImplementedError:
        return "the equations cannot be solved"
    if not solutions:
        return "what is given contradicts itself"
    remainders = [_simplify(target.subs(solution)) for solution in solutions]
    if all(remainder == 0 for remainder in remainders):
        return True
    if all(remainder.is_number and remainder != 0 for remainder in remainders):
        return False
    return "it does not follow from what is given, nor contradicts it"


def _simplify(value: Any) -> Any:
    """Return an equal expression, 0 where it is 0: of a rational function its lowest terms."""
    import sympy

    return sympy.cancel(value) if _is_exact_fraction(value) else sympy.simplify(value)


def _is_identity(value: Any) -> bool:
    """Return whether an expression is 0 whatever its symbols are, as far as algebra shows."""
    import sympy

    return bool((sympy.cancel if _is_exact_fraction(value) else sympy.expand)(value) == 0)


def _is_exact_fraction(value: Any) -> bool:
    """Return whether a value is made of symbols and rational numbers by + - * / and powers."""
    import sympy

    return all(
        part.is_Add
        or part.is_Mul
        or part.is_Symbol
        or part.is_Rational
        or (part.is_Pow and part.exp.is_Integer)
        for part in sympy.preorder_traversal(value)
    )


def _related_premises(premises: Sequence[Any], symbols: set[Any]) -> list[Any]:
    """Return the premises that share a symbol with the target, directly or through others."""
    connected_premises: list[Any] = []
    while new_premises := [
        premise
        for premise in premises
        if premise not in connected_premises and premise.free_symbols & symbols
    ]:
        connected_premises += new_premises
        symbols = symbols.union(*(premise.free_symbols for premise in new_premises))
    return connected_premises


def _compare_numbers(statement: Statement) -> bool | str:
    """Compare sides without symbols by math-verify, then by size."""
    from math_verify import verify

    left, right = (_parse_expression(side) for side in statement)
    if verify(left, right, timeout_seconds=None):
        return True
    try:
        return _compare_sizes(float(left), float(right))
    except (TypeError, ValueError, OverflowError):
        return "the two sides have no plain value"


# Workers


def serve_checks(n_workers: int, max_cpu_s: float, max_elapsed_s: float) -> None:
    """Decide the checks of stdin until it ends; then end the workers.

    A line is a JSON list of a key, premise and hypothesis. The line that answers it is one of the
    key, the verdict, and why there is none, written as soon as the check ends. The limit of a check
    is of CPU time: a busy machine delays a verdict and does not change it. The limit of elapsed
    time is far greater and ends as a failure.
    """
    for premise, hypothesis in _WARM_UP_STATEMENTS:
        check_statements(premise, hypothesis)
    pool = ProcessPool(
        n_workers, initializer=_limit_worker, context=multiprocessing.get_context("fork")
    )
    # a fork would wait for the lock of the stdin that is being read
    lines, sys.stdin = sys.stdin, os.fdopen(os.open(os.devnull, os.O_RDONLY))
    for line in lines:
        key, premise, hypothesis = json.loads(line)
        arguments = (premise, hypothesis, max_cpu_s)
        future = pool.schedule(check_in_time, args=arguments, timeout=max_elapsed_s)
        future.add_done_callback(partial(_write_verdict, key, max_cpu_s))
    pool.stop()  # type: ignore[no-untyped-call]
    pool.join()


def check_in_time(premise: str, hypothesis: str, max_cpu_s: float) -> bool | str:
    """Decide a check; one over its limit of CPU time ends this process, whatever it is doing."""
    signal.setitimer(signal.ITIMER_PROF, max_cpu_s)
    try:
        return check_statements(premise, hypothesis)
    except COMPUTATION_ERRORS as error:
        return f"the computation fails with {type(error).__name__}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _limit_worker() -> None:
    """Limit the memory of this worker, which ends with its parent, and keep it off stdout."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write_verdict(key: str, max_cpu_s: float, future: ProcessFuture[bool | str]) -> None:
    verdict: bool | str | None = None
    failure = None
    try:
        verdict = future.result()
    except ProcessExpired as ended:
        if ended.exitcode == -signal.SIGPROF:
            verdict = f"it takes longer than {max_cpu_s:g} s of CPU time"
        else:
            failure = "the worker that computes ended without a reply"
    except TimeoutError:
        failure = f"it got less than {max_cpu_s:g} s of CPU time: the machine is overloaded"
    os.write(sys.stdout.fileno(), json.dumps([key, verdict, failure]).encode() + b"\n")


if __name__ == "__main__":
    serve_checks(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]))
