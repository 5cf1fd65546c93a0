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
    COMPONENT_NAMES,
    EXAMPLE_WEIGHTS,
    MIN_WEIGHT_SHARE,
    filled_components,
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
    component_values, y = np.asarray(components, dtype=float), np.asarray(targets, dtype=float)
    has_mean = (
        np.isfinite(weighted_means(component_values, EXAMPLE_WEIGHTS))
        if len(component_values)
        else np.zeros(0, dtype=bool)
    )
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
    x, y = component_values[has_mean], y[has_mean]
    group_names = [group for group, is_defined in zip(groups, has_mean, strict=True) if is_defined]
    folds = assign_folds(y, group_names, seed=seed)
    example_values, tuned_values, fold_weights_list = np.zeros(len(y)), np.zeros(len(y)), []
    for fold in range(int(folds.max()) + 1):
        test_mask = folds == fold
        train_groups = [
            name for name, is_test in zip(group_names, test_mask, strict=True) if not is_test
        ]
        fold_weights, _ = _tune_with_shrinkage(
            x[~test_mask], y[~test_mask], train_groups, objective, seed + fold + 1
        )
        fold_weights_list.append(fold_weights)
        for output_values, weights in (
            (example_values, EXAMPLE_WEIGHTS),
            (tuned_values, fold_weights),
        ):
            output_values[test_mask] = _test_fold_values(
                x[~test_mask], y[~test_mask], x[test_mask], weights, objective
            )
    has_value = np.isfinite(tuned_values)
    measured_groups = [
        name for name, is_finite in zip(group_names, has_value, strict=True) if is_finite
    ]
    measure = {"auc": "auroc", "brier": "brier"}[objective]
    improvement = measure_difference(
        measure,
        example_values[has_value],
        tuned_values[has_value],
        y[has_value],
        measured_groups,
        seed=seed,
    )
    final_weights, shrinkage = _tune_with_shrinkage(x, y, group_names, objective, seed)
    is_better, reason = _judge_improvement(improvement, 1 if objective == "auc" else -1, shrinkage)
    return TunedWeights(
        final_weights,
        objective,
        shrinkage,
        measure_interval(
            measure, example_values[has_value], y[has_value], measured_groups, seed=seed
        ),
        measure_interval(
            measure, tuned_values[has_value], y[has_value], measured_groups, seed=seed
        ),
        improvement,
        is_better,
        reason,
        folds,
        tuple(fold_weights_list),
        len(y),
        int((~has_mean).sum()),
    )


def _judge_improvement(improvement: Interval, sign: int, shrinkage: float) -> tuple[bool, str]:
    """Return whether the tuned weights are better, and the verdict as text."""
    if improvement.lo is None or improvement.hi is None:
        reason = f"no interval on the difference ({improvement.reason})"
        return False, f"{reason}: keep the example weights"
    lo, hi = sorted((sign * improvement.lo, sign * improvement.hi))
    if lo > 0:
        reason = "the whole interval lies on the better side"
        return True, f"{reason}: the tuned weights are better on these labels"
    if hi < 0:
        return False, "the tuned weights are worse out of fold: keep the example weights"
    note = " (tuning shrank fully to them)" if shrinkage == 1 else ""
    return False, f"the interval contains 0: keep the example weights{note}"


def _tune_with_shrinkage(
    x: Floats, y: Floats, groups: Sequence[Hashable], objective: str, seed: int
) -> tuple[Mapping[str, float], float]:
    """Return tuned weights and their shrinkage, chosen by inner folds; ties shrink further."""
    example_weights = weight_vector(EXAMPLE_WEIGHTS)
    try:
        folds = assign_folds(y, groups, max_folds=4, seed=seed)
    except NotCalibrated:
        return dict(EXAMPLE_WEIGHTS), 1.0
    values_by_shrinkage = {share: np.zeros(len(y)) for share in SHRINKAGES}
    for fold in range(int(folds.max()) + 1):
        test_mask = folds == fold
        best_weights = _best_weights(x[~test_mask], y[~test_mask], objective)
        for share, values in values_by_shrinkage.items():
            weights = weights_by_component((1 - share) * best_weights + share * example_weights)
            values[test_mask] = _test_fold_values(
                x[~test_mask], y[~test_mask], x[test_mask], weights, objective
            )
    is_finite = np.isfinite(np.column_stack(list(values_by_shrinkage.values()))).all(axis=1)
    objective_by_shrinkage = {
        share: _objective_value(values[is_finite], y[is_finite], objective)
        for share, values in values_by_shrinkage.items()
    }
    share = max(
        SHRINKAGES, key=lambda candidate: (round(objective_by_shrinkage[candidate], 12), candidate)
    )
    return (
        weights_by_component(
            (1 - share) * _best_weights(x, y, objective) + share * example_weights
        ),
        share,
    )


