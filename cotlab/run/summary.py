"""Scores into estimates with intervals: one for every metric and facet, and each scorer's run-level statistics."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pandas as pd

from cotlab.core.program import Scorer
from cotlab.core.registry import SCORERS
from cotlab.core.rng import derive_seed
from cotlab.core.types import Estimate, Plan
from cotlab.metrics.ablation.redundancy import mean_by_item
from cotlab.stats.intervals import Interval, wilson
from cotlab.stats.resample import bootstrap_mean
from cotlab.store import read, write
from cotlab.store.database import Store

_COLUMNS = ("scorer", "metric", "item_id", "step", "sample", "facet", "value", "status", "reason")
"""What statistics read of a score."""


def summarise(store: Store, run_id: str, plan: Plan) -> list[Estimate]:
    """Compute and store the estimates of a run from the scores that it has so far.

    Scores are read one metric at a time, and those that a run-level statistic needs together.
    """
    categories = read.item_categories(store, run_id)
    groups = read.score_groups(store, run_id)

    def scores(scorer: str, metrics: Sequence[str]) -> pd.DataFrame:
        table = read.select_scores(
            store, run_id, scorers=[scorer], metrics=metrics, columns=_COLUMNS
        )
        return table.assign(category=table["item_id"].map(categories).fillna(""))

    estimates: list[Estimate] = []
    for spec in plan.scorers:
        scorer: Scorer = SCORERS[spec.name]
        draws = [card.name for card in scorer.cards if card.level == "draw"]
        known = dict.fromkeys(groups[groups["scorer"] == spec.name]["metric"])
        flags = frozenset(card.name for card in scorer.cards if card.flag)
        for metric in known:
            if metric not in draws:
                estimates += mean_estimates(scores(spec.name, [metric]), plan.seed, flags)
        for statistic in scorer.statistics:
            estimates += statistic.compute(
                scores(spec.name, statistic.reads), spec.params, plan.seed
            )
    with store.writing() as connection:
        write.set_estimates(connection, run_id, estimates)
    return estimates


def mean_estimates(
    table: pd.DataFrame, seed: int, flags: frozenset[str] = frozenset()
) -> list[Estimate]:
    """Mean over items of each item's mean score, for each metric and facet.

    ``flags`` names the metrics whose values are 0 or 1, so that their mean is a rate. One such
    value an item gets a Wilson interval, and so do items whose values are all no or all yes;
    anything else gets a bootstrap over items, or a reason.
    """
    out = []
    for (metric, facet), group in mean_by_item(table).groupby(["metric", "facet"], sort=True):
        values = group["value"].dropna()
        binary = metric in flags and bool(len(values)) and group["n"].max() == 1
        interval: Interval = (
            wilson(int(values.sum()), len(values))
            if binary
            else bootstrap_mean(
                values.tolist(),
                seed=derive_seed("mean", seed, metric, facet),
                share=metric in flags,
            )
        )
        pairs = tuple(sorted(json.loads(facet).items()))
        out.append(
            Estimate(
                metric,
                pairs,
                interval.point,
                interval.lo,
                interval.hi,
                interval.level,
                interval.n,
                int(group["undefined"].sum()),
                interval.method,
                "items",
                interval.reason,
            )
        )
    return out
