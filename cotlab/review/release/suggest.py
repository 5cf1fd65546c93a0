"""Thresholds that labelled answers speak for, by domain, in numbers and in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from cotlab.core.errors import CotlabError
from cotlab.reliability.policy import DEFAULT, Thresholds
from cotlab.reliability.thresholds import (
    FEWEST_LABELS,
    Costs,
    high_by_precision,
    labelled_thresholds,
    thresholds_by_cost,
)
from cotlab.review.release.decide import scored
from cotlab.stats.intervals import Interval
from cotlab.store import labels as kept
from cotlab.store.database import Store


class Suggestion(NamedTuple):
    """Thresholds for one domain (``low`` alone may be missing), or why there are none; ``text`` says it in a sentence."""

    domain: str
    low: float | None
    high: float | None
    text: str


def by_cost(store: Store, runs: Sequence[str] | None, costs: Costs, *, seed: int) -> list[Suggestion]:
    """The thresholds of least cost: from the calibrated probabilities, and beside them what the labels say."""
    rows = _labelled(store, runs)
    closed = thresholds_by_cost(costs)
    out = [_closed(closed)]
    for domain, own in _parts(rows):
        found = labelled_thresholds(
            own["r_cal"].tolist(), own["target"].tolist(), costs, groups=own["question"].tolist(), seed=seed
        )
        if found.low.point is None or found.high.point is None:
            out.append(Suggestion(domain, None, None, f"{_words(domain)}, by labels: n/a, {found.high.reason}."))
            continue
        told = (
            f"{_words(domain)}, by {len(own)} labels: low {_said(found.low)}, high {_said(found.high)}; "
            f"mean cost {_said(found.cost)}, "
            f"{found.released:.3g} with everything released. Optimistic: chosen on the same labels."
        )
        out.append(Suggestion(domain, found.low.point, found.high.point, told))
    return out


def by_precision(store: Store, runs: Sequence[str] | None, target: float) -> list[Suggestion]:
    """The smallest ``high`` whose labelled precision reaches the target by Wilson's lower bound; low is not said by it."""
    out = []
    for domain, own in _parts(_labelled(store, runs)):
        one = high_by_precision(own["r_cal"].tolist(), own["target"].tolist(), target, groups=own["question"].tolist())
        near = f"; nearest: from {one.near:.3g} on {_said(one.precision)}" if one.high is None and one.near is not None else ""
        told = f"high n/a: {one.reason}{near}" if one.high is None else (
            f"high {one.high:.3g}: precision {_said(one.precision)} of {_count(one.precision)}. {one.reason}")  # fmt: skip
        out.append(Suggestion(domain, None, one.high, f"{_words(domain)}: {told}."))
    return out


def _labelled(store: Store, runs: Sequence[str] | None) -> pd.DataFrame:
    """Answers with r_cal and a clear target; those that the calibrator was fitted on are among them."""
    if not runs:
        held = kept.labels(store)
        runs = list(dict.fromkeys(held["run"])) if not held.empty else []
    table = scored(store, runs)
    if table.empty:
        return table
    if table["r_cal"].isna().all():
        told = [text for text in table["told"] if text]
        raise CotlabError(f"No answer of these runs has an r_cal: {told[0] if told else 'no calibrator is in use'}.")
    known = table["r_cal"].notna() & table["target"].notna()
    return table[known].assign(target=table.loc[known, "target"].astype(bool))


def _parts(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """All labels, as ``default``, and each domain with enough of its own; for the others those of ``default`` hold."""
    domains = [(str(name), part) for name, part in rows.groupby("domain")]
    own = [(name, part) for name, part in domains if name not in ("", DEFAULT) and len(part) >= FEWEST_LABELS]
    return [(DEFAULT, rows), *own]


def _closed(found: Thresholds) -> Suggestion:
    return Suggestion(
        DEFAULT, found.low, found.high,
        f"If r_cal is calibrated: low {found.low:.3g}, high {found.high:.3g}, from the costs alone.",
    )  # fmt: skip


def _words(domain: str) -> str:
    return "All domains" if domain == DEFAULT else f"Domain {domain}"


def _count(found: Interval) -> str:
    return found.note or f"{found.n} questions"


def _said(found: Interval) -> str:
    if found.point is None:
        return f"n/a ({found.reason})"
    bounds = f" [{found.lo:.3g}, {found.hi:.3g}]" if found.lo is not None else f" (no interval: {found.reason})"
    return f"{found.point:.3g}{bounds}"
