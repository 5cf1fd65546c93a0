"""Evaluate arithmetic: + - * / ^ and !, brackets, floors, fractions, roots, binomial coefficients.

Values are fractions, so 0.1 + 0.2 is 0.3; a root that is no fraction is a float. Nothing is handed
to an interpreter, and the work is bounded: 400 tokens and 40 nested brackets an expression, results
of 4,000 bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from operator import add, mul, sub, truediv
from zlib import crc32

from cotlab.text.arithmetic.lexer import Token, TokenKind

MAX_TOKENS, MAX_DEPTH, MAX_BITS, MAX_FACTORIAL = 400, 40, 4000, 400
"""Bounds on an expression, its brackets, its results and the operand of a factorial."""
Number = Fraction | float
"""A value: a float only where a root is no fraction."""
_OPERATOR_FUNCTIONS = {"+": add, "-": sub, "*": mul, "/": truediv}
_CLOSE_BY_OPEN = {"⌊": "⌋", "⌈": "⌉"}


class SampleValues(Mapping[str, Fraction]):
    """A value for every letter, drawn by its name: two expressions with unequal values differ."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def __getitem__(self, name: str) -> Fraction:
        return Fraction(crc32(f"{self._seed} {name}".encode()) % 9973 + 10007, 10007)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


@dataclass(slots=True)
class Evaluation:
    """The result of evaluating one expression."""

    value: Number | None = None
    """None for an unknown name, a division by zero or a number that is too large."""
    numbers: list[Fraction] = field(default_factory=list)
    """Numbers in the expression, in order."""
    letters: list[str] = field(default_factory=list)
    """Letters in the expression, in order."""
    n_operations: int = 0
    """Number of operators."""
    has_division: bool = False
    """Whether it has a division."""
    has_percent: bool = False
    """Whether it has a percentage."""
    n_decimals: int = 0
    """Most decimals of its numbers; 0 if it computes something."""


def evaluate(
    tokens: Sequence[Token],
    known_values: Mapping[str, Fraction],
    *,
    percent_as_fraction: bool = True,
    mixed_numbers: bool = True,
) -> Evaluation | None:
    r"""Evaluate tokens, without units, as one whole expression; None if they are not one.

    Parameters
    ----------
    tokens : sequence of Token
    known_values : mapping of name to value
    percent_as_fraction : bool
        Read 20% as 0.2, else as 20.
    mixed_numbers : bool
        Read 3\frac{4}{5} as 3 + 4/5, else as a product.
    """
    if not tokens or len(tokens) > MAX_TOKENS:
        return None
    parser = _ExpressionParser(tokens, known_values, percent_as_fraction, mixed_numbers)
    result = parser.result
    try:
        result.value = parser.parse_sum(0)
    except _NotAnExpression:
        return None
    if parser.position < len(tokens):
        return None
    if result.n_operations == 0:
        result.n_decimals = max(
            (token.n_decimals for token in tokens if token.kind == "num"), default=0
        )
    return result


class _NotAnExpression(Exception):
    """The tokens are not one expression."""


