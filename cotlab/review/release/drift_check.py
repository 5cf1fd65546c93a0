"""A drift check as the store holds it, and its JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from cotlab.review.release.reaudit import Quality
from cotlab.stats.drift import (
    FeatureDrift,
    JointDrift,
    Measured,
)
from cotlab.store.calibrators import add_drift_check
from cotlab.store.database import Store

REFIT = "cotlab calibrate"
_NESTED = ("features", "joint", "at", "quality")


@dataclass(frozen=True, slots=True)
class FeatureCheck:
    """One feature of a check.

    Attributes
    ----------
    psi_adjusted, ks_adjusted : float in (0, 1] or None
        Permutation p-values after Benjamini and Hochberg, over PSI and KS of all features of the
        check.
    alert : bool
        One of the two is past its set point and its adjusted p-value is at most alpha.
    """

    name: str
    drift: FeatureDrift
    psi_adjusted: float | None = None
    ks_adjusted: float | None = None
    alert: bool = False


@dataclass(frozen=True, slots=True)
class DriftCheck:
    """A check of drift as it is kept.

    Attributes
    ----------
    reference, current : tuple of str
        Run ids.
    ks, psi, alpha : float
        The set points.
    shared : int
        Questions that both sides asked; they are compared with themselves.
    alert : bool
        Some feature moved by more than is set, and by more than chance.
    reason : str
        Why, or why not, in words.
    quality : Quality
        Brier and ECE of the calibrator in use on what was labelled of the current runs since its
        fit.
    label : str
        What this part of a series is: a tag's value, or when the run was planned.
    """

    id: str
    reference: tuple[str, ...]
    current: tuple[str, ...]
    at: datetime
    by: str
    ks: float
    psi: float
    alpha: float
    permutations: int
    seed: int
    features: tuple[FeatureCheck, ...]
    joint: JointDrift
    shared: int
    alert: bool
    reason: str
    quality: Quality
    label: str = ""

    @property
    def moved(self) -> list[str]:
        """The features that raise the alert."""
        return [feature.name for feature in self.features if feature.alert]

    @property
    def suggestion(self) -> str:
        """What to do now; "" where there is no alert."""
        if not self.alert:
            return ""
        return (
            f"Scores of these items may no longer mean what they did: {', '.join(self.moved)}"
            f" moved. Label items of {', '.join(self.current)}, then fit again: {REFIT}"
            f" {' '.join((*self.reference, *self.current))}"
        )


def store_drift_check(store: Store, check: DriftCheck) -> bool:
    """Write a check to the store; False where it is there already."""
    with store.writing() as connection:
        return add_drift_check(
            connection,
            check.id,
            reference=check.reference,
            current=check.current,
            at=check.at,
            by=check.by,
            alert=check.alert,
            reason=check.reason,
            result=drift_json(check),
        )


def drift_json(check: DriftCheck) -> dict[str, Any]:
    """A check as what JSON can hold."""
    return {**asdict(check), "at": check.at.isoformat(), "suggestion": check.suggestion}


def drift_from_json(data: Mapping[str, Any]) -> DriftCheck:
    """The check that ``as_json`` was made of."""
    features = tuple(
        FeatureCheck(**{**feature, "drift": _feature(feature["drift"])})
        for feature in data["features"]
    )
    band = data["quality"]["band"]
    restored = Quality(**{**data["quality"], "band": None if band is None else tuple(band)})
    joint = JointDrift(**{**data["joint"], "energy": Measured(**data["joint"]["energy"])})
    rest = {name: data[name] for name in DriftCheck.__slots__ if name not in _NESTED}
    rest |= {side: tuple(data[side]) for side in ("reference", "current")}
    return DriftCheck(
        **rest,
        features=features,
        joint=joint,
        quality=restored,
        at=datetime.fromisoformat(data["at"]),
    )


def _feature(data: Mapping[str, Any]) -> FeatureDrift:
    measured = {name: Measured(**data[name]) for name in ("psi", "ks", "kl", "kl_back")}
    return FeatureDrift(**{**data, **measured})
