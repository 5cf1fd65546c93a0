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
from cotlab.store import read
from cotlab.store.calibrators import current_calibrator
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

    Precision counts by Wilson's lower bound; it says nothing of ``low``. What is printed of it is
    of labels that neither the calibrator's fit nor the choice of their threshold saw.
    """
    suggestions = []
    for domain, group in _label_groups(_load_labelled_items(store, runs)):
        result = choose_high_threshold(
            group["r_cal"].tolist(),
            group["target"].tolist(),
            target_precision,
            groups=group["question"].tolist(),
        )
        if result.high is not None:
            n_text = result.precision.note or f"{result.precision.n} questions"
            precision = _format_interval(result.precision)
            text = (
                f"high {result.high:.3g}: precision {precision} of {n_text} that neither the"
                " calibrator's fit nor the choice of the threshold saw"
            )
        else:
            text = f"high n/a: {result.reason}"
        suggestions.append(
            ThresholdSuggestion(domain, None, result.high, f"{_domain_label(domain)}: {text}.")
        )
    return suggestions


def _load_labelled_items(store: Store, runs: Sequence[str] | None) -> pd.DataFrame:
    """Return items with a clear target and an r_cal by a fit that did not see their question.

    Labels of the calibrator's fit have their out-of-fold r_cal.
    """
    run_ids = runs or list(label_store.list_labels(store)["run"].unique())
    report = (current_calibrator(store) or {}).get("report") or {}
    stored_runs = set(read.list_runs(store)["id"])
    fit_runs = [run for run in report.get("runs", ()) if run in stored_runs]
    table = load_scored_items(store, list(dict.fromkeys([*run_ids, *fit_runs])))
    if table.empty:
        return table
    held_out = {(run, item): r_cal for run, item, r_cal in report.get("held_out", ())}
    keys = pd.Series(list(zip(table["run"], table["item_id"], strict=True)), index=table.index)
    # older versions do not say on which items of their runs they were fitted
    is_fitted = keys.map(held_out.__contains__) if held_out else table["run"].isin(fit_runs)
    is_seen = table["question"].isin(set(table.loc[is_fitted, "question"]))
    r_cal = table["r_cal"].mask(is_seen, keys.map(held_out.get).astype(float))
    table = table.assign(r_cal=r_cal)[table["run"].isin(run_ids)]
    if table["r_cal"].isna().all():
        if is_seen.any():
            raise CotlabError(
                "The calibrator in use was fitted on the questions of these runs and keeps no"
                " prediction without them: fit it again with cotlab calibrate, or label items of"
                " other questions."
            )
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
