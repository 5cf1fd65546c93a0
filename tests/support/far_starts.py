"""Regular expressions whose search scans a run again from every start in it: ``\\s*x`` on blanks.

Such a search takes time in the square of the run. What counts is the reach of each attempt that a
search makes, in characters, on texts built from the expression's own pieces: no time is measured.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from re import _compiler, _parser  # type: ignore[attr-defined]
from re import _constants as codes  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from tests.support.ambiguity import characters_of

_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
_ENDINGS = ("", "\x00", " ", "a", "1")
"""Ends of the texts: what stops a run may let the rest match."""
_PLAIN = " a1.,(x$"
_MANY = 400
"""Repeats of at most so many count as bounded."""
_SIZES = (100, 200)
_FEW = 5
"""Bounded repeats are cut to so many, so that short texts tell them from the others."""
_SAMPLES = 8
Node = tuple[Any, Any]


class FarStart(NamedTuple):
    """A text on which the attempts of a search together reach in the square of its length."""

    unit: str
    """What is repeated."""
    ending: str
    """What stands behind the repeats."""


def far_start(pattern: re.Pattern[str]) -> FarStart | None:
    """Return a text whose search scans a run again from each start in it; None if none is found."""
    rng = random.Random(0)
    tree = _parser.parse(pattern.pattern, pattern.flags)
    _cut_bounds(tree)
    search = _compiler.compile(tree, pattern.flags)
    for nodes, alone in _prefixes(list(tree), tree.state, is_end=True):
        prefix = _compiler.compile(_parser.SubPattern(tree.state, nodes), pattern.flags)
        units = dict.fromkeys(
            unit for _ in range(_SAMPLES) for unit in _units(alone, pattern.flags, rng) if unit
        )
        for unit in units:
            for ending in _ENDINGS:
                short = _reach(search, prefix, unit, ending, _SIZES[0])
                if short < 5 * _SIZES[0]:
                    continue
                if _reach(search, prefix, unit, ending, _SIZES[1]) > 3 * short:
                    return FarStart(unit, ending)
    return None


def _reach(
    pattern: re.Pattern[str], prefix: re.Pattern[str], unit: str, ending: str, size: int
) -> int:
    """Return how many characters the attempts of a search read up to the end of the prefix."""
    text = unit * (size // len(unit)) + ending
    total = position = 0
    while position <= len(text):
        match = pattern.search(text, position)
        last = match.start() if match else len(text)
        for start in range(position, last):
            if attempt := prefix.match(text, start):
                total += attempt.end() - start
        if match is None:
            break
        if attempt := prefix.match(text, last):
            total += max(0, attempt.end() - match.end())
        position = match.end() + (match.end() == match.start())
    return total


class _Prefix(NamedTuple):
    """The nodes of an expression up to and with a repeat."""

    tried: list[Node]
    """With the alternatives that are tried before."""
    alone: list[Node]
    """Without them."""


def _prefixes(nodes: Sequence[Node], state: Any, *, is_end: bool) -> Iterator[_Prefix]:
    """Yield the nodes up to each repeat of no or a high bound, also of those in groups.

    Only at the end of an expression is it sure that earlier alternatives spare the later ones.
    """
    for i, (code, value) in enumerate(nodes):
        before, is_last = list(nodes[:i]), is_end and i == len(nodes) - 1
        if code in _REPEATS and value[1] > _MANY:
            repeat = [*before, (codes.MAX_REPEAT, value)]
            yield _Prefix(repeat, repeat)
        is_last = is_last and code in (codes.SUBPATTERN, codes.BRANCH)
        for k, inner in enumerate(_insides(code, value)):
            for tried, alone in _prefixes(list(inner), state, is_end=is_last):
                if code is codes.SUBPATTERN:  # its flags and its number
                    tried, alone = (
                        [(code, (*value[:3], _parser.SubPattern(state, part)))]
                        for part in (tried, alone)
                    )
                elif code is codes.BRANCH and is_last:
                    branches = [*value[1][:k], _parser.SubPattern(state, tried)]
                    tried = [(code, (value[0], branches))]
                yield _Prefix([*before, *tried], [*before, *alone])


def _cut_bounds(nodes: Any) -> None:
    for i, (code, value) in enumerate(nodes):
        for inner in _insides(code, value):
            _cut_bounds(inner)
        if code in _REPEATS and value[1] <= _MANY:
            nodes[i] = (code, (min(value[0], _FEW), min(value[1], _FEW), value[2]))


def _insides(code: Any, value: Any) -> list[Any]:
    """Return what a node holds, for a look ahead what it looks at."""
    if code in _REPEATS:
        return [value[2]]
    if code is codes.SUBPATTERN:
        return [value[3]]
    if code is codes.BRANCH:
        return list(value[1])
    if code is codes.ATOMIC_GROUP:
        return [value]
    if code in (codes.ASSERT, codes.ASSERT_NOT) and value[0] > 0:
        return [value[1]]
    return []


def _units(nodes: list[Node], flags: int, rng: random.Random) -> tuple[str, ...]:
    """Return texts that the last repeat, what is before it, and both match, for the most part."""
    repeated = _sample(list(nodes[-1:]), flags, rng)
    before = _sample(nodes[:-1], flags, rng)
    return repeated, before, before + repeated, repeated + before


def _sample(nodes: Sequence[Node], flags: int, rng: random.Random) -> str:
    text = ""
    for code, value in nodes:
        if code in _REPEATS:
            least, most, body = value
            for _ in range(min(most, max(least, rng.choice((least, 1, 2))))):
                text += _sample(list(body), flags, rng)
        elif code is codes.SUBPATTERN:
            text += _sample(list(value[3]), (flags | value[1]) & ~value[2], rng)
        elif code in (codes.BRANCH, codes.ATOMIC_GROUP):
            text += _sample(list(rng.choice(_insides(code, value))), flags, rng)
        elif (characters := characters_of((code, value), flags)) is not None:
            text += _character(sorted(characters), rng)
    return text


def _character(characters: list[str], rng: random.Random) -> str:
    plain = [character for character in characters if character in _PLAIN]
    return rng.choice(plain if plain and rng.random() < 0.7 else characters or [""])
