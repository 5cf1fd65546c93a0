"""Tune the composite's weights on labels, and measure whether they beat the example weights."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cotlab.reliability.maps import (
    Folds,
    NotCalibrated,
    assign_folds,
    fit_without_minimum,
    missing_labels_reason,
    single_blas_thread,
)
from cotlab.stats.calibration import auroc, brier
from cotlab.stats.calibration_intervals import measure_difference, measure_interval
from cotlab.stats.composite import (
    EXAMPLE_WEIGHTS,
    MIN_WEIGHT_SHARE,
    weight_grid,
    weight_grid_means,
    weight_vector,
    weighted_means,
    weights_by_component,
)
from cotlab.stats.intervals import Interval

Floats = NDArray[np.float64]
OBJECTIVES = ("auc", "brier")
MOVE_SIZES = (0.05, 0.02, 0.01)
"""Sizes of the moves from component to component that refine the best point of the grid."""
SHRINKAGES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shrinkage to the example weights that inner folds choose between."""
N_NEWTON_STEPS = 8
_MAX_BLOCK_CELLS = 4_000_000


@dataclass(frozen=True, slots=True)
class TunedWeights:
    """Tuned weights, and their nested cross-validation."""

    weights: Mapping[str, float]
    """At least 0, sum 1; tuned on all labels."""
    objective: str
    """``auc`` or ``brier``."""
    shrinkage: float
    """Shrinkage in [0, 1]; 1 gives the example weights themselves."""
    example_objective: Interval
    """Out-of-fold objective of the example weights."""
    tuned_objective: Interval
    """Out-of-fold objective of weights tuned without the fold."""
    difference: Interval
    """Tuned minus example, paired by question; ``auc`` is better above 0, ``brier`` below."""
    is_better: bool
    """Whether the whole interval lies on the better side."""
    reason: str
    """The verdict as text."""
    folds: Folds
    """Outer fold (n,) of each label."""
    fold_weights: tuple[Mapping[str, float], ...]
    """Weights tuned without each outer fold."""
    n: int
    """Labels used."""
    n_left_out: int
    """Labels whose r_raw the example weights leave undefined."""


@single_blas_thread()
def tune_weights(
    components: ArrayLike,
    targets: ArrayLike,
    groups: Sequence[Hashable],
    *,
    objective: str = "auc",
    seed: int = 0,
) -> TunedWeights:
    """Find the weights that rank labels best, or predict them best after a logistic map.

    Outer folds of whole questions measure; inner folds within each choose how far the weights are
    shrunk to the example weights. Only weights that leave every label with an r_raw are taken, and
    a component that no label has gets none.

    Parameters
    ----------
    components : array (n, 5), NaN where a component is undefined
        Columns C, R, V, D, F.
    targets : array (n,) of bool
    groups : sequence (n,)
        The question of each label.
    objective : str
        ``auc`` (ranks) or ``brier`` (predicts).
    seed : int

    Returns
    -------
    TunedWeights

    Raises
    ------
    NotCalibrated
        On too few labels and on labels of one class, saying what is missing.
    ValueError
        On an unknown objective.
    """
    if objective not in OBJECTIVES:
        raise ValueError(f"{objective!r} is no objective: one of {', '.join(OBJECTIVES)}")
    x, y = np.asarray(components, dtype=float).reshape(-1, 5), np.asarray(targets, dtype=float)
    has_mean = np.isfinite(weighted_means(x, EXAMPLE_WEIGHTS))
    if len(y) and not has_mean.any():
        raise NotCalibrated(
            f"No weights can be tuned: the example weights leave all {len(y)} labels without an"
            " r_raw. Measure more parts of the composite."
        )
    if refusal_reason := missing_labels_reason("any", y[has_mean]):
        raise NotCalibrated(
            f"No weights can be tuned: {refusal_reason}. Label more items, or cotlab labels import"
            " FILE."
        )
    x, y = x[has_mean], y[has_mean]
    questions = _selected(groups, has_mean)
    folds = assign_folds(y, questions, seed=seed)
    example_values, tuned_values, fold_weights = np.zeros(len(y)), np.zeros(len(y)), []
    for fold in range(int(folds.max()) + 1):
        is_test = folds == fold
        weights, _ = _tune_with_shrinkage(
            x[~is_test], y[~is_test], _selected(questions, ~is_test), objective, seed + fold + 1
        )
        fold_weights.append(weights)
        for values, used in ((example_values, EXAMPLE_WEIGHTS), (tuned_values, weights)):
            values[is_test] = _held_out_values(x, y, is_test, used, objective)
    has_value = np.isfinite(tuned_values)
    example_values, tuned_values = example_values[has_value], tuned_values[has_value]
    measure = {"auc": "auroc", "brier": "brier"}[objective]
    shared = y[has_value], _selected(questions, has_value)
    difference = measure_difference(measure, example_values, tuned_values, *shared, seed=seed)
    tuned, shrinkage = _tune_with_shrinkage(x, y, questions, objective, seed)
    is_better, reason = _judge_improvement(difference, 1 if objective == "auc" else -1, shrinkage)
    return TunedWeights(
        weights=tuned,
        objective=objective,
        shrinkage=shrinkage,
        example_objective=measure_interval(measure, example_values, *shared, seed=seed),
        tuned_objective=measure_interval(measure, tuned_values, *shared, seed=seed),
        difference=difference,
        is_better=is_better,
        reason=reason,
        folds=folds,
        fold_weights=tuple(fold_weights),
        n=len(y),
        n_left_out=int((~has_mean).sum()),
    )


