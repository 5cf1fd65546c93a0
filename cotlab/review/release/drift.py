"""Whether current items still resemble those of the reference: by feature, jointly, over time."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import TypeAdapter

from cotlab.core.errors import ConfigError, CotlabError, UnknownName
from cotlab.review.release.features import NUMERIC_COLUMNS, feature_table
from cotlab.review.release.reaudit import CalibratorQuality, measure_quality
from cotlab.stats.drift import FeatureDrift, JointDrift, Measured, feature_drift, joint_drift
from cotlab.stats.multiple import benjamini_hochberg
from cotlab.stats.shuffles import Shuffles
from cotlab.store import read
from cotlab.store.calibrators import add_drift_check
from cotlab.store.database import Store

DEFAULT_KS_LIMIT = 0.2
DEFAULT_PSI_LIMIT = 0.2
DEFAULT_ALPHA = 0.05
DEFAULT_N_PERMUTATIONS = 1999
DEFAULT_SEED = 42
"""Defaults: distances that matter, the risk of a false alert, and the permutations and seed."""
REFIT_COMMAND = "cotlab calibrate"
"""Command that fits a calibrator again."""
DriftState = Literal["drift", "none", "unclear"]
"""``drift``: an alert. ``none``: every feature was tested, nothing moved, and a shift of the limits
would have been seen. ``unclear``: anything else."""
HEADLINES: dict[DriftState, str] = {
    "drift": "Drift.",
    "none": "No drift.",
    "unclear": "Cannot say.",
}
"""First words of a check's result."""
BEHAVIOURS = {
    ("ccs_corrupt", "numeric_change"): (
        "whether the answer follows a step that states something else"
    ),
    ("mass_lost", "bypass"): "what the answer loses without the chain's states",
    ("hint_followed",): "whether a suggestion moves the answer",
}
"""Features of what a model does, any of them for each behaviour; the others are about the chain as
a text."""


class NoCommonFeatures(CotlabError):
    """Runs that share no number that could drift."""


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


_STORED_CHECK = TypeAdapter(DriftCheck)


def drift_json(check: DriftCheck) -> dict[str, Any]:
    """Return a check as JSON values."""
    return {**asdict(check), "at": check.at.isoformat(), "suggestion": check.suggestion}


