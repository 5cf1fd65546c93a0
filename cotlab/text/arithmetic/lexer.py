"""Tokenize and evaluate arithmetic as people write it: 3 x (4 + 5), 1,080 / 12, 20% of 50, LaTeX.

Values are fractions, so 0.1 + 0.2 is 0.3. Nothing is handed to an interpreter, and the work is
bounded whatever the text says: 20,000 characters, numbers of 100 digits, 400 tokens and 40 nested
brackets an expression, results of 4,000 bits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, NamedTuple

MAX_CHARACTERS, MAX_DIGITS, MAX_TOKENS, MAX_DEPTH, MAX_BITS = 20_000, 100, 400, 40, 4000
"""Bounds on a text, a number, an expression, its brackets and its results."""
Kind = Literal[
    "num", "op", "pct", "open", "close", "frac", "eq", "near", "says", "name", "word", "stop", "odd"
]
"""Kind of a token.

``frac`` is a LaTeX fraction, ``eq`` is =, ``near`` is ≈, ``says`` is a verb such as "is" or
"equals", ``name`` a single letter, ``stop`` punctuation, ``odd`` anything else.
"""

# "3", "1,080.5", "3 1/2", "x" of "3 x 4", "equals", "divided by", "\frac", "=", "≈", "²", "%", "cm"
_TOKEN = re.compile(
    r"""(?P<skip>(?:[ \t\u00a0\u2009\u202f&$€£¥]|\\[,;:!\ $]
        |\\(?:left|right|quad|qquad|displaystyle|boxed|big)(?![a-z]))+)
      |(?P<label>(?i:step)[ \t]\d{1,4}[ \t]?[-–—](?=[ \t]))
      |(?P<mixed>\d{1,6}[ ]\d{1,3}/\d{1,3}(?![\w./]))
      |(?P<num>(?:\d{1,3}(?:(?:,|\{,\})\d{3})++(?!\d)|\d++)(?:\.\d++)?|\.\d++)
      |(?P<cross>[xX](?=[ \t]?\$?[\d(.])|(?<=\s)[xX](?=[ \t]-[\d(]))
      |(?P<says>(?<!\w)(?:which\s)?(?:(?:is|are|be)\sequal\sto|equals?(?:\sto)?
        |is|are|gives|makes|leaves|comes\sto|totals)\b)
      |(?P<opword>(?<!\w)(?:plus|minus|times|(?:multiplied|divided)\sby)\b)
      |(?P<text>\\(?:text|mathrm|textbf|mbox)\s?\{[^{}\n]{0,80}\})
      |(?P<frac>\\[dt]?frac\b)
      |(?P<latex>\\(?:times|cdot|div|approx|Rightarrow|implies|%|[a-zA-Z]{1,20}))
      |(?P<eq>==?(?![=>]))
      |(?P<near>[≈≃≅])
      |(?P<op>\*\*|//|[+\-*/^×·∙⋅÷−–⁄])
      |(?P<sup>[²³])
      |(?P<pct>%|percent\b)
      |(?P<open>[(\[{]) |(?P<close>[)\]}])
      |(?P<word>[^\W\d_](?:[^\W\d]|['’-](?=[^\W\d]))*\d{0,3})
      |(?P<stop>[.,;:?!"“”\n|]|\\\\|=>|->|→|⇒)
      |(?P<odd>.)""",
    re.VERBOSE | re.DOTALL,
)
_OPERATORS = {
    "**": "^",
    "//": "/",
    "×": "*",
    "·": "*",
    "∙": "*",
    "⋅": "*",
    "÷": "/",
    "−": "-",
    "–": "-",
    "⁄": "/",
    "plus": "+",
    "minus": "-",
}
_LATEX: Mapping[str, tuple[Kind, str]] = {
    "times": ("op", "*"),
    "cdot": ("op", "*"),
    "div": ("op", "/"),
    "approx": ("near", ""),
    "%": ("pct", ""),
    "Rightarrow": ("stop", ""),
    "implies": ("stop", ""),
}
# "A", "x12"
_NAME = re.compile(r"[A-Za-z]\d{0,3}")


class Token(NamedTuple):
    """One token of a text."""

    kind: Kind
    text: str
    """As written; of an operator one of + - * / ^."""
    start: int
    end: int
    value: Fraction | None = None
    """Value of a number."""
    decimals: int = 0
    """Number of decimals of a number."""


@dataclass(slots=True)
class Evaluation:
    """The result of evaluating one expression."""

    value: Fraction | None = None
    """None for an unknown name, a division by zero or a number that is too large."""
    numbers: list[Fraction] = field(default_factory=list)
    """Numbers in the expression, in order."""
    names: list[str] = field(default_factory=list)
    """Letters in the expression, in order."""
    operations: int = 0
    """Number of operators."""
    divides: bool = False
    """Whether it has a division."""
    percent: bool = False
    """Whether it has a percentage."""
    decimals: int = 0
    """Most decimals of its numbers; 0 if it computes something."""


def tokens_of(text: str) -> list[Token]:
    """Split the first 20,000 characters of a text into tokens; never raises."""
    tokens: list[Token] = []
    for token in _raw_tokens(text[:MAX_CHARACTERS]):
        if (
            token.kind == "op"
            and token.text in "*^"
            and (not tokens or tokens[-1].kind in ("stop", "eq"))
        ):
            continue  # a bullet or emphasis
        if token.kind == "stop" and tokens and tokens[-1].kind == "op" and tokens[-1].text in "*^":
            tokens.pop()
        tokens.append(token)
    while tokens and tokens[-1].kind == "op" and tokens[-1].text in "*^":
        tokens.pop()
    return tokens


def _raw_tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of a text, list marks and emphasis included."""
    before: str = ""
    for match in _TOKEN.finditer(text):
        last, before = before, match.lastgroup if match.lastgroup not in (None, "skip") else before
        kind, piece, (start, end) = match.lastgroup or "odd", match.group(), match.span()
        if kind == "skip":
            continue
        if kind == "num":
            digits = re.sub(r"[,{}]", "", piece)
            integer, _, decimals = digits.partition(".")
            if len(digits) > MAX_DIGITS or (
                integer[:1] == "0" and len(integer) > 3
            ):  # 0900 is a time
                yield Token("odd", piece[:20], start, end)
                continue
            value = Fraction(int(integer + decimals or "0"), 10 ** len(decimals))
            yield Token("num", piece, start, end, value, len(decimals))
        elif kind == "label":
            yield Token("stop", piece, start, end)
        elif kind == "mixed":
            yield from _mixed(piece, start)
        elif kind == "cross":
            times = last in ("num", "close", "pct", "word", "sup")
            yield Token("op", "*", start, end) if times else Token("name", piece, start, end)
        elif kind == "latex":
            latex_kind, name = _LATEX.get(piece[1:], ("word", piece))
            yield Token(latex_kind, name, start, end)
        elif kind in ("op", "opword"):
            sign = _OPERATORS.get(
                piece, "/" if piece.startswith("divided") else "*" if piece[0] in "tm" else piece
            )
            yield Token("op", sign, start, end)
        elif kind == "sup":
            yield Token("op", "^", start, start)
            yield Token("num", piece, start, end, Fraction(2 if piece == "²" else 3))
        elif kind == "word" and piece not in ("a", "I") and _NAME.fullmatch(piece):
            yield Token("name", piece, start, end)
        elif kind == "text":
            yield Token("word", piece, start, end)
        else:
            yield Token(kind, piece, start, end)  # type: ignore[arg-type]


def _mixed(piece: str, start: int) -> Iterator[Token]:
    """Yield 3 1/2 as one number, 3 12/5 as several tokens."""
    space, slash = piece.index(" "), piece.index("/")
    integer, above, below = (
        int(piece[:space]),
        int(piece[space + 1 : slash]),
        int(piece[slash + 1 :]),
    )
    end = start + len(piece)
    if 0 < above < below:
        yield Token("num", piece, start, end, integer + Fraction(above, below))
        return
    yield Token("num", piece[:space], start, start + space, Fraction(integer))
    yield Token("num", str(above), start + space + 1, start + slash, Fraction(above))
    yield Token("op", "/", start + slash, start + slash + 1)
    yield Token("num", str(below), start + slash + 1, end, Fraction(below))


def evaluate(
    tokens: Sequence[Token], known: Mapping[str, Fraction], *, percent: bool = True
) -> Evaluation | None:
    """Evaluate tokens, without units, as one whole expression; None if they are not one.

    Parameters
    ----------
    tokens : sequence of Token
    known : mapping of name to value
    percent : bool
        Read 20% as 0.2, else as 20.
    """
    if not tokens or len(tokens) > MAX_TOKENS:
        return None
    reader = _Reader(tokens, known, percent)
    try:
        value = reader.sum(0)
    except _NoExpression:
        return None
    if reader.at < len(tokens):
        return None
    result = reader.result
    result.value = value
    if result.operations == 0:
        result.decimals = max((t.decimals for t in tokens if t.kind == "num"), default=0)
    return result


class _NoExpression(Exception):
    """The tokens are not one expression."""


class _Reader:
    """Recursive-descent parser of + - * / ^ and brackets; an unknown part makes the value None."""

    def __init__(
        self, tokens: Sequence[Token], known: Mapping[str, Fraction], percent: bool
    ) -> None:
        self.tokens, self.known, self.percent, self.at, self.result = (
            tokens,
            known,
            percent,
            0,
            Evaluation(),
        )

    def _next(self) -> Token | None:
        """Return the next token without consuming it."""
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def _accept(self, signs: str) -> str:
        """Consume the next token if it is one of these operators, and return it."""
        token = self._next()
        if token is None or token.kind != "op" or token.text not in signs:
            return ""
        self.at += 1
        return token.text

    def sum(self, depth: int) -> Fraction | None:
        """Read terms joined by + and -."""
        if depth > MAX_DEPTH:
            raise _NoExpression
        value = self._product(depth)
        while sign := self._accept("+-"):
            self.result.operations += 1
            other = self._product(depth)
            value = (
                None
                if value is None or other is None
                else _small(value + other if sign == "+" else value - other)
            )
        return value

    def _product(self, depth: int) -> Fraction | None:
        """Read factors joined by * and /, or by nothing: 2(3 + 4)."""
        value = self._signed(depth)
        while True:
            sign, token = self._accept("*/"), self._next()
            if not sign:
                if (
                    token is None
                    or token.kind not in ("open", "frac", "name")
                    or token.start != self.tokens[self.at - 1].end
                ):
                    return value
                sign = "*"  # 2(3 + 4), 2x
            self.result.operations += 1
            self.result.divides |= sign == "/"
            other = self._signed(depth)
            if value is None or other is None or (sign == "/" and other == 0):
                value = None
            else:
                value = _small(value * other if sign == "*" else value / other)

    def _signed(self, depth: int) -> Fraction | None:
        """Read a factor with its signs."""
        minus = False
        for _ in range(8):
            sign = self._accept("+-")
            if not sign:
                break
            minus ^= sign == "-"
        value = self._power(depth)
        return -value if minus and value is not None else value

    def _power(self, depth: int) -> Fraction | None:
        """Read an operand with its exponent, an integer of at most 64."""
        base = self._operand(depth)
        if not self._accept("^"):
            return base
        self.result.operations += 1
        if depth >= MAX_DEPTH:
            raise _NoExpression
        minus = self._accept("-")
        exponent = self._power(depth + 1)
        if base is None or exponent is None or exponent.denominator != 1 or abs(exponent) > 64:
            return None
        if (
            max(base.numerator.bit_length(), base.denominator.bit_length())
            * abs(exponent.numerator)
            > MAX_BITS
        ):
            return None
        power = -exponent.numerator if minus else exponent.numerator
        return None if base == 0 and power < 0 else base**power

    def _operand(self, depth: int) -> Fraction | None:
        """Read a number, a letter, a LaTeX fraction or a bracket, with its percent sign."""
        token = self._next()
        if token is None:
            raise _NoExpression
        self.at += 1
        value: Fraction | None
        if token.kind == "num":
            value = token.value
            self.result.numbers.append(value or Fraction(0))
        elif token.kind == "name":
            self.result.names.append(token.text)
            value = self.known.get(token.text)
        elif token.kind == "frac":
            above, below = self._bracket(depth), self._bracket(depth)
            self.result.operations += 1
            self.result.divides = True
            value = above / below if above is not None and below else None
        elif token.kind == "open":
            self.at -= 1
            value = self._bracket(depth)
        else:
            raise _NoExpression
        after = self._next()
        if after is not None and after.kind == "pct":
            self.at += 1
            self.result.percent = True
            return value / 100 if value is not None and self.percent else value
        return value

    def _bracket(self, depth: int) -> Fraction | None:
        """Read an expression in brackets."""
        first = self._next()
        if first is None or first.kind != "open":
            raise _NoExpression
        self.at += 1
        value = self.sum(depth + 1)
        last = self._next()
        if last is None or last.kind != "close":
            raise _NoExpression
        self.at += 1
        return value


def _small(value: Fraction) -> Fraction | None:
    """Return a value of at most 4,000 bits, or None."""
    return (
        value
        if max(value.numerator.bit_length(), value.denominator.bit_length()) <= MAX_BITS
        else None
    )
