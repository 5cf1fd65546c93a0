"""What unfaithfulness says of a run: rates with their intervals, and how far the classifiers agree with one another."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import pandas as pd

from cotlab.core.program import over_run
from cotlab.core.types import Estimate, Facet
from cotlab.metrics.unfaithfulness import cards
from cotlab.stats.agreement import cohen_kappa
from cotlab.stats.intervals import Interval, no_interval, wilson
from cotlab.stats.paired_rates import mcnemar

_NAME = cards.UNFAITHFULNESS.name
_NO_PAIR = "no item has a score by both classifiers"


class Agreement(NamedTuple):
    """Two classifiers on the same items: Cohen's kappa, McNemar's exact p, and the items that only one calls unfaithful."""

    kappa: Interval
    p: float
    only_first: int
    only_second: int


def item_scores(table: pd.DataFrame) -> pd.DataFrame:
    """One row a classifier and item: classifier, item_id, value (mean of the defined draws, NaN where none is), category.

    ``table`` holds scores as the store reads them; rows of other metrics are left out. Without a
    category column, or where an item has none, the category is "".
    """
    scores = table[table["metric"] == _NAME]
    category = scores["category"].fillna("") if "category" in scores.columns else ""
    scores = scores.assign(classifier=scores["facet"].map(_classifier), category=category)
    keys = ["classifier", "item_id", "category"]
    return scores.groupby(keys, sort=True).agg(value=("value", "mean")).reset_index()


def rate(values: pd.Series, threshold: float) -> tuple[Interval, int]:
    """The share of the defined values that are at least ``threshold``, with its Wilson interval; and how many are undefined."""
    known = values.dropna()
    if known.empty:
        return no_interval(None, 0, "no item has a score by this classifier"), len(values)
    return wilson(int((known >= threshold).sum()), len(known)), len(values) - len(known)


def agree(first: Sequence[bool], second: Sequence[bool]) -> Agreement:
    """Cohen's kappa and McNemar's exact test of two classifiers' verdicts on the same items, in the same order.

    Raises
    ------
    ValueError
        If there is no item.
    """
    if not first:
        raise ValueError("two classifiers are compared on at least one item")
    test = mcnemar(first, second)
    assert test.p is not None  # there is a pair
    return Agreement(cohen_kappa(first, second), test.p, test.first_only, test.second_only)


@over_run(cards.RATE, reads=(_NAME,))
def unfaithful_rate(table: pd.DataFrame, options: Mapping[str, Any], seed: int) -> list[Estimate]:
    """The rate of each classifier at the run's threshold and over the sweep; by category at the run's threshold."""
    out = []
    shared = _shared_facets(table)
    scores = item_scores(table)
    run_threshold = float(options.get("threshold", cards.THRESHOLD))
    sweep = sorted({run_threshold, *(float(text) for text in options.get("thresholds", ()))})
    for classifier, group in scores.groupby("classifier", sort=True):
        facet = shared[classifier]
        for threshold in sweep:
            out.append(
                _estimate(
                    cards.RATE.name,
                    facet | {"threshold": f"{threshold:g}"},
                    *rate(group["value"], threshold),
                )
            )
        named = group[group["category"] != ""]
        for category, part in named.groupby("category", sort=True):
            more = {"threshold": f"{run_threshold:g}", "category": str(category)}
            out.append(
                _estimate(cards.RATE.name, facet | more, *rate(part["value"], run_threshold))
            )
    return out


@over_run(cards.KAPPA, reads=(_NAME,))
def classifier_kappa(table: pd.DataFrame, options: Mapping[str, Any], seed: int) -> list[Estimate]:
    """Cohen's kappa of each two classifiers at the run's threshold."""
    out = []
    for facet, pair, undefined in _pairs(table, options):
        kappa = no_interval(None, 0, _NO_PAIR) if pair is None else pair.kappa
        out.append(_estimate(cards.KAPPA.name, facet, kappa, undefined))
    return out


@over_run(cards.MCNEMAR, reads=(_NAME,))
def classifier_mcnemar(
    table: pd.DataFrame, options: Mapping[str, Any], seed: int
) -> list[Estimate]:
    """McNemar's exact p of each two classifiers at the run's threshold."""
    out = []
    for facet, pair, undefined in _pairs(table, options):
        p = no_interval(None, 0, _NO_PAIR)
        if pair is not None:
            alone = (
                f"{pair.only_first} only by {facet['classifier']}, {pair.only_second} only by"
                f" {facet['other']}"
            )
            method = f"McNemar exact: {alone}"
            p = Interval(
                pair.p, None, None, pair.kappa.n, method, reason="a p-value has no interval"
            )
        out.append(_estimate(cards.MCNEMAR.name, facet, p, undefined))
    return out


STATISTICS = (unfaithful_rate, classifier_kappa, classifier_mcnemar)


def _pairs(
    table: pd.DataFrame, options: Mapping[str, Any]
) -> list[tuple[dict[str, str], Agreement | None, int]]:
    """Each two classifiers: the facet, how they agree (None without a common item), and the items that lack a score."""
    threshold = float(options.get("threshold", cards.THRESHOLD))
    scores = item_scores(table)
    wide = scores.pivot(index="item_id", columns="classifier", values="value")
    out = []
    for first, second in combinations(sorted(wide.columns), 2):
        both = wide[[first, second]].dropna()
        verdicts = [(both[name] >= threshold).tolist() for name in (first, second)]
        facet = {"classifier": str(first), "other": str(second), "threshold": f"{threshold:g}"}
        out.append((facet, agree(*verdicts) if len(both) else None, len(wide) - len(both)))
    return out


def _classifier(facet: str) -> str:
    return str(json.loads(facet).get("classifier", ""))


def _shared_facets(table: pd.DataFrame) -> dict[str, dict[str, str]]:
    """For each classifier the pairs that all its facets hold."""
    shared: dict[str, dict[str, str]] = {}
    for text in table.loc[table["metric"] == _NAME, "facet"].unique():
        facet = json.loads(text)
        name = str(facet.get("classifier", ""))
        shared[name] = dict(shared[name].items() & facet.items()) if name in shared else dict(facet)
    return shared


def _estimate(
    metric: str, facet: Mapping[str, str], interval: Interval, undefined: int
) -> Estimate:
    group: Facet = tuple(sorted(facet.items()))
    return Estimate(
        metric,
        group,
        interval.point,
        interval.lo,
        interval.hi,
        interval.level,
        interval.n,
        undefined,
        interval.method,
        "items",
        interval.reason,
    )
