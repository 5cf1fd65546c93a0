r"""Sets of real numbers that answers write as inequalities or intervals, compared as sets.

``x < -1 or x > 4`` is ``(-\infty, -1) \cup (4, \infty)`` and ``|x| < 3`` is ``-3 < x < 3``. Bounds
are numbers; what has a letter as a bound, two letters, or "and" between sets without a common
number is no set here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from cotlab.text.answers.formula_values import compare_reals, real_value
from cotlab.text.answers.formulas import read_formula
from cotlab.text.answers.notation import split_items

_MAX_CHARACTERS, _MAX_PIECES = 300, 12
_SIGN_REPLACEMENTS = (
    ("<=", "≤"),
    (">=", "≥"),
    ("=<", "≤"),
    ("=>", "≥"),
    ("!=", "≠"),
    ("\\cup", "∪"),
    ("\\lor", " or "),
    ("\\vee", " or "),
    ("∨", " or "),
    ("\\land", " and "),
    ("\\wedge", " and "),
    ("∧", " and "),
    ("\\in ", "∈"),
    ("\\mathbb{R}", "ℝ"),
    ("\\mathbb R", "ℝ"),
    ("\\infty", "∞"),
)
_UNION_RE = re.compile(r"(?:(?<!\s)\s+)?(?:∪|,?\s\bor\b(?:\selse)?)\s*")
_TOGETHER_RE = re.compile(r",?(?<!\s)\s+(?:and|but)\s+")
# "x ∈ " of "x ∈ (2, 5]", "x is in "
_MEMBER_RE = re.compile(r"([A-Za-z])\s?(?:∈|(?:is\s)?in\b)\s*")
# "[-2, 3)", "]-2, 3["
_INTERVAL_RE = re.compile(r"([\[(\]])([^,;\[\]]{1,60})[,;]([^,;\[\]]{1,60})([\])\[])")
_POINTS_RE = re.compile(r"\\?\{([^{}]{1,100})\}")
_COMPARISON_RE = re.compile(r"[<>≤≥≠=]")
_LETTER_RE = re.compile(r"[A-Za-df-hj-z]")
# "|x - 2|", "|2x + 1|", "abs(x)"
_ABSOLUTE_RE = re.compile(r"\|([^|]{1,40})\||abs\(([^()]{1,40})\)")
# "2x - 3", "x", "x + 1/2"
_LINEAR_RE = re.compile(r"(\d{0,6})\s?\*?\s?([A-Za-df-hj-z])(?:\s?([+-])\s?([^|]{1,30}))?")
_REVERSED = {"<": ">", ">": "<", "≤": "≥", "≥": "≤", "=": "=", "≠": "≠"}
# "all real numbers", "all real x"
_ALL_RE = re.compile(
    r"(?i)(?:all|any|every) reals?(?: (?:numbers?|values?))?(?: (?:of )?[a-z])?|ℝ|R"
)


# "{x ∈ ℝ | x < 3}"
_BUILDER_RE = re.compile(
    r"\\?\{\s?([A-Za-z])\s?∈\s?[ℝR]\s?(?:\||:|\\mid\b)\s?([^{}]{1,200}?)\s?\\?\}"
)
# "ℝ \\ {3}", "all real numbers except 3"
_ALL_BUT_RE = re.compile(
    r"[ℝR]\s?(?:\\setminus|\\backslash|-|\\|∖)\s?\\?\{([^{}\\]{1,60})\\?\}"
    r"|(?i:(?:all|any|every) real (?:numbers?|values?)(?: of)?(?: [a-z])?,?"
    r" (?:except|excluding|other than)(?: for)?)\s([^≠]{1,60})"
)


class _Piece(NamedTuple):
    """An interval; a bound that is None is infinite, a point is closed on both sides."""

    low: Any
    has_low: bool
    high: Any
    has_high: bool


RealSet = tuple[_Piece, ...]


class ReadSet(NamedTuple):
    """A set of real numbers as it was written."""

    pieces: RealSet
    """Its intervals in order, none touching the next."""
    letter: str
    """The letter of its inequalities; "" where it has none."""
    is_bare: bool
    """Whether it is written as one pair of brackets, as a point or a list may be."""


def same_real_set(first_text: str, second_text: str) -> bool | None:
    """Return whether two texts are the same set; None unless one has a sign of a set."""
    first, second = read_real_set(first_text), read_real_set(second_text)
    if first is None or second is None or (first.is_bare and second.is_bare):
        return None
    if first.letter and second.letter and first.letter != second.letter:
        return False
    return len(first.pieces) == len(second.pieces) and all(
        _same_bound(x.low, y.low)
        and _same_bound(x.high, y.high)
        and (x.has_low, x.has_high) == (y.has_low, y.has_high)
        for x, y in zip(first.pieces, second.pieces, strict=True)
    )


@lru_cache(2048)
def read_real_set(text: str) -> ReadSet | None:
    """Read inequalities of one letter, intervals and their unions; None for other text."""
    if not 0 < len(text) <= _MAX_CHARACTERS:
        return None
    for sign, replacement in _SIGN_REPLACEMENTS:
        text = text.replace(sign, replacement)
    text = text.strip()
    letters: set[str] = set()
    if builder := _BUILDER_RE.fullmatch(text):
        letters.add(builder[1])
        text = builder[2].strip(" \\")
    is_all_but = _ALL_BUT_RE.fullmatch(text)
    if is_all_but:
        excluded = split_items(next(group for group in is_all_but.groups() if group))
        text = " and ".join(f"x ≠ {item.rpartition('=')[2]}" for item in excluded)
    if not re.search(r"[<>≤≥≠∪∞∈ℝ\[\]]|\bor\b|\breal", text) and not _INTERVAL_RE.fullmatch(text):
        return None
    parts = _UNION_RE.split(text)
    pieces: list[_Piece] = []
    if len(parts) > _MAX_PIECES:
        return None
    if member := _MEMBER_RE.match(parts[0]):
        letters.add(member[1])
    for part in parts:
        read = _read_part(part.strip(), letters)
        if read is None:
            return None
        pieces += read
    if len(letters) > 1 or not pieces:
        return None
    is_points = all(piece.low is not None and piece.low is piece.high for piece in pieces)
    if is_points:
        return None  # numbers, which are compared as a list
    is_bare = bool(_INTERVAL_RE.fullmatch(text)) and "∞" not in text and text[0] != "]"
    if is_all_but:
        letters.clear()
    merged = _merged(pieces)
    return None if merged is None else ReadSet(merged, "".join(letters), is_bare)


def _read_part(part: str, letters: set[str]) -> list[_Piece] | None:
    """Read what stands between two "or": inequalities that hold together, or an interval."""
    if member := _MEMBER_RE.match(part):
        letters.add(member[1])
        part = part[member.end() :]
    if _ALL_RE.fullmatch(part):
        return [_Piece(None, False, None, False)]
    if interval := _INTERVAL_RE.fullmatch(part):
        return _interval(*interval.groups())
    if points := _POINTS_RE.fullmatch(part):
        values = [_bound(item.strip()) for item in split_items(points[1].rstrip("\\"))]
        if not values or any(value is None or _is_infinite(value) for value in values):
            return None
        return [_Piece(value, True, value, True) for value in values]
    conjuncts = _TOGETHER_RE.split(part)
    is_listed = len(conjuncts) == 1 and "," in part
    if is_listed:
        conjuncts = part.split(",")
    if len(conjuncts) > 4:
        return None
    sets = [_read_inequality(conjunct.strip(), letters) for conjunct in conjuncts]
    read_sets = [pieces for pieces in sets if pieces is not None]
    if len(read_sets) < len(sets):
        return None
    common = read_sets[0]
    for pieces in read_sets[1:]:
        common = [both for x in common for y in pieces for both in _intersection(x, y)]
    if not common:  # "x < -1, x > 4": none has both
        return [piece for pieces in read_sets for piece in pieces] if is_listed else None
    return common


def _read_inequality(text: str, letters: set[str]) -> list[_Piece] | None:
    """Read "x < 5", "-2 ≤ x < 3", "|x - 1| > 2", "x ≠ 4" or "x = 4"."""
    signs = _COMPARISON_RE.findall(text)
    sides = [side.strip() for side in _COMPARISON_RE.split(text)]
    if len(signs) not in (1, 2) or not all(sides):
        return None
    if len(signs) == 2:
        return _read_chain(sides, signs, letters)
    sign = signs[0]
    left, right = sides
    if not (_LETTER_RE.fullmatch(left) or _ABSOLUTE_RE.fullmatch(left)):
        left, right, sign = right, left, _REVERSED[sign]
    bound = _bound(right)
    if bound is None or _is_infinite(bound):
        return None
    if absolute := _ABSOLUTE_RE.fullmatch(left):
        return _read_absolute(absolute[1] or absolute[2], sign, right, letters)
    if not _LETTER_RE.fullmatch(left):
        return None
    letters.add(left)
    return _ray(bound, sign)


def _read_chain(sides: list[str], signs: list[str], letters: set[str]) -> list[_Piece] | None:
    """Read "-2 ≤ x < 3"."""
    low, letter, high = sides
    if not _LETTER_RE.fullmatch(letter):
        return None
    if set(signs) <= {">", "≥"}:
        low, high, signs = high, low, [_REVERSED[sign] for sign in reversed(signs)]
    if not set(signs) <= {"<", "≤"}:
        return None
    letters.add(letter)
    opening, closing = "[" if signs[0] == "≤" else "(", "]" if signs[1] == "≤" else ")"
    return _interval(opening, low, high, closing)


def _read_absolute(
    inside: str, sign: str, size_text: str, letters: set[str]
) -> list[_Piece] | None:
    """Read what ``|2x - 3| < 5`` says of x."""
    linear, size = _LINEAR_RE.fullmatch(inside.strip()), _bound(size_text)
    if linear is None or size is None or compare_reals(size, real_zero()) <= 0:
        return None
    factor, letter, operation, shift = linear.groups()
    factor = factor or "1"
    if not int(factor):
        return None
    minus = f"({operation}({shift}))" if shift else "0"
    low = _bound(
        f"(-({size_text}) - ({minus}))/{factor}" if shift else f"(-({size_text}))/{factor}"
    )
    high = _bound(f"(({size_text}) - ({minus}))/{factor}" if shift else f"({size_text})/{factor}")
    if low is None or high is None:
        return None
    letters.add(letter)
    if sign in "<≤":
        return [_Piece(low, sign == "≤", high, sign == "≤")]
    if sign in ">≥":
        is_closed = sign == "≥"
        return [_Piece(None, False, low, is_closed), _Piece(high, is_closed, None, False)]
    return None


def _ray(bound: Any, sign: str) -> list[_Piece]:
    """Return the numbers x of "x SIGN bound"."""
    if sign == "=":
        return [_Piece(bound, True, bound, True)]
    below, above = _Piece(None, False, bound, sign == "≤"), _Piece(bound, sign == "≥", None, False)
    if sign == "≠":
        return [below, above]
    return [below] if sign in "<≤" else [above]


def _interval(opening: str, low_text: str, high_text: str, closing: str) -> list[_Piece] | None:
    """Return an interval between two numbers, the lower first."""
    low, high = _bound(low_text.strip()), _bound(high_text.strip())
    if low is None or high is None:
        return None
    has_low, has_high = opening == "[", closing == "]"
    low_end = None if low == "-∞" else low
    high_end = None if high == "∞" else high
    if (_is_infinite(low) and low_end is not None) or (_is_infinite(high) and high_end is not None):
        return None
    if (low_end is None and has_low) or (high_end is None and has_high):
        return None
    if low_end is not None and high_end is not None and compare_reals(low_end, high_end) >= 0:
        return None
    return [_Piece(low_end, has_low, high_end, has_high)]


def _bound(text: str) -> Any:
    """Return the real number that a text is, "∞" or "-∞"; None for other text."""
    compact = text.replace(" ", "")
    if compact.lower() in ("∞", "+∞", "inf", "infinity", "+infinity", "+inf"):
        return "∞"
    if compact.lower() in ("-∞", "-inf", "-infinity"):
        return "-∞"
    formula = read_formula(text)
    return real_value(formula) if formula and not formula.unit else None


def real_zero() -> Any:
    """Return 0 as a bound."""
    return _bound("0")


def _is_infinite(bound: Any) -> bool:
    return isinstance(bound, str)


def _same_bound(x: Any, y: Any) -> bool:
    return x is y if x is None or y is None else compare_reals(x, y) == 0


def _lower(x: _Piece, y: _Piece) -> int:
    """Return -1, 0 or 1 as one interval begins before, with or after another."""
    if x.low is None or y.low is None:
        return (y.low is None) - (x.low is None)
    return compare_reals(x.low, y.low) or int(y.has_low) - int(x.has_low)


def _higher(x: _Piece, y: _Piece) -> int:
    """Return -1, 0 or 1 as one interval ends before, with or after another."""
    if x.high is None or y.high is None:
        return (x.high is None) - (y.high is None)
    return compare_reals(x.high, y.high) or int(x.has_high) - int(y.has_high)


def _intersection(x: _Piece, y: _Piece) -> list[_Piece]:
    """Return what two intervals share; nothing or one interval."""
    start, end = (x if _lower(x, y) >= 0 else y), (x if _higher(x, y) <= 0 else y)
    if start.low is not None and end.high is not None:
        order = compare_reals(start.low, end.high)
        if order > 0 or (order == 0 and not (start.has_low and end.has_high)):
            return []
    return [_Piece(start.low, start.has_low, end.high, end.has_high)]


def _merged(pieces: Sequence[_Piece]) -> RealSet | None:
    """Return intervals in order, those that touch joined."""
    if len(pieces) > 4 * _MAX_PIECES:
        return None
    ordered: list[_Piece] = []
    for piece in pieces:  # few pieces: insertion
        position = next((i for i, x in enumerate(ordered) if _lower(piece, x) < 0), len(ordered))
        ordered.insert(position, piece)
    merged = ordered[:1]
    for piece in ordered[1:]:
        last = merged[-1]
        is_inside = last.high is None or piece.low is None
        order = -1 if is_inside else compare_reals(piece.low, last.high)
        if order > 0 or (order == 0 and not (piece.has_low or last.has_high)):
            merged.append(piece)
        elif _higher(piece, last) > 0:
            merged[-1] = _Piece(last.low, last.has_low, piece.high, piece.has_high)
    return tuple(merged)
