"""Estimates as people read them: what 1 means, steps counted from 1, how much was checked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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


def checked_share_text(estimates: Sequence[Mapping[str, Any]], r_raw: Mapping[str, Any]) -> str:
    """Return which share of the weight was checked, on average: "36 % checked".

    Parameters
    ----------
    estimates : sequence of mapping
        Estimates of one run: ``metric``, ``facet`` (a mapping or its JSON) and ``point``.
    r_raw : mapping
        The estimate of ``r_raw`` among them.
    """
    facet = _read_facet(r_raw)
    checked = (e for e in estimates if e["metric"] == "weight_checked" and _read_facet(e) == facet)
    share = next((estimate["point"] for estimate in checked), None)
    # a share is NaN in a table of pandas where it is undefined
    text = (
        "share checked not recorded" if share is None or share != share else f"{share:.0%} checked"
    )
    profile = facet.get("profile", "")
    return f"{text}, profile {profile}" if profile == "offline" else text


def composite_lines(estimates: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each r_raw of a run: the mean, its items, and what was checked."""
    lines = []
    for estimate in estimates:
        if estimate["metric"] != "r_raw":
            continue
        point_text = "n/a" if estimate["point"] is None else f"{estimate['point']:.3f}"
        if estimate["lo"] is not None:
            point_text += f" [{estimate['lo']:.3f}, {estimate['hi']:.3f}]"
        line = (
            f"r_raw {point_text}, mean of {estimate['n']} items, undefined for"
            f" {estimate['n_undefined']}; {checked_share_text(estimates, estimate)}."
        )
        if _read_facet(estimate).get("profile") == "offline":
            line += (
                " Offline, a high value means that no false equation and no red flag was found, not"
                " that the chains are right."
            )
        lines.append(line)
    return lines


def _read_facet(estimate: Mapping[str, Any]) -> Mapping[str, str]:
    facet = estimate["facet"]
    parsed: Mapping[str, str] = json.loads(facet) if isinstance(facet, str) else facet
    return parsed
