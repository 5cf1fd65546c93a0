"""A drift check: its results, its JSON, and storing it."""

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
"""Command that fits a calibrator again."""
_NESTED = ("features", "joint", "at", "quality")


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
    quality: Quality
    """Brier score and ECE of the calibrator in use on current items labelled since its fit."""
    label: str = ""
    """Position in a series: a tag's value, or when the run was planned."""

    @property
    def moved(self) -> list[str]:
        """Return the features that raise the alert."""
        return [feature.name for feature in self.features if feature.alert]

    @property
    def suggestion(self) -> str:
        """Return what to do now; "" where there is no alert."""
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
    """Return a check as JSON values."""
    return {**asdict(check), "at": check.at.isoformat(), "suggestion": check.suggestion}


def drift_from_json(data: Mapping[str, Any]) -> DriftCheck:
    """Return the check that ``drift_json`` was made of."""
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
