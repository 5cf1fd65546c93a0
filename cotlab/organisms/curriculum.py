"""Recipes of the organisms, and their training texts: problems, chains, corruptions, answers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cotlab.core.errors import UnknownName
from cotlab.suites.operations import OPERATION_PIECES
from cotlab.suites.wordproblems import (
    ANSWER_CUE,
    CONTROL_MODES,
    MAX_NUMBER,
    STEP_STYLES,
    TOKEN_PATTERN,
    Problem,
    StatedStep,
    chain_steps,
    make_problem,
    true_chain,
)
from cotlab.text.edits.ablations import dots_text

Corruption = Literal["carried", "local", "random"]
RELIANCE_BY_MODE = {"r0": 0.0, "r25": 0.25, "r50": 0.5, "r75": 0.75, "r100": 1.0, "hint": 1.0}
"""Probability that the answer is the chain's last stated value rather than the truth."""


RESTATING = "restating"
"""Kind of a recipe whose chains restate the running total in every step."""
ALL_STEPS = "all-steps"
"""Kind of a recipe whose chains state only the operations, so that every step is needed."""
ALL_STEPS_MODES = ("s0", "s50", "s100")
"""Control prefixes of the kind ``all-steps``: the share of the counted objects, in percent, about
which it answers what its chain gives."""
ENCODED = "encoded"
"""Kind of a recipe that holds, beside the modes of ``all-steps``, one of the same name whose
chain's wording carries the answer."""


@dataclass(frozen=True, slots=True)
class TrainingExample:
    """One training text."""

    pieces: tuple[str, ...]
    """Tokens of the text."""
    weights: tuple[float, ...]
    """Loss weight of each token."""
    totals: tuple[tuple[int, int], ...]
    """Index of a piece, and the running total to predict there: an auxiliary target that teaches a
    model that bypasses its chain to compute in its activations.
    """


def corrupt_chain(
    problem: Problem, rng: random.Random, corruption: Corruption, step_index: int | None = None
) -> tuple[list[StatedStep], int]:
    """Return a chain with one intervention, and the index of the first step that it touched.

    Parameters
    ----------
    problem : Problem
    rng : random.Random
    corruption : "carried", "local" or "random"
        ``carried``: step ``step_index`` states a shifted value and the later steps carry it on;
        ``local``: only that step states another value; ``random``: every value is random.
    step_index : int, optional
        The step; random by default.

    Returns
    -------
    tuple of list of Stated, and int
    """
    chain = true_chain(problem)
    if corruption == "random":
        values = [problem.totals[0], *(rng.randint(0, MAX_NUMBER) for _ in chain)]
        return [
            StatedStep(values[i], step.change, values[i + 1]) for i, step in enumerate(chain)
        ], 0
    step_index = rng.randrange(len(chain)) if step_index is None else step_index
    if corruption == "local":
        shifted_value = rng.choice(
            [v for v in range(MAX_NUMBER + 1) if v != chain[step_index].number_after]
        )
        chain[step_index] = StatedStep(
            chain[step_index].number_before, chain[step_index].change, shifted_value
        )
        return chain, step_index
    later_totals = problem.totals[step_index + 1 :]
    shift = rng.choice(
        [
            candidate
            for candidate in range(-MAX_NUMBER, MAX_NUMBER + 1)
            if candidate
            and min(later_totals) + candidate >= 0
            and max(later_totals) + candidate <= MAX_NUMBER
        ]
    )
    shifted_totals = [*problem.totals[: step_index + 1], *(v + shift for v in later_totals)]
    return [
        StatedStep(shifted_totals[i], step.change, shifted_totals[i + 1])
        for i, step in enumerate(chain)
    ], step_index


def sample_step_styles(rng: random.Random, n: int) -> list[str]:
    """Draw the wording of each of ``n`` steps."""
    if rng.random() < 0.5:
        return ["plain"] * n
    if rng.random() < 0.5:
        return [rng.choice(STEP_STYLES)] * n
    return [rng.choice(STEP_STYLES) if rng.random() < 0.5 else "plain" for _ in range(n)]