def _objective_value(values: Floats, y: Floats, objective: str) -> float:
    """Return the objective, higher is better."""
    if not len(y):
        return -np.inf
    return (auroc(values, y) or 0.0) if objective == "auc" else -brier(values, y)


def _test_fold_values(
    x: Floats, y: Floats, test_components: Floats, weights: Mapping[str, float], objective: str
) -> Floats:
    """Return r_raw of held-out items, or its probability by a logistic map from the other items."""
    scores = weighted_means(test_components, weights)
    if objective == "auc":
        return scores
    train_scores = weighted_means(x, weights)
    is_defined = np.isfinite(train_scores)
    try:
        return fit_without_minimum("platt", train_scores[is_defined], y[is_defined]).predict(scores)
    except NotCalibrated:  # a map is never inverted: predict the base rate
        return np.where(np.isfinite(scores), y.mean(), np.nan)


def _best_weights(x: Floats, y: Floats, objective: str) -> Floats:
    """Return the best admissible weights (5,) on these labels."""
    measured_columns = np.flatnonzero(np.isfinite(x).any(axis=0))
    return (
        _best_weights_on_grid(x, y, measured_columns)
        if objective == "auc"
        else _best_weights_by_descent(x, y, measured_columns)
    )


def _best_weights_on_grid(x: Floats, y: Floats, measured_columns: NDArray[np.int64]) -> Floats:
    """Return the weights of highest AUC on a grid, refined by moves between components."""
    best_weights, best_auroc = _best_candidate(weight_grid(measured_columns), x, y)
    for move_size in MOVE_SIZES:
        while True:
            moved_weights = [best_weights]
            for to_column, from_column in permutations(measured_columns, 2):
                candidate = best_weights.copy()
                amount = min(move_size, candidate[from_column])
                candidate[to_column] += amount
                candidate[from_column] -= amount
                moved_weights.append(candidate)
            next_weights, next_auroc = _best_candidate(np.column_stack(moved_weights), x, y)
            if next_auroc <= best_auroc + 1e-12:
                break
            best_weights, best_auroc = next_weights, next_auroc
    return best_weights


