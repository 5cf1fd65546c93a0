"""What a fit found, as the JSON values that the store keeps."""

from __future__ import annotations

from typing import Any

import numpy as np

from cotlab.reliability.calibrator import Choice, Measured, Trial
from cotlab.reliability.weights import Floats, Tuned
from cotlab.stats.intervals import Interval


def interval_json(found: Interval) -> dict[str, Any]:
    """An interval as JSON values."""
    return {
        "point": found.point, "lo": found.lo, "hi": found.hi, "n": found.n, "method": found.method, "reason": found.reason,
        "note": found.note,
    }  # fmt: skip


def tuned_report(found: Tuned) -> dict[str, Any]:
    """What tuning found, as JSON values."""
    return {
        "weights": dict(found.weights), "objective": found.objective, "shrunk": found.shrunk, "better": found.better,
        "why": found.why, "example": interval_json(found.example), "tuned": interval_json(found.tuned),
        "difference": interval_json(found.difference), "n": found.n, "left_out": found.left_out,
        "folds": int(found.folds.max()) + 1, "fold_weights": [dict(one) for one in found.fold_weights],
    }  # fmt: skip


def choice_report(choice: Choice, scores: Floats, y: np.ndarray[Any, Any]) -> dict[str, Any]:
    best = choice.chosen
    assert best.measured is not None and best.predicted is not None
    diagram = [
        {
            "lo": one.lo, "hi": one.hi, "predicted": one.predicted, "observed": one.observed.point,
            "observed_lo": one.observed.lo, "observed_hi": one.observed.hi, "n": one.observed.n,
        }
        for one in best.measured.diagram
    ]  # fmt: skip
    return {
        "n": len(y), "n_positive": int(y.sum()), "base_rate": float(y.mean()), "folds": int(choice.folds.max()) + 1,
        "base_brier": interval_json(choice.base_brier), "auroc_r_raw": interval_json(choice.auroc_raw),
        "chosen": best.method, "why": choice.why,
        "methods": [trial_report(trial) for trial in choice.trials], "diagram": diagram,
        "points": {
            "r_raw": [float(v) for v in scores], "predicted": [float(v) for v in best.predicted],
            "target": [bool(v) for v in y],
        },
    }  # fmt: skip


def trial_report(trial: Trial) -> dict[str, Any]:
    told: dict[str, Any] = {"method": trial.method, "refused": trial.refused, "note": ""}
    if trial.measured is None or trial.calibrator is None:
        return told
    return {**told, "note": trial.calibrator.note, **measured_json(trial.measured)}


def measured_json(found: Measured) -> dict[str, Any]:
    """The numbers of probabilities as JSON values, without the diagram."""
    each = {name: getattr(found, name) for name in ("brier", "log_loss", "ece", "auroc", "gained")}
    return {
        **{name: interval_json(one) for name, one in each.items()},
        "band": list(found.band), "bins": found.bins, "skill": found.skill,
    }  # fmt: skip
