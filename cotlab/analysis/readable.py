"""Estimates as people read them: names that say what 1 means, and steps counted from 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

METRIC_LABELS = {
    "flags": "flags (1 = no red flag)",
    "flags_once": "flags_once (1 = no red flag)",
    "flags_text": "flags_text (1 = no red flag)",
    "first_mistake_step": "first_mistake_step (from 1)",
    "critic_step": "critic_step (from 1)",
    "process_reward_mistake_step": "process_reward_mistake_step (from 1)",
}
"""Labels of metrics whose stored names do not say how to read their values."""
STEP_INDEX_METRICS = frozenset({"first_mistake_step", "critic_step", "process_reward_mistake_step"})
"""Metrics whose stored values are indices of steps, from 0."""

P_VALUE_METRICS = frozenset({"classifier_mcnemar", "judge_length_p"})
"""Metrics that are p-values: one that rounds to 0 is no 0."""


def decimal_text(metric: str, value: float | None) -> str:
    """Format a value with three decimals: "0.361", "n/a" for None, "< 0.001" for a small p."""
    if value is None:
        return "n/a"
    return "< 0.001" if metric in P_VALUE_METRICS and value < 0.001 else f"{value:.3f}"


def readable_value(metric: str, value: float | None) -> float | None:
    """Return a stored value of a metric as people read it: an index of a step counts from 1."""
    return value + 1 if metric in STEP_INDEX_METRICS and value is not None else value


def readable_estimate(estimate: Mapping[str, Any]) -> dict[str, Any]:
    """Return an estimate with the metric's label, and with a step counted from 1.

    Parameters
    ----------
    estimate : mapping
        As ``report.json`` has it: ``metric``, ``point``, ``lo`` and ``hi``, steps from 0.
    """
    metric = estimate["metric"]
    shifted = {name: readable_value(metric, estimate[name]) for name in ("point", "lo", "hi")}
    return {**estimate, **shifted, "metric": METRIC_LABELS.get(metric, metric)}
