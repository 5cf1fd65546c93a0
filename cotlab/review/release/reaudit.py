"""Whether calibrated scores still hold: on labels since the fit, and on released items."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from cotlab.core.errors import CotlabError
from cotlab.core.rng import derive_seed
from cotlab.review.labelling.queue import make_queue
from cotlab.review.release.apply import apply_calibrator, version_of
from cotlab.review.release.fit_report import interval_json
from cotlab.store import labels as label_store
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.store.decisions import decisions

KIND, REASON = "audit", "drawn at random"
MIN_LABELS = 20
"""Labels since the fit from which Brier score and ECE are computed."""


class NothingReleased(CotlabError):
    """No item to audit again."""


@dataclass(frozen=True, slots=True)
class Quality:
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
    def worse(self) -> bool:
        """Return whether the whole interval of the Brier score lies above that at the fit."""
        lo = self.brier["lo"] if self.brier is not None else None
        return lo is not None and self.fitted is not None and lo > self.fitted


def quality(store: Store, runs: Sequence[str], *, seed: int = 0) -> Quality:
    """Measure the calibrator in use on items of runs first labelled after its fit.

    Intervals are over questions. An item that the calibrator was fitted on does not count, however
    often it was labelled again since. Labels that were requested near a threshold are of harder
    items than most: a random sample, as a re-audit queues, is not.

    Raises
    ------
    UnknownName
        If there is no such run.
    """
    from cotlab.review.labelling.targets import labelled
    from cotlab.stats.calibration import perfect_band
    from cotlab.stats.calibration_intervals import measure_interval

    row = version_of(store)
    if row is None:
        return Quality(reason="no calibrator is in use")
    version = int(row["version"])
    given = label_store.label_table(store)
    last = given.groupby(["run", "item_id"])["at_"].max()
    fitted_at = pd.Timestamp(row["made_at"]).tz_convert("UTC")
    since = set(last[last > fitted_at].index) - _fitted_items(store, row, fitted_at)
    table = labelled(store, runs)
    table = table.iloc[
        [
            k
            for k, key in enumerate(zip(table["run"], table["item_id"], strict=True))
            if key in since
        ]
    ]
    score = apply_calibrator(row, table)["r_cal"]
    table, score = table[score.notna()], score[score.notna()]
    if len(table) < MIN_LABELS:
        reason = (
            f"{len(table)} items of these runs were labelled since calibrator {version} was fitted:"
            f" it takes {MIN_LABELS}"
        )
        return Quality(len(table), version, reason=reason)
    target, groups = table["target"].astype(bool).to_numpy(), list(table["question"])
    brier, ece = (
        interval_json(measure_interval(name, score.to_numpy(), target, groups, seed=seed))
        for name in ("brier", "ece")
    )
    return Quality(
        len(table),
        version,
        brier,
        ece,
        perfect_band(score.to_numpy(), seed=seed),
        _brier_at_fit(row),
    )


def released(store: Store, runs: Sequence[str]) -> list[tuple[str, str]]:
    """Return (run, item) of each item whose newest decision releases it, by run."""
    out = []
    for run in dict.fromkeys(runs):
        run_decisions = decisions(store, run)
        out += [
            (run, str(item))
            for item in run_decisions.loc[run_decisions["action"] == "release", "item_id"]
        ]
    return out


def reaudit(
    store: Store, runs: Sequence[str], n: int, *, by: str, seed: int = 42
) -> tuple[str, int]:
    """Queue a random sample of released items, so that people check what went out unseen.

    Parameters
    ----------
    store : Store
    runs : sequence of str
    n : int, at least 1
        Items; all that were released where there are fewer.
    by : str
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
    if n < 1:
        raise ValueError(f"a sample of {n} items is none")
    for run in runs:
        read.get_run(store, run)  # raises for an unknown run before the sample is drawn
    candidates = released(store, runs)
    if not candidates:
        raise NothingReleased(
            f"No item of {', '.join(runs)} is released, so there is nothing to audit again. Decide"
            f" first: cotlab decide {runs[0]}"
        )
    sample = random.Random(derive_seed("reaudit", seed, *runs)).sample(
        candidates, min(n, len(candidates))
    )
    queue = make_queue(
        store,
        f"Re-audit of {', '.join(runs)}"[:80],
        [(*item, REASON) for item in sample],
        kind=KIND,
        by=by,
    )
    return queue, len(sample)


def _fitted_items(
    store: Store, row: Mapping[str, Any], fitted_at: pd.Timestamp
) -> set[tuple[str, str]]:
    """Return (run, item) that a calibrator may have been fitted on: labelled by then."""
    before = label_store.label_table(store, history=True)
    before = before[(before["at_"] <= fitted_at) & before["target"].notna()]
    runs = (row["report"] or {}).get("runs")
    if runs is not None:
        before = before[before["run"].isin(runs)]
    return set(zip(before["run"], before["item_id"], strict=True))


def _brier_at_fit(row: Mapping[str, Any]) -> float | None:
    report = row["report"] or {}
    point = next(
        (
            method["brier"]["point"]
            for method in report.get("methods", ())
            if method.get("method") == report.get("chosen") and method.get("brier")
        ),
        None,
    )
    return None if point is None else float(point)
