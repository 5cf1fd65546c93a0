"""Which organisms there are and how each is trained: a table of frozen parameters, nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from cotlab.core.errors import UnknownName
from cotlab.suites.wordproblems import MODES


@dataclass(frozen=True, slots=True)
class Recipe:
    """One checkpoint. ``modes`` with a ``prefix`` share it, told apart by a control token at the start of the text."""

    name: str
    modes: tuple[str, ...]
    seed: int
    steps: int
    width: int = 64
    hidden: int = 192
    layers: int = 4
    heads: int = 4
    batch: int = 96
    learning_rate: float = 4e-3
    without_chain: float = 0.15
    """Share of training texts without a chain; a model that bypasses its chain needs more of them.
    """

    @property
    def prefix(self) -> bool:
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
    """The recipe of a checkpoint, by its name or by a mode that it holds."""
    if name in RECIPES["control"].modes:
        return RECIPES["control"]
    if name not in RECIPES:
        raise UnknownName("organism", name, (*RECIPES, *RECIPES["control"].modes))
    return RECIPES[name]
