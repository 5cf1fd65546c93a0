r"""Mathematical expressions as answers write them: ``\frac{\sqrt{3}}{2}``, ``4!``, ``2x(x+1)``.

A small grammar reads LaTeX and plain text. What has two meanings (``1/2x``, ``f(x)``, ``101_2``)
is no expression here.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from cotlab.text.written_numbers import NUMBER_PATTERN, read_number, word_list
from cotlab.text.written_units import find_units

MAX_CHARACTERS = 400
"""Longer texts are no expressions."""
_MAX_DEPTH = 40
"""Depth of brackets and signs."""
# "1,080.5", "x_1", "\frac", "sqrt", "+"
_TOKEN_RE = re.compile(
    rf"\s*(?:(?P<number>{NUMBER_PATTERN})"
    r"|(?P<command>\\[A-Za-z]+)|(?P<word>[A-Za-z]+)|(?P<sign>\*\*|[-+*/^!(){}\[\]°%√∞_'|⌊⌋⌈⌉]))",
    re.ASCII,
)
# " cm", " square units", " degrees" after an expression
_UNIT_RE = re.compile(
    r"(?<=[\s\d)}])(?:(?<!\s\s)\s+)?((?:square |cubic |sq\.? )?[A-Za-z]{2,12}(?:\^[23])?)\.?$"
)
# "10-12", which is a range or a difference
_RANGE_RE = re.compile(r"\d+-\d+", re.ASCII)
# "m1" of "m1 + m2"
_INDEX_RE = re.compile(r"(?<![A-Za-z\d\\])([A-Za-z])(\d)(?![\d.A-Za-z])", re.ASCII)
# "R1R2" of "R1R2/(R1 + R2)"
_INDICES_RE = re.compile(
    r"(?<![A-Za-z\d\\_.])([A-Za-z])[1-9](?:\1[1-9]){1,3}(?![\d.A-Za-z])", re.ASCII
)
# "v^2_0", "\\omega'_L": the index follows
_INDEX_LAST_RE = re.compile(
    r"((?:[A-Za-z]|\\[A-Za-z]{2,8})\s?)((?:\^(?:\w|\{\w+\})|'))\s?(_(?:\w|\{\w+\}))"
)
# "^{\\prime}"
_PRIME_RE = re.compile(r"\^\{?\s?\\prime\s?\}?")
_UNIT_WORDS = frozenset({"unit", "units", "radian", "radians", "rad"})
"""Words that say that there is a unit without naming one that is converted."""
FUNCTIONS = frozenset(
    word_list("sqrt sin cos tan cot sec csc arcsin arccos arctan ln log exp sinh cosh tanh")
)
_GREEK_LETTERS = frozenset(
    word_list(
        "alpha beta gamma delta epsilon varepsilon zeta eta theta iota kappa lambda mu nu xi rho"
        " sigma tau phi varphi chi psi omega Delta Omega Gamma Lambda Sigma Phi Theta Pi Psi"
        " hbar ell"
    )
)
_FUNCTION_NAMES = frozenset("fghFGHPQ")
"""Letters that are read as functions where a bracket follows."""
_WORDS_NOT_PRODUCTS = frozenset(
    word_list("of or to in at by if an as am no on so we it he is be do up")
)

Node = tuple[Any, ...]
"""A node of the tree: ("number", Fraction), ("symbol", name) or (operation, *arguments)."""


_BARS = {"lvert": "|", "rvert": "|", "vert": "|", "lfloor": "⌊", "rfloor": "⌋"} | {
    "lceil": "⌈",
    "rceil": "⌉",
}
# "\\lfloor"
_BARS_RE = re.compile(rf"\\({'|'.join(_BARS)})(?![A-Za-z])")
_CLOSING_BARS = {"|": ("|", "abs"), "⌊": ("⌋", "floor"), "⌈": ("⌉", "ceiling")}
"""Closing sign and operation by opening sign."""


class Formula(NamedTuple):
    """An expression that has been read."""

    tree: Node
    """The expression."""
    unit: str
    """Unit as written, "" without one."""


class _NotReadableError(ValueError):
    """The text is no expression of this grammar."""


@lru_cache(4096)
def read_formula(text: str) -> Formula | None:
    """Read a text that is one expression and nothing else; None for other text."""
    text = text.strip()
    if not 0 < len(text) <= MAX_CHARACTERS or _RANGE_RE.fullmatch(text):
        return None
    unit = ""
    if match := _UNIT_RE.search(text):
        name = match[1].split()[-1].partition("^")[0]
        if name in _UNIT_WORDS or (name not in FUNCTIONS | {"pi"} and find_units(name)):
            unit, text = match[1], text[: match.start()].strip()
            if name in ("degree", "degrees", "deg"):
                unit, text = "", f"({text})°"
    if re.search(r"[-+*/^()]", text):
        text = _INDICES_RE.sub(lambda match: re.sub(r"([A-Za-z])(\d)", r" \1_\2", match[0]), text)
        text = _INDEX_RE.sub(r"\1_\2", text)
    try:
        return Formula(_Reader(text).read(), unit)
    except (_NotReadableError, RecursionError):
        return None


def is_plain_number(formula: Formula) -> bool:
    """Return whether an expression has no letters."""
    return not _has_symbol(formula.tree)


def _has_symbol(node: Node) -> bool:
    return node[0] == "symbol" or any(
        isinstance(part, tuple) and _has_symbol(part) for part in node[1:]
    )


class _Reader:
    """Reads the tokens of one text, by recursive descent."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        self._position = self._depth = self._n_bars = 0
        position = 0
        text = re.sub(r"\\(?:left|right|displaystyle|,|;|!| )", " ", text).rstrip()
        text = _BARS_RE.sub(lambda match: _BARS[match[1]], text)
        text = _INDEX_LAST_RE.sub(r"\1\3\2", _PRIME_RE.sub("'", text))
        while position < len(text):
            match = _TOKEN_RE.match(text, position)
            if match is None:
                raise _NotReadableError
            if match["word"]:
                self._tokens += _letters(match["word"])
            else:
                self._tokens.append((match["number"] or match["command"] or match["sign"]).strip())
            position = match.end()

    def read(self) -> Node:
        tree = self._sum()
        if self._position < len(self._tokens):
            raise _NotReadableError
        return tree

    def _peek(self) -> str:
        return self._tokens[self._position] if self._position < len(self._tokens) else ""

    def _previous(self) -> str:
        return self._tokens[self._position - 1]

    def _take(self) -> str:
        token = self._peek()
        self._position += 1
        return token

    def _expect(self, token: str) -> None:
        if self._take() != token:
            raise _NotReadableError

    def _sum(self) -> Node:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _NotReadableError
        tree = self._product()
        while self._peek() in ("+", "-"):
            sign, term = self._take(), self._product()
            tree = ("add", tree, term if sign == "+" else ("negate", term))
        self._depth -= 1
        return tree

    def _product(self) -> Node:
        if self._peek() in ("+", "-"):
            self._depth += 1
            if self._depth > _MAX_DEPTH:
                raise _NotReadableError
            sign, term = self._take(), self._product()
            self._depth -= 1
            return term if sign == "+" else ("negate", term)
        tree = self._power()
        has_slash = False
        while (token := self._peek()) and token not in ("+", "-", ")", "}", "]", "⌋", "⌉"):
            if token == "|" and self._n_bars:
                break
            if token in ("*", "\\cdot", "\\times"):
                self._take()
                sign_node = self._signed_power()
                tree = ("multiply", tree, sign_node)
            elif token in ("/", "\\div"):
                self._take()
                tree, has_slash = ("divide", tree, self._signed_power()), True
            elif has_slash or not self._may_be_factor(token):
                raise _NotReadableError  # 1/2x has two meanings; x2 and 2 1/2 are no products
            else:
                tree = ("multiply", tree, self._power())
        return tree

    def _may_be_factor(self, token: str) -> bool:
        """Return whether what follows without a sign is a factor: (x+1)3, 2^6 3^5, not x2."""
        if not token[0].isdigit() or self._previous() in ("!", ")"):
            return True
        has_power = self._tokens[self._position - 2 : self._position - 1] in (["^"], ["**"])
        return has_power and self._tokens[self._position + 1 :][:1] in (["^"], ["**"], ["!"])

    def _signed_power(self) -> Node:
        if self._peek() == "-":
            self._take()
            return ("negate", self._power())
        return self._power()

    def _power(self) -> Node:
        tree = self._atom()
        while (token := self._peek()) in ("!", "°", "%"):
            self._take()
            if token == "!" and self._peek() == "!":
                raise _NotReadableError  # a double factorial
            tree = ("degrees" if token == "°" else {"!": "factorial", "%": "percent"}[token], tree)
        if self._peek() in ("^", "**"):
            self._take()
            tree = ("power", tree, self._exponent())
            while self._peek() == "!":
                raise _NotReadableError  # 2^3! has two meanings
        return tree

    def _exponent(self) -> Node:
        if self._peek() == "-":
            self._take()
            return ("negate", self._exponent())
        if self._peek() and self._peek()[0] == "\\":
            return self._atom()
        tree = self._atom()
        if self._peek() in ("^", "**"):
            self._take()
            tree = ("power", tree, self._exponent())
        return tree

    def _group(self) -> Node:
        """Read {…}, or the one digit or letter that LaTeX takes without braces."""
        if self._peek() != "{":
            token = self._peek()
            if token.isdigit() and len(token) > 1:
                self._tokens[self._position : self._position + 1] = [token[0], token[1:]]
            return self._atom()
        self._take()
        tree = self._sum()
        self._expect("}")
        return tree

    def _atom(self) -> Node:
        token = self._take()
        if not token:
            raise _NotReadableError
        if token[0].isdigit() or token[0] == ".":
            if self._peek() == "_" or len(token) > 200:
                raise _NotReadableError  # 101_2 is written in base 2
            return ("number", read_number(token).value)
        closing = {"(": ")", "{": "}", "[": "]"}.get(token)
        if closing:
            tree = self._sum()
            self._expect(closing)
            return tree
        if token in _CLOSING_BARS:
            if self._n_bars:
                raise _NotReadableError  # |a|b|c| has two meanings
            closing, operation = _CLOSING_BARS[token]
            self._n_bars += 1
            tree = self._sum()
            self._expect(closing)
            self._n_bars -= 1
            return (operation, tree)
        name = token.lstrip("\\")
        if name in ("frac", "dfrac", "tfrac", "cfrac") and token[0] == "\\":
            return ("divide", self._group(), self._group())
        if name in ("binom", "dbinom", "tbinom") and token[0] == "\\":
            return ("binomial", self._group(), self._group())
        if name == "sqrt" or token == "√":
            return self._root(token)
        if name in FUNCTIONS:
            return self._function(name)
        if name in ("pi", "infty") or token == "∞":
            return ("pi",) if name == "pi" else ("symbol", "∞")
        if (len(name) == 1 and name.isalpha()) or (token[0] == "\\" and name in _GREEK_LETTERS):
            return self._symbol(name)
        raise _NotReadableError

    def _symbol(self, name: str) -> Node:
        if self._peek() == "_":
            self._take()
            if self._peek() == "{":
                self._take()
                name += "_" + self._take()
                self._expect("}")
            else:
                name += "_" + self._take()
        while self._peek() == "'":
            name += self._take()
        if self._peek() in ("(", "[") and name.rstrip("'") in _FUNCTION_NAMES:
            raise _NotReadableError  # f(x) is no product
        return ("symbol", name)

    def _root(self, token: str) -> Node:
        degree: Node = ("number", Fraction(2))
        if self._peek() == "[" and token == "\\sqrt":
            self._take()
            degree = self._sum()
            self._expect("]")
        if token == "\\sqrt":
            radicand = self._group()
        else:
            has_brackets = self._peek() in ("(", "{")
            radicand = self._atom()
            if not has_brackets and (self._peek() or "+")[0].isalpha():
                raise _NotReadableError  # √3x has two meanings
        return ("power", radicand, ("divide", ("number", Fraction(1)), degree))

    def _function(self, name: str) -> Node:
        base: Node = ("symbol", "the base of log")
        exponent: Node | None = None
        if name == "log" and self._peek() == "_":
            self._take()
            base = self._group()
        if self._peek() in ("^", "**"):
            self._take()
            exponent = self._exponent() if self._peek() != "{" else self._group()
            if exponent == ("negate", ("number", Fraction(1))):
                raise _NotReadableError  # sin^{-1} is the inverse or the reciprocal
        if self._peek() in ("(", "{"):
            argument = self._atom()
        else:  # sin 2x, cos 60°, ln 2
            argument = self._power()
            while (self._peek() or "+")[0].isalpha() or self._peek() in ("\\pi", "pi"):
                if self._peek() in FUNCTIONS:
                    break
                argument = ("multiply", argument, self._power())
            if self._peek() in ("/", "(", "{"):
                raise _NotReadableError  # sin x/2 has two meanings
        tree: Node = ("log", argument, base) if name == "log" else (name, argument)
        return tree if exponent is None else ("power", tree, exponent)


def _letters(word: str) -> list[str]:
    """Split a run of letters into functions, pi and single letters."""
    if word in FUNCTIONS or word == "pi":
        return [word]
    if word.lower() in ("infinity", "inf"):
        return ["∞"]
    pieces = re.findall(r"pi|[A-Za-z]", word) if len(word) <= 5 else []
    n_letters = sum(piece != "pi" for piece in pieces)
    if not pieces or n_letters > 3 or word.lower() in _WORDS_NOT_PRODUCTS:
        raise _NotReadableError
    return pieces
