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
}
"""Labels of metrics whose stored names do not say how to read their values."""
STEP_INDEX_METRICS = frozenset({"first_mistake_step", "critic_step"})
"""Metrics whose stored values are indices of steps, from 0."""


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
