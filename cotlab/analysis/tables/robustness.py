"""Robustness as the tables of its figures, from scores and estimates."""

from __future__ import annotations

import json

import pandas as pd

from cotlab.analysis.tables.reasons import in_common
from cotlab.figures.robustness import scale_top
from cotlab.metrics.ablation.redundancy import position_table

FLAGS = frozenset({"perturbed_answer_change"})
"""Measures that are yes or no for each draw."""
DRAWN = ("robustness", "perturbed_answer_change")


def with_perturbation(table: pd.DataFrame) -> pd.DataFrame:
    """Scores or estimates with a column perturbation, "" where they have none."""
    told = {text: json.loads(text).get("perturbation", "") for text in table["facet"].unique()}
    return table.assign(perturbation=[told[text] for text in table["facet"]])


def by_perturbation(scores: pd.DataFrame, means: pd.DataFrame) -> pd.DataFrame:
    """R and answer changes of each perturbation; a missing point says the commonest reason of its scores."""
    own = with_perturbation(scores[scores["metric"].isin(DRAWN)])
    gone = own[own["value"].isna()].groupby(["metric", "perturbation"])["reason"]
    why = {(str(metric), str(name)): next(iter(in_common(reasons)), None) for (metric, name), reasons in gone}
    found = with_perturbation(means[means["metric"].isin(DRAWN)])
    told = zip(found["metric"], found["perturbation"], found["reason"], found["point"], strict=True)
    return found.assign(reason=[why.get((m, p)) or r if pd.isna(point) else r for m, p, r, point in told])


def cells(scores: pd.DataFrame, measure: str) -> pd.DataFrame:
    """A measure by position and perturbation."""
    return with_perturbation(position_table(scores[scores["metric"] == measure], flags=FLAGS))


def item_means(own: pd.DataFrame, perturbation: str) -> pd.DataFrame:
    """Each item's steps under a perturbation: item_id, step, value (mean over its draws), draws, reason."""
    own = own[(own["perturbation"] == perturbation) & own["step"].notna()]
    found = own.groupby(["item_id", "step"], sort=True).agg(
        value=("value", "mean"), draws=("value", "count"), reason=("reason", "first")
    )
    return found.reset_index()


def item_cells(found: pd.DataFrame, measure: str, items: list[str]) -> pd.DataFrame:
    """Some items of ``item_means`` against positions, in that order, on the scale of all items."""
    order = {name: i for i, name in enumerate(items)}
    part = found[found["item_id"].isin(items)].sort_values("item_id", key=lambda ids: ids.map(order), kind="stable")
    return part.assign(metric=measure, top=scale_top(measure, found["value"].dropna()))
