"""Reports of a fit as the JSON that the store keeps, and maps by domain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from cotlab.reliability.calibrator import (
    Calibrator,
    Choice,
    Folds,
    Measured,
    NotCalibrated,
    Trial,
    select_calibrator,
)
from cotlab.reliability.composite import Floats, Tuned
from cotlab.stats.calibration_intervals import measure_difference, measure_interval
from cotlab.stats.intervals import Interval


def interval_json(interval: Interval) -> dict[str, Any]:
    """Return an interval as JSON values."""
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
    """Return the result of tuning as JSON values."""
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
    """Return the comparison of methods as JSON values."""
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
    """Return the result of one method as JSON values."""
    record: dict[str, Any] = {"method": trial.method, "refused": trial.refused, "note": ""}
    if trial.measured is None or trial.calibrator is None:
        return record
    return {**record, "note": trial.calibrator.note, **measured_json(trial.measured)}


def measured_json(measured: Measured) -> dict[str, Any]:
    """Return the measures of probabilities as JSON values, without the diagram."""
    each = {
        name: getattr(measured, name) for name in ("brier", "log_loss", "ece", "auroc", "gained")
    }
    return {
        **{name: interval_json(value) for name, value in each.items()},
        "band": list(measured.band),
        "bins": measured.bins,
        "skill": measured.skill,
    }


FEW = "the map over all domains: "
"""Beginning of the reason where a domain has no map of its own."""


def domain_maps(
    labels: pd.DataFrame,
    scores: Floats,
    y: np.ndarray[Any, Any],
    over_all: Floats,
    *,
    method: str,
    seed: int,
    folds: Folds | None = None,
    by_fold: Sequence[Floats] | None = None,
) -> tuple[dict[str, Calibrator], dict[str, Any]]:
    """Fit a map for each domain, and return those that are better than the map over all.

    Parameters
    ----------
    labels : DataFrame (n rows)
        Labelled items, with ``domain`` and ``question``.
    scores, y : arrays (n,)
        What is calibrated, and whether each is acceptable.
    over_all : array (n,) in [0, 1]
        What the map over all predicts of each label, out of fold.
    method, seed
        As ``select_calibrator``.
    folds, by_fold : optional
        As ``select_calibrator`` of all labels: where weights were tuned fold by fold.

    Returns
    -------
    tuple
        The maps that are used, by domain; and the report of each domain: ``n, n_positive, used``
        ("own" or "all"), ``why, chosen, methods`` (``trial_report``), and the out-of-fold Brier
        scores on this domain's labels of its ``own`` map, of the one over ``all``, and their
        ``difference`` (own − all, so below 0 where its own is better), each with an interval over
        questions, paired for the difference; None where the domain has too few labels for a map.
        Its own map is used only where the whole interval lies below 0: a domain has fewer labels
        than all have, so a map of its own has to show that it is worth them.
    """
    maps: dict[str, Calibrator] = {}
    report: dict[str, Any] = {}
    for name, rows in labels.reset_index(drop=True).groupby("domain").groups.items():
        at = np.asarray(rows, dtype=int)
        if not str(name):
            continue
        questions = labels["question"].iloc[at].tolist()
        of_all = interval_json(measure_interval("brier", over_all[at], y[at], questions, seed=seed))
        base = {
            "n": len(at),
            "n_positive": int(y[at].sum()),
            "all": of_all,
            "own": None,
            "difference": None,
        }
        which = within = None
        if folds is not None and by_fold is not None:
            used_folds, which = np.unique(folds[at], return_inverse=True)
            within = [by_fold[fold][at] for fold in used_folds]
        try:
            if which is not None and len(set(which)) < 2:
                raise NotCalibrated("its labels lie in one fold")
            choice = select_calibrator(
                scores[at],
                y[at],
                questions,
                method=method,
                seed=seed,
                folds=which,
                fold_scores=within,
            )
        except NotCalibrated as refused:
            report[str(name)] = {
                **base,
                "used": "all",
                "why": f"{FEW}{refused}",
                "chosen": None,
                "methods": [],
            }
            continue
        best = choice.chosen
        assert (
            best.calibrator is not None and best.predicted is not None and best.measured is not None
        )
        improvement = measure_difference(
            "brier", over_all[at], best.predicted, y[at], questions, seed=seed
        )
        better = improvement.hi is not None and improvement.hi < 0
        if better:
            maps[str(name)] = best.calibrator
        report[str(name)] = {
            **base,
            "own": interval_json(best.measured.brier),
            "difference": interval_json(improvement),
            "used": "own" if better else "all",
            "chosen": best.method,
            "methods": [trial_report(trial) for trial in choice.trials],
            "why": (
                choice.reason
                if better
                else f"{FEW}its own, {best.method}, is not better beyond chance"
            ),
        }
    return maps, report
