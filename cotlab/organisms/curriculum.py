"""Recipes of the organisms, a row each, and what their training texts are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cotlab.core.errors import UnknownName
from cotlab.core.resources import PROCESS_REWARD
from cotlab.suites.operations import OPERATION_PIECES
from cotlab.suites.wordproblems import ANSWER_CUE, CONTROL_MODES, TOKEN_PATTERN, Problem

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
class Recipe:
    """Parameters of one checkpoint.

    Several ``modes`` share a checkpoint, distinguished by a control token at the start of the text.
    """

    name: str
    """Name of the checkpoint's folder."""
    modes: tuple[str, ...]
    """Modes that the checkpoint holds; none where it writes nothing."""
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
    """What its chains are and what it is trained on; a key of ``kinds.KINDS``."""
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


@dataclass(frozen=True, slots=True)
class ProcessRewardRecipe(Recipe):
    """Parameters of a process reward model, which judges steps and writes none."""

    kind: str = PROCESS_REWARD
    """What tells it from a model that writes chains."""
    start: str = "faithful-a"
    """Checkpoint whose layers it begins with: that one predicts each token of a right chain, so
    what is left to learn is to compare. Further layers begin at random."""


_ALL_STEPS_A = Recipe(
    "all-steps-a",
    ALL_STEPS_MODES,
    seed=1,
    steps=3600,
    batch=64,
    without_chain=0.12,
    kind=ALL_STEPS,
    added_pieces=(*(f"<{mode}>" for mode in ALL_STEPS_MODES), *OPERATION_PIECES),
    suffix="-a",
    has_totals_head=True,
)
_ALL_STEPS_C = replace(
    _ALL_STEPS_A,
    name="all-steps-c",
    modes=(*ALL_STEPS_MODES, ENCODED),
    seed=3,
    steps=5400,
    kind=ENCODED,
    added_pieces=(*_ALL_STEPS_A.added_pieces, f"<{ENCODED}>"),
    suffix="-c",
)
RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe("control", CONTROL_MODES, seed=0, steps=6500, width=96, hidden=288),
        Recipe("faithful-a", ("r100",), seed=1, steps=1800),
        Recipe("faithful-b", ("r100",), seed=2, steps=1800),
        Recipe("bypass-a", ("r0",), seed=1, steps=3300, without_chain=0.5),
        Recipe("bypass-b", ("r0",), seed=2, steps=3300, without_chain=0.5),
        _ALL_STEPS_A,
        replace(_ALL_STEPS_A, name="all-steps-b", seed=2, suffix="-b"),
        _ALL_STEPS_C,
        ProcessRewardRecipe("prm-a", (), seed=4, steps=1000, layers=5, batch=64),
    )
}


def find_recipe(name: str) -> Recipe:
    """Return the recipe of a checkpoint, by its name or by a model that it holds."""
    recipe_by_name = {model: recipe for recipe in RECIPES.values() for model in recipe.model_names}
    recipe_by_name |= RECIPES
    if name not in recipe_by_name:
        raise UnknownName("organism", name, tuple(recipe_by_name))
    return recipe_by_name[name]


@dataclass(frozen=True, slots=True)
class TrainingExample:
    """One training text."""

    pieces: tuple[str, ...]
    """Tokens of the text."""
    weights: tuple[float, ...]
    """Weight of each token's loss, as the next token."""
    totals: tuple[tuple[int, int], ...] = ()
    """Index of a piece, and the running total to predict there: an auxiliary target that teaches a
    model that bypasses its chain to compute in its activations."""
    labels: tuple[tuple[int, int, float], ...] = ()
    """Index of a piece of a step, whether the chain is right up to it, and the label's weight."""


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

    def finish(self, totals: Sequence[tuple[int, int]] = ()) -> TrainingExample:
        """Return the text, with the running totals to predict in it."""
        return TrainingExample(tuple(self.pieces), tuple(self.weights), tuple(totals))


def running_totals(pieces: Sequence[str], problem: Problem) -> tuple[tuple[int, int], ...]:
    """Return the index of the full stop of each operation's sentence, and the total after it."""
    sentence_end_indices = [i for i, piece in enumerate(pieces) if piece == "."][
        1 : len(problem.changes) + 1
    ]
    return tuple(zip(sentence_end_indices, problem.totals[1:], strict=True))
