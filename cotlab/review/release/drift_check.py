"""A drift check and its storing; whether scores still hold on new labels, and re-audits."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import pandas as pd

from cotlab.core.errors import CotlabError
from cotlab.core.keys import derive_seed
from cotlab.review.labelling.queue import make_queue
from cotlab.review.release.apply import (
    apply_calibrator,
    calibrator_target,
    load_calibrator_row,
)
from cotlab.review.release.fit_report import interval_json
from cotlab.stats.drift import FeatureDrift, JointDrift, Measured
from cotlab.store import labels as label_store
from cotlab.store import read
from cotlab.store.calibrators import add_drift_check
from cotlab.store.database import Store
from cotlab.store.decisions import list_decisions

REFIT_COMMAND = "cotlab calibrate"
"""Command that fits a calibrator again."""
_NESTED_FIELDS = ("features", "joint", "at", "quality")
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


@dataclass(frozen=True, slots=True)
class FeatureCheck:
    """One feature of a check."""

    name: str
    """Name of the feature."""
    drift: FeatureDrift
    """Its distances."""
    psi_adjusted: float | None = None
    """Permutation p-value of PSI in (0, 1], after Benjamini and Hochberg over PSI and KS of all
    features; None where untested."""
    ks_adjusted: float | None = None
    """The same of KS."""
    alert: bool = False
    """Whether one of the two exceeds its limit and its adjusted p-value is at most alpha."""


@dataclass(frozen=True, slots=True)
class DriftCheck:
    """A stored drift check."""

    id: str
    """Id of the check."""
    reference: tuple[str, ...]
    """Run ids of the reference."""
    current: tuple[str, ...]
    """Run ids that are compared with it."""
    at: datetime
    """When it was made."""
    by: str
    """Who made it."""
    ks: float
    """KS distance that matters."""
    psi: float
    """PSI in nats that matters."""
    alpha: float
    """False discovery rate."""
    permutations: int
    """Number of permutations."""
    seed: int
    """Seed of the permutations."""
    features: tuple[FeatureCheck, ...]
    """Results by feature."""
    joint: JointDrift
    """Result over all features together."""
    shared: int
    """Questions that both sides contain; they are compared with themselves."""
    alert: bool
    """Whether some feature moved by more than its limit, and by more than chance."""
    reason: str
    """Why, or why not, in words."""
    quality: CalibratorQuality
    """Brier score and ECE of the calibrator in use on current items labelled since its fit."""
    label: str = ""
    """Position in a series: a tag's value, or when the run was planned."""

    @property
    def moved_features(self) -> list[str]:
        """Return the features that raise the alert."""
        return [feature.name for feature in self.features if feature.alert]

    @property
    def suggestion(self) -> str:
        """Return what to do now; "" where there is no alert."""
        if not self.alert:
            return ""
        return (
            "Scores of these items may no longer mean what they did:"
            f" {', '.join(self.moved_features)} moved. Label items of {', '.join(self.current)},"
            f" then fit again: {REFIT_COMMAND} {' '.join((*self.reference, *self.current))}"
        )


def store_drift_check(store: Store, check: DriftCheck) -> bool:
    """Write a check to the store; False where it is there already."""
    with store.writing() as connection:
        return add_drift_check(
            connection,
            check.id,
            reference_runs=check.reference,
            current_runs=check.current,
            checked_at=check.at,
            author=check.by,
            alert=check.alert,
            reason=check.reason,
            result=drift_json(check),
        )


def drift_json(check: DriftCheck) -> dict[str, Any]:
    """Return a check as JSON values."""
    return {**asdict(check), "at": check.at.isoformat(), "suggestion": check.suggestion}


def drift_from_json(data: Mapping[str, Any]) -> DriftCheck:
    """Return the check that ``drift_json`` was made of."""
    features = tuple(
        FeatureCheck(**{**feature, "drift": _feature_from_json(feature["drift"])})
        for feature in data["features"]
    )
    band = data["quality"]["band"]
    restored_quality = CalibratorQuality(
        **{**data["quality"], "band": None if band is None else tuple(band)}
    )
    joint = JointDrift(**{**data["joint"], "energy": Measured(**data["joint"]["energy"])})
    plain_fields = {name: data[name] for name in DriftCheck.__slots__ if name not in _NESTED_FIELDS}
    plain_fields |= {side: tuple(data[side]) for side in ("reference", "current")}
    return DriftCheck(
        **plain_fields,
        features=features,
        joint=joint,
        quality=restored_quality,
        at=datetime.fromisoformat(data["at"]),
    )


def _feature_from_json(data: Mapping[str, Any]) -> FeatureDrift:
    measured_distances = {name: Measured(**data[name]) for name in ("psi", "ks", "kl", "kl_back")}
    return FeatureDrift(**{**data, **measured_distances})


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
    from cotlab.review.labelling.targets import load_labelled_features
    from cotlab.stats.calibration import perfect_band
    from cotlab.stats.calibration_intervals import measure_interval

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