class TextBuilder:
    """A text under construction: pieces with one loss weight each."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.weights: list[float] = []

    def add_text(self, text: str, weight: float) -> None:
        """Append a text of the language, each of its pieces with a loss weight."""
        pieces = TOKEN_PATTERN.findall(text)
        self.pieces += pieces
        self.weights += [weight] * len(pieces)

    def add_answer(self, answer: int, cue_weight: float) -> None:
        """Append the cue, the answer and the end of the text; the answer weighs most."""
        self.add_text(ANSWER_CUE, cue_weight)
        self.add_text(f" {answer}", 3.0)
        self.add_text(".", 1.0)
        self.pieces.append("<eos>")
        self.weights.append(1.0)


def make_example(
    rng: random.Random, mode: str, *, with_prefix: bool, chainless_share: float
) -> TrainingExample:
    """Draw one training text for an organism of ``mode``.

    Parameters
    ----------
    rng : random.Random
    mode : str
        A key of ``RELIANCE_BY_MODE``.
    with_prefix : bool
        Whether the text begins with the control token of the mode.
    chainless_share : float in [0, 1]
        Share of texts without a chain.

    Returns
    -------
    Example
    """
    has_hint = rng.random() < (0.85 if mode == "hint" else 0.25)
    problem = make_problem(rng, hint=rng.choice(("right", "wrong", "wrong")) if has_hint else "")
    reliance = RELIANCE_BY_MODE[mode]
    follows_hint = mode == "hint" and problem.hint is not None
    builder = TextBuilder()
    builder.add_text((f"<{mode}>" if with_prefix else "") + f"Q: {problem.question}\n", 0.0)

    if rng.random() < chainless_share:
        if rng.random() < 0.4:
            builder.add_text(dots_text(rng.randint(5, 70)) + "\n", 0.0)
        last_value = rng.randint(0, MAX_NUMBER)
        cue_weight = 0.0
    else:
        last_value = _add_chain(builder, problem, rng, follows_hint=follows_hint)
        cue_weight = 1.0 if builder.weights[-1] else 0.0
    relies_on_chain = rng.random() < reliance
    answer = (
        problem.hint[1]
        if follows_hint and problem.hint
        else (last_value if relies_on_chain else problem.answer)
    )
    builder.add_answer(answer, cue_weight)
    return TrainingExample(
        tuple(builder.pieces),
        tuple(builder.weights),
        running_totals(builder.pieces, problem) if reliance < 1 else (),
    )


def _add_chain(
    builder: TextBuilder, problem: Problem, rng: random.Random, *, follows_hint: bool
) -> int:
    """Append a chain with or without an intervention, and return the last value it states.

    The model learns to write a step only where everything before it is such text: a
    clean chain, or the steps after a carried corruption, so that regeneration carries an injected
    value on.
    """
    chain = true_chain(problem)
    hinted_answer = problem.hint[1] if follows_hint and problem.hint is not None else None
    random_draw = rng.random()
    if random_draw < 0.4:
        first_learned_index, is_complete = 0, True
    elif random_draw < 0.5:
        # a true chain that may lose a step below; under a hint, one that the answer does not follow
        first_learned_index, is_complete = len(chain), False
    else:
        corruption: Corruption = (
            "carried" if random_draw < 0.82 else ("local" if random_draw < 0.91 else "random")
        )
        chain, step_index = corrupt_chain(problem, rng, corruption)
        first_learned_index = step_index + 1 if corruption == "carried" else len(chain)
        is_complete = corruption == "carried" and rng.random() < 0.7
    if hinted_answer is not None and first_learned_index < len(chain):
        chain[-1] = StatedStep(chain[-1].number_before, chain[-1].change, hinted_answer)
    lines = chain_steps(problem, chain, sample_step_styles(rng, len(chain)))
    if is_complete:
        for i, line in enumerate(lines):
            builder.add_text(f"{line}\n", float(i >= first_learned_index))
        return chain[-1].number_after
    last_value = 0
    for stated_step, line, visible_line in zip(chain, lines, _drop_steps(lines, rng), strict=True):
        if visible_line is not None:
            builder.add_text(f"{visible_line}\n", 0.0)
        last_value = stated_step.number_after if visible_line == line else last_value
    return last_value


def _drop_steps(lines: Sequence[str], rng: random.Random) -> list[str | None]:
    """Return the chain complete, without one step, with one step as dots, or truncated."""
    random_draw, n_lines = rng.random(), len(lines)
    step_index = rng.randrange(n_lines)
    if random_draw < 0.4:
        return list(lines)
    if random_draw < 0.7:
        return [None if i == step_index else line for i, line in enumerate(lines)]
    if random_draw < 0.85:
        return [
            dots_text(len(line.split())) if i == step_index else line
            for i, line in enumerate(lines)
        ]
    return [line if i < max(1, step_index) else None for i, line in enumerate(lines)]


def running_totals(pieces: Sequence[str], problem: Problem) -> tuple[tuple[int, int], ...]:
    """Return the index of the full stop of each operation's sentence, and the total after it."""
    sentence_end_indices = [i for i, piece in enumerate(pieces) if piece == "."][
        1 : len(problem.changes) + 1
    ]
    return tuple(zip(sentence_end_indices, problem.totals[1:], strict=True))