def drift_from_json(data: Mapping[str, Any]) -> DriftCheck:
    """Return the check that ``drift_json`` was made of."""
    return _STORED_CHECK.validate_python(dict(data))


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
    reference_runs, current_runs : sequence of str
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
    author, label : str
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
        tuple(dict.fromkeys(runs)) for runs in (reference_runs, current_runs)
    )
    _validate_drift_options(reference_runs, current_runs, features, ks, psi, alpha, permutations)
    table = feature_table(store, [*reference_runs, *current_runs])
    is_reference = table["run"].isin(reference_runs)
    reference, current = table[is_reference], table[~is_reference]
    names = [name for name in features or NUMERIC_COLUMNS if table[name].notna().any()]
    if not any(reference[name].notna().any() and current[name].notna().any() for name in names):
        raise NoCommonFeatures(
            f"{', '.join(reference_runs)} and {', '.join(current_runs)} have no number in common to"
            " look for drift in: measure both with --profile phase3"
        )
    n_tests = 2 * len(names)
    if n_tests / (permutations + 1) > alpha:
        raise ConfigError(
            f"--permutations {permutations}: {n_tests} tests at alpha {alpha:g} can reject only"
            f" from {int(n_tests / alpha)} on"
        )
    questions = reference["question"].tolist(), current["question"].tolist()
    shuffles = Shuffles(*questions, permutations=permutations, seed=seed)
    drifts = [
        feature_drift(reference[name].to_numpy(), current[name].to_numpy(), shuffles)
        for name in names
    ]
    p_values = benjamini_hochberg([d.psi.p for d in drifts] + [d.ks.p for d in drifts])

    def is_moved(measured: Measured, limit: float, p: float | None) -> bool:
        return (measured.value or 0.0) >= limit and p is not None and p <= alpha

    checks = tuple(
        FeatureCheck(
            name,
            drift,
            psi_adjusted=psi_p,
            ks_adjusted=ks_p,
            alert=is_moved(drift.psi, psi, psi_p) or is_moved(drift.ks, ks, ks_p),
        )
        for name, drift, psi_p, ks_p in zip(
            names, drifts, p_values[: len(drifts)], p_values[len(drifts) :], strict=True
        )
    )
    tested_names = [check.name for check in checks if not check.drift.reason]
    joint = joint_drift(
        reference[tested_names].to_numpy(dtype=float),
        current[tested_names].to_numpy(dtype=float),
        *questions,
        permutations=permutations,
        seed=seed,
        shuffles=shuffles,
    )
    return DriftCheck(
        id=uuid.uuid4().hex[:12],
        reference=reference_runs,
        current=current_runs,
        at=datetime.now(UTC),
        by=author,
        ks=ks,
        psi=psi,
        alpha=alpha,
        permutations=permutations,
        seed=seed,
        features=checks,
        joint=joint,
        shared=len({*questions[0]} & {*questions[1]}),
        alert=any(check.alert for check in checks),
        reason=_drift_reason(checks, ks, psi),
        quality=measure_quality(store, current_runs, seed=seed),
        label=label,
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


def _drift_reason(checks: Sequence[FeatureCheck], ks: float, psi: float) -> str:
    """Return what moved, or that nothing did; ``drift_doubts`` says why that may not hold."""
    n_tested = sum(not check.drift.reason for check in checks)
    if not n_tested:
        return f"Nothing could be tested: {checks[0].name}: {checks[0].drift.reason}."
    moved_texts = [
        f"{check.name} (PSI {check.drift.psi.value:.2f}, adjusted p {check.psi_adjusted:.3f}; KS"
        f" {check.drift.ks.value:.2f}, adjusted p {check.ks_adjusted:.3f}; n ="
        f" {check.drift.n_reference} and {check.drift.n_current})"
        for check in checks
        if check.alert
    ]
    limits_text = f"KS {ks:g} or PSI {psi:g}"
    if moved_texts:
        return f"Past {limits_text} and past chance: {'; '.join(moved_texts)}."
    return f"No feature of {n_tested} moved past {limits_text} by more than chance."


def _natural_sort_key(value: str) -> tuple[int, float, str]:
    try:
        return 0, float(value), value
    except ValueError:
        return 1, 0.0, value


def drift_state(check: DriftCheck) -> DriftState:
    """Return what a check found."""
    if check.alert:
        return "drift"
    return "unclear" if drift_doubts(check) else "none"


def drift_doubts(check: DriftCheck) -> list[str]:
    """Return why a check without an alert does not show that nothing drifted; [] where it does.

    A test that is passed without its limit, a limit that is passed without its test, a sample in
    which chance alone reaches the limit, and a feature that could not be compared each leave it
    open.
    """
    tested = [feature for feature in check.features if not feature.drift.reason]
    doubts = []
    energy = check.joint.energy
    if energy.p is not None and energy.p <= check.alpha:
        doubts.append(f"all features together moved (p = {energy.p:.3f})")
    if certain := [
        feature.name
        for feature in tested
        if min(feature.psi_adjusted or 1, feature.ks_adjusted or 1) <= check.alpha
    ]:
        doubts.append(
            f"{', '.join(certain)} moved by more than chance, though by less than the limit"
        )
    if far := [
        feature.name
        for feature in tested
        if (feature.drift.ks.value or 0) >= check.ks or (feature.drift.psi.value or 0) >= check.psi
    ]:
        doubts.append(f"{', '.join(far)} differ by more than the limit, which may be chance")
    if blurred := [
        feature  # shuffled items reach both limits
        for feature in tested
        if (feature.drift.ks.null_hi or 0) >= check.ks
        and (feature.drift.psi.null_hi or 0) >= check.psi
    ]:
        sizes = sorted({(f.drift.n_reference, f.drift.n_current) for f in blurred})
        size_text = " or ".join(f"{first} and {second}" for first, second in sizes[:1])
        names = ", ".join(feature.name for feature in blurred)
        doubts.append(
            f"with {size_text} items chance alone may reach the limit, so that a shift of this size"
            f" could not be told in {names}"
        )
    missing = [feature for feature in check.features if feature.drift.reason]
    one_sided = [f for f in missing if f.drift.n_reference * f.drift.n_current == 0]
    doubts += [
        f"{feature.name}: {feature.drift.reason}"
        for feature in missing
        if feature not in one_sided and not feature.drift.is_constant
    ]
    if one_sided:
        doubts.append(f"measured on one side only: {', '.join(f.name for f in one_sided)}")
    return doubts


def uncompared_text(check: DriftCheck) -> str:
    """Return a sentence on behaviours that a check did not compare; "" where it did all."""
    compared = {feature.name for feature in check.features if feature.drift.reason == ""}
    compared |= {feature.name for feature in check.features if feature.drift.is_constant}
    missing = [text for names, text in BEHAVIOURS.items() if not compared & {*names}]
    return f"Not compared: {'; '.join(missing)}." if missing else ""
