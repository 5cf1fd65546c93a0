"""Suggest thresholds from labelled answers, by domain, in numbers and in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from cotlab.core.errors import CotlabError
from cotlab.reliability.policy import DEFAULT_DOMAIN
from cotlab.reliability.thresholds import (
    MIN_DOMAIN_LABELS,
    Costs,
    choose_cost_thresholds,
    choose_high_threshold,
    thresholds_by_cost,
)
from cotlab.review.release.decide import load_scored_items
from cotlab.stats.intervals import Interval
from cotlab.store import labels as label_store
from cotlab.store.database import Store


class ThresholdSuggestion(NamedTuple):
    """Thresholds for one domain, or why there are none."""

    domain: str
    """The domain."""
    low: float | None
    """Lower threshold; None where there is none."""
    high: float | None
    """Upper threshold; None where there is none."""
    text: str
    """The suggestion as a sentence."""


def suggest_by_cost(
    store: Store, runs: Sequence[str] | None, costs: Costs, *, seed: int
) -> list[ThresholdSuggestion]:
    """Suggest thresholds of least cost, by the calibrated probabilities and by the labels."""
    rows = _load_labelled_items(store, runs)
    cost_thresholds = thresholds_by_cost(costs)
    text = (
        f"If r_cal is calibrated: low {cost_thresholds.low:.3g}, high {cost_thresholds.high:.3g},"
        " from the costs alone."
    )
    suggestions = [
        ThresholdSuggestion(DEFAULT_DOMAIN, cost_thresholds.low, cost_thresholds.high, text)
    ]
    for domain, group in _label_groups(rows):
        thresholds = choose_cost_thresholds(
            group["r_cal"].tolist(),
            group["target"].tolist(),
            costs,
            groups=group["question"].tolist(),
            seed=seed,
        )
        if thresholds.low.point is None or thresholds.high.point is None:
            text = f"{_domain_label(domain)}, by labels: n/a, {thresholds.high.reason}."
            suggestions.append(ThresholdSuggestion(domain, None, None, text))
            continue
        text = (
            f"{_domain_label(domain)}, by {len(group)} labels: low"
            f" {_format_interval(thresholds.low)}, high {_format_interval(thresholds.high)}; mean"
            f" cost {_format_interval(thresholds.cost)}, {thresholds.release_all_cost:.3g} with"
            " everything released. Optimistic: chosen on the same labels."
        )
        suggestions.append(
            ThresholdSuggestion(domain, thresholds.low.point, thresholds.high.point, text)
        )
    return suggestions


def suggest_by_precision(
    store: Store, runs: Sequence[str] | None, target_precision: float
) -> list[ThresholdSuggestion]:
    """Suggest the smallest ``high`` whose labelled precision reaches the target.

    Precision counts by Wilson's lower bound; it says nothing of ``low``.
    """
    suggestions = []
    for domain, group in _label_groups(_load_labelled_items(store, runs)):
        result = choose_high_threshold(
            group["r_cal"].tolist(),
            group["target"].tolist(),
            target_precision,
            groups=group["question"].tolist(),
        )
        precision = _format_interval(result.precision)
        if result.high is not None:
            n_text = result.precision.note or f"{result.precision.n} questions"
            text = f"high {result.high:.3g}: precision {precision} of {n_text}. {result.reason}"
        elif result.nearest_high is not None:
            text = (
                f"high n/a: {result.reason}; nearest: from {result.nearest_high:.3g} on {precision}"
            )
        else:
            text = f"high n/a: {result.reason}"
        suggestions.append(
            ThresholdSuggestion(domain, None, result.high, f"{_domain_label(domain)}: {text}.")
        )
    return suggestions


def _load_labelled_items(store: Store, runs: Sequence[str] | None) -> pd.DataFrame:
    """Return items with r_cal and a clear target, those of the calibrator's fit included."""
    table = load_scored_items(store, runs or list(label_store.list_labels(store)["run"].unique()))
    if table.empty:
        return table
    if table["r_cal"].isna().all():
        reasons = [text for text in table["told"] if text]
        raise CotlabError(
            "No answer of these runs has an r_cal:"
            f" {reasons[0] if reasons else 'no calibrator is in use'}."
        )
    has_score_and_target = table["r_cal"].notna() & table["target"].notna()
    return table[has_score_and_target].assign(
        target=table.loc[has_score_and_target, "target"].astype(bool)
    )


def _label_groups(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Return all labels as ``default``, and each domain with enough labels of its own."""
    domain_groups = rows[~rows["domain"].isin(["", DEFAULT_DOMAIN])].groupby("domain")
    groups = [
        (str(name), group) for name, group in domain_groups if len(group) >= MIN_DOMAIN_LABELS
    ]
    return [(DEFAULT_DOMAIN, rows), *groups]


def _domain_label(domain: str) -> str:
    return "All domains" if domain == DEFAULT_DOMAIN else f"Domain {domain}"


def _format_interval(interval: Interval) -> str:
    if interval.point is None:
        return f"n/a ({interval.reason})"
    if interval.lo is None:
        return f"{interval.point:.3g} (no interval: {interval.reason})"
    return f"{interval.point:.3g} [{interval.lo:.3g}, {interval.hi:.3g}]"
