"""Robustness as the tables of its figures, from scores and estimates."""

from __future__ import annotations

import json

import pandas as pd

from cotlab.analysis.tables.declare import count_reasons
from cotlab.figures.robustness import scale_top

FLAGS = frozenset({"perturbed_answer_change"})
"""Measures that are yes or no for each draw."""
CHARTED_METRICS = ("robustness", "perturbed_answer_change")


def with_perturbation(table: pd.DataFrame) -> pd.DataFrame:
    """Add a column perturbation to scores or estimates, "" where they have none."""
    names = {text: json.loads(text).get("perturbation", "") for text in table["facet"].unique()}
    return table.assign(perturbation=[names[text] for text in table["facet"]])


def perturbation_table(scores: pd.DataFrame, means: pd.DataFrame) -> pd.DataFrame:
    """Return R and answer changes of each perturbation; no point has the commonest reason."""
    scored = with_perturbation(scores[scores["metric"].isin(CHARTED_METRICS)])
    gone = scored[scored["value"].isna()].groupby(["metric", "perturbation"])["reason"]
    common_reasons = {
        (str(metric), str(name)): next(iter(count_reasons(reasons)), None)
        for (metric, name), reasons in gone
    }
    estimates = with_perturbation(means[means["metric"].isin(CHARTED_METRICS)])
    rows = zip(
        estimates["metric"],
        estimates["perturbation"],
        estimates["reason"],
        estimates["point"],
        strict=True,
    )
    return estimates.assign(
        reason=[common_reasons.get((m, p)) or r if pd.isna(point) else r for m, p, r, point in rows]
    )


def item_step_means(scores: pd.DataFrame, perturbation: str) -> pd.DataFrame:
    """Return each item's steps under a perturbation: item_id, step, mean value, draws, reason."""
    scores = scores[(scores["perturbation"] == perturbation) & scores["step"].notna()]
    means = scores.groupby(["item_id", "step"], sort=True).agg(
        value=("value", "mean"), draws=("value", "count"), reason=("reason", "first")
    )
    return means.reset_index()


def item_cell_table(means: pd.DataFrame, measure: str, items: list[str]) -> pd.DataFrame:
    """Return some items against positions, in that order, on the scale of all items."""
    order = {name: i for i, name in enumerate(items)}
    part = means[means["item_id"].isin(items)].sort_values(
        "item_id", key=lambda ids: ids.map(order), kind="stable"
    )
    return part.assign(metric=measure, top=scale_top(measure, means["value"].dropna()))
