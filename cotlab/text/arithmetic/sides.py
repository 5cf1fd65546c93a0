"""Sides of an equation in running text: the longest expressions before and after its sign."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from cotlab.text.arithmetic.lexer import Evaluation, Token, evaluate

_MAX_UNIT_TOKENS, _MAX_TOKENS = 4, 400
"""Words of a unit, and tokens of a side, that are read."""


def _word_set(listed: str) -> frozenset[str]:
    """Split a string of words into a set."""
    return frozenset(listed.split())


ENDS_OPERAND = ("num", "close", "pct", "name", "word")
"""Kinds of tokens that an operand can end with."""
_NOT_UNITS = _word_set(
    "is are and or of the a an so then that which has have had she he it they we i you to from for"
    " in on at by with be was were if when as than because since but therefore thus hence while let"
    " let's calculate compute find get gets sum difference product ratio average mean"
)
"""Words that are never the unit of the number before them."""
_SPEAKS_LEFT = _word_set(
    "of and or than from by between twice double triple half thrice mod log ln sin cos tan sqrt"
    " root exp max min gcd lcm choose to average mean product difference ratio remainder square"
    " cube squared cubed power minus plus times per base percent"
)
"""Words that may belong to the expression after them: "half of 12"."""
SPEAKS_RIGHT = _word_set(
    "remainder r mod modulo or to of less more fewer greater larger smaller times out with and half"
    " base choose squared cubed percent percentage dozen dozens hundred thousand million billion"
    " trillion k m bn plus minus over am pm o'clock binary octal hexadecimal hex"
)
"""Words that may belong to the expression before them or change its meaning: "7 remainder 2"."""
_UNIT_LETTERS = ("m", "g", "l", "L", "s", "h")
_DETERMINERS = _word_set("the a an his her their its my our your these those another")
BELONGS_BEFORE = "what stands before it may belong to it"
"""Reason for doubt about a side that may begin earlier than it was read."""


@dataclass(frozen=True, slots=True)
class Side:
    """One side of an equation."""

    start: int
    """First character of the text."""
    end: int
    evaluation: Evaluation
    """Value without units."""
    bare: Evaluation
    """Value in another reading: 20% as 20, "- 5" at the start of a line as a list item."""
    units: tuple[str, ...]
    """Words that may be units of its numbers."""
    doubt: str = ""
    """Why it may have been read wrongly."""
    text: str = ""

    @property
    def letter(self) -> str:
        """The letter, if the side is a single letter, else ""."""
        return (
            self.evaluation.names[0]
            if len(self.evaluation.names) == 1
            and not self.evaluation.operations
            and not self.evaluation.numbers
            else ""
        )


def left_side(text: str, tokens: Sequence[Token], known: Mapping[str, Fraction]) -> Side | None:
    """Return the longest expression at the end of the tokens, or None."""
    tokens = tokens[-_MAX_TOKENS:]
    pairs = _matching_brackets(tokens)
    pos, start = len(tokens) - 1, -1
    while pos >= 0:
        at = pos
        for _ in range(_MAX_UNIT_TOKENS):
            if at > 0 and is_unit(tokens[at]):
                at -= 1
        if tokens[at].kind == "pct" and at:
            at -= 1
        if tokens[at].kind == "close":
            if at not in pairs:
                return None
            at = pairs[at]
            if at and tokens[at - 1].kind == "frac":
                at -= 1
            elif (
                at > 1
                and tokens[at - 1].kind == "close"
                and tokens[at].text == "{"
                and (at - 1) in pairs
            ):
                above = pairs[at - 1]
                at = above - 1 if above and tokens[above - 1].kind == "frac" else at
            if (
                at
                and tokens[at - 1].kind in ("word", "name")
                and tokens[at - 1].end == tokens[at].start
            ):
                return None  # a function
        elif tokens[at].kind not in ("num", "name"):
            return None
        start, last = at, at - 1
        while last >= 0 and tokens[last].kind == "op":
            last -= 1
        if last < at - 1:
            run = tokens[last + 1 : at]
            if last >= 0 and tokens[last].kind in ENDS_OPERAND:
                if tokens[last].kind == "word" and not is_unit(tokens[last]):
                    return None
                pos = last
                continue
            if any(t.text not in "+-" for t in run):
                return None
            start = last + 1
            break
        if (
            last >= 0
            and tokens[last].kind in ("num", "close", "name")
            and tokens[last].end == tokens[at].start
        ):
            pos = last
            continue
        break
    if start < 0:
        return None
    side = _read_side(text, tokens[start:], known)
    if side is None:
        return None
    if (
        _may_be_bullet(text, tokens[start])
        and (listed := _read_side(text, tokens[start + 1 :], known)) is not None
    ):
        side = replace(side, bare=listed.evaluation)
    return replace(side, doubt=_left_doubt(tokens, start, side))


def right_side(
    text: str, tokens: Sequence[Token], known: Mapping[str, Fraction]
) -> tuple[Side | None, bool]:
    """Return the longest expression at the start of the tokens, and whether it is all of them."""
    tokens, cut = tokens[:_MAX_TOKENS], len(tokens) > _MAX_TOKENS
    pairs = _matching_brackets(tokens)
    at, end = 0, 0
    while at < len(tokens):
        while at < len(tokens) and tokens[at].kind == "op" and tokens[at].text in "+-":
            at += 1
        if at >= len(tokens):
            break
        if tokens[at].kind == "frac" and at + 1 in pairs and pairs[at + 1] + 1 in pairs:
            at = pairs[pairs[at + 1] + 1]
        elif tokens[at].kind == "open" and at in pairs:
            at = pairs[at]
        elif tokens[at].kind not in ("num", "name"):
            break
        at += 1
        if at < len(tokens) and tokens[at].kind == "pct":
            at += 1
        end = at
        if (
            at < len(tokens)
            and tokens[at].kind in ("open", "frac", "name")
            and tokens[at].start == tokens[at - 1].end
        ):
            continue
        units = at
        for _ in range(_MAX_UNIT_TOKENS):
            if units < len(tokens) and is_unit(tokens[units]):
                units += 1
        if units < len(tokens) and tokens[units].kind == "op":
            at = units + 1
            continue
        if units == len(tokens):
            end = units
        break
    if not end:
        return None, False
    side = _read_side(text, tokens[:end], known)
    if side is None:
        return None, end == len(tokens) and not cut
    followed = []
    for token in tokens[end : end + _MAX_UNIT_TOKENS]:
        if token.kind != "word":
            break
        followed.append(token.text)
    side = replace(side, doubt=_right_doubt(tokens, end), units=(*side.units, *followed))
    return side, end == len(tokens) and not cut


def is_unit(token: Token) -> bool:
    """Return whether a word may be the unit of the number before it."""
    return token.kind == "word" and token.text.lower() not in _NOT_UNITS


def is_letter_of_unit(token: Token, known: Mapping[str, Fraction]) -> bool:
    """Return whether a letter may be a unit: it is one (m, g, l …) and has no known value."""
    return token.kind == "name" and token.text not in known and token.text in _UNIT_LETTERS


def _matching_brackets(tokens: Sequence[Token]) -> dict[int, int]:
    """Map the index of each bracket to that of its counterpart."""
    stack: list[int] = []
    pairs: dict[int, int] = {}
    for i, token in enumerate(tokens):
        if token.kind == "open":
            stack.append(i)
        elif token.kind == "close" and stack:
            j = stack.pop()
            pairs[i], pairs[j] = j, i
    return pairs


def _read_side(text: str, tokens: Sequence[Token], known: Mapping[str, Fraction]) -> Side | None:
    """Read all tokens as one expression and the units of its numbers; None if they are not."""
    expression: list[Token] = []
    units: list[str] = []
    open_to_unit = False
    for token in tokens:
        if token.kind == "word":
            if not open_to_unit:
                return None
            units.append(token.text)
            continue
        if open_to_unit and is_letter_of_unit(token, known):
            units.append(token.text)
            continue
        open_to_unit = token.kind in ("num", "close", "pct")
        expression.append(token)
    result, bare = evaluate(expression, known), evaluate(expression, known, percent=False)
    if result is None or bare is None:
        return None
    start, end = tokens[0].start, tokens[-1].end
    if start and text[start - 1] == "$":
        start -= 1
        units.append("dollars")
    return Side(start, end, result, bare, tuple(units), text=text[start:end])


def _may_be_bullet(text: str, sign: Token) -> bool:
    """Return whether a sign may be a list mark: first in its line, a space after it."""
    alone = sign.kind == "op" and text[sign.end : sign.end + 1].isspace()
    return alone and not text[text.rfind("\n", 0, sign.start) + 1 : sign.start].strip()


def _left_doubt(tokens: Sequence[Token], start: int, side: Side) -> str:
    """Return why an expression may begin before ``start``; "" if it does not."""
    before = tokens[start - 1] if start else None
    if not side.evaluation.operations and (
        side.units or (before is not None and before.kind == "word")
    ):
        return "it may be said of something else"
    for _ in range(2):
        if before is not None and before.kind == "word" and before.text.lower() in _DETERMINERS:
            start -= 1
            before = tokens[start - 1] if start else None
    if before is None:
        return ""
    if before.kind == "word" and before.text.lower() in _SPEAKS_LEFT:
        total = (
            before.text == "of" and start > 1 and tokens[start - 2].text.lower() in ("total", "sum")
        )
        return "" if total else f"{before.text!r} stands before it"
    cut = (
        before.kind == "open"
        and start > 1
        and tokens[start - 2].kind in ("op", "num", "name", "frac")
    )
    if cut or before.kind in ("num", "close", "name", "odd", "frac", "op"):
        return BELONGS_BEFORE
    inside = (
        before.kind == "stop"
        and start > 1
        and tokens[start - 2].kind == "num"
        and before.start == tokens[start - 2].end
    )
    return BELONGS_BEFORE if inside and before.end == tokens[start].start else ""


def _right_doubt(tokens: Sequence[Token], end: int) -> str:
    """Return why an expression may go on after ``end``; "" if it does not."""
    following = [t.text.lower() for t in tokens[end : end + 3] if t.kind in ("word", "name")]
    after = tokens[end] if end < len(tokens) else None
    spoken = next((word for word in following[:2] if word in SPEAKS_RIGHT), "")
    if after is None:
        return ""
    if (
        after.kind in ("word", "name")
        and spoken
        and not (following[0] == "and" and after.start > tokens[end - 1].end)
    ):
        return f"{spoken!r} stands after it"
    if after.kind == "op":
        dash = after.text == "-" and end + 1 < len(tokens) and tokens[end + 1].kind == "word"
        return "" if dash else "it goes on with what cannot be read"
    if (
        after.kind == "open"
        and end + 1 < len(tokens)
        and tokens[end + 1].text.lower() in ("mod", "modulo", "base")
    ):
        return "another arithmetic is meant"
    near = after.start == tokens[end - 1].end
    if after.kind in ("odd", "name", "open") and (near or after.kind != "open"):
        return "what stands after it may belong to it"
    exact = (
        after.kind == "stop" and near and end + 1 < len(tokens) and tokens[end + 1].kind == "num"
    )
    return (
        "what stands after it may belong to it"
        if exact and tokens[end + 1].start == after.end
        else ""
    )
