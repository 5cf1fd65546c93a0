"""The values of mathematical expressions, by which they are compared.

Expressions are evaluated where their letters have fixed values, so that the outcome depends on the
two texts alone, never on the time that a computer algebra system takes. Rational values are exact,
others have 200 digits, and what would take long (``9^{9^9}``) has no value.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

from cotlab.text.answers.formulas import FUNCTIONS, Formula, Node, is_plain_number

_MAX_BITS, _MAX_SIZE = 40_000, 10**40
"""Bits of an exact value, and size of an inexact one."""
_N_POINTS, _PRECISION, _TOLERANCE = 5, 200, 60
"""Points at which expressions are compared, digits of inexact values, and digits that agree."""
_COMPUTATION_ERRORS = (ArithmeticError, ValueError, TypeError)


class _NotComputableError(ValueError):
    """The value is too large to compute."""


def same_formula(first: Formula, second: Formula) -> bool | None:
    """Return whether two expressions have the same value wherever both have one.

    Returns
    -------
    bool or None
        None where that cannot be computed.
    """
    if first.unit and second.unit and first.unit.rstrip("s") != second.unit.rstrip("s"):
        return False
    n_equal = 0
    scale = max(_scale_of_pieces(first.tree), _scale_of_pieces(second.tree))
    points = [(point, 1) for point in range(_N_POINTS)]
    points += [(point, scale) for point in range(_N_POINTS) if scale]
    for point, factor in points:
        try:
            values = [_value(formula.tree, point, factor) for formula in (first, second)]
            if not _values_equal(*values):
                return False
        except _COMPUTATION_ERRORS:
            if factor != 1:
                return None
            continue
        n_equal += 1
    return True if n_equal >= 2 else None


def _scale_of_pieces(node: Node) -> int:
    """Return a factor that takes letters past the numbers within |x - 15|; 0 without such."""
    children = [part for part in node[1:] if isinstance(part, tuple)]
    inner = max(map(_scale_of_pieces, children), default=0)
    if node[0] in ("abs", "floor", "ceiling"):
        return max(inner, 3 + 2 * max(map(_largest_number, children), default=0))
    return inner


def _largest_number(node: Node) -> int:
    """Return the largest size of a part without letters, rounded up."""
    if node[0] == "symbol":
        return 0
    sizes = [_largest_number(part) for part in node[1:] if isinstance(part, tuple)]
    with contextlib.suppress(*_COMPUTATION_ERRORS):
        if is_plain_number(Formula(node, "")):
            sizes.append(int(_mp().ceil(abs(_inexact(_value(node, 0))))))
    return max(sizes, default=0)


def near_value(formula: Formula, value: Fraction) -> bool:
    """Return whether an expression without letters is within 1e-9 of a number."""
    try:
        difference = abs(_inexact(_value(formula.tree, 0)) - _inexact(value))
    except _COMPUTATION_ERRORS:
        return False
    return bool(difference <= _mp().mpf(10) ** -9 * min(1, max(abs(value), 10**-9)))


def real_value(formula: Formula) -> Any:
    """Return the real number that an expression without letters is; None for any other."""
    if not is_plain_number(formula):
        return None
    try:
        value = _inexact(_value(formula.tree, 0))
    except _COMPUTATION_ERRORS:
        return None
    return value.real if abs(value.imag) <= _mp().mpf(10) ** -_TOLERANCE else None


def compare_reals(x: Any, y: Any) -> int:
    """Return -1, 0 or 1 as a value of `real_value` is below, equal to or above another."""
    return 0 if _values_equal(x, y) else (1 if x > y else -1)


def same_equation(first: tuple[Formula, Formula], second: tuple[Formula, Formula]) -> bool:
    """Return whether two equations (left and right sides) are multiples of each other."""
    ratios = []
    for point in range(_N_POINTS):
        try:
            differences = [
                _add(_value(left.tree, point), _negate(_value(right.tree, point)))
                for left, right in (first, second)
            ]
            if any(_values_equal(difference, Fraction(0)) for difference in differences):
                return False
            ratios.append(_divide(*differences))
            if not _values_equal(ratios[0], ratios[-1]):
                return False
        except _COMPUTATION_ERRORS:
            continue
    return len(ratios) >= 2


@cache
def _mp() -> Any:
    """Return a computer of 200 digits of its own, so that no setting is shared."""
    from mpmath import MPContext

    context = MPContext()
    context.dps = _PRECISION
    return context


def _symbol_value(name: str, point: int) -> Any:
    if name == "i":
        return _mp().mpc(0, 1)
    if name == "e":
        return _mp().e * 1
    digest = hashlib.sha256(f"{name} {point}".encode()).digest()
    numerator, denominator = int.from_bytes(digest[:2]) + 70_001, int.from_bytes(digest[2:4]) + 7
    sign = -1 if point == 1 or (point == 2 and digest[4] % 2) else 1
    value = sign * Fraction(numerator, denominator % 40_009 + 30_011)
    return value / 17 if point > 2 else value  # where e^{cosh 4x} can be computed


def _value(node: Node, point: int, factor: int = 1) -> Any:
    """Return the value of a tree at a point: a Fraction, or a complex number of 200 digits.

    Letters are ``factor`` times as large as at the point itself.
    """
    operation = node[0]
    if operation == "number":
        return node[1]
    if operation == "symbol":
        value = _symbol_value(node[1], point)
        return value * factor if isinstance(value, Fraction) else value
    if operation == "pi":
        return _mp().pi * 1
    return _OPERATIONS[operation](*(_value(part, point, factor) for part in node[1:]))


def _inexact(value: Any) -> Any:
    """Return a value as a complex number of 200 digits."""
    if isinstance(value, Fraction):
        return _mp().mpc(value.numerator) / value.denominator
    return _mp().mpc(value)


def _checked(value: Any) -> Any:
    """Return a value that is small enough to go on with."""
    if isinstance(value, Fraction):
        is_small = max(value.numerator.bit_length(), value.denominator.bit_length()) <= _MAX_BITS
    else:
        size = abs(value)
        is_small = bool(_mp().isfinite(size)) and size <= _MAX_SIZE
    if not is_small:
        raise _NotComputableError
    return value


def _both(x: Any, y: Any) -> tuple[Any, Any]:
    """Return two values as exact ones where both are, else both inexact."""
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return x, y
    return _checked(_inexact(x)), _checked(_inexact(y))


def _add(x: Any, y: Any) -> Any:
    x, y = _both(x, y)
    return _checked(x + y)


def _negate(x: Any) -> Any:
    return -x


def _multiply(x: Any, y: Any) -> Any:
    x, y = _both(x, y)
    return _checked(x * y)


def _divide(x: Any, y: Any) -> Any:
    x, y = _both(x, y)
    if not isinstance(y, Fraction) and abs(y) < _mp().mpf(10) ** -_TOLERANCE:
        raise _NotComputableError  # 0, but for rounding
    return _checked(x / y)


def _power(x: Any, y: Any) -> Any:
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        if y.denominator == 1:
            if abs(y) * max(1, x.numerator.bit_length(), x.denominator.bit_length()) > _MAX_BITS:
                raise _NotComputableError
            return x ** int(y)
        root = _exact_root(x, y.denominator)
        if root is not None:
            return _power(root, Fraction(y.numerator))
    x, y = _checked(_inexact(x)), _checked(_inexact(y))
    if abs(x) == 0:
        raise _NotComputableError
    if abs(y * _mp().log(x)) > 200:
        raise _NotComputableError
    return _checked(_mp().power(x, y))


def _exact_root(x: Fraction, degree: int) -> Fraction | None:
    """Return the exact root of a number of at least 0; None where it is irrational."""
    if x < 0 or degree > 100:
        return None
    roots = []
    for n in (x.numerator, x.denominator):
        root = math.isqrt(n) if degree == 2 else _integer_root(n, degree)
        if root**degree != n:
            return None
        roots.append(root)
    return Fraction(roots[0], roots[1])


def _integer_root(n: int, degree: int) -> int:
    """Return the largest integer whose power is at most ``n``, by bisection."""
    low, high = 0, 1 << (n.bit_length() // degree + 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**degree <= n else (low, middle - 1)
    return low


def _factorial(x: Any) -> Any:
    if isinstance(x, Fraction) and x.denominator == 1:
        if not 0 <= x <= 1000:
            raise _NotComputableError
        return Fraction(math.factorial(int(x)))
    value = _inexact(x)
    if abs(value) > 30:
        raise _NotComputableError
    return _checked(_mp().gamma(value + 1))


def _binomial(n: Any, k: Any) -> Any:
    if (
        isinstance(n, Fraction)
        and isinstance(k, Fraction)
        and n.denominator == k.denominator == 1
        and 0 <= k <= n <= 1000
    ):
        return Fraction(math.comb(int(n), int(k)))
    return _divide(_factorial(n), _multiply(_factorial(k), _factorial(_add(n, _negate(k)))))


def _transcendental(name: str) -> Callable[[Any], Any]:
    """Return a function that takes a value of at most 100."""

    def compute(x: Any) -> Any:
        value = _inexact(x)
        if abs(value) > 100:
            raise _NotComputableError
        return _checked(getattr(_mp(), name)(value))

    return compute


def _logarithm(x: Any) -> Any:
    value = _checked(_inexact(x))
    if abs(value) == 0:
        raise _NotComputableError
    return _mp().log(value)


def _rounded(x: Any, function: Callable[[Any], int]) -> Fraction:
    """Return floor or ceiling of a real number."""
    if isinstance(x, Fraction):
        return Fraction(function(x))
    value = _checked(_inexact(x))
    nearest = _mp().nint(value.real)
    if value.imag != 0 or abs(value.real - nearest) < _mp().mpf(10) ** -_TOLERANCE:
        raise _NotComputableError
    return Fraction(int(function(value.real)))


_MPMATH_NAMES = {"arcsin": "asin", "arccos": "acos", "arctan": "atan"}
_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": _add,
    "negate": _negate,
    "multiply": _multiply,
    "divide": _divide,
    "power": _power,
    "factorial": _factorial,
    "binomial": _binomial,
    "degrees": lambda x: _multiply(x, _mp().pi / 180),
    "percent": lambda x: _divide(x, Fraction(100)),
    "abs": abs,
    "floor": lambda x: _rounded(x, math.floor),
    "ceiling": lambda x: _rounded(x, math.ceil),
    "ln": _logarithm,
    "log": lambda x, base: _divide(_logarithm(x), _logarithm(base)),
}
_OPERATIONS: dict[str, Callable[..., Any]] = _ARITHMETIC | {
    name: _transcendental(_MPMATH_NAMES.get(name, name))
    for name in FUNCTIONS - {"ln", "log", "sqrt"}
}


def _values_equal(x: Any, y: Any) -> bool:
    """Compare two values, exactly or to 60 digits."""
    x, y = _both(x, y)
    if isinstance(x, Fraction):
        return bool(x == y)
    return bool(abs(x - y) <= _mp().mpf(10) ** -_TOLERANCE * max(1, abs(x), abs(y)))
