"""Choose the map from score to probability: fit all, measure each out of fold, take the best."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cotlab.reliability.maps import (
    COMBINED,
    METHODS,
    Calibrator,
    Floats,
    Folds,
    NotCalibrated,
    check_scores,
    fit,
    fit_any,
    folds_of,
    missing_labels_reason,
)
from cotlab.stats.calibration import (
    Bin,
    bin_count,
    equal_mass,
    perfect_band,
    reliability_bins,
)
from cotlab.stats.calibration_intervals import measure_difference, measure_interval
from cotlab.stats.intervals import Interval

__all__ = [
    "METHODS",
    "Calibrator",
    "Choice",
    "Folds",
    "Measured",
    "NotCalibrated",
    "Trial",
    "select_calibrator",
    "fit",
    "fit_any",
    "folds_of",
    "measure_probabilities",
    "missing_labels_reason",
    "combined_choice",
    "COMBINED",
]


@dataclass(frozen=True, slots=True)
class Measured:
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
class Trial:
    """One method: fitted on all labels and measured out of fold, or refused."""

    method: str
    """One of ``METHODS``, or ``combined``."""
    refused: str | None
    """Why it cannot be fitted; None where it can."""
    calibrator: Calibrator | None = None
    """Fitted on all labels."""
    predicted: Floats | None = None
    """Out-of-fold probabilities (n,)."""
    measured: Measured | None = None
    """Quality of ``predicted``."""


@dataclass(frozen=True, slots=True)
class Choice:
    """All methods side by side, and the one that is taken."""

    trials: tuple[Trial, ...]
    """One for each of ``METHODS``."""
    chosen: Trial
    """The trial that is taken."""
    reason: str
    """Why it was taken."""
    folds: Folds
    """Fold (n,) in which each label was held out."""
    base: Floats
    """Base rate (n,) of the other folds."""
    base_brier: Interval
    """Brier score of ``base``."""
    auroc_raw: Interval
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
) -> Choice:
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
    if refused := missing_labels_reason("any", y):
        raise NotCalibrated(
            f"No calibrator can be fitted: {refused}. Label more items, or cotlab labels import"
            " FILE."
        )
    where = folds_of(y, groups, seed=seed) if folds is None else folds
    count = int(where.max()) + 1
    by_fold = [s] * count if fold_scores is None else fold_scores
    base = np.array([y[where != fold].mean() for fold in range(count)])[where]
    trials = tuple(_trial(name, s, y, groups, where, by_fold, base, seed) for name in METHODS)
    good = {t.method: t.measured.brier.point or 0.0 for t in trials if t.measured is not None}
    candidates = (
        good
        if method == "auto"
        else {name: value for name, value in good.items() if name == method}
    )
    if not candidates:
        refusals = "; ".join(
            f"{t.method}: {t.refused}" for t in trials if t.refused and method in ("auto", t.method)
        )
        raise NotCalibrated(f"No calibrator can be fitted on these {len(y)} labels. {refusals}")
    best = min(candidates, key=lambda name: candidates[name])
    chosen = next(t for t in trials if t.method == best)
    base_brier = measure_interval("brier", base, y, groups, seed=seed)
    reason = _choice_reason(best, method, trials, good, y, groups, seed)
    return Choice(
        trials,
        chosen,
        reason,
        where,
        base,
        base_brier,
        measure_interval("auroc", s, y, groups, seed=seed),
    )


def combined_choice(
    predicted: ArrayLike,
    targets: ArrayLike,
    groups: Sequence[Hashable],
    folds: Folds,
    raw: ArrayLike,
    *,
    note: str = "",
    seed: int = 0,
) -> Choice:
    """Return probabilities learnt from many features as a choice, measured out of fold.

    Parameters
    ----------
    predicted : array (n,), [0, 1]
        Of each label by a fit that saw neither it nor its question.
    targets : array (n,) of bool
    groups : sequence (n,)
    folds : array (n,) of int
    raw : array (n,)
        r_raw of the labels, whose AUROC is reported for comparison.
    note : str
        What a reader must know of the fit.
    seed : int

    Returns
    -------
    Choice
        With one trial.
    """
    p, y = check_scores(predicted, targets)
    base = np.array([y[folds != fold].mean() for fold in range(int(folds.max()) + 1)])[folds]
    params = {
        "method": COMBINED,
        "lo": 0.0,
        "hi": 1.0,
        "n": len(y),
        "n_positive": int(y.sum()),
        "note": note,
    }
    trial = Trial(
        COMBINED,
        None,
        Calibrator(params),
        p,
        measure_probabilities(p, y, groups, base=base, seed=seed),
    )
    auroc_difference = measure_difference(
        "auroc", np.asarray(raw, dtype=float), p, y, groups, seed=seed
    )
    bounds = (
        ""
        if auroc_difference.lo is None or auroc_difference.hi is None
        else f" [{auroc_difference.lo:z.4f}, {auroc_difference.hi:z.4f}]"
    )
    reason = (
        f"{COMBINED} was asked for; its AUROC minus that of r_raw, out of fold:"
        f" {auroc_difference.point:z.4f}{bounds}"
    )
    return Choice(
        (trial,),
        trial,
        reason,
        folds,
        base,
        measure_interval("brier", base, y, groups, seed=seed),
        measure_interval("auroc", raw, y, groups, seed=seed),
    )


def measure_probabilities(
    predicted: ArrayLike,
    targets: ArrayLike,
    groups: Sequence[Hashable],
    *,
    base: ArrayLike | None = None,
    seed: int = 0,
) -> Measured:
    """Measure given probabilities.

    Parameters
    ----------
    predicted : array (n,), [0, 1]
    targets : array (n,) of bool
    groups : sequence (n,)
    base : array (n,), optional
        Predictions to compare with; by default the mean of the targets.
    seed : int

    Returns
    -------
    Measured
    """
    p, y = check_scores(predicted, targets)
    yardstick = np.full(len(y), y.mean()) if base is None else np.asarray(base, dtype=float)
    brier, loss, error, rank = (
        measure_interval(name, p, y, groups, seed=seed)
        for name in ("brier", "log_loss", "ece", "auroc")
    )
    flat = float(np.mean((yardstick - y) ** 2))
    return Measured(
        brier,
        loss,
        error,
        rank,
        perfect_band(p, seed=seed),
        int(equal_mass(p, bin_count(len(p))).max()) + 1,
        measure_difference("brier", yardstick, p, y, groups, seed=seed),
        1 - (brier.point or 0.0) / flat if flat > 0 else None,
        reliability_bins(p, y),
    )


def _trial(
    method: str,
    s: Floats,
    y: Floats,
    groups: Sequence[Hashable],
    where: Folds,
    by_fold: Sequence[Floats],
    base: Floats,
    seed: int,
) -> Trial:
    """Return a method fitted on all labels and measured out of fold, or refused."""
    try:
        calibrator = fit(method, s, y)
    except NotCalibrated as refused:
        return Trial(method, str(refused))
    predicted = np.zeros(len(y))
    for fold, scores in enumerate(by_fold):
        test_mask = where == fold
        try:
            predicted[test_mask] = fit_any(method, scores[~test_mask], y[~test_mask]).predict(
                scores[test_mask]
            )
        except NotCalibrated as refused:
            return Trial(method, f"without fold {fold + 1} of {len(by_fold)}: {refused}")
    return Trial(
        method,
        None,
        calibrator,
        predicted,
        measure_probabilities(predicted, y, groups, base=base, seed=seed),
    )


def _choice_reason(
    best: str,
    method: str,
    trials: Sequence[Trial],
    good: Mapping[str, float],
    y: Floats,
    groups: Sequence[Hashable],
    seed: int,
) -> str:
    """Return why this method was taken, compared with the next best one."""
    text = (
        f"{best} was asked for"
        if method != "auto"
        else f"{best} has the lowest out-of-fold Brier score, {good[best]:.4f}"
    )
    others = {name: value for name, value in good.items() if name != best}
    if others:
        next_best = min(others, key=lambda name: others[name])
        best_predicted, next_predicted = (
            next(t.predicted for t in trials if t.method == name) for name in (best, next_best)
        )
        if best_predicted is not None and next_predicted is not None:
            brier_difference = measure_difference(
                "brier", best_predicted, next_predicted, y, groups, seed=seed
            )
            bounds = (
                ""
                if brier_difference.lo is None or brier_difference.hi is None
                else f" [{brier_difference.lo:z.4f}, {brier_difference.hi:z.4f}]"
            )
            text += f"; {next_best} minus {best}: {brier_difference.point:z.4f}{bounds}"
            if (
                brier_difference.lo is not None
                and brier_difference.hi is not None
                and brier_difference.lo <= 0 <= brier_difference.hi
            ):
                text += ", an interval that holds 0: these labels do not tell them apart"
    return text
