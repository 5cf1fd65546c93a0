"""Which map from score to probability the labels speak for: all of them fitted, measured out of fold, and one chosen."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cotlab.reliability.maps import (
    COMBINED,
    METHODS,
    Calibrator,
    Floats,
    NotCalibrated,
    check_scores,
    fit,
    fit_any,
    shortage,
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
    "shortage",
    "combined_choice",
    "COMBINED",
]
Folds = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Measured:
    """What probabilities of labelled items are worth; intervals by bootstrap over questions.

    Attributes
    ----------
    brier, log_loss, ece, auroc : Interval
    band : (lo, hi)
        Where the ECE of a perfectly calibrated forecaster with these predictions lies, 95 %.
    bins : int
        Bins that the ECE was taken over.
    gained : Interval
        Brier score minus that of the base rate: below 0 where the probabilities say more than it
        does.
    skill : float or None
        1 − Brier / Brier of the base rate; None where that is 0.
    diagram : tuple of Bin
        The reliability diagram.
    """

    brier: Interval
    log_loss: Interval
    ece: Interval
    auroc: Interval
    band: tuple[float, float]
    bins: int
    gained: Interval
    skill: float | None
    diagram: tuple[Bin, ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """One method: fitted on all labels and measured out of fold, or refused with the reason."""

    method: str
    refused: str | None
    calibrator: Calibrator | None = None
    predicted: Floats | None = None
    measured: Measured | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """All methods side by side, and the one that is taken.

    Attributes
    ----------
    trials : tuple of Trial
        One for each of ``METHODS``.
    chosen : Trial
    why : str
    folds : array (n,) of int
        The fold that each label was held out in.
    base : array (n,)
        The base rate of the other folds: the yardstick.
    base_brier : Interval
    auroc_raw : Interval
        How well the scores themselves rank the labels.
    """

    trials: tuple[Trial, ...]
    chosen: Trial
    reason: str
    folds: Folds
    base: Floats
    base_brier: Interval
    auroc_raw: Interval


def folds_of(
    targets: ArrayLike, groups: Sequence[Hashable], *, most: int = 5, seed: int = 0
) -> Folds:
    """The fold (n,) of each label: all labels of a group (a question) in one, the classes spread as evenly as groups allow.

    Raises
    ------
    NotCalibrated
        If not even two folds leave both classes to learn from.

    References
    ----------
    sklearn.model_selection.StratifiedGroupKFold.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    y = np.asarray(targets, dtype=int)
    names = {name: k for k, name in enumerate(sorted(set(groups), key=str))}
    where = np.array([names[group] for group in groups], dtype=int)
    most = min(most, len(names), int(np.bincount(y, minlength=2).min()))
    for k in range(most, 1, -1):
        folds = np.zeros(len(y), dtype=np.int64)
        for fold, (_, test_rows) in enumerate(
            StratifiedGroupKFold(k, shuffle=True, random_state=seed).split(y, y, where)
        ):
            folds[test_rows] = fold
        if len(set(folds)) == k and all(len(set(y[folds != fold])) == 2 for fold in range(k)):
            return folds
    raise NotCalibrated(
        f"the {len(y)} labels belong to {len(names)} question{'s' * (len(names) != 1)}: no two"
        " folds of whole questions leave both classes to learn from. Label items of more"
        " questions."
    )


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
    """Fit every method, measure each out of fold, and take the one with the lowest Brier score, or the one asked for.

    Parameters
    ----------
    scores, targets : arrays (n,)
        As ``fit``.
    groups : sequence (n,)
        The question of each label: its labels are held out together.
    method : str
        ``auto`` or one of ``METHODS``.
    seed : int
        Of the folds and the resampling.
    folds, fold_scores : optional
        Folds made before, and for each the scores (n,) as they are where that fold is held out
        (weights tuned without it).

    Raises
    ------
    NotCalibrated
        If every method (or the one asked for) refuses; the message has each reason.
    """
    s, y = check_scores(scores, targets)
    if method not in ("auto", *METHODS):
        raise ValueError(
            f"{method!r} is no method of calibration: auto or one of {', '.join(METHODS)}"
        )
    if refused := shortage("any", y):
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
    """A choice without a choice: probabilities (n,) that were learnt from many features, measured out of fold.

    Parameters
    ----------
    predicted : array (n,) in [0, 1]
        Of each label by a fit that saw neither it nor its question.
    targets, groups, folds, seed
        As ``choose``.
    raw : array (n,)
        r_raw of the labels: how well it alone ranks them is told beside.
    note : str
        What a reader must know of the fit.
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
    """The numbers of given probabilities; ``base`` is the yardstick's predictions, the targets' own mean unless told."""
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
    """A method fitted on all labels and measured out of fold; refused too where a fold's training labels refuse it."""
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
    """Why this method, against the next best one."""
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
