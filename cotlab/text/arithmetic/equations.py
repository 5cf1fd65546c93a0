"""The equations in a text, and whether they hold: 48 / 2 = 24 clips, A - B = -14 - 2 = -16, 3 + 4 is 7.

An equation is called false only where nothing speaks for another reading of it: a unit that may be
converted, a value that may be rounded, a percentage of something unsaid, a word such as "remainder"
beside it, a sentence that denies it. Then it is undecided. Bounded as
`cotlab.text.arithmetic.lexer` is, and never raises.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

from cotlab.text.arithmetic.equality import SPEAKS_RIGHT, Side, compare_sides
from cotlab.text.arithmetic.lexer import Token, evaluate, tokens_of


def _word_set(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


MAX_EQUATIONS, _MAX_UNIT_TOKENS, _WALK = 200, 4, 400
_ENDS_OPERAND = ("num", "close", "pct", "name", "word")
_BINDS = _word_set(
    "is are and or of the a an so then that which has have had she he it they we i you to from for"
    " in on at by with be was were if when as than because since but therefore thus hence while let"
    " let's calculate compute find get gets sum difference product ratio average mean"
)
"""Words that are no unit of the number before them."""
_SPEAKS_LEFT = _word_set(
    "of and or than from by between twice double triple half thrice mod log ln sin cos tan sqrt"
    " root exp max min gcd lcm choose to average mean product difference ratio remainder square"
    " cube squared cubed power minus plus times per base percent"
)
"""Words that, before an expression, may be a part of it."""
_DETERMINES = _word_set("the a an his her their its my our your these those another")
_DENIES = re.compile(
    r"(?i)\b(?:wrong|incorrect(?:ly)?|mistake|error|false|not|never|cannot|instead of|should"
    r" (?:be|have)|typo|contradiction)\b"
    r"|n['’]t\b|≠"
)
_PART = "what stands before it may belong to it"
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n")


@dataclass(frozen=True, slots=True)
class Equation:
    """One "left = right". ``holds`` is None where it cannot be told, and ``why`` says why.

    ``start`` and ``end`` are characters of the text; ``numbers`` the operands of what is computed
    in it, ``result`` the value of its right side, ``operations`` how many operators both sides
    have.
    """

    start: int
    end: int
    holds: bool | None
    reason: str
    numbers: tuple[Fraction, ...]
    result: Fraction | None
    operations: int
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """The equations of a text in order, and the values that it gives to letters ("A = 3 + 4 = 7").

    ``definitions`` are the statements that say what a letter is; they claim nothing that can be
    checked.
    """

    equations: tuple[Equation, ...]
    names: Mapping[str, Fraction]
    definitions: tuple[Equation, ...] = ()


def read_equations(text: str, known: Mapping[str, Fraction] | None = None) -> Reading:
    """Find and check the equations of a text.

    Parameters
    ----------
    text : str
        Prose, LaTeX or both; the first 20,000 characters and 200 equations are read.
    known : mapping of letter to value
        What earlier texts established; letters that are not in it make an equation undecided.

    Returns
    -------
    Reading
        A chain a = b = c is two equations. A statement that computes nothing ("x = 5", "5 km = 5000
        m") is undecided.
    """
    known = dict(known or {})
    tokens = _joined(tokens_of(text), known)
    positions = [i for i, t in enumerate(tokens) if t.kind in ("eq", "near", "says")][
        :MAX_EQUATIONS
    ]
    equations: list[Equation] = []
    names: dict[str, Fraction] = {}
    definitions: list[Equation] = []
    denied = _denied(text)
    chain: list[tuple[Side | None, Token | None]] = []
    for n, at in enumerate(positions):
        before = tokens[(positions[n - 1] + 1 if n else 0) : at]
        after = tokens[at + 1 : positions[n + 1] if n + 1 < len(positions) else len(tokens)]
        right, is_complete = _prefix(text, after, known)
        if not chain:
            chain.append((_suffix(text, before, known), None))
        chain.append((right, tokens[at]))
        if is_complete and n + 1 < len(positions):
            continue
        equations += _links(text, chain, denied)
        (first, _), (second, _), last = chain[0], chain[1], chain[-1][0]
        if first is not None and first.letter and second is not None and first.doubt != _PART:
            value = second.evaluation.value
            reason = "it says what a letter is"
            definitions.append(
                Equation(first.start, second.end, None, reason, (), value, 0, (first.letter,))
            )
            if (
                last is not None
                and last.evaluation.value is not None
                and not last.units
                and not last.doubt
            ):
                names[first.letter] = known[first.letter] = last.evaluation.value
        chain = []
    return Reading(tuple(equations), names, tuple(definitions))


def _joined(tokens: Sequence[Token], known: Mapping[str, Fraction]) -> list[Token]:
    """Tokens with "of" as times after a percentage or a fraction, "/ hour", "4 m" and "cm^2" with units, and "is" as "="
    between values only.
    """
    out: list[Token] = []
    past = 0
    for i, token in enumerate(tokens):
        after = tokens[i + 1] if i + 1 < len(tokens) else None
        last = out[-1] if out else None
        if i < past:
            continue
        if power := _power_of_unit(tokens, i, out):
            past = power
            out[-1] = out[-1]._replace(text=f"{out[-1].text}^2", end=tokens[power - 1].end)
            continue
        if (
            last is not None
            and _is_letter_of_unit(token, known)
            and (last.text == "per" or (last.kind == "num" and last.end < token.start))
        ):
            token = token._replace(kind="word")
        opens = after is not None and after.kind in ("num", "open", "frac")
        part = last is not None and (last.kind == "pct" or _is_fraction(out))
        if token.kind == "word" and token.text == "of" and opens and part:
            token = token._replace(kind="op", text="*")
        elif (
            token.kind == "op"
            and token.text == "/"
            and after is not None
            and last
            and (
                (after.kind == "word" and last.kind in ("num", "word", "pct"))
                or (_is_letter_of_unit(after, known) and last.kind == "word")
            )
        ):
            token = token._replace(kind="word", text="per")
        elif token.kind == "says" and not token.text.startswith("equal"):
            value = after is not None and (opens or (after.kind == "op" and after.text == "-"))
            if not (value and last is not None and last.kind in _ENDS_OPERAND):
                token = token._replace(kind="word")
        out.append(token)
    return out


def _power_of_unit(tokens: Sequence[Token], at: int, out: Sequence[Token]) -> int:
    """Where the exponent of the unit that stands last in ``out`` ends (5 cm^2, 5 cm^{2}); 0 where none is at ``at``."""
    if tokens[at].text != "^" or len(out) < 2 or not _is_unit(out[-1]):
        return 0
    if out[-2].kind not in ("num", "close", "pct") and out[-2].text != "per":
        return 0
    kinds = [token.kind for token in tokens[at + 1 : at + 4]]
    return at + 2 if kinds[:1] == ["num"] else at + 4 if kinds == ["open", "num", "close"] else 0


def _is_letter_of_unit(token: Token, known: Mapping[str, Fraction]) -> bool:
    return token.kind == "name" and token.text not in known and _unit_letter(token.text)


def _is_fraction(tokens: Sequence[Token]) -> bool:
    return (
        len(tokens) > 2
        and [t.kind for t in tokens[-3:]] == ["num", "op", "num"]
        and tokens[-2].text == "/"
    )


def _denied(text: str) -> list[tuple[int, int]]:
    """The sentences that deny something."""
    out, at = [], 0
    for cut in [*(m.end() for m in _SENTENCE.finditer(text)), len(text)]:
        if _DENIES.search(text, at, cut):
            out.append((at, cut))
        at = cut
    return out


def _is_unit(token: Token) -> bool:
    return token.kind == "word" and token.text.lower() not in _BINDS


def _opening(tokens: Sequence[Token]) -> dict[int, int]:
    """Which bracket belongs to which, both ways."""
    stack: list[int] = []
    pairs: dict[int, int] = {}
    for i, token in enumerate(tokens):
        if token.kind == "open":
            stack.append(i)
        elif token.kind == "close" and stack:
            j = stack.pop()
            pairs[i], pairs[j] = j, i
    return pairs


def _suffix(text: str, tokens: Sequence[Token], known: Mapping[str, Fraction]) -> Side | None:
    """The longest expression that the tokens end with; None where they end with none."""
    tokens = tokens[-_WALK:]
    pairs = _opening(tokens)
    pos, start = len(tokens) - 1, -1
    while pos >= 0:
        at = pos
        for _ in range(_MAX_UNIT_TOKENS):
            if at > 0 and _is_unit(tokens[at]):
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
            if last >= 0 and tokens[last].kind in _ENDS_OPERAND:
                if tokens[last].kind == "word" and not _is_unit(tokens[last]):
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
    side = _side(text, tokens[start:], known)
    if side is None:
        return None
    if (
        _may_be_bullet(text, tokens[start])
        and (listed := _side(text, tokens[start + 1 :], known)) is not None
    ):
        side = replace(side, bare=listed.evaluation)
    return replace(side, doubt=_left_doubt(tokens, start, side))


def _may_be_bullet(text: str, sign: Token) -> bool:
    """Whether a sign stands at the start of a line with a space after it, as the mark of a list does."""
    alone = sign.kind == "op" and text[sign.end : sign.end + 1].isspace()
    return alone and not text[text.rfind("\n", 0, sign.start) + 1 : sign.start].strip()


def _left_doubt(tokens: Sequence[Token], start: int, side: Side) -> str:
    before = tokens[start - 1] if start else None
    if not side.evaluation.operations and (
        side.units or (before is not None and before.kind == "word")
    ):
        return "it may be said of something else"
    for _ in range(2):
        if before is not None and before.kind == "word" and before.text.lower() in _DETERMINES:
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
        return _PART
    inside = (
        before.kind == "stop"
        and start > 1
        and tokens[start - 2].kind == "num"
        and before.start == tokens[start - 2].end
    )
    return _PART if inside and before.end == tokens[start].start else ""


def _prefix(
    text: str, tokens: Sequence[Token], known: Mapping[str, Fraction]
) -> tuple[Side | None, bool]:
    """The longest expression that the tokens begin with, and whether it is all of them."""
    tokens, cut = tokens[:_WALK], len(tokens) > _WALK
    pairs = _opening(tokens)
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
            if units < len(tokens) and _is_unit(tokens[units]):
                units += 1
        if units < len(tokens) and tokens[units].kind == "op":
            at = units + 1
            continue
        if units == len(tokens):
            end = units
        break
    if not end:
        return None, False
    side = _side(text, tokens[:end], known)
    if side is None:
        return None, end == len(tokens) and not cut
    followed = []
    for token in tokens[end : end + _MAX_UNIT_TOKENS]:
        if token.kind != "word":
            break
        followed.append(token.text)
    side = replace(side, doubt=_right_doubt(tokens, end), units=(*side.units, *followed))
    return side, end == len(tokens) and not cut


def _right_doubt(tokens: Sequence[Token], end: int) -> str:
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


def _side(text: str, tokens: Sequence[Token], known: Mapping[str, Fraction]) -> Side | None:
    """The expression that all of the tokens are, without the units of its numbers."""
    expression: list[Token] = []
    units: list[str] = []
    open_to_unit = False
    for token in tokens:
        if token.kind == "word":
            if not open_to_unit:
                return None
            units.append(token.text)
            continue
        if open_to_unit and _is_letter_of_unit(token, known):
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


def _unit_letter(letter: str) -> bool:
    return letter in ("m", "g", "l", "L", "s", "h")


def _links(
    text: str, chain: Sequence[tuple[Side | None, Token | None]], denied: Sequence[tuple[int, int]]
) -> list[Equation]:
    """The equations of one chain a = b = c, lone letters left out."""
    sides = [(side, sign) for side, sign in chain if side is None or not side.letter]
    out = []
    for (left, _), (right, sign) in pairwise(sides):
        if left is None or right is None or sign is None:
            continue
        holds, reason = compare_sides(left, right, sign)
        if holds is False and any(a <= left.start < b for a, b in denied):
            holds, reason = None, "its sentence denies something"
        numbers = (
            *(left.evaluation.numbers if left.evaluation.operations else ()),
            *(right.evaluation.numbers if right.evaluation.operations else ()),
        )
        names = tuple(dict.fromkeys((*left.evaluation.names, *right.evaluation.names)))
        out.append(
            Equation(
                left.start,
                right.end,
                holds,
                reason,
                numbers,
                right.evaluation.value,
                left.evaluation.operations + right.evaluation.operations,
                names,
            )
        )
    return out
