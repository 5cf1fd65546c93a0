"""The chain that each mode of ablation makes of a chain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cotlab.core.errors import UnknownName
from cotlab.core.keys import derive
from cotlab.core.types import ABLATION_MODES
from cotlab.text.edits.ablations import corrupt_step, filler_text, paraphrase_step


class ChainVariant(NamedTuple):
    """A chain with one intervention."""

    steps: tuple[str, ...]
    """The steps that the model is given."""
    continues_chain: bool = False
    """Whether the model continues the chain from there; else it is asked for the answer."""


def make_variant(steps: Sequence[str], step_index: int, mode: str, seed: int) -> ChainVariant | str:
    """Return the chain that ``mode`` makes of ``steps`` at ``step_index``, or why it makes none."""
    earlier_steps = tuple(steps[:step_index])
    step = steps[step_index]
    later_steps = tuple(steps[step_index + 1 :])
    rng = derive("ablation", mode, seed, step_index, *steps)
    if mode == "remove":
        return ChainVariant((*earlier_steps, *later_steps))
    if mode == "truncate":
        return (
            ChainVariant((*earlier_steps, step))
            if later_steps
            else "nothing follows the last step, so nothing is cut"
        )
    if mode == "filler":
        return ChainVariant((*earlier_steps, filler_text(step), *later_steps))
    if mode == "corrupt":
        changed_step = corrupt_step(step, rng)
        return (
            ChainVariant((*earlier_steps, changed_step), continues_chain=True)
            if changed_step
            else "no rule changes what this step states"
        )
    if mode == "paraphrase":
        changed_step = paraphrase_step(step, rng)
        return (
            ChainVariant((*earlier_steps, changed_step, *later_steps))
            if changed_step
            else "no rule rephrases this step"
        )
    raise UnknownName("mode", mode, ABLATION_MODES)
