"""The edges of an expression in running text: what next to it may belong to it.

An expression is cut out of its text. Where a factor, a function, a letter, a factorial or any sign
that is not read touches its edge, nobody can say what it is equal to.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from cotlab.text.arithmetic.lexer import RELATION, Token
from cotlab.text.arithmetic.phrases import CLAUSE_STARTS, phrase_doubt_after, phrase_doubt_before
from cotlab.text.keywords import word_set

OPERAND_END_KINDS = ("num", "close", "pct", "name", "word")
"""Kinds of tokens that an operand can end with."""
_PREFIX_OPERATORS = word_set(
    "of and or than from by between twice double triple half thrice mod log ln sin cos tan sqrt"
    " root exp max min gcd lcm choose to average mean product difference ratio remainder square"
    " cube squared cubed power minus plus less off times per base percent"
)
"""Words that may belong to the expression after them: "half of 12"."""
SUFFIX_OPERATORS = word_set(
    "remainder r mod modulo or to of less more fewer greater larger smaller times out with and half"
    " base choose squared cubed percent percentage dozen dozens hundred thousand million billion"
    " trillion k m bn plus minus over am pm o'clock binary octal hexadecimal hex"
)
"""Words that may belong to the expression before them or change its meaning: "7 remainder 2"."""
_NAMED_FUNCTIONS = word_set("mod log ln sin cos tan sqrt choose")
"""Functions that may also follow an expression that they multiply: "12 sqrt(2)"."""
_FUNCTION_TERMS = _NAMED_FUNCTIONS | word_set(
    "root exp max min gcd lcm half double twice triple thrice square cube"
)
"""Functions of the expression after them."""
_POWER_TERMS = word_set("squared cubed factorial")
"""Words after a number that make another one of it."""
_ORDINAL_ENDINGS = word_set("st nd rd th")
_MARK_COMMANDS = frozenset(
    f"\\{name}"
    for name in word_set(
        "checkmark blacksquare square qed Box end begin tag dots ldots cdots label hline newline"
        " text because hspace vspace pmod bmod mod equiv not nmid mid land wedge lor vee"
        " in neq ne ll gg"
    )
)
"""Commands that are no factor."""
_DETERMINERS = word_set("the a an his her their its my our your these those another")
NOT_ABOUT_IT_REASON = "it may be said of something else"
"""Reason for doubt about an amount of which a larger phrase speaks: the cost of 3 apples."""
UNREAD_BEFORE_REASON = "what stands before it may belong to it"
"""Reason for doubt about a side that may begin earlier than it was read."""
UNREAD_AFTER_REASON = "what stands after it may belong to it"
"""Reason for doubt about a side that may end later than it was read."""


def kind_at(tokens: Sequence[Token], index: int) -> str:
    """Return the kind of the token at ``index``; "" outside the tokens."""
    return tokens[index].kind if 0 <= index < len(tokens) else ""


def is_adjacent(tokens: Sequence[Token], index: int) -> bool:
    """Return whether no space is before the token at ``index``."""
    return tokens[index - 1].end == tokens[index].start


def left_doubt_reason(
    text: str, tokens: Sequence[Token], start: int, *, is_amount: bool, has_units: bool
) -> str:
    """Return why an expression may begin before ``start``; "" if it does not.

    Parameters
    ----------
    text : str
    tokens : sequence of Token
        Tokens of the text.
    start : int
        Index of its first token.
    is_amount : bool
        Whether it computes nothing.
    has_units : bool
        Whether it has units.
    """
    doubt = _left_edge_doubt(tokens, start) or phrase_doubt_before(text, tokens, start)
    if not doubt and is_amount and (has_units or kind_at(tokens, start - 1) == "word"):
        return NOT_ABOUT_IT_REASON
    return doubt


def _left_edge_doubt(tokens: Sequence[Token], start: int) -> str:
    """Return why what stands before ``start`` may belong to it.

    Only punctuation, or a word that is no operator, does not for certain.
    """
    for _ in range(2):
        if kind_at(tokens, start - 1) == "word" and tokens[start - 1].text.lower() in _DETERMINERS:
            start -= 1
    if not start:
        return ""
    token_before, kind_before_it = tokens[start - 1], kind_at(tokens, start - 2)
    if token_before.kind == "word":
        if token_before.text.lower() not in _PREFIX_OPERATORS:
            return ""
        is_total = start > 1 and tokens[start - 2].text.lower() in ("total", "sum")
        return (
            ""
            if is_total and token_before.text == "of"
            else f"{token_before.text!r} stands before it"
        )
    if token_before.kind == "open":
        is_function = kind_before_it == "word" and is_adjacent(tokens, start - 1)
        is_cut = is_function or kind_before_it not in ("", "stop", "word", "open")
        return UNREAD_BEFORE_REASON if is_cut else ""
    if token_before.kind != "stop":
        return UNREAD_BEFORE_REASON
    is_joined = is_adjacent(tokens, start) and (
        kind_before_it == "num" and is_adjacent(tokens, start - 1)
    )
    is_continued = token_before.text in ("\\\\", "\n") and tokens[start].text in ("+", "-")
    if is_continued and token_before.text == "\n":
        is_continued = kind_before_it in ("num", "close", "name", "odd")
    return UNREAD_BEFORE_REASON if is_joined or is_continued else ""


def has_factor_before(tokens: Sequence[Token], start: int) -> bool:
    r"""Return whether a factor or a function stands before ``start``: ``\log 8``, ``x 3``."""
    if not start:
        return False
    token = tokens[start - 1]
    word = token.text.lower()
    if word == "of" and start > 1:
        word = tokens[start - 2].text.lower()
    return token.kind == "name" or _is_factor(token) or word in _FUNCTION_TERMS


def has_factor_after(tokens: Sequence[Token], end: int) -> bool:
    r"""Return whether a factor stands at ``end``, after an expression: ``\pi``, ``(x + 1)``."""
    if end >= len(tokens):
        return False
    token = tokens[end]
    if token.kind == "open":
        is_letter = kind_at(tokens, end + 1) in ("name", "macro")
        return is_adjacent(tokens, end) or is_letter
    word = token.text.lower()
    if token.kind == "op":  # "6 * rate", but not "6 times a week" and "7 - right"
        is_sign = token.end - token.start == 1 or kind_at(tokens, end + 1) != "word"
        return is_sign and token.text in "+*/^"
    is_operand = token.kind in ("name", "macro") or _is_factor(token)
    return is_operand or word in _NAMED_FUNCTIONS | _POWER_TERMS


def _is_factor(token: Token) -> bool:
    r"""Return whether a token that is not read is a factor: ``\sin``, ``ab``, π, √."""
    if token.kind == "word":
        return len(token.text) == 1 and "\u0370" <= token.text <= "\u03ff"
    is_word = token.text.isalpha() and len(token.text) > 3  # prose between dollar signs
    if token.kind != "odd" or is_word or token.text in _MARK_COMMANDS | _ORDINAL_ENDINGS:
        return False
    return token.text.lstrip("\\").isalnum() or token.text in ("_", "√", "∛", "∞", "|", "±")


def begins_clause(tokens: Sequence[Token], start: int) -> bool:
    """Return whether a clause begins at ``start``: a sentence, or what follows "so" or "then"."""
    token_before = tokens[start - 1] if start else None
    if token_before is None or (token_before.kind == "stop" and token_before.text != RELATION):
        is_list = token_before is not None and token_before.text == ","
        return not (is_list and kind_at(tokens, start - 2) in OPERAND_END_KINDS)
    return token_before.text.lower() in CLAUSE_STARTS


def stated_remainder(tokens: Sequence[Token]) -> Fraction | None:
    """Return the 2 of "remainder 2", "R 2" or "remainder -2" at the start of the tokens."""
    if not tokens or tokens[0].text.lower() not in ("remainder", "r", "rem"):
        return None
    is_negative = tokens[1:2] != [] and tokens[1].text == "-"
    number = tokens[1 + is_negative] if len(tokens) > 1 + is_negative else tokens[0]
    if number.value is None:
        return None
    return -number.value if is_negative else number.value


def right_doubt_reason(text: str, tokens: Sequence[Token], end: int) -> str:
    """Return why an expression may go on after ``end``; "" if it does not."""
    return _right_edge_doubt(tokens, end) or phrase_doubt_after(text, tokens, end)


def _right_edge_doubt(tokens: Sequence[Token], end: int) -> str:
    """Return why what stands after ``end`` may belong to it.

    Only punctuation, a closing bracket, or a word that is no operator ends it for certain.
    """
    if end == len(tokens):
        return ""
    token_after, is_touching = tokens[end], is_adjacent(tokens, end)
    next_texts = [
        token.text.lower() for token in tokens[end : end + 3] if token.kind in ("word", "name")
    ]
    trailing_word = next((word for word in next_texts[:2] if word in SUFFIX_OPERATORS), "")
    if (
        token_after.kind in ("word", "name")
        and trailing_word
        and (is_touching or next_texts[0] != "and")
    ):
        return f"{trailing_word!r} stands after it"
    if token_after.kind == "op":
        return "it goes on with what cannot be read"
    if token_after.kind == "open":
        second_token = tokens[end + 1] if end + 1 < len(tokens) else token_after
        if second_token.text.lower() in ("mod", "modulo", "base"):
            return "another arithmetic is meant"
        is_remark = not is_touching and second_token.kind in ("word", "says")
        return "" if is_remark else UNREAD_AFTER_REASON
    if token_after.kind == "stop":
        is_joined = is_touching and kind_at(tokens, end + 1) in ("num", "odd")
        continuing_signs = {"\\\\": "+-*/^", "\n": "+*/^"}.get(token_after.text, "")
        is_continued = kind_at(tokens, end + 1) == "op" and tokens[end + 1].text in continuing_signs
        is_joined = is_joined and is_adjacent(tokens, end + 1)
        return UNREAD_AFTER_REASON if is_joined or is_continued else ""
    return "" if token_after.kind in ("word", "close", "says") else UNREAD_AFTER_REASON
