"""Kinds of organisms: what each is trained on. A further kind is a function here, and a recipe."""

from __future__ import annotations

import random
from collections.abc import Callable

from cotlab.organisms.all_steps import draw_all_steps
from cotlab.organisms.curriculum import (
    ALL_STEPS,
    ENCODED,
    RESTATING,
    Recipe,
    TrainingExample,
    make_example,
)
from cotlab.organisms.encoded import draw_encoded

_CHAINLESS_SHARE_OF_R0 = 0.5
"""Of the mode ``r0`` where it shares a checkpoint with modes that follow their chain."""


def draw_example(rng: random.Random, recipe: Recipe, mode: str) -> TrainingExample:
    """Draw one training text of a recipe's mode."""
    return DRAW_BY_KIND[recipe.kind](rng, recipe, mode)


def _draw_restating(rng: random.Random, recipe: Recipe, mode: str) -> TrainingExample:
    shares_checkpoint = mode == "r0" and recipe.has_prefix
    return make_example(
        rng,
        mode,
        with_prefix=recipe.has_prefix,
        chainless_share=_CHAINLESS_SHARE_OF_R0 if shares_checkpoint else recipe.without_chain,
    )


DRAW_BY_KIND: dict[str, Callable[[random.Random, Recipe, str], TrainingExample]] = {
    RESTATING: _draw_restating,
    ALL_STEPS: draw_all_steps,
    ENCODED: draw_encoded,
}
"""Draws one training text of a mode, by the recipe's kind."""
