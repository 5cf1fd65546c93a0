"""Compute estimates with intervals from scores: means by metric and facet, and statistics."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from cotlab.core.program import Scorer
from cotlab.core.registry import SCORERS
from cotlab.core.rng import derive_seed
from cotlab.core.types import Estimate, Plan
from cotlab.metrics.kit import mean_by_item
from cotlab.providers.capabilities import family_of
from cotlab.stats.intervals import Interval, wilson
from cotlab.stats.resample import bootstrap_mean
from cotlab.store import read, write
from cotlab.store.database import Store
from cotlab.store.overshoots import Overshoot


def summarise(store: Store, run_id: str, plan: Plan) -> list[Estimate]:
    """Compute and store the estimates of a run from the scores that it has so far.

    Scores are read one metric at a time, and those that a run-level statistic needs together.
    """
    categories = read.item_categories(store, run_id)
    groups = read.score_groups(store, run_id)

    def scores(scorer: str, metrics: Sequence[str]) -> pd.DataFrame:
        table = read.select_scores(store, run_id, scorers=[scorer], metrics=metrics, evidence=False)
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


def over_reserve(seen: Overshoot) -> dict[str, Any]:
    """Return the entry of ``cost.over_reserve`` of a model whose replies cost more than reserved.

    ``tokens_in`` and ``tokens_out`` are the most tokens of one reply beyond those that its request
    allows, None where requests are redacted.
    """
    headroom = family_of(seen.model["provider"], seen.model["name"]).headroom if seen.model else 0
    return {
        "model": f"{seen.model['provider']}/{seen.model['name']}" if seen.model else None,
        "replies": seen.replies,
        "usd": seen.beyond / 1e6,
        "tokens_in": None if seen.beyond_in is None else max(0, seen.beyond_in),
        "tokens_out": None if seen.beyond_out is None else max(0, seen.beyond_out - headroom),
    }


def over_reserve_lines(cost: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each model that reported more tokens than were allowed."""
    lines = []
    for over in cost.get("over_reserve", ()):
        more = " and ".join(
            f"{over[f'tokens_{way}']:,} {way}put" for way in ("in", "out") if over[f"tokens_{way}"]
        )
        most = f", up to {more} tokens more in a reply" if more else ""
        lines.append(
            f"{over['model'] or 'The server'} reported more tokens than were allowed{most}:"
            f" {_replies(over['replies'])} cost ${over['usd']:,.6f} more than was reserved. The cap"
            " does not cover that; what was sent later reserved as much as had been reported."
        )
    return lines


def cost_warnings(cost: Mapping[str, Any]) -> list[str]:
    """Return all that a reader of the cost has to know, in sentences."""
    lines = over_reserve_lines(cost)
    if cost["held_usd"] and cost["replies_without_count"]:
        lines.append(
            f"{_replies(cost['replies_without_count'])} came without a usable count of tokens: the"
            " full reserve counts as the cost."
        )
    return lines


def _replies(n: int) -> str:
    return f"{n:,} {'reply' if n == 1 else 'replies'}"