def _selected(groups: Sequence[Hashable], mask: NDArray[np.bool_]) -> list[Hashable]:
    return [group for group, is_chosen in zip(groups, mask, strict=True) if is_chosen]


def _judge_improvement(improvement: Interval, sign: int, shrinkage: float) -> tuple[bool, str]:
    """Return whether the tuned weights are better, and the verdict as text."""
    keep = "keep the example weights"
    if improvement.lo is None or improvement.hi is None:
        return False, f"no interval on the difference ({improvement.reason}): {keep}"
    lo, hi = sorted((sign * improvement.lo, sign * improvement.hi))
    if lo > 0:
        better = "the tuned weights are better on these labels"
        return True, f"the whole interval lies on the better side: {better}"
    if hi < 0:
        return False, f"the tuned weights are worse out of fold: {keep}"
    note = " (tuning shrank fully to them)" if shrinkage == 1 else ""
    return False, f"the interval contains 0: {keep}{note}"


def _tune_with_shrinkage(
    x: Floats, y: Floats, groups: Sequence[Hashable], objective: str, seed: int
) -> tuple[Mapping[str, float], float]:
    """Return tuned weights and their shrinkage, chosen by inner folds; ties shrink further."""
    try:
        folds = assign_folds(y, groups, max_folds=4, seed=seed)
    except NotCalibrated:
        return dict(EXAMPLE_WEIGHTS), 1.0
    values = np.zeros((len(y), len(SHRINKAGES)))
    for fold in range(int(folds.max()) + 1):
        is_test = folds == fold
        best = _best_weights(x[~is_test], y[~is_test], objective)
        for k, share in enumerate(SHRINKAGES):
            weights = _shrunk(best, share)
            values[is_test, k] = _held_out_values(x, y, is_test, weights, objective)
    is_finite = np.isfinite(values).all(axis=1)

    def held_out_objective(column: Floats) -> float:
        if objective == "auc":
            return auroc(column, y[is_finite]) or 0.0
        return -brier(column, y[is_finite])

    results = [held_out_objective(values[is_finite, k]) for k in range(len(SHRINKAGES))]
    best_k = max(range(len(SHRINKAGES)), key=lambda k: (round(results[k], 12), k))
    return _shrunk(_best_weights(x, y, objective), SHRINKAGES[best_k]), SHRINKAGES[best_k]


def _shrunk(weights: Floats, share: float) -> Mapping[str, float]:
    return weights_by_component((1 - share) * weights + share * weight_vector(EXAMPLE_WEIGHTS))