def _best_candidate(candidates: Floats, x: Floats, y: Floats) -> tuple[Floats, float]:
    from scipy.stats import rankdata

    n_positive = int(y.sum())
    n_negative, chunk_size = len(y) - n_positive, max(1, _MAX_BLOCK_CELLS // len(y))
    aurocs = np.full(candidates.shape[1], -np.inf)
    for chunk_start in range(0, candidates.shape[1], chunk_size):
        scores = np.round(
            weight_grid_means(
                x, candidates[:, chunk_start : chunk_start + chunk_size], MIN_WEIGHT_SHARE
            ),
            12,
        )
        is_defined = np.isfinite(scores).all(axis=0)
        ranks = rankdata(scores[:, is_defined], axis=0)
        aurocs[chunk_start : chunk_start + chunk_size][is_defined] = (
            ranks[y == 1].sum(axis=0) - n_positive * (n_positive + 1) / 2
        ) / (n_positive * n_negative)
    best_columns = np.flatnonzero(aurocs >= aurocs.max() - 1e-12)
    if not np.isfinite(aurocs.max()):
        return weight_vector(EXAMPLE_WEIGHTS), -np.inf
    distances = np.abs(candidates[:, best_columns] - weight_vector(EXAMPLE_WEIGHTS)[:, None]).sum(
        axis=0
    )
    best_column = best_columns[int(np.argmin(distances))]
    return candidates[:, best_column].copy(), float(aurocs[best_column])


def _best_weights_by_descent(x: Floats, y: Floats, measured_columns: NDArray[np.int64]) -> Floats:
    """Return the weights of the lowest Brier score of σ(slope · r_raw + intercept), by SLSQP.

    Weights, slope (at least 0) and intercept are optimised at once, from the example weights and
    from near those that rank best.
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    values, defined_mask = filled_components(x)
    values, defined_mask = values[:, measured_columns], defined_mask[:, measured_columns]
    k, example_weights = len(measured_columns), weight_vector(EXAMPLE_WEIGHTS)
    start_weights = example_weights[measured_columns] / example_weights[measured_columns].sum()
    grid_weights = _best_weights_on_grid(x, y, measured_columns)[measured_columns]
    start_points = [start_weights, 0.8 * grid_weights + 0.2 * start_weights]
    defined_patterns = np.unique(defined_mask, axis=0)

    def brier_and_gradient(parameters: Floats) -> tuple[float, Floats]:
        weight_sums = np.maximum(defined_mask @ parameters[:k], 1e-6)
        means = (values @ parameters[:k]) / weight_sums
        p = expit(parameters[k] * means + parameters[k + 1])
        logit_gradient = 2 * (p - y) * p * (1 - p) / len(y)
        weight_gradient = (parameters[k] * logit_gradient / weight_sums) @ (
            values - means[:, None] * defined_mask
        )
        return (
            float(np.mean((p - y) ** 2)),
            np.r_[weight_gradient, logit_gradient @ means, logit_gradient.sum()],
        )

    best_weights, least_loss = example_weights, np.inf
    for start_point in start_points:
        scores = (values @ start_point) / np.maximum(defined_mask @ start_point, 1e-6)
        try:
            platt_params = fit_without_minimum("platt", np.clip(scores, 0, 1), y).params
            first_guess = np.r_[
                start_point,
                min(platt_params["slope"], 100.0),
                np.clip(platt_params["intercept"], -100.0, 100.0),
            ]
        except NotCalibrated:
            first_guess = np.r_[start_point, 1.0, 0.0]
        optimum = minimize(
            brier_and_gradient,
            first_guess,
            jac=True,
            method="SLSQP",
            bounds=[(0.0, 1.0)] * k + [(0.0, 100.0), (-100.0, 100.0)],
            constraints=(
                {
                    "type": "eq",
                    "fun": lambda at: at[:k].sum() - 1,
                    "jac": lambda at: np.r_[np.ones(k), 0.0, 0.0],
                },
                {
                    "type": "ineq",
                    "fun": lambda at: defined_patterns @ at[:k] - MIN_WEIGHT_SHARE - 1e-5,
                    "jac": lambda at: np.column_stack(
                        [defined_patterns, np.zeros((len(defined_patterns), 2))]
                    ),
                },
            ),
        )
        weights = np.zeros(len(COMPONENT_NAMES))
        weights[measured_columns] = np.clip(np.round(optimum.x[:k], 6), 0.0, None)
        if weights.sum() > 0 and optimum.fun < least_loss - 1e-9:
            admissible_weights = _shrink_until_defined(x, weights / weights.sum())
            if admissible_weights is not None:
                best_weights, least_loss = admissible_weights, float(optimum.fun)
    return best_weights


def _shrink_until_defined(x: Floats, weights: Floats) -> Floats | None:
    """Return these weights, shrunk to the example weights until every label has an r_raw."""
    for shrinkage in SHRINKAGES[:-1]:
        blended_weights = (1 - shrinkage) * weights + shrinkage * weight_vector(EXAMPLE_WEIGHTS)
        if np.isfinite(weight_grid_means(x, blended_weights[:, None], MIN_WEIGHT_SHARE)).all():
            return np.asarray(blended_weights)
    return None
