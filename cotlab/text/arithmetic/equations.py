"""Equations in a text, and whether they hold: 48 / 2 = 24 clips, A - B = -14 - 2 = -16, 3 + 4 is 7.

An equation is false only if no other reading is possible. It is undecided if a unit may be
converted, a value rounded or a percentage taken of something unnamed, if a word such as "remainder"
is next to it, or if its sentence denies something. The work is bounded as in
`cotlab.text.arithmetic.lexer`; nothing raises.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from cotlab.text.answers.quantities import read_quantity, same_quantity
from cotlab.text.arithmetic.lexer import Token, tokens_of
from cotlab.text.arithmetic.sides import (
    BELONGS_BEFORE,
    ENDS_OPERAND,
    SPEAKS_RIGHT,
    Side,
    is_letter_of_unit,
    is_unit,
    left_side,
    right_side,
)

MAX_EQUATIONS = 200
# "is wrong", "should be", "doesn't"
_DENIES = re.compile(
    r"(?i)\b(?:wrong|incorrect(?:ly)?|mistake|error|false|not|never|cannot|instead of"
    r"|should (?:be|have)|typo|contradiction)\b"
    r"|n['’]t\b|≠"
)
# " " of "He has 3. She has 4"
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n")
# "2024-03-05", "3/5/2024"
_DATE = re.compile(
    r"(?<![\d-])(?:19|20)\d\d-(?:0\d|1[0-2])-[0-3]\d(?![\d-])"
    r"|(?<![\d/])\d\d?/\d\d?/(?:19|20)\d\d(?![\d/])"
)
# "1.080", "1.080.000": a dot that may mark thousands
_DOTTED = re.compile(r"(?<![\d.])[1-9]\d{0,2}(?:\.\d{3})+(?!\d)")
# "0.5", ".5", "1.08": a dot that marks decimals
_OTHER_DOT = re.compile(r"(?<!\d)0?\.\d|\.(?!\d{3}(?!\d))\d")
# "plus" of "7 plus 5"
_SPELLED_OPERATOR = re.compile(r"divided|multiplied|plus|minus|times")


@dataclass(frozen=True, slots=True)
class Equation:
    """One "left = right" of a text."""

    start: int
    """First character of the text."""
    end: int
    holds: bool | None
    """None if undecided."""
    reason: str
    """Why it is undecided."""
    numbers: tuple[Fraction, ...]
    """Operands of the sides that compute something."""
    result: Fraction | None
    """Value of the right side."""
    operations: int
    """Number of operators of both sides."""
    names: tuple[str, ...] = ()
    """Letters of both sides."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The equations of a text."""

    equations: tuple[Equation, ...]
    """In order."""
    names: Mapping[str, Fraction]
    """Values that the text gives to letters: "A = 3 + 4 = 7"."""
    definitions: tuple[Equation, ...] = ()
    """Statements that define a letter; there is nothing to check in them."""


def read_equations(text: str, known: Mapping[str, Fraction] | None = None) -> Reading:
    """Find and check the equations of a text.

    Parameters
    ----------
    text : str
        Prose, LaTeX or both; the first 20,000 characters and 200 equations are read.
    known : mapping of letter to value
        Values from earlier texts; any other letter makes an equation undecided.

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
        right, is_complete = right_side(text, after, known)
        if not chain:
            chain.append((left_side(text, before, known), None))
        chain.append((right, tokens[at]))
        if is_complete and n + 1 < len(positions):
            continue
        equations += _links(text, chain, denied)
        (first, _), (second, _), last = chain[0], chain[1], chain[-1][0]
        if (
            first is not None
            and first.letter
            and second is not None
            and first.doubt != BELONGS_BEFORE
        ):
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
    """Resolve tokens that depend on their neighbours.

    "of" is times after a percentage or a fraction; "/ hour", "4 m" and "cm^2" have units; "is" is
    "=" only between values.
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
            and is_letter_of_unit(token, known)
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
                or (is_letter_of_unit(after, known) and last.kind == "word")
            )
        ):
            token = token._replace(kind="word", text="per")
        elif token.kind == "says" and not token.text.startswith("equal"):
            value = after is not None and (opens or (after.kind == "op" and after.text == "-"))
            if not (value and last is not None and last.kind in ENDS_OPERAND):
                token = token._replace(kind="word")
        out.append(token)
    return out


def _power_of_unit(tokens: Sequence[Token], at: int, out: Sequence[Token]) -> int:
    """Return the end of the exponent at ``at`` of the unit before it (5 cm^2, 5 cm^{2}), or 0."""
    if tokens[at].text != "^" or len(out) < 2 or not is_unit(out[-1]):
        return 0
    if out[-2].kind not in ("num", "close", "pct") and out[-2].text != "per":
        return 0
    kinds = [token.kind for token in tokens[at + 1 : at + 4]]
    return at + 2 if kinds[:1] == ["num"] else at + 4 if kinds == ["open", "num", "close"] else 0


def _is_fraction(tokens: Sequence[Token]) -> bool:
    """Return whether the tokens end with a fraction such as 3/4."""
    return (
        len(tokens) > 2
        and [t.kind for t in tokens[-3:]] == ["num", "op", "num"]
        and tokens[-2].text == "/"
    )


def _denied(text: str) -> list[tuple[int, int]]:
    """Return the ranges of the sentences that deny something."""
    out, at = [], 0
    for cut in [*(m.end() for m in _SENTENCE.finditer(text)), len(text)]:
        if _DENIES.search(text, at, cut):
            out.append((at, cut))
        at = cut
    return out


