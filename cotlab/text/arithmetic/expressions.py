r"""Tokens and values of plain arithmetic: 3 x (4 + 5), 1,080 / 12, 20% of 50, \frac{1}{2}.

Values are fractions, so 0.1 + 0.2 is 0.3. Nothing is handed to an interpreter, and the work is
bounded whatever a text says: 20,000 characters, numbers of 100 digits, 200 tokens and 40 nested
brackets an expression, results of 4,000 bits. What is no plain arithmetic has no value: letters,
other roots than square ones, binomial coefficients.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from cotlab.text.written_numbers import NUMBER_PATTERN, read_number, without_separators

MAX_CHARACTERS, MAX_DIGITS = 20_000, 100
"""Bounds on a text and on a number."""
MAX_TOKENS, MAX_DEPTH, MAX_BITS = 200, 40, 4000
"""Bounds on an expression, its brackets and its results."""
_NUMERALS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen twenty"
)
NUMBER_BY_WORD = {
    **{word: Fraction(n) for n, word in enumerate(_NUMERALS.split())},
    **dict.fromkeys(("twice", "double", "pair"), Fraction(2)),
    **dict(zip(("triple", "dozen", "hundred"), map(Fraction, (3, 12, 100)), strict=True)),
    **{word: Fraction(1, n) for n, word in enumerate(("half", "third", "quarter"), 2)},
}
"""Small numbers in words."""


class Token(NamedTuple):
    """One token of a text."""

    kind: str
    """n number, o operator, ( or ), f \\frac, m another macro with arguments, % percent, ! sign of
    a factorial, = sign or "equals", ~ approximately, l letter, w word, . punctuation, ? all
    else: what it means for the expression next to it is not known."""
    text: str
    """As written; of an operator one of + - * / ^."""
    start: int
    """First character of the text."""
    end: int
    """Character after the last."""
    is_glued: bool = False
    """Whether no blank stands before it."""
    value: Fraction | None = None
    """Value of a number."""
    n_decimals: int = 0
    """Number of decimals of a number."""


# What is read as blanks: "\\left", "\\(", "$", "&", "**" of emphasis, "\\text{" and its "}"
_BLANKS_RE = re.compile(
    r"\\(?:left|right|displaystyle|boxed|[bB]igg?[lr]?)(?![a-zA-Z])|\\[,;:!()]|\\\$|[&€£¥]"
    r"|(?<!\$)\$(?!\$)|(?<![\w)\]}\s])\*\*(?=[\w$(-])|\*\*(?=\s{0,9}(?:$|[.,;:!?\n]|[A-Za-z]))"
)
_TEXT_RE = re.compile(r"\\(?:text|mathrm|textbf|mbox)\s?\{[^{}\n]{0,80}\}")  # "\\text{ apples}"
# "Step 2 - ", "* 5" at the start of a line
_LABEL_RE = re.compile(r"(?m:^)[ \t]{0,9}[*•](?=[ \t])|(?i:step)[ \t]\d{1,4}[ \t]?[-–—](?=[ \t])")
# "3 1/2", "1,080.5", "x" of "3 x 4", "equals", "divided by", "\frac", "10 : 2", "cm^2", "≈"
_TOKEN_RE = re.compile(
    r"""(?P<mixed>\d{1,6}[ ]\d{1,3}/\d{1,3}(?![\w./]))
      |(?P<n>"""
    + NUMBER_PATTERN
    + r""")
      |(?P<x>(?<![A-Za-z])[xX](?=[ ]{0,3}[\d.(]))
      |(?P<eq>==?(?![=>])|\bequals\b)
      |(?P<opword>\b(?:plus|minus|times|(?:multiplied|divided)\sby)\b)
      |(?P<near>[≈≃]|\\approx\b)
      |(?P<ratio>(?<=\d):(?=\d)|(?<=\d[ ]):[ ](?=\d)|(?<=%):)
      |(?P<stop>\\(?:quad|qquad|implies|iff|to|[lL]?o?n?g?[rR]ightarrow|Leftrightarrow)(?![a-zA-Z])
        |\\(?:begin|end)\{[a-z*]{1,20}\}|\\[\[\]\\]|\$\$|[.,;:?"“”\n⇒→])
      |(?P<degree>°[CF]?|\^\s?(?:\{\s?\\circ\s?\}|\\circ\b))
      |(?P<o>\\(?:times|cdot|ast|div)(?![a-zA-Z])|\*\*|//|[+\-*/^×·∙⋅÷−–])
      |(?P<f>\\[dt]?frac(?![a-zA-Z])) |(?P<m>\\(?:sqrt|[dt]?binom)(?![a-zA-Z]))
      |(?P<sup>[²³]) |(?P<pct>\\?%|percent\b) |(?P<fact>!)
      |(?P<open>[(\[{]) |(?P<close>[)\]}])
      |(?P<l>\\(?:pi|theta|alpha|beta|lambda|mu|phi|omega)(?![a-zA-Z])|[^\W\d_](?![^\W\d_]|['’])
        (?:_(?:\{\w{1,9}\}|\w{1,9})|\d{1,3})?)
      |(?P<w>[^\W\d_](?:[^\W\d]|['’-](?=[^\W\d])){1,60}+(?:\^\{?\d\}?|[²³])?)
      |(?P<other>\\[a-zA-Z]{1,20}|\S)""",
    re.VERBOSE,
)
_ARTICLE_RE = re.compile(r"[ \t]+[^\W\d_]{2}")  # " da" of "a day"
_KIND_BY_GROUP = {
    **dict.fromkeys(("opword", "x"), "o"),
    **dict.fromkeys(("ratio", "other"), "?"),
    **dict(zip(("mixed", "eq", "near", "stop"), "n=~.", strict=True)),
    **dict(zip(("pct", "fact", "open", "close", "degree"), "%!()w", strict=True)),
}
_OPERATOR_BY_SPELLING = {
    **dict.fromkeys(("−", "–", "minus"), "-"),
    **dict.fromkeys(("×", "·", "∙", "⋅", "x", "X", "times", "\\times", "\\cdot", "\\ast"), "*"),
    **dict.fromkeys(("multiplied by",), "*"),
    **dict.fromkeys(("÷", "//", "\\div", "divided by"), "/"),
    **dict.fromkeys(("**",), "^"),
    **dict.fromkeys(("plus",), "+"),
}


def tokenize(text: str) -> list[Token]:
    """Split the first 20,000 characters of a text into tokens; never raises."""
    text = text[:MAX_CHARACTERS]
    plain_text = _LABEL_RE.sub(lambda match: "." * len(match[0]), text)
    plain_text = _TEXT_RE.sub(_unwrap, plain_text)
    plain_text = _BLANKS_RE.sub(lambda match: " " * len(match[0]), plain_text)
    tokens: list[Token] = []
    for match in _TOKEN_RE.finditer(plain_text):
        before = tokens[-1] if tokens else None
        start, end = match.span()
        gap = text[before.end : start] if before else " "
        token = _make_token(match, not gap.replace("\\left", "").replace("$", ""), before)
        if match.lastgroup == "sup":
            tokens.append(Token("o", "^", start, start, is_glued=True))
        is_per = before is not None and before.text == "/" and token.kind == "w"
        if is_per and "".join(t.kind for t in tokens[-2:]) in ("no", "wo", "%o", ")o"):
            tokens[-1] = tokens[-1]._replace(kind="w", text="per")
        is_of = token.text == "of" and before is not None and _is_proportion(tokens)
        tokens.append(token._replace(kind="o", text="*") if is_of else token)
    return tokens


def _unwrap(match: re.Match[str]) -> str:
    r"""Return the words of \text{…}, with blanks for what is around them."""
    start = match[0].index("{") + 1
    return " " * start + match[0][start:-1].replace("~", " ") + " "


def _make_token(match: re.Match[str], is_glued: bool, before: Token | None) -> Token:
    """Return the token of a match."""
    group, text, (start, end) = match.lastgroup or "other", match[0], match.span()
    kind = _KIND_BY_GROUP.get(group, group)
    is_after_operand = before is not None and before.kind in "n)%"
    if group == "mixed":
        integer, numerator, denominator = map(int, re.split("[ /]", text))
        if not 0 < numerator < denominator:
            return Token("?", text, start, end, is_glued)
        return Token("n", text, start, end, is_glued, integer + Fraction(numerator, denominator))
    if group == "sup":
        return Token("n", text, start, end, True, Fraction(2 if text == "²" else 3))
    if kind == "n":
        integer_digits = without_separators(text).partition(".")[0]
        is_time = integer_digits[:1] == "0" and len(integer_digits) > 1  # "0900", "03" of a date
        if is_time or len(text) > MAX_DIGITS:
            return Token("?", text[:20], start, end, is_glued)
        return Token("n", text, start, end, is_glued, *read_number(text))
    if group == "x" and not is_after_operand and not (before is not None and before.kind == "w"):
        kind = "l"
    if kind == "o":
        text = _OPERATOR_BY_SPELLING.get(" ".join(text.split()), text)
    elif kind == "w" and is_after_operand and is_glued and group != "degree":
        kind = "?"  # "3ab", "5th"
    elif kind == "l" and text == "a" and not is_glued and _ARTICLE_RE.match(match.string, end):
        kind = "w"
    return Token(kind, text, start, end, is_glued)


def _is_proportion(tokens: Sequence[Token]) -> bool:
    """Return whether the tokens end with a percentage or a fraction: of 20% of 50, 3/4 of 8."""
    kinds = "".join(token.kind for token in tokens[-3:])
    return kinds.endswith("%") or (kinds == "non" and tokens[-2].text == "/")


@dataclass(slots=True)
class Evaluation:
    """The result of evaluating one expression."""

    value: Fraction | None = None
    """None where it is no plain arithmetic, for a division by zero or a number that is too large.
    """
    numbers: list[Fraction] = field(default_factory=list)
    """Numbers in the expression, in order."""
    letters: list[str] = field(default_factory=list)
    """Letters in the expression, in order."""
    n_operations: int = 0
    """Number of operators."""
    has_division: bool = False
    """Whether it has a division."""
    has_root: bool = False
    """Whether it has a square root: its value is right up to a share of 1e-25."""


def evaluate(
    tokens: Sequence[Token],
    known_values: Mapping[str, Fraction],
    *,
    percent: Fraction = Fraction(1, 100),
    is_mixed: bool = True,
) -> Evaluation | None:
    r"""Evaluate tokens as one whole expression; None if they are not one.

    Parameters
    ----------
    tokens : sequence of Token
        Words in it are units, and have no value.
    known_values : mapping of letter to value
    percent : Fraction
        Value of 1%.
    is_mixed : bool
        Whether 3\frac{4}{5} is 3 + 4/5, not a product.
    """
    tokens = [token for token in tokens if token.kind != "w"]
    if not tokens or len(tokens) > MAX_TOKENS:
        return None
    parser = _Parser(tokens, known_values, percent, is_mixed)
    try:
        parser.result.value = parser.parse_sum(0)
    except _NotAnExpression:
        return None
    return parser.result if parser.position == len(tokens) else None


class _NotAnExpression(Exception):
    """The tokens are not one expression."""


@dataclass(slots=True)
class _Parser:
    """Recursive-descent parser; an unknown part makes the value None."""

    tokens: Sequence[Token]
    known_values: Mapping[str, Fraction]
    percent: Fraction
    is_mixed: bool
    position: int = 0
    result: Evaluation = field(default_factory=Evaluation)

    def _kind(self) -> str:
        return self.tokens[self.position].kind if self.position < len(self.tokens) else ""

    def _accept(self, signs: str) -> str:
        """Consume the next token if it is one of these operators, and return it."""
        if self._kind() != "o" or self.tokens[self.position].text not in signs:
            return ""
        self.position += 1
        return self.tokens[self.position - 1].text

    def _accept_kind(self, kinds: str) -> str:
        """Consume the next token if it is of one of these kinds, and return the kind."""
        kind = self._kind()
        if not kind or kind not in kinds:
            return ""
        self.position += 1
        return kind

    def _expect(self, kind: str) -> Token:
        if self._kind() != kind:
            raise _NotAnExpression
        self.position += 1
        return self.tokens[self.position - 1]

    def parse_sum(self, depth: int) -> Fraction | None:
        if depth > MAX_DEPTH:
            raise _NotAnExpression
        value = self._parse_product(depth)
        while sign := self._accept("+-"):
            value = self._apply(sign, value, self._parse_product(depth))
        return value

    def _parse_product(self, depth: int) -> Fraction | None:
        value = self._parse_signed(depth)
        while True:
            if sign := self._accept("*/"):
                value = self._apply(sign, value, self._parse_signed(depth))
            elif self._kind() in ("l", "f", "m") or (
                self._kind() == "(" and self.tokens[self.position].is_glued
            ):
                is_sum = self.is_mixed and self._kind() == "f"
                is_sum = is_sum and self.tokens[self.position - 1].kind == "n"
                value = self._apply("+" if is_sum else "*", value, self._parse_power(depth))
            else:
                return value

    def _parse_signed(self, depth: int) -> Fraction | None:
        n_minus = 0
        while sign := self._accept("+-"):
            n_minus += sign == "-"
        value = self._parse_power(depth)
        return -value if value is not None and n_minus % 2 else value

    def _parse_power(self, depth: int) -> Fraction | None:
        if depth > MAX_DEPTH:
            raise _NotAnExpression
        base = self._parse_operand(depth)
        while kind := self._accept_kind("%!"):
            if kind == "%":
                base = None if base is None else base * self.percent
            else:
                base = _factorial(base)
                self.result.n_operations += 1
        if not self._accept("^"):
            return base
        is_negative = bool(self._accept("-"))
        exponent = self._parse_power(depth + 1)
        self.result.n_operations += 1
        if base is None or exponent is None or exponent.denominator != 1:
            return None
        power = int(-exponent if is_negative else exponent)
        if (power < 0 and base == 0) or _n_bits(base) * abs(power) > MAX_BITS:
            return None
        return base**power

    def _parse_operand(self, depth: int) -> Fraction | None:
        kind = self._kind()
        if kind == "n":
            value = self._expect("n").value
            self.result.numbers.append(value or Fraction(0))
            return value
        if kind == "l":
            letter = self._expect("l").text
            self.result.letters.append(letter)
            return self.known_values.get(letter)
        if kind == "(":
            return self._parse_bracket(depth)
        if kind not in ("f", "m"):
            raise _NotAnExpression
        is_root = "sqrt" in self._expect(kind).text
        has_index = is_root and self._kind() == "(" and self.tokens[self.position].text == "["
        if has_index:
            self._parse_bracket(depth)
        first = self._parse_bracket(depth)
        second = None if is_root else self._parse_bracket(depth)
        self.result.n_operations += 1
        self.result.has_division = True
        if is_root and not has_index:
            self.result.has_root = True
            return _root(first)
        return _divide(first, second) if kind == "f" else None

    def _parse_bracket(self, depth: int) -> Fraction | None:
        self._expect("(")
        value = self.parse_sum(depth + 1)
        self._expect(")")
        return value

    def _apply(self, sign: str, left: Fraction | None, right: Fraction | None) -> Fraction | None:
        """Apply + - * or /, and count it."""
        self.result.n_operations += 1
        self.result.has_division |= sign == "/"
        if left is None or right is None or _n_bits(left) + _n_bits(right) > MAX_BITS:
            return None
        if sign == "/":
            return _divide(left, right)
        return left + right if sign == "+" else left - right if sign == "-" else left * right


def _divide(left: Fraction | None, right: Fraction | None) -> Fraction | None:
    return None if left is None or not right else left / right


def _root(value: Fraction | None) -> Fraction | None:
    if value is None or value < 0 or _n_bits(value) > MAX_BITS:
        return None
    scale = value.denominator * 10**30
    return Fraction(math.isqrt(value.numerator * value.denominator * 10**60), scale)


def _factorial(value: Fraction | None) -> Fraction | None:
    is_natural = value is not None and value.denominator == 1 and 0 <= value <= 100
    return Fraction(math.factorial(int(value))) if is_natural and value is not None else None


def _n_bits(value: Fraction) -> int:
    """Return the bits of the longer of numerator and denominator."""
    return max(value.numerator.bit_length(), value.denominator.bit_length())