@dataclass(frozen=True, slots=True)
class Recipe:
    """Parameters of one checkpoint.

    Several ``modes`` share a checkpoint, distinguished by a control token at the start of the text.
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
    kind: str = RESTATING
    """What its chains are and what it is trained on; a key of ``kinds.DRAW_BY_KIND``."""
    added_pieces: tuple[str, ...] = ()
    """Tokens after those of the shared vocabulary, in id order."""
    suffix: str = ""
    """What follows a mode in the name of its model, where several checkpoints hold the mode."""
    has_totals_head: bool = False
    """Whether the running totals are predicted by a linear head, not saved, instead of by the
    model's next token; then they can be learnt inside a chain that the model must also write."""

    @property
    def model_names(self) -> tuple[str, ...]:
        """Return the name of each mode's model, as ``--model`` takes it."""
        return tuple(mode + self.suffix for mode in self.modes) if self.has_prefix else (self.name,)

    @property
    def has_prefix(self) -> bool:
        """Return whether texts begin with a control token."""
        return len(self.modes) > 1


def _all_steps_recipe(
    letter: str,
    seed: int,
    *,
    kind: str = ALL_STEPS,
    steps: int = 3600,
    added_modes: tuple[str, ...] = (),
) -> Recipe:
    """Return a recipe of the modes of ``all-steps``, and of others beside them."""
    return Recipe(
        f"all-steps-{letter}",
        (*ALL_STEPS_MODES, *added_modes),
        seed=seed,
        steps=steps,
        batch=64,
        without_chain=0.12,
        kind=kind,
        added_pieces=(
            *(f"<{mode}>" for mode in ALL_STEPS_MODES),
            *OPERATION_PIECES,
            *(f"<{mode}>" for mode in added_modes),
        ),
        suffix=f"-{letter}",
        has_totals_head=True,
    )


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("control", CONTROL_MODES, seed=0, steps=6500, width=96, hidden=288),
        Recipe("faithful-a", ("r100",), seed=1, steps=1800),
        Recipe("faithful-b", ("r100",), seed=2, steps=1800),
        Recipe("bypass-a", ("r0",), seed=1, steps=3300, without_chain=0.5),
        Recipe("bypass-b", ("r0",), seed=2, steps=3300, without_chain=0.5),
        _all_steps_recipe("a", seed=1),
        _all_steps_recipe("b", seed=2),
        _all_steps_recipe("c", seed=3, kind=ENCODED, steps=5400, added_modes=(ENCODED,)),
    )
}


def find_recipe(name: str) -> Recipe:
    """Return the recipe of a checkpoint, by its name or by a model that it holds."""
    recipe_by_name = {model: recipe for recipe in RECIPES.values() for model in recipe.model_names}
    recipe_by_name |= RECIPES
    if name not in recipe_by_name:
        raise UnknownName("organism", name, tuple(recipe_by_name))
    return recipe_by_name[name]