def _links(
    text: str, chain: Sequence[tuple[Side | None, Token | None]], denied: Sequence[tuple[int, int]]
) -> list[Equation]:
    """Return the equations of one chain a = b = c, without single letters."""
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


def compare_sides(left: Side, right: Side, sign: Token) -> tuple[bool | None, str]:
    """Return whether two sides are equal, or None with the reason why it is undecided."""
    a, b = left.evaluation.value, right.evaluation.value
    if a is None or b is None:
        letters = [name for side in (left, right) for name in side.evaluation.names]
        return (
            None,
            (
                f"the value of {letters[0]} is not known"
                if letters
                else "it has no value that can be computed"
            ),
        )
    operations = left.evaluation.operations + right.evaluation.operations
    if not operations:
        left_quantity, right_quantity = (
            read_quantity(f"{side.text} {' '.join(side.units)}") for side in (left, right)
        )
        if (
            left_quantity is not None
            and right_quantity is not None
            and left_quantity.units
            and right_quantity.units
            and same_quantity(left_quantity, right_quantity)
        ):
            return True, ""
        same = a == b and not left.units and not right.units and not left.doubt and not right.doubt
        return (True, "") if same else (None, "it computes nothing")
    if sign.kind == "says" and not sign.text.startswith("equal") and not left.evaluation.operations:
        return None, "it computes nothing"
    if (
        sign.kind == "says"
        and left.evaluation.operations == 1
        and left.evaluation.divides
        and " " not in left.text
    ):
        return (True, "") if a == b else (None, "a share may be said to be an amount")
    readings = {
        (x, y)
        for x in (a, left.bare.value)
        for y in (b, right.bare.value)
        if x is not None and y is not None
    }
    if any(_adds_units(side) for side in (left, right)):
        return None, "units that may be converted"
    if any(x == y for x, y in readings) or any(
        _rounds(x, y, left, right, sign) for x, y in readings
    ):
        return True, ""
    doubt = left.doubt or right.doubt or _doubt(a, b, left, right)
    return (None, doubt) if doubt else (False, "")


def _rounds(a: Fraction, b: Fraction, left: Side, right: Side, sign: Token) -> bool:
    """Return whether one value is the other one, truncated or rounded to its decimals."""
    for exact, rounded, side in ((a, b, right), (b, a, left)):
        last = Fraction(1, 10**side.evaluation.decimals)
        is_truncated = (
            abs(exact) >= abs(rounded) and exact * rounded >= 0 and abs(exact - rounded) < last
        )
        if (
            not side.evaluation.operations
            and side.evaluation.decimals
            and (is_truncated or 2 * abs(exact - rounded) <= last)
        ):
            return True
    return sign.kind == "near" and abs(a - b) <= Fraction(1, 20) * max(abs(a), abs(b))


def _doubt(a: Fraction, b: Fraction, left: Side, right: Side) -> str:
    """Return why two unequal values may still be meant to be equal; "" if they cannot."""
    if any(
        side.evaluation.percent and re.search(r"[+−/-]|plus|minus", side.text)
        for side in (left, right)
    ):
        return "a percentage of something that is not said"
    if any(len(unit.partition("^")[0]) == 1 for unit in (*left.units, *right.units)):
        return "a letter may be a unit or a value"
    if any(_DATE.search(side.text) for side in (left, right)):
        return "it may be a date"
    if not any(re.search(_OTHER_DOT, side.text) for side in (left, right)) and _DOTTED.search(
        left.text + right.text
    ):
        return "a dot may mark thousands"
    if (
        right.evaluation.operations
        and _SPELLED_OPERATOR.search(right.text)
        and not _SPELLED_OPERATOR.search(left.text)
    ):
        return "it goes on in words"
    if any(re.search(r"\d\s+/\s+\d+\s?/\s?\d", side.text) for side in (left, right)):
        return "a fraction of fractions without brackets"
    if _converts((*left.units, *right.units)):
        return "units that may be converted"
    broken = a.denominator > 1 or b.denominator > 1
    near = abs(a - b) < Fraction(1, 100) * max(abs(a), abs(b)) and (
        broken or left.evaluation.divides or right.evaluation.divides
    )
    has_integer = any(
        not side.evaluation.operations and not side.evaluation.decimals for side in (left, right)
    )
    if near or (broken and has_integer and abs(a - b) < 1):
        return "a value that may be rounded"
    return ""


def _adds_units(side: Side) -> bool:
    """Return whether a sum mixes units of one dimension: 2 hours + 30 minutes."""
    plain = bool(side.evaluation.operations) and not re.search(
        r"[*/×·∙⋅÷^]|\bx\b|times|by\b|frac|of\b", side.text
    )
    return plain and _differ_in_size(side.units)


def _converts(unit_names: Sequence[str]) -> bool:
    """Return whether two units share a dimension but not a size, or a word is a number."""
    return any(word.lower().strip(".") in SPEAKS_RIGHT for word in unit_names) or _differ_in_size(
        unit_names
    )


def _differ_in_size(unit_names: Sequence[str]) -> bool:
    """Return whether two neighbouring units have one dimension and different sizes."""
    readings = [
        read_quantity(f"1 {word}")
        for word in dict.fromkeys(word.lower().strip(".") for word in unit_names)
    ]
    units = [quantity for quantity in readings if quantity is not None and quantity.units]
    return any(
        u[0] == v[0] and u[1] != v[1] for x, y in pairwise(units) for u in x.units for v in y.units
    )
