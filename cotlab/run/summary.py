"""Scores into estimates with intervals: one for every metric and facet, and each scorer's run-level statistics."""

from __future__ import annotations

import json

import pandas as pd

from cotlab.core.program import Scorer
from cotlab.core.registry import SCORERS
from cotlab.core.rng import derive_seed
from cotlab.core.types import Estimate, Plan
from cotlab.metrics.ablation.redundancy import item_means
from cotlab.stats.intervals import Interval, wilson
from cotlab.stats.resample import bootstrap_mean
from cotlab.store import read, write
from cotlab.store.database import Store


def summarise(store: Store, run_id: str, plan: Plan) -> list[Estimate]:
    """Compute and keep the estimates of a run from the scores that it has so far."""
    table = read.scores(store, run_id)
    table = table.assign(category=table["item_id"].map(read.categories(store, run_id)).fillna(""))
    estimates: list[Estimate] = []
    for spec in plan.scorers:
        scorer: Scorer = SCORERS[spec.name]
        draws = [card.name for card in scorer.cards if card.level == "draw"]
        every = table[table["scorer"] == spec.name]
        own = every[~every["metric"].isin(draws)]
        flags = frozenset(card.name for card in scorer.cards if card.flag)
        estimates += mean_estimates(own, plan.seed, flags)
        for statistic in scorer.statistics:
            estimates += statistic.compute(every[every["metric"].isin(statistic.reads)], spec.params, plan.seed)
    with store.writing() as connection:
        write.set_estimates(connection, run_id, estimates)
    return estimates


def mean_estimates(table: pd.DataFrame, seed: int, flags: frozenset[str] = frozenset()) -> list[Estimate]:
    """Mean over items of each item's mean score, for each metric and facet.

    ``flags`` names the metrics whose values are 0 or 1, so that their mean is a rate. One such value an item gets a Wilson
    interval, and so do items whose values are all no or all yes; anything else gets a bootstrap over items, or a reason.
    """
    out = []
    for (metric, facet), group in item_means(table).groupby(["metric", "facet"], sort=True):
        values = group["value"].dropna()
        binary = metric in flags and bool(len(values)) and group["n"].max() == 1
        found: Interval = (
            wilson(int(values.sum()), len(values)) if binary
            else bootstrap_mean(values.tolist(), seed=derive_seed("mean", seed, metric, facet), share=metric in flags)
        )  # fmt: skip
        pairs = tuple(sorted(json.loads(facet).items()))
        out.append(
            Estimate(metric, pairs, found.point, found.lo, found.hi, found.level, found.n, int(group["undefined"].sum()),
                     found.method, "items", found.reason)
        )  # fmt: skip
    return out
