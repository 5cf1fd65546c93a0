"""Whether current items still resemble those of the reference: by feature, jointly, over time."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import pandas as pd

from cotlab.core.errors import ConfigError, CotlabError, UnknownName
from cotlab.review.release.drift_check import DriftCheck, FeatureCheck, store_drift_check
from cotlab.review.release.features import NUMBERS, feature_table
from cotlab.review.release.reaudit import quality
from cotlab.stats.drift import (
    FeatureDrift,
    JointDrift,
    Measured,
    Shuffles,
    feature_drift,
    joint_drift,
)
from cotlab.stats.multiple import benjamini_hochberg
from cotlab.store import read
from cotlab.store.database import Store

KS, PSI, ALPHA, PERMUTATIONS, SEED = 0.2, 0.2, 0.05, 1999, 42
"""Defaults: distances that matter, the risk of a false alert, and the permutations and seed."""
MEASURES = ("psi", "ks")


class NothingToCompare(CotlabError):
    """Runs that share no number that could drift."""


def measure_drift(
    store: Store,
    reference: Sequence[str],
    current: Sequence[str],
    *,
    features: Sequence[str] = (),
    ks: float = KS,
    psi: float = PSI,
    alpha: float = ALPHA,
    permutations: int = PERMUTATIONS,
    seed: int = SEED,
    by: str = "",
    label: str = "",
) -> DriftCheck:
    """Compare the feature vectors of ``current`` and ``reference`` runs; nothing is written.

    Parameters
    ----------
    store : Store
    reference, current : sequence of str
        Run ids, at least one each and none in both.
    features : sequence of str
        Of ``NUMBERS``; by default all that have values.
    ks, psi : float, > 0
        A KS distance, and a PSI in nats, that matter. Less never raises an alert, however certain
        it is.
    alpha : float in (0, 1)
        Of the features that are called moved, the share that may be by chance (false discovery
        rate).
    permutations, seed : int
    by, label : str
        Stored with the check.

    Returns
    -------
    DriftCheck

    Raises
    ------
    UnknownName
        If a run or a feature is unknown.
    ConfigError
        If a run is on both sides, or so few permutations could never reject.
    NothingToCompare
        If no feature has a value on both sides.
    """
    reference, current = tuple(dict.fromkeys(reference)), tuple(dict.fromkeys(current))
    _validate_drift_options(reference, current, features, ks, psi, alpha, permutations)
    table = feature_table(store, [*reference, *current])
    is_reference = table["run"].isin(reference)
    old, new = table[is_reference], table[~is_reference]
    names = [
        name for name in features or NUMBERS if old[name].notna().any() or new[name].notna().any()
    ]
    if not any(old[name].notna().any() and new[name].notna().any() for name in names):
        raise NothingToCompare(
            f"{_named(reference)} and {_named(current)} have no number in common to look for drift"
            " in: measure both with --profile phase3"
        )
    n_tests = 2 * len(names)
    if n_tests / (permutations + 1) > alpha:
        raise ConfigError(
            f"--permutations {permutations}: {n_tests} tests at alpha {alpha:g} can reject only"
            f" from {int(n_tests / alpha)} on"
        )
    shuffles = Shuffles(
        list(old["question"]), list(new["question"]), permutations=permutations, seed=seed
    )
    drifts = [feature_drift(old[name].to_numpy(), new[name].to_numpy(), shuffles) for name in names]
    checked = _check_features(names, drifts, ks, psi, alpha)
    used = [feature.name for feature in checked if not feature.drift.reason]
    joint = joint_drift(
        old[used].to_numpy(dtype=float),
        new[used].to_numpy(dtype=float),
        list(old["question"]),
        list(new["question"]),
        permutations=permutations,
        seed=seed,
    )
    alert = any(feature.alert for feature in checked)
    shared = len(set(old["question"]) & set(new["question"]))
    return DriftCheck(
        uuid.uuid4().hex[:12],
        reference,
        current,
        datetime.now(UTC),
        by,
        ks,
        psi,
        alpha,
        permutations,
        seed,
        checked,
        joint,
        shared,
        alert,
        _reason(checked, joint, ks, psi, alpha),
        quality(store, current, seed=seed),
        label,
    )


def check_drift(
    store: Store,
    reference: Sequence[str],
    current: Sequence[str],
    *,
    by: str,
    features: Sequence[str] = (),
    ks: float = KS,
    psi: float = PSI,
    alpha: float = ALPHA,
    permutations: int = PERMUTATIONS,
    seed: int = SEED,
) -> DriftCheck:
    """Measure drift as ``measure_drift`` does, and store the check."""
    check = measure_drift(
        store,
        reference,
        current,
        features=features,
        ks=ks,
        psi=psi,
        alpha=alpha,
        permutations=permutations,
        seed=seed,
        by=by,
    )
    store_drift_check(store, check)
    return check


def drift_series(store: Store, runs: Sequence[str], over: str) -> list[tuple[str, tuple[str, ...]]]:
    """Group runs into a series: by when they were planned (``time``), or by a tag's value.

    Returns
    -------
    list of (label, runs)
        In order; numbers as numbers.

    Raises
    ------
    ConfigError
        If a run does not have the tag.
    """
    rows = [read.get_run(store, run) for run in dict.fromkeys(runs)]
    if over == "time":
        rows.sort(key=lambda row: (row["planned_at"], row["id"]))
        return [(f"{row['planned_at']:%Y-%m-%d %H:%M:%S}", (str(row["id"]),)) for row in rows]
    groups: dict[str, list[str]] = {}
    for row in rows:
        value = read.stored_plan(row).tags.get(over)
        if value is None:
            raise ConfigError(
                f"--over {over}: run {row['id']} has no tag of this name; `--over time` needs none"
            )
        groups.setdefault(value, []).append(str(row["id"]))
    return [(f"{over} {value}", tuple(groups[value])) for value in sorted(groups, key=_natural)]


def feature_values(store: Store, check: DriftCheck) -> pd.DataFrame:
    """Return the feature vectors of a check, with a column ``side``: reference or current."""
    table = feature_table(store, [*check.reference, *check.current])
    return table.assign(side=np.where(table["run"].isin(check.reference), "reference", "current"))


def _validate_drift_options(
    reference: Sequence[str],
    current: Sequence[str],
    features: Sequence[str],
    ks: float,
    psi: float,
    alpha: float,
    permutations: int,
) -> None:
    if not reference or not current:
        raise ConfigError(
            "Drift is looked for between runs: name one that is the reference and one that is held"
            " against it"
        )
    both = [run for run in current if run in reference]
    if both:
        raise ConfigError(f"Run {both[0]} is on both sides: it cannot have drifted from itself")
    for name in features:
        if name not in NUMBERS:
            raise UnknownName("feature", name, NUMBERS)
    if not (ks > 0 and psi > 0 and 0 < alpha < 1 and permutations >= 1):
        raise ConfigError(
            f"KS {ks:g} and PSI {psi:g} must be above 0, alpha {alpha:g} inside (0, 1),"
            " permutations at least 1"
        )


def _check_features(
    names: Sequence[str], drifts: Sequence[FeatureDrift], ks: float, psi: float, alpha: float
) -> tuple[FeatureCheck, ...]:
    adjusted = benjamini_hochberg([getattr(drift, name).p for name in MEASURES for drift in drifts])
    psis, kss = adjusted[: len(drifts)], adjusted[len(drifts) :]
    return tuple(
        FeatureCheck(
            name, drift, p, q, _past(drift.psi, psi, p, alpha) or _past(drift.ks, ks, q, alpha)
        )
        for name, drift, p, q in zip(names, drifts, psis, kss, strict=True)
    )


def _past(measured: Measured, limit: float, p: float | None, alpha: float) -> bool:
    return measured.value is not None and measured.value >= limit and p is not None and p <= alpha


def _reason(
    checked: Sequence[FeatureCheck], joint: JointDrift, ks: float, psi: float, alpha: float
) -> str:
    tested = [feature for feature in checked if not feature.drift.reason]
    if not tested:
        return f"Nothing could be tested: {checked[0].name}: {checked[0].drift.reason}."
    moved = [
        f"{feature.name} (PSI {feature.drift.psi.value:.2f}, adjusted p {feature.psi_adjusted:.3f};"
        f" KS {feature.drift.ks.value:.2f}, adjusted p {feature.ks_adjusted:.3f}; n ="
        f" {feature.drift.n_reference} and {feature.drift.n_current})"
        for feature in tested
        if feature.alert
    ]
    limits = f"KS {ks:g} or PSI {psi:g}"
    together = joint.energy.p is not None and joint.energy.p <= alpha
    if moved:
        return f"Past {limits} and past chance: {'; '.join(moved)}."
    past = [
        feature.name
        for feature in tested
        if (feature.drift.ks.value or 0) >= ks or (feature.drift.psi.value or 0) >= psi
    ]
    certain = [
        feature.name
        for feature in tested
        if min(feature.psi_adjusted or 1, feature.ks_adjusted or 1) <= alpha
    ]
    text = f"No feature of {len(tested)} moved past {limits} by more than chance"
    if past:
        text += f"; past it, but no further than shuffled items: {', '.join(past)}"
    if certain:
        text += f"; surely moved, but by less: {', '.join(certain)}"
    if together:
        text += f"; all features together did move (p = {joint.energy.p:.3f})"
    return f"{text}."


def _natural(value: str) -> tuple[int, float, str]:
    try:
        return 0, float(value), value
    except ValueError:
        return 1, 0.0, value


def _named(runs: Sequence[str]) -> str:
    return ", ".join(runs)
