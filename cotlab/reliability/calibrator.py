"""Choose the map from score to probability: fit all, measure each out of fold, take the best."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cotlab.reliability.maps import (
    COMBINED_METHOD,
    METHODS,
    Calibrator,
    Floats,
    Folds,
    NotCalibrated,
    assign_folds,
    check_scores,
    fit,
    fit_without_minimum,
    missing_labels_reason,
)
from cotlab.stats.calibration import Bin, bin_count, equal_mass_bins, perfect_band, reliability_bins
from cotlab.stats.calibration_intervals import measure_difference, measure_interval
from cotlab.stats.intervals import Interval, no_interval


@dataclass(frozen=True, slots=True)
class MeasuredQuality:
    """Quality of the probabilities of labelled items; intervals by bootstrap over questions."""

    brier: Interval
    """Brier score, lower is better."""
    log_loss: Interval
    """Log loss in nats, lower is better."""
    ece: Interval
    """Expected calibration error, lower is better."""
    auroc: Interval
    """AUROC, higher is better."""
    band: tuple[float, float]
    """Middle 95 % of the ECE of a perfectly calibrated forecaster with these predictions."""
    bins: int
    """Number of bins of the ECE."""
    gained: Interval
    """Brier score minus that of the base rate; below 0 is better than the base rate."""
    skill: float | None
    """1 − Brier / Brier of the base rate; None where that is 0."""
    diagram: tuple[Bin, ...]
    """Points of the reliability diagram."""


@dataclass(frozen=True, slots=True)
class MethodTrial:
    """One method: fitted on all labels and measured out of fold, or refused."""

    method: str
    """One of ``METHODS``, or ``combined``."""
    refusal_reason: str | None
    """Why it cannot be fitted; None where it can."""
    calibrator: Calibrator | None = None
    """Fitted on all labels."""
    predictions: Floats | None = None
    """Out-of-fold probabilities (n,)."""
    quality: MeasuredQuality | None = None
    """Quality of ``predictions``."""

    @property
    def brier(self) -> float:
        """Return the Brier score out of fold; infinite where the method is refused."""
        return np.inf if self.quality is None else self.quality.brier.point or 0.0


@dataclass(frozen=True, slots=True)
class CalibratorChoice:
    """All methods side by side, and the one that is taken."""

    trials: tuple[MethodTrial, ...]
    """One for each of ``METHODS``."""
    chosen_trial: MethodTrial
    """The trial that is taken."""
    reason: str
    """Why it was taken."""
    folds: Folds
    """Fold (n,) in which each label was held out."""
    base_brier: Interval
    """Brier score of the base rate of the other folds."""
    raw_auroc: Interval
    """AUROC of the scores themselves."""


def select_calibrator(
    scores: ArrayLike,
    targets: ArrayLike,
    groups: Sequence[Hashable],
    *,
    method: str = "auto",
    seed: int = 0,
    folds: Folds | None = None,
    fold_scores: Sequence[Floats] | None = None,
) -> CalibratorChoice:
    """Fit every method, measure each out of fold, and take the one with the lowest Brier score.

    Parameters
    ----------
    scores : array (n,), [0, 1]
    targets : array (n,) of bool
        As ``fit``.
    groups : sequence (n,)
        The question of each label: its labels are held out together.
    method : str
        ``auto``, or the one of ``METHODS`` to take.
    seed : int
        Of the folds and the resampling.
    folds : array (n,) of int, optional
        Existing folds.
    fold_scores : sequence of arrays (n,), optional
        For each fold the scores with weights that were tuned without it.

    Returns
    -------
    Choice

    Raises
    ------
    NotCalibrated
        If every method (or the requested one) refuses; the message has each reason.
    """
    s, y = check_scores(scores, targets)
    if method not in ("auto", *METHODS):
        raise ValueError(
            f"{method!r} is no method of calibration: auto or one of {', '.join(METHODS)}"
        )
    if refusal_reason := missing_labels_reason("any", y):
        raise NotCalibrated(
            f"No calibrator can be fitted: {refusal_reason}. Label more items, or cotlab labels"
            " import FILE."
        )
    fold_ids = assign_folds(y, groups, seed=seed) if folds is None else folds
    scores_by_fold = [s] * (int(fold_ids.max()) + 1) if fold_scores is None else fold_scores
    base_rates = _base_rates(y, fold_ids)
    trials = tuple(
        _try_method(name, s, y, groups, fold_ids, scores_by_fold, base_rates, seed)
        for name in METHODS
    )
    candidates = [trial for trial in trials if method in ("auto", trial.method)]
    chosen_trial = min(candidates, key=lambda trial: trial.brier)
    if chosen_trial.quality is None:
        refusal_text = "; ".join(f"{trial.method}: {trial.refusal_reason}" for trial in candidates)
        raise NotCalibrated(f"No calibrator can be fitted on these {len(y)} labels. {refusal_text}")
    return CalibratorChoice(
        trials,
        chosen_trial,
        _choice_reason(chosen_trial, method, trials, y, groups, seed),
        fold_ids,
        measure_interval("brier", base_rates, y, groups, seed=seed),
        measure_interval("auroc", s, y, groups, seed=seed),
    )


def make_combined_choice(
    predicted: ArrayLike,
    targets: ArrayLike,
    groups: Sequence[Hashable],
    folds: Folds,
    raw_scores: ArrayLike,
    *,
    seed: int = 0,
) -> CalibratorChoice:
    """Return probabilities learnt from many features as a choice, measured out of fold.

    Parameters
    ----------
    predicted : array (n,), [0, 1]
        Of each label by a fit that saw neither it nor its question.
    targets : array (n,) of bool
    groups : sequence (n,)
    folds : array (n,) of int
    raw_scores : array (n,)
        r_raw of the labels, whose AUROC is reported for comparison; NaN where there is none, and
        then without it.
    seed : int

    Returns
    -------
    Choice
        With one trial.
    """
    p, y = check_scores(predicted, targets)
    base_rates = _base_rates(y, folds)
    calibrator = Calibrator(
        {
            "method": COMBINED_METHOD,
            "lo": 0.0,
            "hi": 1.0,
            "n": len(y),
            "n_positive": int(y.sum()),
            "note": "",
        }
    )
    quality = _measure(p, y, groups, base_rates, seed)
    trial = MethodTrial(COMBINED_METHOD, None, calibrator, p, quality)
    r, reason = np.asarray(raw_scores, dtype=float), f"{COMBINED_METHOD} was requested"
    if n_without := int(np.isnan(r).sum()):
        why = f"{n_without} of {len(y)} labels have no r_raw"
        raw_auroc = no_interval(None, len(y) - n_without, why)
    else:
        raw_auroc = measure_interval("auroc", r, y, groups, seed=seed)
        difference = measure_difference("auroc", r, p, y, groups, seed=seed)
        reason += f"; its AUROC minus that of r_raw, out of fold: {_difference_text(difference)}"
    base_brier = measure_interval("brier", base_rates, y, groups, seed=seed)
    return CalibratorChoice((trial,), trial, reason, folds, base_brier, raw_auroc)


def _base_rates(y: Floats, folds: Folds) -> Floats:
    """Return for each label the base rate of the other folds."""
    return np.array([y[folds != fold].mean() for fold in range(int(folds.max()) + 1)])[folds]


def _measure(
    p: Floats, y: Floats, groups: Sequence[Hashable], baseline: Floats, seed: int
) -> MeasuredQuality:
    """Measure probabilities beside those of a baseline."""
    intervals = {
        name: measure_interval(name, p, y, groups, seed=seed)
        for name in ("brier", "log_loss", "ece", "auroc")
    }
    baseline_brier = float(np.mean((baseline - y) ** 2))
    brier = intervals["brier"].point or 0.0
    return MeasuredQuality(
        **intervals,
        band=perfect_band(p, seed=seed),
        bins=int(equal_mass_bins(p, bin_count(len(p))).max()) + 1,
        gained=measure_difference("brier", baseline, p, y, groups, seed=seed),
        skill=1 - brier / baseline_brier if baseline_brier > 0 else None,
        diagram=reliability_bins(p, y),
    )


def _try_method(
    method: str,
    s: Floats,
    y: Floats,
    groups: Sequence[Hashable],
    fold_ids: Folds,
    scores_by_fold: Sequence[Floats],
    base_rates: Floats,
    seed: int,
) -> MethodTrial:
    """Return a method fitted on all labels and measured out of fold, or refused."""
    try:
        calibrator = fit(method, s, y)
    except NotCalibrated as refused:
        return MethodTrial(method, str(refused))
    predictions = np.zeros(len(y))
    for fold, scores in enumerate(scores_by_fold):
        test_mask = fold_ids == fold
        try:
            predictions[test_mask] = fit_without_minimum(
                method, scores[~test_mask], y[~test_mask]
            ).predict(scores[test_mask])
        except NotCalibrated as refused:
            return MethodTrial(
                method, f"without fold {fold + 1} of {len(scores_by_fold)}: {refused}"
            )
    return MethodTrial(
        method,
        None,
        calibrator,
        predictions,
        _measure(predictions, y, groups, base_rates, seed),
    )


def _choice_reason(
    chosen_trial: MethodTrial,
    method: str,
    trials: Sequence[MethodTrial],
    y: Floats,
    groups: Sequence[Hashable],
    seed: int,
) -> str:
    """Return the reason for the chosen method, compared with the next best one."""
    chosen_method = chosen_trial.method
    text = (
        f"{chosen_method} was requested"
        if method != "auto"
        else f"{chosen_method} has the lowest out-of-fold Brier score, {chosen_trial.brier:.4f}"
    )
    runner_up_trial = min(
        (t for t in trials if t is not chosen_trial), key=lambda trial: trial.brier
    )
    if chosen_trial.predictions is None or runner_up_trial.predictions is None:
        return text
    difference = measure_difference(
        "brier", chosen_trial.predictions, runner_up_trial.predictions, y, groups, seed=seed
    )
    text += f"; {runner_up_trial.method} minus {chosen_method}: {_difference_text(difference)}"
    lo, hi = difference.lo, difference.hi
    if lo is not None and hi is not None and lo <= 0 <= hi:
        text += ", an interval that contains 0: these labels cannot separate them"
    return text


def _difference_text(difference: Interval) -> str:
    if difference.lo is None or difference.hi is None:
        return f"{difference.point:z.4f}"
    return f"{difference.point:z.4f} [{difference.lo:z.4f}, {difference.hi:z.4f}]"
