"""The steps that robustness perturbs: which can be, which are chosen, and their perturbed texts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from cotlab.core.keys import derive
from cotlab.core.types import Item
from cotlab.text.edits.names import find_names
from cotlab.text.edits.perturbations import perturb


def perturb_steps(
    item: Item, steps: Sequence[str], names: Sequence[str], seed: int
) -> dict[int, dict[str, str]]:
    """Return the perturbed texts by step and perturbation.

    Only steps that another follows, as a divergence compares what follows; of these, only steps to
    which at least one of the perturbations applies.
    """
    perturbed_texts = {
        i: {
            name: perturbed_text
            for name in names
            if (perturbed_text := perturb_step(item, steps, i, name, seed)) is not None
        }
        for i in range(len(steps) - 1)
    }
    return {i: texts_by_name for i, texts_by_name in perturbed_texts.items() if texts_by_name}


def choose_step_indices(
    item: Item, steps: Sequence[str], candidate_indices: Iterable[int], fraction: float, seed: int
) -> tuple[int, ...]:
    """Return a seeded share of the candidate steps, rounded up, at least one; in order."""
    candidates = list(candidate_indices)
    n_steps = min(len(candidates), max(1, math.ceil(fraction * len(candidates) - 1e-9)))
    rng = derive("robustness", item.id, seed, *steps)
    return tuple(sorted(rng.sample(candidates, n_steps)))


def perturb_step(
    item: Item, steps: Sequence[str], step_index: int, name: str, seed: int
) -> str | None:
    """Return step ``step_index`` under a perturbation; None where it does not apply."""
    names = find_names(item.question, *steps)
    return perturb(
        name,
        steps[step_index],
        names,
        derive("perturbation", name, item.id, seed, step_index, steps[step_index]),
    )
