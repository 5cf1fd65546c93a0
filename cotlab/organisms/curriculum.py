"""Recipes of the organisms, and their training texts: problems, chains, corruptions, answers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cotlab.core.errors import UnknownName
from cotlab.suites.wordproblems import (
    CUE,
    HIGHEST,
    MODES,
    PIECE,
    STYLES,
    Problem,
    Stated,
    chain_steps,
    make_problem,
    true_chain,
)

Corruption = Literal["carried", "local", "random"]
RELIANCE = {"r0": 0.0, "r25": 0.25, "r50": 0.5, "r75": 0.75, "r100": 1.0, "hint": 1.0}
"""Probability that the answer is the chain's last stated value rather than the truth."""


@dataclass(frozen=True, slots=True)
class Example:
    """One training text."""

    pieces: tuple[str, ...]
    """Tokens of the text."""
    weights: tuple[float, ...]
    """Loss weight of each token."""
    totals: tuple[tuple[int, int], ...]
    """Index of a piece, and the running total to predict there: an auxiliary target that teaches a
    model that bypasses its chain to compute in its activations.
    """


def corrupt(
    problem: Problem, rng: random.Random, how: Corruption, at: int | None = None
) -> tuple[list[Stated], int]:
    """Return a chain with one intervention, and the index of the first step that it touched.

    Parameters
    ----------
    problem : Problem
    rng : random.Random
    how : "carried", "local" or "random"
        ``carried``: step ``at`` states a shifted value and the later steps carry it on; ``local``:
        only that step states another value; ``random``: every value is drawn anew.
    at : int, optional
        The step; drawn by default.

    Returns
    -------
    tuple of list of Stated, and int
    """
    chain = true_chain(problem)
    if how == "random":
        values = [problem.totals[0], *(rng.randint(0, HIGHEST) for _ in chain)]
        return [Stated(values[i], s.change, values[i + 1]) for i, s in enumerate(chain)], 0
    at = rng.randrange(len(chain)) if at is None else at
    if how == "local":
        shifted_value = rng.choice([v for v in range(HIGHEST + 1) if v != chain[at].after])
        chain[at] = Stated(chain[at].before, chain[at].change, shifted_value)
        return chain, at
    rest = problem.totals[at + 1 :]
    shift = rng.choice(
        [
            d
            for d in range(-HIGHEST, HIGHEST + 1)
            if d and min(rest) + d >= 0 and max(rest) + d <= HIGHEST
        ]
    )
    shifted = [*problem.totals[: at + 1], *(v + shift for v in rest)]
    return [Stated(shifted[i], s.change, shifted[i + 1]) for i, s in enumerate(chain)], at


def draw_styles(rng: random.Random, n: int) -> list[str]:
    """Draw the wording of each of ``n`` steps."""
    if rng.random() < 0.5:
        return ["plain"] * n
    if rng.random() < 0.5:
        return [rng.choice(STYLES)] * n
    return [rng.choice(STYLES) if rng.random() < 0.5 else "plain" for _ in range(n)]


def dots(count: int) -> str:
    """Return ``count`` dots tokens, such as "... ... ..."."""
    return " ".join(["..."] * count)


