"""What critics, reward models and other verifiers said of the steps, as features of the steps."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from cotlab.core.registry import SCORERS
from cotlab.store import read
from cotlab.store.database import Store

StepValues = Mapping[str, Mapping[int | None, float]]
"""Name of a feature → step (from 0; None for every other step of the chain) → value."""
STEP_METRICS: Mapping[str, Mapping[str, str]] = {"link_support": {"link": "forward"}}
"""Scores of steps that are features → what their facet must have."""
_UNNAMED_FACETS = ("chain", "link")


def load_step_scores(
    store: Store, run: str, items: Sequence[str] | None = None
) -> Mapping[str, StepValues]:
    """Return what a run measured of the steps of its items.

    Parameters
    ----------
    store : Store
    run : str
    items : sequence of str, optional
        Only these items.

    Returns
    -------
    dict
        Item id → values. A metric that places the first mistake is two features: its name (1 at
        the step that it names, else 0), and ``NAME: any`` (1 at every step where it names one). A
        score without a value is left out.
    """
    plan = read.plan_from_row(read.get_run(store, run))
    cards = [
        card
        for name in {spec.name for spec in plan.scorers if spec.name in SCORERS}
        for card in SCORERS[name].cards
    ]
    none_reasons = {card.name: card.none_reason for card in cards if card.none_reason}
    metrics = [*none_reasons, *(card.name for card in cards if card.name in STEP_METRICS)]
    if not metrics:
        return {}
    scores = read.select_scores(store, run, metrics=metrics, items=items, with_evidence=False)
    values: dict[str, dict[str, dict[int | None, float]]] = {}
    for row in scores.to_dict("records"):
        metric, facet = row["metric"], json.loads(row["facet"])
        name = _feature_name(metric, facet)
        features = values.setdefault(row["item_id"], {})
        if metric in none_reasons:
            is_none = row["reason"] == none_reasons[metric]
            if row["status"] == "ok" or is_none:
                features[name] = {None: 0.0} | ({} if is_none else {int(row["value"]): 1.0})
                features[f"{name}: any"] = {None: float(not is_none)}
        elif row["status"] == "ok" and STEP_METRICS[metric].items() <= facet.items():
            features.setdefault(name, {})[int(row["step"])] = float(row["value"])
    return values


def measured_values(values: StepValues, step: int) -> dict[str, float | None]:
    """Return the features of one step; None where a score has no value."""
    return {name: by_step.get(step, by_step.get(None)) for name, by_step in values.items()}


def _feature_name(metric: str, facet: Mapping[str, str]) -> str:
    """Return the metric with what distinguishes it: critic_step verifier=openai/gpt."""
    details = [f"{k}={v}" for k, v in sorted(facet.items()) if k not in _UNNAMED_FACETS]
    return " ".join([metric, *details])
