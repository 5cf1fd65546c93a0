"""What a fit found, as the JSON values that the store keeps."""

from __future__ import annotations

from typing import Any

import numpy as np

from cotlab.reliability.calibrator import Choice, Measured, Trial
from cotlab.reliability.composite import Floats, Tuned
from cotlab.stats.intervals import Interval


def interval_json(interval: Interval) -> dict[str, Any]:
    """An interval as JSON values."""
    return {
        "point": interval.point,
        "lo": interval.lo,
        "hi": interval.hi,
        "n": interval.n,
        "method": interval.method,
        "reason": interval.reason,
        "note": interval.note,
    }


def tuned_report(tuned: Tuned) -> dict[str, Any]:
    """What tuning found, as JSON values."""
    return {
        "weights": dict(tuned.weights),
        "objective": tuned.objective,
        "shrunk": tuned.shrunk,
        "better": tuned.better,
        "why": tuned.reason,
        "example": interval_json(tuned.example),
        "tuned": interval_json(tuned.tuned),
        "difference": interval_json(tuned.difference),
        "n": tuned.n,
        "left_out": tuned.left_out,
        "folds": int(tuned.folds.max()) + 1,
        "fold_weights": [dict(fold) for fold in tuned.fold_weights],
    }


def choice_report(choice: Choice, scores: Floats, y: np.ndarray[Any, Any]) -> dict[str, Any]:
    best = choice.chosen
    assert best.measured is not None and best.predicted is not None
    diagram = [
        {
            "lo": each_bin.lo,
            "hi": each_bin.hi,
            "predicted": each_bin.predicted,
            "observed": each_bin.observed.point,
            "observed_lo": each_bin.observed.lo,
            "observed_hi": each_bin.observed.hi,
            "n": each_bin.observed.n,
        }
        for each_bin in best.measured.diagram
    ]
    return {
        "n": len(y),
        "n_positive": int(y.sum()),
        "base_rate": float(y.mean()),
        "folds": int(choice.folds.max()) + 1,
        "base_brier": interval_json(choice.base_brier),
        "auroc_r_raw": interval_json(choice.auroc_raw),
        "chosen": best.method,
        "why": choice.reason,
        "methods": [trial_report(trial) for trial in choice.trials],
        "diagram": diagram,
        "points": {
            "r_raw": [float(v) for v in scores],
            "predicted": [float(v) for v in best.predicted],
            "target": [bool(v) for v in y],
        },
    }


def trial_report(trial: Trial) -> dict[str, Any]:
    record: dict[str, Any] = {"method": trial.method, "refused": trial.refused, "note": ""}
    if trial.measured is None or trial.calibrator is None:
        return record
    return {**record, "note": trial.calibrator.note, **measured_json(trial.measured)}


def measured_json(measured: Measured) -> dict[str, Any]:
    """The numbers of probabilities as JSON values, without the diagram."""
    each = {
        name: getattr(measured, name) for name in ("brier", "log_loss", "ece", "auroc", "gained")
    }
    return {
        **{name: interval_json(value) for name, value in each.items()},
        "band": list(measured.band),
        "bins": measured.bins,
        "skill": measured.skill,
    }
