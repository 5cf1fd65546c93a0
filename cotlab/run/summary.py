"""Compute estimates with intervals from scores: means by metric and facet, and statistics."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import Any

import pandas as pd

from cotlab.core.program import Scorer
from cotlab.core.registry import SCORERS
from cotlab.core.types import Estimate, Plan
from cotlab.metrics.estimates import mean_by_item, mean_interval, with_clusters_as_items
from cotlab.providers.capabilities import family_of
from cotlab.store import read, write
from cotlab.store.database import Store
from cotlab.store.responses import Overshoot

MAX_BLOCK_SCORES = 500_000
"""Scores that the means of a metric are computed of at once, where a facet alone has fewer."""


def summarise(store: Store, run_id: str, plan: Plan) -> list[Estimate]:
    """Compute and store the estimates of a run from the scores that it has so far."""
    estimates = compute_estimates(store, run_id, plan)
    with store.writing() as connection:
        write.set_estimates(connection, run_id, estimates)
    return estimates


def compute_estimates(
    store: Store,
    run_id: str,
    plan: Plan,
    facets_by_metric: Mapping[str, Sequence[Mapping[str, str]]] | None = None,
) -> list[Estimate]:
    """Return the estimates of a run from the scores that it has so far; nothing is stored.

    Scores are read a few facets of a metric at a time, and those that a run-level statistic needs
    together, once for the statistics that need the same. Items of one cluster (epochs of a sample,
    say) count as one item with several draws.

    Parameters
    ----------
    store : Store
    run_id : str
    plan : Plan
    facets_by_metric : mapping, optional
        The metrics to compute, and for each the pairs that a facet has to have, any one set of
        them; a statistic is computed with all of its facets. By default every metric.
    """
    category_by_item = read.get_category_by_item(store, run_id)
    cluster_by_item = read.get_cluster_by_item(store, run_id)
    metric_groups = every_group = read.count_score_groups(store, run_id)
    if facets_by_metric is not None:
        is_included = [
            any(
                json.loads(facet).items() >= pairs.items()
                for pairs in facets_by_metric.get(metric, ())
            )
            for metric, facet in zip(metric_groups["metric"], metric_groups["facet"], strict=True)
        ]
        metric_groups = metric_groups[pd.Series(is_included, metric_groups.index, dtype=bool)]

    def read_scores(
        scorer: str, metrics: Sequence[str], facet_texts: Sequence[str] | None = None
    ) -> pd.DataFrame:
        table = read.select_scores(
            store,
            run_id,
            scorers=[scorer],
            metrics=metrics,
            facet_texts=facet_texts,
            with_evidence=False,
        )
        table = table.assign(category=table["item_id"].map(category_by_item).fillna(""))
        return with_clusters_as_items(table, cluster_by_item)

    estimates: list[Estimate] = []
    for spec in plan.scorers:
        scorer: Scorer = SCORERS[spec.name]
        draw_metrics = [card.name for card in scorer.cards if card.level == "draw"]
        groups = metric_groups[metric_groups["scorer"] == spec.name]
        binary_metrics = frozenset(card.name for card in scorer.cards if card.flag)
        for metric in dict.fromkeys(groups["metric"]):
            if metric not in draw_metrics:
                for facet_texts in _facet_blocks(groups[groups["metric"] == metric]):
                    estimates += mean_estimates(
                        read_scores(spec.name, [metric], facet_texts), plan.seed, binary_metrics
                    )
        included_statistics = [
            statistic
            for statistic in scorer.statistics
            if facets_by_metric is None or statistic.card.name in facets_by_metric
        ]
        for (input_metrics, is_by_facet), chosen in groupby(
            included_statistics,
            key=lambda statistic: (statistic.input_metrics, statistic.is_by_facet),
        ):
            statistics = list(chosen)
            inputs = every_group[
                (every_group["scorer"] == spec.name) & every_group["metric"].isin(input_metrics)
            ]
            results: list[list[Estimate]] = [[] for _ in statistics]
            for metrics, some_facets in _input_blocks(inputs, input_metrics, is_by_facet):
                table = read_scores(spec.name, metrics, some_facets)
                for statistic, result in zip(statistics, results, strict=True):
                    result += statistic.compute(table.copy(deep=False), spec.params, plan.seed)
                del table  # before the next is read
            estimates += chain.from_iterable(results)
    return estimates


def _input_blocks(
    groups: pd.DataFrame, input_metrics: Sequence[str], is_by_facet: bool
) -> Iterator[tuple[Sequence[str], list[str] | None]]:
    """Yield metrics and facets (None: all) whose scores statistics are given at once."""
    if not is_by_facet or groups.empty:
        yield input_metrics, None
        return
    for metric in dict.fromkeys(groups["metric"]):
        for facet_texts in _facet_blocks(groups[groups["metric"] == metric]):
            yield [metric], facet_texts


def _facet_blocks(groups: pd.DataFrame) -> Iterator[list[str]]:
    """Yield the facets of a metric, in order, with at most ``MAX_BLOCK_SCORES`` scores together."""
    block: list[str] = []
    n_scores = 0
    for facet, n in sorted(zip(groups["facet"], groups["n"], strict=True)):
        if block and n_scores + n > MAX_BLOCK_SCORES:
            yield block
            block, n_scores = [], 0
        block.append(facet)
        n_scores += n
    yield block


def mean_estimates(
    table: pd.DataFrame, seed: int, binary_metrics: frozenset[str] = frozenset()
) -> list[Estimate]:
    """Mean over items of each item's mean score, for each metric and facet.

    ``binary_metrics`` names the metrics whose values are 0 or 1, so that their mean is a rate.
    Where the values of each item agree, it gets a Wilson interval; anything else gets a bootstrap
    over items, or a reason.
    """
    estimates = []
    for (metric, facet), group in mean_by_item(table).groupby(["metric", "facet"], sort=True):
        values = group["value"].dropna().tolist()
        interval = mean_interval(values, seed=seed, is_binary=metric in binary_metrics)
        facet_pairs = tuple(sorted(json.loads(facet).items()))
        estimates.append(
            Estimate(
                metric,
                facet_pairs,
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
    return estimates


def overshoot_record(overshoot: Overshoot) -> dict[str, Any]:
    """Return the record of a model whose replies cost more than reserved.

    ``tokens_in`` and ``tokens_out`` are the most tokens of one reply beyond those that its request
    allows, None where requests are redacted.
    """
    headroom = (
        family_of(overshoot.model["provider"], overshoot.model["name"]).headroom
        if overshoot.model
        else 0
    )
    return {
        "model": (
            f"{overshoot.model['provider']}/{overshoot.model['name']}" if overshoot.model else None
        ),
        "replies": overshoot.n_replies,
        "usd": overshoot.excess_micro / 1e6,
        "tokens_in": None
        if overshoot.excess_tokens_in is None
        else max(0, overshoot.excess_tokens_in),
        "tokens_out": (
            None
            if overshoot.excess_tokens_out is None
            else max(0, overshoot.excess_tokens_out - headroom)
        ),
    }


def overshoot_warnings(cost: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each model that reported more tokens than were allowed."""
    sentences = []
    for overshoot in cost.get("over_reserve", ()):
        tokens_text = " and ".join(
            f"{overshoot[f'tokens_{direction}']:,} {direction}put"
            for direction in ("in", "out")
            if overshoot[f"tokens_{direction}"]
        )
        excess_text = f", up to {tokens_text} tokens more in a reply" if tokens_text else ""
        sentences.append(
            f"{overshoot['model'] or 'The server'} reported more tokens than were"
            f" allowed{excess_text}: {_reply_count_text(overshoot['replies'])} cost"
            f" ${overshoot['usd']:,.6f} more than was reserved. The cap does not cover that; what"
            " was sent later reserved as much as had been reported."
        )
    return sentences


def cost_warnings(cost: Mapping[str, Any]) -> list[str]:
    """Return all that a reader of the cost has to know, in sentences."""
    sentences = overshoot_warnings(cost)
    if cost["held_usd"] and cost["replies_without_count"]:
        sentences.append(
            f"{_reply_count_text(cost['replies_without_count'])} came without a usable count of"
            " tokens: the full reserve counts as the cost."
        )
    return sentences


def _reply_count_text(n_replies: int) -> str:
    return f"{n_replies:,} {'reply' if n_replies == 1 else 'replies'}"
