"""Reports of a fit as the JSON that the store keeps, and maps by domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from cotlab.reliability.calibrator import (
    CalibratorChoice,
    MethodTrial,
    select_calibrator,
)
from cotlab.reliability.composite import Floats, TunedWeights
from cotlab.reliability.maps import Calibrator, Folds, NotCalibrated
from cotlab.stats.calibration_intervals import measure_difference, measure_interval
from cotlab.stats.intervals import Interval


def interval_json(interval: Interval) -> dict[str, Any]:
    """Return an interval as JSON values."""
    record = asdict(interval)
    del record["level"]
    return record


def tuned_report(tuned_weights: TunedWeights) -> dict[str, Any]:
    """Return the result of tuning as JSON values."""
    return {
        "objective": tuned_weights.objective,
        "shrunk": tuned_weights.shrinkage,
        "better": tuned_weights.is_better,
        "n": tuned_weights.n,
        "left_out": tuned_weights.n_left_out,
        "example": interval_json(tuned_weights.example_objective),
        "tuned": interval_json(tuned_weights.tuned_objective),
        "difference": interval_json(tuned_weights.difference),
        "weights": dict(tuned_weights.weights),
        "why": tuned_weights.reason,
        "folds": int(tuned_weights.folds.max()) + 1,
        "fold_weights": [dict(fold) for fold in tuned_weights.fold_weights],
    }


def choice_report(
    choice: CalibratorChoice, scores: Floats, y: np.ndarray[Any, Any]
) -> dict[str, Any]:
    """Return the comparison of methods as JSON values."""
    chosen_trial = choice.chosen_trial
    assert chosen_trial.quality is not None and chosen_trial.predictions is not None
    diagram = [
        {
            "lo": calibration_bin.lo,
            "hi": calibration_bin.hi,
            "predicted": calibration_bin.predicted,
            "n": calibration_bin.observed.n,
            "observed": calibration_bin.observed.point,
            "observed_lo": calibration_bin.observed.lo,
            "observed_hi": calibration_bin.observed.hi,
        }
        for calibration_bin in chosen_trial.quality.diagram
    ]
    return {
        "n": len(y),
        "n_positive": int(y.sum()),
        "base_rate": float(y.mean()),
        "folds": int(choice.folds.max()) + 1,
        "base_brier": interval_json(choice.base_brier),
        "auroc_r_raw": interval_json(choice.raw_auroc),
        "chosen": chosen_trial.method,
        "why": choice.reason,
        "methods": [trial_report(trial) for trial in choice.trials],
        "diagram": diagram,
        "points": {
            "r_raw": [None if np.isnan(value) else float(value) for value in scores],
            "predicted": [float(value) for value in chosen_trial.predictions],
            "target": [bool(value) for value in y],
        },
    }


def trial_report(trial: MethodTrial) -> dict[str, Any]:
    """Return the result of one method as JSON values."""
    record: dict[str, Any] = {"method": trial.method, "refused": trial.refusal_reason, "note": ""}
    if trial.quality is None or trial.calibrator is None:
        return record
    quality = trial.quality
    interval_fields = ("brier", "log_loss", "ece", "auroc", "gained")
    return {
        **record,
        "note": trial.calibrator.note,
        **{name: interval_json(getattr(quality, name)) for name in interval_fields},
        "band": list(quality.band),
        "bins": quality.bins,
        "skill": quality.skill,
    }


NO_DOMAIN_MAP_REASON = "the map over all domains: "
"""Beginning of the reason where a domain has no map of its own."""


def fit_domain_maps(
    labels: pd.DataFrame,
    scores: Floats,
    y: np.ndarray[Any, Any],
    overall_predictions: Floats,
    *,
    method: str,
    seed: int,
    folds: Folds | None = None,
    scores_by_fold: Sequence[Floats] | None = None,
) -> tuple[dict[str, Calibrator], dict[str, Any], Floats]:
    """Fit a map for each domain, and return those that are better than the map over all.

    Parameters
    ----------
    labels : DataFrame (n rows)
        Labelled items, with ``domain`` and ``question``.
    scores, y : arrays (n,)
        What is calibrated, and whether each is acceptable.
    overall_predictions : array (n,) in [0, 1]
        What the map over all predicts of each label, out of fold.
    method, seed
        As ``select_calibrator``.
    folds, scores_by_fold : optional
        As ``select_calibrator`` of all labels: where weights were tuned fold by fold.

    Returns
    -------
    tuple
        The maps that are used, by domain; the report of each domain; and the out-of-fold
        predictions of the maps that are used. A report has ``n, n_positive, used``
        ("own" or "all"), ``why, chosen, methods`` (``trial_report``), and the out-of-fold Brier
        scores on this domain's labels of its ``own`` map, of the one over ``all``, and their
        ``difference`` (own − all, so below 0 where its own is better), each with an interval over
        questions, paired for the difference; None where the domain has too few labels for a map.
        Its own map is used only where the whole interval lies below 0: a domain has fewer labels
        than all have, so a map of its own has to show that it is worth them.
    """
    calibrator_by_domain: dict[str, Calibrator] = {}
    report_by_domain: dict[str, Any] = {}
    predictions = overall_predictions.copy()
    domains = labels["domain"].to_numpy()
    for name in sorted(set(domains) - {""}):
        rows = np.flatnonzero(domains == name)
        own_y, overall = y[rows], overall_predictions[rows]
        questions = labels["question"].iloc[rows].tolist()
        record = report_by_domain[str(name)] = {
            "n": len(rows),
            "n_positive": int(own_y.sum()),
            "all": interval_json(measure_interval("brier", overall, own_y, questions, seed=seed)),
            "own": None,
            "difference": None,
            "used": "all",
            "chosen": None,
            "methods": [],
        }
        own_folds = own_scores = None
        if folds is not None and scores_by_fold is not None:
            used_folds, own_folds = np.unique(folds[rows], return_inverse=True)
            own_scores = [scores_by_fold[fold][rows] for fold in used_folds]
        try:
            if own_folds is not None and len(set(own_folds)) < 2:
                raise NotCalibrated("its labels lie in one fold")
            choice = select_calibrator(
                scores[rows],
                own_y,
                questions,
                method=method,
                seed=seed,
                folds=own_folds,
                fold_scores=own_scores,
            )
        except NotCalibrated as error:
            record["why"] = f"{NO_DOMAIN_MAP_REASON}{error}"
            continue
        chosen = choice.chosen_trial
        assert chosen.calibrator is not None and chosen.predictions is not None
        assert chosen.quality is not None
        difference = measure_difference(
            "brier", overall, chosen.predictions, own_y, questions, seed=seed
        )
        record |= {
            "own": interval_json(chosen.quality.brier),
            "difference": interval_json(difference),
            "chosen": chosen.method,
            "methods": [trial_report(trial) for trial in choice.trials],
            "why": f"{NO_DOMAIN_MAP_REASON}its own, {chosen.method}, is not better beyond chance",
        }
        if difference.hi is not None and difference.hi < 0:
            calibrator_by_domain[str(name)] = chosen.calibrator
            predictions[rows] = chosen.predictions
            record |= {"used": "own", "why": choice.reason}
    return calibrator_by_domain, report_by_domain, predictions
