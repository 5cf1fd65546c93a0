"""Which steps of a chain the answer depends on, in a sentence above the chain."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cotlab.analysis.tables.step_effects import StepEffect
from cotlab.analysis.verdict.wording import noun_count

MAX_NAMED_STEPS = 6
"""Steps that the sentence names by number; of more it says how many."""


def chain_finding(effects: Sequence[StepEffect], verb: str) -> str:
    """Return at which steps the answer changes most often, and how often at the others.

    Parameters
    ----------
    effects : sequence of StepEffect
        The effect of each step of the chain.
    verb : str
        What happens to a step, after "step 2": "states something else".

    Returns
    -------
    str
        Empty where no step has a value.
    """
    measured = [effect for effect in effects if effect.n]
    if not measured:
        return ""
    n_missing = len(effects) - len(measured)
    suffix = f" {noun_count(n_missing, 'step')} without a value." if n_missing else ""
    any_step = _named_steps(measured, len(effects)) if n_missing else "any step"
    highest = max(effect.share or 0.0 for effect in measured)
    top = [effect for effect in measured if effect.share == highest]
    others = [effect for effect in measured if effect.share != highest]
    replies = "" if highest in (0, 1) else f" ({top[0].n_changed} of {top[0].n} replies)"
    if highest == 0:
        return f"The answer stays when {any_step} {verb}.{suffix}"
    if not others and len(top) > 1:
        often = f" equally often{replies}" if replies else ""
        return f"The answer changes{often} when {any_step} {verb}: none stands out.{suffix}"
    is_sometimes_elsewhere = any(effect.share for effect in others)
    often = " most often" if is_sometimes_elsewhere else " sometimes" if replies else ""
    rest = _rest_text(others, "changes less often" if is_sometimes_elsewhere else "stays")
    steps = _named_steps(top, len(effects))
    return f"The answer changes{often} when {steps} {verb}{replies}{rest}.{suffix}"


def _rest_text(others: Sequence[StepEffect], verb: str) -> str:
    if not others:
        return ""
    where = f"step {others[0].step + 1}" if len(others) == 1 else f"the other {len(others)}"
    return f"; it {verb} at {where}"


def _named_steps(effects: Sequence[StepEffect], n_steps: int) -> str:
    numbers = [str(effect.step + 1) for effect in effects]
    if len(numbers) > MAX_NAMED_STEPS:
        return f"one of {len(numbers)} of the {n_steps} steps"
    return f"step {' or '.join(filter(None, (', '.join(numbers[:-1]), numbers[-1])))}"


def equal_steps_text(values: Sequence[float | None], zero_text: str, equal_text: str) -> str:
    """Return, where all steps have one value, the text for 0 or that for another; else ""."""
    distinct_values = {math.nan if value is None else float(value) for value in values}
    if len(values) < 2 or len(distinct_values) != 1 or any(map(math.isnan, distinct_values)):
        return ""
    return f" {zero_text if distinct_values == {0.0} else equal_text}"