def _held_out_values(
    x: Floats,
    y: Floats,
    is_test: NDArray[np.bool_],
    weights: Mapping[str, float],
    objective: str,
) -> Floats:
    """Return r_raw of held-out items, or its probability by a logistic map from the other items."""
    scores = weighted_means(x, weights)
    if objective == "auc":
        return scores[is_test]
    is_fitted = ~is_test & np.isfinite(scores)
    try:
        fitted = fit_without_minimum("platt", scores[is_fitted], y[is_fitted])
    except NotCalibrated:  # a map is never inverted: predict the base rate
        return np.where(np.isfinite(scores[is_test]), y[~is_test].mean(), np.nan)
    return fitted.predict(scores[is_test])


def _best_weights(x: Floats, y: Floats, objective: str) -> Floats:
    """Return the best weights (5,) of a grid, refined by moves between components."""
    measured_columns = np.flatnonzero(np.isfinite(x).any(axis=0))
    best_weights, best_value = _best_candidate(weight_grid(measured_columns), x, y, objective)
    for move_size in MOVE_SIZES:
        while True:
            moved_weights = [best_weights]
            for to_column, from_column in permutations(measured_columns, 2):
                candidate = best_weights.copy()
                amount = min(move_size, candidate[from_column])
                candidate[to_column] += amount
                candidate[from_column] -= amount
                moved_weights.append(candidate)
            weights, value = _best_candidate(np.column_stack(moved_weights), x, y, objective)
            if value <= best_value + 1e-12:
                break
            best_weights, best_value = weights, value
    return best_weights


def _best_candidate(
    candidates: Floats, x: Floats, y: Floats, objective: str
) -> tuple[Floats, float]:
    """Return the best of the weights (5, m) that leave every label an r_raw, and its objective."""
    value_of = _aurocs if objective == "auc" else _negative_brier_scores
    chunk_size = max(1, _MAX_BLOCK_CELLS // len(y))
    values = np.full(candidates.shape[1], -np.inf)
    for start in range(0, candidates.shape[1], chunk_size):
        chunk = candidates[:, start : start + chunk_size]
        scores = np.round(weight_grid_means(x, chunk, MIN_WEIGHT_SHARE), 12)
        is_defined = np.isfinite(scores).all(axis=0)
        values[start : start + chunk_size][is_defined] = value_of(scores[:, is_defined], y)
    example_weights = weight_vector(EXAMPLE_WEIGHTS)
    if not np.isfinite(values.max()):
        return example_weights, -np.inf
    best_columns = np.flatnonzero(values >= values.max() - 1e-12)
    distances = np.abs(candidates[:, best_columns] - example_weights[:, None]).sum(axis=0)
    best_column = best_columns[int(np.argmin(distances))]
    return candidates[:, best_column].copy(), float(values[best_column])


def _aurocs(scores: Floats, y: Floats) -> Floats:
    from scipy.stats import rankdata

    n_positive = y.sum()
    rank_sums = rankdata(scores, axis=0)[y == 1].sum(axis=0)
    return np.asarray(
        (rank_sums - n_positive * (n_positive + 1) / 2) / (n_positive * (len(y) - n_positive))
    )


def _negative_brier_scores(scores: Floats, y: Floats) -> Floats:
    """Return minus the Brier score of each column (n, m) after a logistic map, by Newton steps.

    The ridge of 1e-3 keeps the slope of separable labels finite; a map is never inverted.
    """
    from scipy.special import expit, logit

    z = (scores - scores.mean(axis=0)) / np.maximum(scores.std(axis=0), 1e-9)
    slope, intercept = np.zeros(z.shape[1]), np.full(z.shape[1], logit(y.mean()))
    for _ in range(N_NEWTON_STEPS):
        p = expit(slope * z + intercept)
        residuals, spread = y[:, None] - p, p * (1 - p)
        a, b = spread.sum(axis=0) + 1e-3, (spread * z).sum(axis=0)
        c = (spread * z**2).sum(axis=0) + 1e-3
        down, along = residuals.sum(axis=0), (residuals * z).sum(axis=0) - 1e-3 * slope
        intercept = intercept + (c * down - b * along) / (a * c - b * b)
        slope = slope + (a * along - b * down) / (a * c - b * b)
    p = np.where(slope > 0, expit(slope * z + intercept), y.mean())
    return np.asarray(-((p - y[:, None]) ** 2).mean(axis=0))
