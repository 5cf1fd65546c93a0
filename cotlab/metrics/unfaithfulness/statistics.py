"""Run-level statistics of unfaithfulness: rates, and agreement of the classifiers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import pandas as pd

from cotlab.core.program import run_statistic
from cotlab.core.types import Estimate, MetricCard
from cotlab.metrics.cards import interval_estimate
from cotlab.metrics.unfaithfulness import cards
from cotlab.stats.agreement import cohen_kappa
from cotlab.stats.intervals import Interval, no_interval, wilson
from cotlab.stats.paired_rates import mcnemar

_METRIC_NAME = cards.UNFAITHFULNESS.name
_NO_PAIR_REASON = "no item has a score by both classifiers"


class ClassifierAgreement(NamedTuple):
    """Two classifiers on the same items."""

    kappa: Interval
    """Cohen's kappa."""
    p: float
    """p-value of McNemar's exact test."""
    n_only_first: int
    """Items that only the first calls unfaithful."""
    n_only_second: int
    """Items that only the second calls unfaithful."""


def item_scores(table: pd.DataFrame) -> pd.DataFrame:
    """Average each classifier's draws by item.

    Columns classifier, item_id, value (NaN where no draw is defined), category.

    ``table`` holds scores as the store reads them; rows of other metrics are left out. Without a
    category column, or where an item has none, the category is "".
    """
    scores = table[table["metric"] == _METRIC_NAME]
    category = scores["category"].fillna("") if "category" in scores.columns else ""
    scores = scores.assign(classifier=scores["facet"].map(_classifier_name), category=category)
    keys = ["classifier", "item_id", "category"]
    return scores.groupby(keys, sort=True).agg(value=("value", "mean")).reset_index()


def rate_at_threshold(values: pd.Series, threshold: float) -> tuple[Interval, int]:
    """Return the share of values of at least ``threshold``, and how many are undefined."""
    defined_values = values.dropna()
    if defined_values.empty:
        return no_interval(None, 0, "no item has a score by this classifier"), len(values)
    return wilson(int((defined_values >= threshold).sum()), len(defined_values)), len(values) - len(
        defined_values
    )


def compare_classifiers(
    first_verdicts: Sequence[bool], second_verdicts: Sequence[bool]
) -> ClassifierAgreement:
    """Compare two classifiers' verdicts on the same items, in the same order.

    Raises
    ------
    ValueError
        If there is no item.
    """
    if not first_verdicts:
        raise ValueError("two classifiers are compared on at least one item")
    mcnemar_test = mcnemar(first_verdicts, second_verdicts)
    assert mcnemar_test.p is not None  # there is a pair
    return ClassifierAgreement(
        cohen_kappa(first_verdicts, second_verdicts),
        mcnemar_test.p,
        mcnemar_test.first_only,
        mcnemar_test.second_only,
    )


@run_statistic(cards.UNFAITHFUL_RATE, input_metrics=(_METRIC_NAME,))
def unfaithful_rate(table: pd.DataFrame, options: Mapping[str, Any], seed: int) -> list[Estimate]:
    """Estimate the rate of each classifier at the run's threshold and over the sweep.

    At the run's threshold also by category.
    """
    out = []
    facet_by_classifier = _shared_facets(table)
    scores = item_scores(table)
    run_threshold = float(options.get("threshold", cards.DEFAULT_THRESHOLD))
    sweep = sorted({run_threshold, *(float(text) for text in options.get("thresholds", ()))})
    for classifier, group in scores.groupby("classifier", sort=True):
        scores_with_category = group[group["category"] != ""]
        parts = [
            *((threshold, {}, group) for threshold in sweep),
            *(
                (run_threshold, {"category": str(category)}, part)
                for category, part in scores_with_category.groupby("category", sort=True)
            ),
        ]
        for threshold, category_facet, part in parts:
            facet = (
                facet_by_classifier[classifier] | {"threshold": f"{threshold:g}"} | category_facet
            )
            out.append(
                _make_estimate(
                    cards.UNFAITHFUL_RATE, facet, *rate_at_threshold(part["value"], threshold)
                )
            )
    return out


@run_statistic(cards.KAPPA, input_metrics=(_METRIC_NAME,))
def classifier_kappa(table: pd.DataFrame, options: Mapping[str, Any], seed: int) -> list[Estimate]:
    """Cohen's kappa of each two classifiers at the run's threshold."""
    out = []
    for facet, agreement, n_undefined in _classifier_pairs(table, options):
        kappa = no_interval(None, 0, _NO_PAIR_REASON) if agreement is None else agreement.kappa
        out.append(_make_estimate(cards.KAPPA, facet, kappa, n_undefined))
    return out


@run_statistic(cards.MCNEMAR, input_metrics=(_METRIC_NAME,))
def classifier_mcnemar(
    table: pd.DataFrame, options: Mapping[str, Any], seed: int
) -> list[Estimate]:
    """McNemar's exact p of each two classifiers at the run's threshold."""
    out = []
    for facet, agreement, n_undefined in _classifier_pairs(table, options):
        p_interval = no_interval(None, 0, _NO_PAIR_REASON)
        if agreement is not None:
            method = (
                f"McNemar exact: {agreement.n_only_first} only by {facet['classifier']},"
                f" {agreement.n_only_second} only by {facet['other']}"
            )
            p_interval = no_interval(
                agreement.p, agreement.kappa.n, "a p-value has no interval", method=method
            )
        out.append(_make_estimate(cards.MCNEMAR, facet, p_interval, n_undefined))
    return out


STATISTICS = (unfaithful_rate, classifier_kappa, classifier_mcnemar)


def _classifier_pairs(
    table: pd.DataFrame, options: Mapping[str, Any]
) -> list[tuple[dict[str, str], ClassifierAgreement | None, int]]:
    """Return the facet, the agreement and the items without a score of each two classifiers."""
    threshold = float(options.get("threshold", cards.DEFAULT_THRESHOLD))
    scores = item_scores(table)
    scores_by_classifier = scores.pivot(index="item_id", columns="classifier", values="value")
    out = []
    for first_name, second_name in combinations(sorted(scores_by_classifier.columns), 2):
        complete_pairs = scores_by_classifier[[first_name, second_name]].dropna()
        verdicts = [
            (complete_pairs[name] >= threshold).tolist() for name in (first_name, second_name)
        ]
        facet = {
            "classifier": str(first_name),
            "other": str(second_name),
            "threshold": f"{threshold:g}",
        }
        out.append(
            (
                facet,
                compare_classifiers(*verdicts) if len(complete_pairs) else None,
                len(scores_by_classifier) - len(complete_pairs),
            )
        )
    return out


def _classifier_name(facet: str) -> str:
    return str(json.loads(facet).get("classifier", ""))


def _shared_facets(table: pd.DataFrame) -> dict[str, dict[str, str]]:
    """For each classifier the pairs that all its facets hold."""
    facet_by_classifier: dict[str, dict[str, str]] = {}
    for text in table.loc[table["metric"] == _METRIC_NAME, "facet"].unique():
        facet = json.loads(text)
        name = str(facet.get("classifier", ""))
        facet_by_classifier[name] = (
            dict(facet_by_classifier[name].items() & facet.items())
            if name in facet_by_classifier
            else dict(facet)
        )
    return facet_by_classifier


def _make_estimate(
    card: MetricCard, facet: Mapping[str, str], interval: Interval, n_undefined: int
) -> Estimate:
    return interval_estimate(card.name, tuple(sorted(facet.items())), interval, n_undefined)
