"""Whether current items still resemble those of the reference: by feature, jointly, over time."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import pandas as pd

from cotlab.core.errors import ConfigError, CotlabError, UnknownName
from cotlab.review.release.drift_check import DriftCheck, FeatureCheck, measure_quality
from cotlab.review.release.features import NUMERIC_COLUMNS, feature_table
from cotlab.stats.drift import FeatureDrift, JointDrift, Measured, feature_drift, joint_drift
from cotlab.stats.multiple import benjamini_hochberg
from cotlab.stats.shuffles import Shuffles
from cotlab.store import read
from cotlab.store.database import Store

DEFAULT_KS_LIMIT = 0.2
DEFAULT_PSI_LIMIT = 0.2
DEFAULT_ALPHA = 0.05
DEFAULT_N_PERMUTATIONS = 1999
DEFAULT_SEED = 42
"""Defaults: distances that matter, the risk of a false alert, and the permutations and seed."""
DRIFT_MEASURES = ("psi", "ks")


class NoCommonFeatures(CotlabError):
    """Runs that share no number that could drift."""


def measure_drift(
    store: Store,
    reference_runs: Sequence[str],
    current_runs: Sequence[str],
    *,
    features: Sequence[str] = (),
    ks: float = DEFAULT_KS_LIMIT,
    psi: float = DEFAULT_PSI_LIMIT,
    alpha: float = DEFAULT_ALPHA,
    permutations: int = DEFAULT_N_PERMUTATIONS,
    seed: int = DEFAULT_SEED,
    author: str = "",
    label: str = "",
) -> DriftCheck:
    """Compare the features of ``current_runs`` and ``reference_runs``; nothing is written.

    Parameters
    ----------
    store : Store
    reference, current_runs : sequence of str
        Run ids, at least one each and none in both.
    features : sequence of str
        Of ``NUMERIC_COLUMNS``; by default all that have values.
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
    NoCommonFeatures
        If no feature has a value on both sides.
    """
    reference_runs, current_runs = (
        tuple(dict.fromkeys(reference_runs)),
        tuple(dict.fromkeys(current_runs)),
    )
    _validate_drift_options(reference_runs, current_runs, features, ks, psi, alpha, permutations)
    table = feature_table(store, [*reference_runs, *current_runs])
    is_reference = table["run"].isin(reference_runs)
    compared_columns = table[["question", *NUMERIC_COLUMNS]]
    reference_rows, current_rows = compared_columns[is_reference], compared_columns[~is_reference]
    feature_names = [
        name
        for name in features or NUMERIC_COLUMNS
        if reference_rows[name].notna().any() or current_rows[name].notna().any()
    ]
    if not any(
        reference_rows[name].notna().any() and current_rows[name].notna().any()
        for name in feature_names
    ):
        raise NoCommonFeatures(
            f"{', '.join(reference_runs)} and {', '.join(current_runs)} have no number in common to"
            " look for drift in: measure both with --profile phase3"
        )
    n_tests = 2 * len(feature_names)
    if n_tests / (permutations + 1) > alpha:
        raise ConfigError(
            f"--permutations {permutations}: {n_tests} tests at alpha {alpha:g} can reject only"
            f" from {int(n_tests / alpha)} on"
        )
    questions = reference_rows["question"].tolist(), current_rows["question"].tolist()
    shuffles = Shuffles(*questions, permutations=permutations, seed=seed)
    drifts = [
        feature_drift(reference_rows[name].to_numpy(), current_rows[name].to_numpy(), shuffles)
        for name in feature_names
    ]
    feature_checks = _check_features(feature_names, drifts, ks, psi, alpha)
    tested_names = [feature.name for feature in feature_checks if not feature.drift.reason]
    feature_matrices = (
        reference_rows[tested_names].to_numpy(dtype=float),
        current_rows[tested_names].to_numpy(dtype=float),
    )
    joint_result = joint_drift(
        *feature_matrices, *questions, permutations=permutations, seed=seed, shuffles=shuffles
    )
    is_alert = any(feature.alert for feature in feature_checks)
    n_shared = len(set(questions[0]) & set(questions[1]))
    reason = _drift_reason(feature_checks, joint_result, ks, psi, alpha)
    check_id, now = uuid.uuid4().hex[:12], datetime.now(UTC)
    check_results = (
        feature_checks,
        joint_result,
        n_shared,
        is_alert,
        reason,
        measure_quality(store, current_runs, seed=seed),
    )
    return DriftCheck(
        check_id,
        reference_runs,
        current_runs,
        now,
        author,
        ks,
        psi,
        alpha,
        permutations,
        seed,
        *check_results,
        label,
    )


def group_runs_for_drift(
    store: Store, runs: Sequence[str], series_key: str
) -> list[tuple[str, tuple[str, ...]]]:
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
    if series_key == "time":
        rows.sort(key=lambda row: (row["planned_at"], row["id"]))
        return [(f"{row['planned_at']:%Y-%m-%d %H:%M:%S}", (str(row["id"]),)) for row in rows]
    runs_by_value: dict[str, list[str]] = {}
    for row in rows:
        value = read.plan_from_row(row).tags.get(series_key)
        if value is None:
            raise ConfigError(
                f"--over {series_key}: run {row['id']} has no tag of this name; `--over time` needs"
                " none"
            )
        runs_by_value.setdefault(value, []).append(str(row["id"]))
    return [
        (f"{series_key} {value}", tuple(runs_by_value[value]))
        for value in sorted(runs_by_value, key=_natural_sort_key)
    ]


def load_feature_values(store: Store, check: DriftCheck) -> pd.DataFrame:
    """Return the feature vectors of a check, with a column ``side``: reference or current."""
    table = feature_table(store, [*check.reference, *check.current])
    return table.assign(side=np.where(table["run"].isin(check.reference), "reference", "current"))


def _validate_drift_options(
    reference_runs: Sequence[str],
    current_runs: Sequence[str],
    features: Sequence[str],
    ks: float,
    psi: float,
    alpha: float,
    permutations: int,
) -> None:
    if not reference_runs or not current_runs:
        raise ConfigError(
            "Drift is looked for between runs: name one that is the reference and one that is held"
            " against it"
        )
    if runs_on_both_sides := [run for run in current_runs if run in reference_runs]:
        raise ConfigError(
            f"Run {runs_on_both_sides[0]} is on both sides: it cannot have drifted from itself"
        )
    if unknown_features := [name for name in features if name not in NUMERIC_COLUMNS]:
        raise UnknownName("feature", unknown_features[0], NUMERIC_COLUMNS)
    if not (ks > 0 and psi > 0 and 0 < alpha < 1 and permutations >= 1):
        raise ConfigError(
            f"KS {ks:g} and PSI {psi:g} must be above 0, alpha {alpha:g} inside (0, 1),"
            " permutations at least 1"
        )


def _check_features(
    names: Sequence[str], drifts: Sequence[FeatureDrift], ks: float, psi: float, alpha: float
) -> tuple[FeatureCheck, ...]:
    adjusted_p_values = benjamini_hochberg(
        [getattr(drift, name).p for name in DRIFT_MEASURES for drift in drifts]
    )
    psi_p_values, ks_p_values = adjusted_p_values[: len(drifts)], adjusted_p_values[len(drifts) :]
    return tuple(
        FeatureCheck(
            name,
            drift,
            psi_p,
            ks_p,
            _exceeds_limit(drift.psi, psi, psi_p, alpha)
            or _exceeds_limit(drift.ks, ks, ks_p, alpha),
        )
        for name, drift, psi_p, ks_p in zip(names, drifts, psi_p_values, ks_p_values, strict=True)
    )


def _exceeds_limit(measured: Measured, limit: float, p: float | None, alpha: float) -> bool:
    return measured.value is not None and measured.value >= limit and p is not None and p <= alpha


def _drift_reason(
    feature_checks: Sequence[FeatureCheck], joint: JointDrift, ks: float, psi: float, alpha: float
) -> str:
    tested_checks = [feature for feature in feature_checks if not feature.drift.reason]
    if not tested_checks:
        return (
            f"Nothing could be tested: {feature_checks[0].name}: {feature_checks[0].drift.reason}."
        )
    moved_texts = [
        f"{feature.name} (PSI {feature.drift.psi.value:.2f}, adjusted p {feature.psi_adjusted:.3f};"
        f" KS {feature.drift.ks.value:.2f}, adjusted p {feature.ks_adjusted:.3f}; n ="
        f" {feature.drift.n_reference} and {feature.drift.n_current})"
        for feature in tested_checks
        if feature.alert
    ]
    limits_text = f"KS {ks:g} or PSI {psi:g}"
    if moved_texts:
        return f"Past {limits_text} and past chance: {'; '.join(moved_texts)}."
    past_limit_names = [
        feature.name
        for feature in tested_checks
        if (feature.drift.ks.value or 0) >= ks or (feature.drift.psi.value or 0) >= psi
    ]
    significant_names = [
        feature.name
        for feature in tested_checks
        if min(feature.psi_adjusted or 1, feature.ks_adjusted or 1) <= alpha
    ]
    text = f"No feature of {len(tested_checks)} moved past {limits_text} by more than chance"
    if past_limit_names:
        text += f"; past it, but no further than shuffled items: {', '.join(past_limit_names)}"
    if significant_names:
        text += f"; surely moved, but by less: {', '.join(significant_names)}"
    if joint.energy.p is not None and joint.energy.p <= alpha:
        text += f"; all features together did move (p = {joint.energy.p:.3f})"
    return f"{text}."


def _natural_sort_key(value: str) -> tuple[int, float, str]:
    try:
        return 0, float(value), value
    except ValueError:
        return 1, 0.0, value
