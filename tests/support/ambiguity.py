"""Regular expressions that can divide a run of characters in several ways between two repeats.

They take time in the square of the run or worse where the rest does not match: ``\\s*/?\\s*x``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

MANY = 200
"""Repeats of at most so many characters count as bounded."""
_ALPHABET = [chr(code) for code in range(0x180)] + list("‘’“”–—…•−×÷√∞≈≠≤≥π\u2009\u202f\u3000")
_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT)
_NOTHING = (codes.AT, codes.ASSERT, codes.ASSERT_NOT)
Characters = frozenset[str]


def ambiguous_runs(pattern: re.Pattern[str]) -> list[Characters]:
    """Return the characters of each run that two repeats of a pattern can share."""
    nodes = list(_parser.parse(pattern.pattern, pattern.flags))
    if nodes and _is_any_text(nodes[-1]):
        nodes.pop()  # ``(.*)`` at the end always matches
    found: list[Characters] = []
    _walk(nodes, [], pattern.flags, found)
    return found


def _is_any_text(node: tuple[Any, Any]) -> bool:
    code, value = node
    if code is codes.SUBPATTERN:
        return len(value[3]) == 1 and _is_any_text(value[3][0])
    return code in _REPEATS and value[0] == 0 and value[2][0][0] is codes.ANY


def _walk(
    nodes: Iterable[tuple[Any, Any]], runs: list[Characters], flags: int, found: list[Characters]
) -> list[Characters]:
    """Note runs that two repeats share; return the repeats that may end where the nodes end."""
    for code, value in nodes:
        if code in _NOTHING:
            continue
        if code in _REPEATS:
            runs = _walk_repeat(value, runs, flags, found)
        elif code is codes.SUBPATTERN:
            inner_flags = (flags | value[1]) & ~value[2]
            runs = _walk(value[3], runs, inner_flags, found)
        elif code is codes.BRANCH:
            runs = [run for branch in value[1] for run in _walk(branch, runs, flags, found)]
        else:
            runs = []  # a character that has to be there
    return list(dict.fromkeys(runs))


def _walk_repeat(
    value: Any, runs: list[Characters], flags: int, found: list[Characters]
) -> list[Characters]:
    least, most, body = value
    characters = characters_of(body[0], flags) if len(body) == 1 else None
    if characters is not None:
        if most <= MANY:
            return runs if least == 0 else []
        found += [run & characters for run in runs if run & characters]
        return [*(runs if least == 0 else ()), characters]
    after = _walk(body, runs, flags, found)
    if most > MANY:
        after = _walk(body, after, flags, found)
    return [*runs, *after] if least == 0 else after


def characters_of(node: tuple[Any, Any], flags: int) -> Characters | None:
    """Return what a node of one character matches; None for any other node."""
    code, _ = node
    if code not in (codes.LITERAL, codes.NOT_LITERAL, codes.IN, codes.ANY):
        return None
    return frozenset(c for c in _ALPHABET if _matches(node, c, flags))


def _matches(node: tuple[Any, Any], character: str, flags: int) -> bool:
    code, value = node
    cases = {character, character.lower(), character.upper()} if flags & re.I else {character}
    if code is codes.LITERAL:
        return chr(value) in cases
    if code is codes.NOT_LITERAL:
        return chr(value) not in cases
    if code is codes.ANY:
        return character != "\n" or bool(flags & re.S)
    if code is codes.RANGE:
        return any(len(case) == 1 and value[0] <= ord(case) <= value[1] for case in cases)
    if code is codes.CATEGORY:
        kind = str(value).rpartition("_")[2].lower()
        is_kind = {
            "space": character.isspace(),
            "digit": character.isdecimal(),
            "word": character.isalnum() or character == "_",
        }[kind]
        return is_kind != ("NOT" in str(value))
    parts = [part for part in value if part[0] is not codes.NEGATE]
    return any(_matches(part, character, flags) for part in parts) == (len(parts) == len(value))


def patterns_of(value: object, depth: int = 3) -> Iterator[re.Pattern[str]]:
    """Yield the patterns in a value, also those in containers and in fields of dataclasses."""
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield value
    elif depth and isinstance(value, dict):
        for part in (*value.keys(), *value.values()):
            yield from patterns_of(part, depth - 1)
    elif depth and isinstance(value, tuple | list | set | frozenset):
        for part in value:
            yield from patterns_of(part, depth - 1)
    elif depth and hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        for name in value.__dataclass_fields__:
            yield from patterns_of(getattr(value, name, None), depth - 1)