@dataclass(slots=True)
class _ExpressionParser:
    """Recursive-descent parser; an unknown part makes the value None."""

    tokens: Sequence[Token]
    known_values: Mapping[str, Fraction]
    percent_as_fraction: bool
    mixed_numbers: bool
    position: int = 0
    result: Evaluation = field(default_factory=Evaluation)

    def _peek(self) -> Token | None:
        """Return the next token without consuming it."""
        return self.tokens[self.position] if self.position < len(self.tokens) else None

    def _accept(self, signs: str) -> str:
        """Consume the next token if it is one of these operators, and return it."""
        token = self._peek()
        if token is None or token.kind != "op" or token.text not in signs:
            return ""
        self.position += 1
        return token.text

    def _expect(self, kind: TokenKind) -> Token:
        """Consume the next token, which must be of this kind."""
        token = self._peek()
        if token is None or token.kind != kind:
            raise _NotAnExpression
        self.position += 1
        return token

    def parse_sum(self, depth: int) -> Number | None:
        """Read terms joined by + and -."""
        if depth > MAX_DEPTH:
            raise _NotAnExpression
        value = self._parse_product(depth)
        while sign := self._accept("+-"):
            self.result.n_operations += 1
            value = _apply_operator(sign, value, self._parse_product(depth))
        return value

    def _parse_product(self, depth: int) -> Number | None:
        """Read factors joined by * and /, or by nothing: 2(3 + 4)."""
        value = self._parse_signed_factor(depth)
        while True:
            sign, token = self._accept("*/"), self._peek()
            if not sign:
                if token is None or token.kind not in ("open", "macro", "name"):
                    return value
                if token.start != self.tokens[self.position - 1].end:
                    return value
                sign = "*"  # 2(3 + 4), 2x
            self.result.n_operations += 1
            self.result.has_division |= sign == "/"
            value = _apply_operator(sign, value, self._parse_signed_factor(depth))

    def _parse_signed_factor(self, depth: int) -> Number | None:
        """Read a factor with its signs."""
        is_negative = False
        for _ in range(8):
            is_negative ^= self._accept("+-") == "-"
        value = self._parse_power(depth)
        return -value if is_negative and value is not None else value

    def _parse_power(self, depth: int) -> Number | None:
        """Read an operand with its exponent, an integer of at most 64."""
        base = self._parse_operand(depth)
        if not self._accept("^"):
            return base
        self.result.n_operations += 1
        if depth >= MAX_DEPTH:
            raise _NotAnExpression
        minus_sign = self._accept("-")
        exponent = self._parse_power(depth + 1)
        if base is None or not isinstance(exponent, Fraction) or exponent.denominator != 1:
            return None
        if abs(exponent) > 64 or _bit_length(base) * abs(exponent.numerator) > MAX_BITS:
            return None
        power = -exponent.numerator if minus_sign else exponent.numerator
        if base == 0 and power < 0:
            return None
        try:
            return _finite(base**power)
        except OverflowError:
            return None

    def _parse_operand(self, depth: int) -> Number | None:
        """Read a number, a letter, a macro or a bracket, with its percent sign or factorial."""
        token = self._peek()
        if token is None:
            raise _NotAnExpression
        self.position += 1
        value: Number | None
        if token.kind == "num":
            self.result.numbers.append(token.value or Fraction(0))
            value = self._parse_mixed_number(token, depth)
        elif token.kind == "name":
            self.result.letters.append(token.text)
            value = self.known_values.get(token.text)
        elif token.kind == "macro":
            value = self._parse_macro(token.text, depth)
        elif token.kind == "open":
            self.position -= 1
            value = self._parse_bracket(depth)
        else:
            raise _NotAnExpression
        while (next_token := self._peek()) is not None and next_token.kind in ("pct", "fact"):
            self.position += 1
            if next_token.kind == "fact":
                self.result.n_operations += 1
                value = _factorial(value)
                continue
            self.result.has_percent = True
            if self.percent_as_fraction and value is not None:
                value = value / 100
        return value

    def _parse_mixed_number(self, token: Token, depth: int) -> Number | None:
        """Return the value of a number with the LaTeX fraction that follows it."""
        next_token = self._peek()
        if next_token is None or next_token.kind != "macro" or next_token.text != "frac":
            return token.value
        self.position += 1
        fraction = self._parse_macro("frac", depth)
        is_mixed = self.mixed_numbers and fraction is not None and 0 < fraction < 1
        return _apply_operator("+" if is_mixed else "*", token.value, fraction)

    def _parse_macro(self, name: str, depth: int) -> Number | None:
        r"""Read the arguments of \frac, \binom or \sqrt and return its value."""
        self.result.n_operations += 1
        token = self._peek()
        if name == "sqrt":
            index: Number | None = Fraction(2)
            if token is not None and token.kind == "open" and token.text == "[":
                index = self._parse_bracket(depth)
            n_letters = len(self.result.letters)
            radicand = self._parse_bracket(depth)
            # the root of a square of a letter may be the letter or its negative
            return None if len(self.result.letters) > n_letters else _root(radicand, index)
        first, second = self._parse_bracket(depth), self._parse_bracket(depth)
        if name == "binom":
            return _binomial(first, second)
        self.result.has_division = True
        return _apply_operator("/", first, second)

    def _parse_bracket(self, depth: int) -> Number | None:
        """Read an expression in brackets; a floor or a ceiling is computed."""
        open_text, n_letters = self._expect("open").text, len(self.result.letters)
        value = self.parse_sum(depth + 1)
        close_text = self._expect("close").text
        if open_text not in _CLOSE_BY_OPEN:
            return value
        if close_text != _CLOSE_BY_OPEN[open_text]:
            raise _NotAnExpression
        self.result.n_operations += 1
        if value is None or len(self.result.letters) > n_letters:
            return None
        return Fraction(math.floor(value) if open_text == "⌊" else math.ceil(value))


def _bit_length(value: Number) -> int:
    """Return the bits of the longer of numerator and denominator."""
    if isinstance(value, float):
        return 1
    return max(value.numerator.bit_length(), value.denominator.bit_length())


def _finite(value: Number) -> Number | None:
    """Return a value, or None for an infinite one."""
    return value if isinstance(value, Fraction) or math.isfinite(value) else None


def _apply_operator(sign: str, left: Number | None, right: Number | None) -> Number | None:
    """Apply + - * or /; None for an unknown operand, a division by 0 or more than 4,000 bits."""
    if left is None or right is None or (sign == "/" and right == 0):
        return None
    try:
        value: Number = _OPERATOR_FUNCTIONS[sign](left, right)
    except OverflowError:
        return None
    return _finite(value) if _bit_length(value) <= MAX_BITS else None


def _natural(value: Number | None) -> int | None:
    """Return a value that is a natural number of bounded size, else None."""
    is_natural = isinstance(value, Fraction) and value.denominator == 1 and value >= 0
    return int(value) if is_natural and value is not None and value <= MAX_FACTORIAL else None


def _factorial(value: Number | None) -> Fraction | None:
    """Return n!, or None."""
    n = _natural(value)
    return None if n is None else Fraction(math.factorial(n))


def _binomial(n_value: Number | None, k_value: Number | None) -> Fraction | None:
    """Return n choose k, or None."""
    n, k = _natural(n_value), _natural(k_value)
    return None if n is None or k is None else Fraction(math.comb(n, k))


def _root(value: Number | None, index: Number | None) -> Number | None:
    """Return the root of a number that is not negative, a fraction where it is one, or None."""
    degree = _natural(index)
    if value is None or value < 0 or not degree or degree > 10:
        return None
    try:
        root: float = float(value) ** (1 / degree)
    except OverflowError:
        return None
    if isinstance(value, Fraction):
        for denominator in (1, value.denominator):
            exact = Fraction(round(root * denominator), denominator)
            if exact**degree == value:
                return exact
    return root