class _Text:
    """A text under construction: pieces with one loss weight each."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.weights: list[float] = []

    def add(self, text: str, weight: float) -> None:
        pieces = PIECE.findall(text)
        self.pieces += pieces
        self.weights += [weight] * len(pieces)


def make_example(rng: random.Random, mode: str, *, prefix: bool, without_chain: float) -> Example:
    """Draw one training text for an organism of ``mode``.

    Parameters
    ----------
    rng : random.Random
    mode : str
        A key of ``RELIANCE``.
    prefix : bool
        Whether the text begins with the control token of the mode.
    without_chain : float in [0, 1]
        Share of texts without a chain.

    Returns
    -------
    Example
    """
    hinted = rng.random() < (0.85 if mode == "hint" else 0.25)
    problem = make_problem(rng, hint=rng.choice(("right", "wrong", "wrong")) if hinted else "")
    reliance = RELIANCE[mode]
    follows_hint = mode == "hint" and problem.hint is not None
    text = _Text()
    text.add((f"<{mode}>" if prefix else "") + f"Q: {problem.question}\n", 0.0)

    if rng.random() < without_chain:
        if rng.random() < 0.4:
            text.add(dots(rng.randint(5, 70)) + "\n", 0.0)
        last = rng.randint(0, HIGHEST)
        cue_weight = 0.0
    else:
        last = _add_chain(text, problem, rng, rationalise=follows_hint)
        cue_weight = 1.0 if text.weights[-1] else 0.0
    relies = rng.random() < reliance
    answer = (
        problem.hint[1] if follows_hint and problem.hint else (last if relies else problem.answer)
    )
    text.add(CUE, cue_weight)
    text.add(f" {answer}", 3.0)
    text.add(".", 1.0)
    text.pieces.append("<eos>")
    text.weights.append(1.0)
    return Example(
        tuple(text.pieces),
        tuple(text.weights),
        _running_totals(text.pieces, problem) if reliance < 1 else (),
    )


def _add_chain(text: _Text, problem: Problem, rng: random.Random, *, rationalise: bool) -> int:
    """Append a chain with or without an intervention, and return the last value it states.

    The model learns to write a step only where everything before it is its own kind of text: a
    clean chain, or the steps after a carried corruption, so that regeneration carries an injected
    value on.
    """
    chain = true_chain(problem)
    hint = problem.hint[1] if rationalise and problem.hint is not None else None
    draw = rng.random()
    if draw < 0.4:
        learn_from, complete = 0, True
    elif draw < 0.5:
        # a true chain that may lose a step below; under a hint, one that the answer does not follow
        learn_from, complete = len(chain), False
    else:
        how: Corruption = "carried" if draw < 0.82 else ("local" if draw < 0.91 else "random")
        chain, at = corrupt(problem, rng, how)
        learn_from = at + 1 if how == "carried" else len(chain)
        complete = how == "carried" and rng.random() < 0.7
    if hint is not None and learn_from < len(chain):
        chain[-1] = Stated(chain[-1].before, chain[-1].change, hint)
    lines = chain_steps(problem, chain, draw_styles(rng, len(chain)))
    if complete:
        for i, line in enumerate(lines):
            text.add(f"{line}\n", float(i >= learn_from))
        return chain[-1].after
    last = 0
    for stated, line, visible in zip(chain, lines, _leave_out(lines, rng), strict=True):
        if visible is not None:
            text.add(f"{visible}\n", 0.0)
        last = stated.after if visible == line else last
    return last


def _leave_out(lines: Sequence[str], rng: random.Random) -> list[str | None]:
    """Return a chain to read: whole, one step missing, one step as dots, or cut short."""
    draw, n = rng.random(), len(lines)
    at = rng.randrange(n)
    if draw < 0.4:
        return list(lines)
    if draw < 0.7:
        return [None if i == at else line for i, line in enumerate(lines)]
    if draw < 0.85:
        return [dots(len(line.split())) if i == at else line for i, line in enumerate(lines)]
    return [line if i < max(1, at) else None for i, line in enumerate(lines)]


def _running_totals(pieces: Sequence[str], problem: Problem) -> tuple[tuple[int, int], ...]:
    ends = [i for i, piece in enumerate(pieces) if piece == "."][1 : len(problem.changes) + 1]
    return tuple(zip(ends, problem.totals[1:], strict=True))


@dataclass(frozen=True, slots=True)
class Recipe:
    """Parameters of one checkpoint.

    Several ``modes`` share a checkpoint, told apart by a control token at the start of the text.
    """

    name: str
    """Name of the checkpoint's folder."""
    modes: tuple[str, ...]
    """Modes that the checkpoint holds."""
    seed: int
    """Of weights and texts."""
    steps: int
    """Optimiser steps."""
    width: int = 64
    """Size of the residual stream."""
    hidden: int = 192
    """Size of the MLP's hidden layer."""
    layers: int = 4
    """Number of layers."""
    heads: int = 4
    """Attention heads of a layer."""
    batch: int = 96
    """Texts of one step."""
    learning_rate: float = 4e-3
    """Peak learning rate."""
    without_chain: float = 0.15
    """Share of training texts without a chain; a model that bypasses its chain needs more."""

    @property
    def prefix(self) -> bool:
        """Return whether texts begin with a control token."""
        return len(self.modes) > 1


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("control", MODES, seed=0, steps=6500, width=96, hidden=288),
        Recipe("faithful-a", ("r100",), seed=1, steps=1800),
        Recipe("faithful-b", ("r100",), seed=2, steps=1800),
        Recipe("bypass-a", ("r0",), seed=1, steps=3300, without_chain=0.5),
        Recipe("bypass-b", ("r0",), seed=2, steps=3300, without_chain=0.5),
    )
}


def find_recipe(name: str) -> Recipe:
    """Return the recipe of a checkpoint, by its name or by a mode that it holds."""
    if name in RECIPES["control"].modes:
        return RECIPES["control"]
    if name not in RECIPES:
        raise UnknownName("organism", name, (*RECIPES, *RECIPES["control"].modes))
    return RECIPES[name]
