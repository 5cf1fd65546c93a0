"""Whether released answers still hold: the calibrator on new labels, and random re-audits."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from cotlab.core.errors import CotlabError
from cotlab.core.keys import derive_seed
from cotlab.review.labelling.queue import make_queue
from cotlab.review.labelling.targets import load_labelled_features
from cotlab.review.release.apply import apply_calibrator, calibrator_target, load_calibrator_row
from cotlab.review.release.fit_report import interval_json
from cotlab.stats.calibration import perfect_band
from cotlab.stats.calibration_intervals import measure_interval
from cotlab.store import labels as label_store
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.store.decisions import list_decisions

AUDIT_KIND, AUDIT_REASON = "audit", "drawn at random"
MIN_LABELS = 20
"""Labels since the fit from which Brier score and ECE are computed."""


class NothingReleased(CotlabError):
    """No item to audit again."""


@dataclass(frozen=True, slots=True)
class CalibratorQuality:
    """Brier score and ECE of the calibrator in use on labels given after its fit."""

    n: int = 0
    """Items with a label given after the fit, and with r_cal."""
    version: int | None = None
    """Version of the calibrator; None without one."""
    brier: Mapping[str, Any] | None = None
    """Brier score: ``point, lo, hi, n, method, reason, note``, [0, 1], lower is better; None where
    there is none."""
    ece: Mapping[str, Any] | None = None
    """Expected calibration error, with the same fields."""
    band: tuple[float, float] | None = None
    """Where the ECE of a perfectly calibrated forecaster of these n items lies, 95 % of the time.
    """
    fitted: float | None = None
    """The out-of-fold Brier score at the fit."""
    reason: str = ""
    """Why there is no number; "" where there is."""

    @property
    def is_worse(self) -> bool:
        """Return whether the whole interval of the Brier score lies above that at the fit."""
        lower_bound = self.brier["lo"] if self.brier is not None else None
        return lower_bound is not None and self.fitted is not None and lower_bound > self.fitted


def measure_quality(store: Store, runs: Sequence[str], *, seed: int = 0) -> CalibratorQuality:
    """Measure the calibrator in use on items of runs first labelled after its fit.

    Intervals are over questions. An item that the calibrator was fitted on does not count, however
    often it was labelled again since. Labels that were requested near a threshold are of harder
    items than most: a random sample, as a re-audit queues, is not.

    Raises
    ------
    UnknownName
        If there is no such run.
    """
    row = load_calibrator_row(store)
    if row is None:
        return CalibratorQuality(reason="no calibrator is in use")
    version = int(row["version"])
    labels = label_store.list_labels(store)
    last_label_times = labels.groupby(["run", "item_id"])["at_"].max()
    fitted_at = pd.Timestamp(row["made_at"]).tz_convert("UTC")
    newly_labelled_items = set(
        last_label_times[last_label_times > fitted_at].index
    ) - _fitted_items(store, row, fitted_at)
    table = load_labelled_features(store, runs, target=calibrator_target(row))
    keys = zip(table["run"], table["item_id"], strict=True)
    table = table.iloc[[index for index, key in enumerate(keys) if key in newly_labelled_items]]
    scores = apply_calibrator(row, table)["r_cal"]
    table, scores = table[scores.notna()], scores[scores.notna()]
    if len(table) < MIN_LABELS:
        reason = (
            f"{len(table)} items of these runs were labelled since calibrator {version} was fitted:"
            f" it takes {MIN_LABELS}"
        )
        return CalibratorQuality(len(table), version, reason=reason)
    targets, groups = table["target"].astype(bool).to_numpy(), list(table["question"])
    brier, ece = (
        interval_json(measure_interval(name, scores.to_numpy(), targets, groups, seed=seed))
        for name in ("brier", "ece")
    )
    return CalibratorQuality(
        len(table),
        version,
        brier,
        ece,
        perfect_band(scores.to_numpy(), seed=seed),
        _brier_at_fit(row),
    )


def find_released_items(store: Store, runs: Sequence[str]) -> list[tuple[str, str]]:
    """Return (run, item) of each item whose newest decision releases it, by run."""
    released_items = []
    for run in dict.fromkeys(runs):
        table = list_decisions(store, run)
        released_items += [
            (run, str(item)) for item in table.loc[table["action"] == "release", "item_id"]
        ]
    return released_items


def queue_reaudit(
    store: Store, runs: Sequence[str], n_items: int, *, author: str, seed: int = 42
) -> tuple[str, int]:
    """Queue a random sample of released items, so that people check what went out unseen.

    Parameters
    ----------
    store : Store
    runs : sequence of str
    n_items : int, at least 1
        Items; all that were released where there are fewer.
    author : str
        Who makes the queue. Raters see neither which features moved nor any score.
    seed : int
        The same items for the same seed, whatever else was released in other runs.

    Returns
    -------
    tuple
        The queue's id, and how many items it holds.

    Raises
    ------
    NothingReleased
        If no item of these runs is released.
    UnknownName
        If there is no such run.
    """
    if n_items < 1:
        raise ValueError(f"a sample of {n_items} items is none")
    for run in runs:
        read.get_run(store, run)  # raises for an unknown run before the sample is drawn
    candidates = find_released_items(store, runs)
    if not candidates:
        raise NothingReleased(
            f"No item of {', '.join(runs)} is released, so there is nothing to audit again. Decide"
            f" first: cotlab decide {runs[0]}"
        )
    sample = random.Random(derive_seed("reaudit", seed, *runs)).sample(
        candidates, min(n_items, len(candidates))
    )
    queue = make_queue(
        store,
        f"Re-audit of {', '.join(runs)}"[:80],
        [(*item, AUDIT_REASON) for item in sample],
        kind=AUDIT_KIND,
        author=author,
    )
    return queue, len(sample)


def _fitted_items(
    store: Store, row: Mapping[str, Any], fitted_at: pd.Timestamp
) -> set[tuple[str, str]]:
    """Return (run, item) that a calibrator may have been fitted on: labelled by then."""
    earlier_labels = label_store.list_labels(store, history=True)
    earlier_labels = earlier_labels[
        (earlier_labels["at_"] <= fitted_at) & earlier_labels["target"].notna()
    ]
    runs = (row["report"] or {}).get("runs")
    if runs is not None:
        earlier_labels = earlier_labels[earlier_labels["run"].isin(runs)]
    return set(zip(earlier_labels["run"], earlier_labels["item_id"], strict=True))


def _brier_at_fit(row: Mapping[str, Any]) -> float | None:
    report = row["report"] or {}
    for method in report.get("methods", ()):
        if method.get("method") == report.get("chosen") and method.get("brier"):
            point: float | None = method["brier"]["point"]
            return point
    return None
