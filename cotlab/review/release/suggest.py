"""Suggest thresholds from labelled answers, by domain, in numbers and in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from cotlab.core.errors import CotlabError
from cotlab.reliability.policy import DEFAULT, Thresholds
from cotlab.reliability.thresholds import (
    MIN_LABELS,
    Costs,
    high_by_precision,
    labelled_thresholds,
    thresholds_by_cost,
)
from cotlab.review.release.decide import scored
from cotlab.stats.intervals import Interval
from cotlab.store import labels as label_store
from cotlab.store.database import Store


class Suggestion(NamedTuple):
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
) -> list[Suggestion]:
    """Suggest thresholds of least cost, by the calibrated probabilities and by the labels."""
    rows = _labelled(store, runs)
    closed = thresholds_by_cost(costs)
    out = [_cost_suggestion(closed)]
    for domain, group in _label_groups(rows):
        thresholds = labelled_thresholds(
            group["r_cal"].tolist(),
            group["target"].tolist(),
            costs,
            groups=group["question"].tolist(),
            seed=seed,
        )
        if thresholds.low.point is None or thresholds.high.point is None:
            out.append(
                Suggestion(
                    domain,
                    None,
                    None,
                    f"{_domain_label(domain)}, by labels: n/a, {thresholds.high.reason}.",
                )
            )
            continue
        text = (
            f"{_domain_label(domain)}, by {len(group)} labels: low"
            f" {_format_interval(thresholds.low)}, high {_format_interval(thresholds.high)}; mean"
            f" cost {_format_interval(thresholds.cost)}, {thresholds.released:.3g} with everything"
            " released. Optimistic: chosen on the same labels."
        )
        out.append(Suggestion(domain, thresholds.low.point, thresholds.high.point, text))
    return out


def suggest_by_precision(
    store: Store, runs: Sequence[str] | None, target: float
) -> list[Suggestion]:
    """Suggest the smallest ``high`` whose labelled precision reaches the target.

    Precision counts by Wilson's lower bound; it says nothing of ``low``.
    """
    out = []
    for domain, group in _label_groups(_labelled(store, runs)):
        result = high_by_precision(
            group["r_cal"].tolist(),
            group["target"].tolist(),
            target,
            groups=group["question"].tolist(),
        )
        near = (
            f"; nearest: from {result.near:.3g} on {_format_interval(result.precision)}"
            if result.high is None and result.near is not None
            else ""
        )
        text = (
            f"high n/a: {result.reason}{near}"
            if result.high is None
            else (
                f"high {result.high:.3g}: precision {_format_interval(result.precision)} of"
                f" {_count(result.precision)}. {result.reason}"
            )
        )
        out.append(Suggestion(domain, None, result.high, f"{_domain_label(domain)}: {text}."))
    return out


def _labelled(store: Store, runs: Sequence[str] | None) -> pd.DataFrame:
    """Return items with r_cal and a clear target, those of the calibrator's fit included."""
    if not runs:
        stored = label_store.label_table(store)
        runs = list(dict.fromkeys(stored["run"])) if not stored.empty else []
    table = scored(store, runs)
    if table.empty:
        return table
    if table["r_cal"].isna().all():
        reasons = [text for text in table["told"] if text]
        raise CotlabError(
            "No answer of these runs has an r_cal:"
            f" {reasons[0] if reasons else 'no calibrator is in use'}."
        )
    known = table["r_cal"].notna() & table["target"].notna()
    return table[known].assign(target=table.loc[known, "target"].astype(bool))


def _label_groups(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Return all labels as ``default``, and each domain with enough labels of its own."""
    domains = [(str(name), part) for name, part in rows.groupby("domain")]
    groups = [
        (name, part)
        for name, part in domains
        if name not in ("", DEFAULT) and len(part) >= MIN_LABELS
    ]
    return [(DEFAULT, rows), *groups]


def _cost_suggestion(thresholds: Thresholds) -> Suggestion:
    return Suggestion(
        DEFAULT,
        thresholds.low,
        thresholds.high,
        f"If r_cal is calibrated: low {thresholds.low:.3g}, high {thresholds.high:.3g}, from the"
        " costs alone.",
    )


def _domain_label(domain: str) -> str:
    return "All domains" if domain == DEFAULT else f"Domain {domain}"


def _count(interval: Interval) -> str:
    return interval.note or f"{interval.n} questions"


def _format_interval(interval: Interval) -> str:
    if interval.point is None:
        return f"n/a ({interval.reason})"
    bounds = (
        f" [{interval.lo:.3g}, {interval.hi:.3g}]"
        if interval.lo is not None
        else f" (no interval: {interval.reason})"
    )
    return f"{interval.point:.3g}{bounds}"
