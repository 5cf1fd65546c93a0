"""Tokens of arithmetic as people write it: 3 x (4 + 5), 1,080 / 12, 20% of 50, LaTeX.

The work is bounded whatever the text says: 20,000 characters and numbers of 100 digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Literal, NamedTuple

from cotlab.text.arithmetic.units import has_latex_dollars
from cotlab.text.keywords import word_set
from cotlab.text.written_numbers import NUMBER_PATTERN, read_number, without_separators
from cotlab.text.written_units import PINT_NAME_BY_SPELLING

MAX_CHARACTERS, MAX_DIGITS = 20_000, 100
"""Bounds on a text and on a number."""
RELATION = "<"
"""Text of a ``stop`` that is a relation other than =."""
TokenKind = Literal[
    "num",
    "op",
    "pct",
    "fact",
    "open",
    "close",
    "macro",
    "eq",
    "near",
    "says",
    "name",
    "word",
    "stop",
    "odd",
]
"""Kind of a token.

``fact`` is the sign of a factorial, ``macro`` a LaTeX fraction, root or binomial coefficient,
``eq`` is =, ``near`` is ≈, ``says`` is a verb such as "is" or "equals", ``name`` a letter with its
index, ``word`` a word that may be a unit, ``stop`` punctuation or another relation, ``odd`` all
else: what it means for the expression next to it is not known.
"""

# "3", "1,080.5", "3 1/2", "x" of "3 x 4", "equals", "divided by", "\frac", "=", "≈", "²", "%", "cm"
_TOKEN_RE = re.compile(
    r"""(?P<break>\$\$|\\[\[\]]|\\\\)
      |(?P<skip>(?:[ \t\u00a0\u2009\u202f&$€£¥]|\\[,;:!\ $()]
        |\\(?:left|right|displaystyle|boxed|[bB]igg?[lr]?)(?![a-zA-Z]))+)
      |(?P<label>(?i:step)[ \t]\d{1,4}[ \t]?[-–—](?=[ \t]))
      |(?P<mixed>\d{1,6}[ ]\d{1,3}/\d{1,3}(?![\w./]))
      |(?P<num>"""
    + NUMBER_PATTERN
    + r""")
      |(?P<symbol>(?<![A-Za-z])[A-Za-z]_(?:\{[^{}\n]{0,20}\}|\d+|[A-Za-z]+))
      |(?P<cross>[xX](?=[ \t]?\$?[\d.]|[ \t]?\$?\((?![^()]{0,80}[A-Za-z]))
        |(?<=\s)[xX](?=[ \t]-[\d(]))
      |(?P<says>(?<!\w)(?:which\s)?(?:(?:is|are|be)\sequal\sto|equals?(?:\sto)?
        |is|are|gives|makes|leaves|comes\sto|totals)\b)
      |(?P<opword>(?<!\w)(?:plus|minus|times|(?:multiplied|divided)\sby)\b)
      |(?P<text>\\(?:text|mathrm|textbf|mbox)\s?\{[^{}\n]{0,80}\})
      |(?P<degree>°[CF]?|\^\s?(?:\{\s?\\circ\s?\}|\\circ\b))
      |(?P<latex>\\(?:%|[a-zA-Z]{1,20}))
      |(?P<eq>==?(?![=>]))
      |(?P<near>[≈≃≅])
      |(?P<op>\*\*|//|[+\-*/^×·∙⋅÷−–⁄])
      |(?P<sup>[²³])
      |(?P<pct>%|percent\b)
      |(?P<open>[(\[{⌊⌈]) |(?P<close>[)\]}⌋⌉])
      |(?P<word>[^\W\d_](?:[^\W\d]|['’-](?=[^\W\d]))*\d{0,3})
      |(?P<dots>\.{2,}|…)
      |(?P<relation>[<>≤≥])
      |(?P<stop>[.,;:?!"“”\n]|=>|->|→|⇒)
      |(?P<odd>.)""",
    re.VERBOSE | re.DOTALL,
)
# "\[" of "\[ 3 + 4 = 7 \]"
_MATH_START_RE = re.compile(r"\\\[|\\\(|\$\$")
_MATH_END_BY_START = {r"\[": r"\]", r"\(": r"\)", "$$": "$$"}
_MAX_MATH_CHARACTERS = 2000
# "$x + 1$"
_DOLLAR_MATH_RE = re.compile(r"(?<![\\$])\$(?!\$)[^$\n]{1,2000}\$(?!\$)")
_SPELLINGS_BY_OPERATOR = {
    "+": "plus",
    "-": "− – minus",
    "*": "× · ∙ ⋅ x times multiplied",
    "/": "// ÷ ⁄ divided",
    "^": "**",
    "=": "≈ equals",
}
_OPERATOR_BY_SPELLING = {
    spelling: sign
    for sign, spellings in _SPELLINGS_BY_OPERATOR.items()
    for spelling in spellings.split()
}
_BREAK_COMMANDS = word_set(
    "Rightarrow Longrightarrow rightarrow implies iff Leftrightarrow to therefore quad qquad"
)
_RELATION_COMMANDS = word_set("le leq ge geq lt gt neq ne")
_GREEK_LETTERS = word_set(
    "alpha beta gamma delta epsilon varepsilon zeta eta theta kappa lambda mu nu xi pi rho sigma"
    " tau phi varphi chi psi omega"
)
_LATEX_TOKENS: Mapping[str, tuple[TokenKind, str]] = {
    "times": ("op", "*"),
    "cdot": ("op", "*"),
    "div": ("op", "/"),
    "approx": ("near", ""),
    "%": ("pct", ""),
    **dict.fromkeys(("frac", "dfrac", "tfrac"), ("macro", "frac")),
    **dict.fromkeys(("binom", "dbinom", "tbinom"), ("macro", "binom")),
    "sqrt": ("macro", "sqrt"),
    "lfloor": ("open", "⌊"),
    "rfloor": ("close", "⌋"),
    "lceil": ("open", "⌈"),
    "rceil": ("close", "⌉"),
    **dict.fromkeys(_BREAK_COMMANDS, ("stop", "")),
    **dict.fromkeys(_RELATION_COMMANDS, ("stop", RELATION)),
    **{name: ("name", f"\\{name}") for name in _GREEK_LETTERS},
}
# "A", "x12"
_LETTER_NAME_RE = re.compile(r"[A-Za-z]\d{0,3}")
# " number" of "a number": "a" is the article
_ARTICLE_CONTEXT_RE = re.compile(r"[ \t]+(?:[A-Za-z]{2}|[\d$€£\"“])")
# "apples" of "\text{ apples }"
_TEXT_PIECE_RE = re.compile(r"[^\s{}]+")


def operator_sign(text: str) -> str:
    """Return an operator as one of + - * / ^ =: "divided by" and "÷" are "/"."""
    return _OPERATOR_BY_SPELLING.get(text.split()[0], text)


class Token(NamedTuple):
    """One token of a text."""

    kind: TokenKind
    """Kind of the token."""
    text: str
    """As written; of an operator one of + - * / ^."""
    start: int
    """First character of the text."""
    end: int
    """Character after the last."""
    value: Fraction | None = None
    """Value of a number."""
    n_decimals: int = 0
    """Number of decimals of a number."""


def tokenize(text: str) -> list[Token]:
    """Split the first 20,000 characters of a text into tokens; never raises."""
    tokens: list[Token] = []
    for token in _iter_tokens(text[:MAX_CHARACTERS]):
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


def _iter_tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of a text, list marks and emphasis included."""
    is_math = _math_mask(text)
    previous = Token("stop", "", 0, 0)
    for match in _TOKEN_RE.finditer(text):
        for token in _match_tokens(text, match, previous, bool(is_math[match.start()])):
            yield token
            previous = token


def _math_mask(text: str) -> bytearray:
    """Return 1 for each character inside LaTeX mathematics, else 0."""
    mask = bytearray(len(text))
    spans = list(_math_spans(text))
    if has_latex_dollars(text):
        spans += [match.span() for match in _DOLLAR_MATH_RE.finditer(text)]
    for start, end in spans:
        mask[start:end] = b"\1" * (end - start)
    return mask


def _math_spans(text: str) -> Iterator[tuple[int, int]]:
    r"""Yield the ranges of ``\[...\]``, ``\(...\)`` and ``$$...$$`` of bounded length."""
    position = 0
    while opening := _MATH_START_RE.search(text, position):
        sign = _MATH_END_BY_START[opening[0]]
        content = opening.end()
        end = text.find(sign, content, content + _MAX_MATH_CHARACTERS + len(sign))
        position = opening.start() + 1 if end < 0 else end + len(sign)
        if end >= 0:
            yield opening.start(), position


def _match_tokens(
    text: str, match: re.Match[str], previous: Token, is_math: bool
) -> Iterator[Token]:
    """Yield the tokens of one match; spaces have none, a mixed number may have several."""
    kind, piece, (start, end) = match.lastgroup or "odd", match.group(), match.span()
    is_after_operand = previous.kind in ("num", "close", "pct", "fact")
    if kind == "skip":
        return
    if kind == "num":
        yield _number_token(piece, start)
    elif kind == "mixed":
        yield from _mixed_number_tokens(piece, start)
    elif kind == "cross":
        is_multiplication = not is_math and (is_after_operand or previous.kind == "word")
        yield (
            Token("op", "*", start, end) if is_multiplication else Token("name", piece, start, end)
        )
    elif kind == "latex":
        latex_kind, latex_text = _LATEX_TOKENS.get(piece[1:], ("odd", piece))
        yield Token(latex_kind, latex_text, start, end)
    elif kind in ("op", "opword"):
        yield Token("op", operator_sign(piece), start, end)
    elif kind == "sup":
        yield Token("op", "^", start, start)
        yield Token("num", piece, start, end, Fraction(2 if piece == "²" else 3))
    elif kind == "symbol":
        yield Token("name", re.sub(r"[{}\s]", "", piece), start, end)
    elif kind == "degree":
        yield Token("word", "degrees", start, end)
    elif kind == "text":
        content_start = start + piece.index("{") + 1
        for part in _TEXT_PIECE_RE.finditer(text, content_start, end - 1):
            yield Token(
                _word_kind(text, part, is_touching=False, is_math=False), part[0], *part.span()
            )
    elif kind == "word":
        is_touching = is_after_operand and previous.end == start
        yield Token(_word_kind(text, match, is_touching, is_math), piece, start, end)
    elif piece == "!" and previous.end == start and (is_after_operand or previous.kind == "name"):
        # 3!! is no factorial of a factorial
        yield Token("odd" if previous.kind == "fact" else "fact", piece, start, end)
    else:
        piece = RELATION if kind == "relation" else piece
        kinds = {"label": "stop", "break": "stop", "relation": "stop", "dots": "odd"}
        yield Token(kinds.get(kind, kind), piece, start, end)  # type: ignore[arg-type]


def _word_kind(text: str, match: re.Match[str], is_touching: bool, is_math: bool) -> TokenKind:
    """Return whether a word is a letter, a word, or a product of letters (``odd``): 3ab, $xy$."""
    word = match.group()
    if word in ("a", "I") and not is_math and not is_touching:
        is_article = match.end() == len(text) or _ARTICLE_CONTEXT_RE.match(text, match.end())
        return "word" if is_article or word == "I" else "name"
    if _LETTER_NAME_RE.fullmatch(word):
        return "name"
    if word.rstrip("²³") in PINT_NAME_BY_SPELLING:
        return "word"
    is_readable = word.isascii() or re.sub("[-’²³]", "", word).isalpha()
    return "odd" if is_touching or is_math or not is_readable else "word"


def _number_token(piece: str, start: int) -> Token:
    """Return a number, or ``odd`` for a time such as 0900 and for one of too many digits."""
    digits, end = without_separators(piece), start + len(piece)
    integer_digits = digits.partition(".")[0]
    if len(digits) > MAX_DIGITS or (integer_digits[:1] == "0" and len(integer_digits) > 3):
        return Token("odd", piece[:20], start, end)
    return Token("num", piece, start, end, *read_number(piece))


def _mixed_number_tokens(piece: str, start: int) -> Iterator[Token]:
    """Yield 3 1/2 as one number, 3 12/5 as several tokens."""
    space_index, slash_index = piece.index(" "), piece.index("/")
    integer, numerator, denominator = map(int, re.split("[ /]", piece))
    end = start + len(piece)
    if 0 < numerator < denominator:
        yield Token("num", piece, start, end, integer + Fraction(numerator, denominator))
        return
    yield Token("num", piece[:space_index], start, start + space_index, Fraction(integer))
    yield Token(
        "num", str(numerator), start + space_index + 1, start + slash_index, Fraction(numerator)
    )
    yield Token("op", "/", start + slash_index, start + slash_index + 1)
    yield Token("num", str(denominator), start + slash_index + 1, end, Fraction(denominator))
