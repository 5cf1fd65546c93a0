"""Tune the composite's weights on labels, and measure whether they beat the example weights."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cotlab.reliability.calibrator import (
    Folds,
    NotCalibrated,
    fit_any,
    folds_of,
    missing_labels_reason,
)
from cotlab.stats.calibration import auroc, brier
from cotlab.stats.calibration_intervals import measure_difference, measure_interval
from cotlab.stats.composite import (
    COMPONENTS,
    MIN_WEIGHT,
    WEIGHTS,
    filled_components,
    weight_grid_means,
    weight_vector,
    weighted_means,
)
from cotlab.stats.intervals import Interval
from cotlab.stats.threads import single_blas_thread

Floats = NDArray[np.float64]
OBJECTIVES = ("auc", "brier")
GRID = 10
"""Steps of the simplex grid; the best point of it is refined by moves of 0.05, 0.02 and 0.01 from
part to part."""
MOVES = (0.05, 0.02, 0.01)
SHRINK = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shrinkage to the example weights that inner folds choose between."""
_CELLS = 4_000_000


@dataclass(frozen=True, slots=True)
class Tuned:
    """Tuned weights, and their nested cross-validation."""

    weights: Mapping[str, float]
    """At least 0, sum 1; tuned on all labels."""
    objective: str
    """``auc`` or ``brier``."""
    shrunk: float
    """Shrinkage in [0, 1]; 1 gives the example weights themselves."""
    example: Interval
    """Out-of-fold objective of the example weights."""
    tuned: Interval
    """Out-of-fold objective of weights tuned without the fold."""
    difference: Interval
    """Tuned minus example, paired by question; ``auc`` is better above 0, ``brier`` below."""
    better: bool
    """Whether the whole interval lies on the better side."""
    reason: str
    """The verdict as text."""
    folds: Folds
    """Outer fold (n,) of each label."""
    fold_weights: tuple[Mapping[str, float], ...]
    """Weights tuned without each outer fold."""
    n: int
    """Labels used."""
    left_out: int
    """Labels whose r_raw the example weights leave undefined."""


@single_blas_thread()
def tune_weights(
    components: ArrayLike,
    targets: ArrayLike,
    groups: Sequence[Hashable],
    *,
    objective: str = "auc",
    seed: int = 0,
) -> Tuned:
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
    Tuned

    Raises
    ------
    NotCalibrated
        On too few labels and on labels of one class, saying what is missing.
    ValueError
        On an unknown objective.
    """
    if objective not in OBJECTIVES:
        raise ValueError(f"{objective!r} is no objective: one of {', '.join(OBJECTIVES)}")
    every, y = np.asarray(components, dtype=float), np.asarray(targets, dtype=float)
    defined = np.isfinite(weighted_means(every, WEIGHTS)) if len(every) else np.zeros(0, dtype=bool)
    if refused := missing_labels_reason("any", y[defined]):
        raise NotCalibrated(
            f"No weights can be tuned: {refused}. Label more items, or cotlab labels import FILE."
        )
    x, y = every[defined], y[defined]
    names = [group for group, selected in zip(groups, defined, strict=True) if selected]
    folds = folds_of(y, names, seed=seed)
    plain, tuned_values, used = np.zeros(len(y)), np.zeros(len(y)), []
    for fold in range(int(folds.max()) + 1):
        test_mask = folds == fold
        inner = [name for name, out in zip(names, test_mask, strict=True) if not out]
        fold_weights, _ = _shrunk(x[~test_mask], y[~test_mask], inner, objective, seed + fold + 1)
        used.append(fold_weights)
        for into, weights in ((plain, WEIGHTS), (tuned_values, fold_weights)):
            into[test_mask] = _fold_values(
                x[~test_mask], y[~test_mask], x[test_mask], weights, objective
            )
    both = np.isfinite(tuned_values)
    selected = [name for name, is_finite in zip(names, both, strict=True) if is_finite]
    measure = {"auc": "auroc", "brier": "brier"}[objective]
    improvement = measure_difference(
        measure, plain[both], tuned_values[both], y[both], selected, seed=seed
    )
    at = [
        measure_interval(measure, values[both], y[both], selected, seed=seed)
        for values in (plain, tuned_values)
    ]
    final_weights, shrunk = _shrunk(x, y, names, objective, seed)
    sign = 1 if objective == "auc" else -1
    better = (
        improvement.lo is not None
        and improvement.hi is not None
        and min(sign * improvement.lo, sign * improvement.hi) > 0
    )
    return Tuned(
        final_weights,
        objective,
        shrunk,
        at[0],
        at[1],
        improvement,
        better,
        _verdict(improvement, sign, better, shrunk),
        folds,
        tuple(used),
        len(y),
        int((~defined).sum()),
    )


def _verdict(improvement: Interval, sign: int, better: bool, shrunk: float) -> str:
    if improvement.lo is None or improvement.hi is None:
        return f"no interval on the difference ({improvement.reason}): keep the example weights"
    if better:
        return (
            "the whole interval lies on the better side: the tuned weights are better on these"
            " labels"
        )
    if max(sign * improvement.lo, sign * improvement.hi) < 0:
        return "the tuned weights are worse out of fold: keep the example weights"
    same = " (tuning itself went back to them)" if shrunk == 1 else ""
    return f"the interval holds 0: keep the example weights{same}"


def _shrunk(
    x: Floats, y: Floats, names: Sequence[Hashable], objective: str, seed: int
) -> tuple[Mapping[str, float], float]:
    """Return tuned weights and their shrinkage, chosen by inner folds; ties shrink further."""
    example = weight_vector(WEIGHTS)
    try:
        folds = folds_of(y, names, most=4, seed=seed)
    except NotCalibrated:
        return dict(WEIGHTS), 1.0
    by_share = {share: np.zeros(len(y)) for share in SHRINK}
    for fold in range(int(folds.max()) + 1):
        test_mask = folds == fold
        tuned = _best(x[~test_mask], y[~test_mask], objective)
        for share, values in by_share.items():
            weights = _named((1 - share) * tuned + share * example)
            values[test_mask] = _fold_values(
                x[~test_mask], y[~test_mask], x[test_mask], weights, objective
            )
    finite = np.isfinite(np.column_stack(list(by_share.values()))).all(axis=1)
    worth = {
        share: _worth(values[finite], y[finite], objective) for share, values in by_share.items()
    }
    share = max(SHRINK, key=lambda candidate: (round(worth[candidate], 12), candidate))
    return _named((1 - share) * _best(x, y, objective) + share * example), share


def _worth(values: Floats, y: Floats, objective: str) -> float:
    """Return the objective, higher is better."""
    if not len(y):
        return -np.inf
    return (auroc(values, y) or 0.0) if objective == "auc" else -brier(values, y)


def _fold_values(
    x: Floats, y: Floats, new: Floats, weights: Mapping[str, float], objective: str
) -> Floats:
    """Return r_raw of held-out items, or its probability by a logistic map from the other items."""
    scores = weighted_means(new, weights)
    if objective == "auc":
        return scores
    known = weighted_means(x, weights)
    fine = np.isfinite(known)
    try:
        return fit_any("platt", known[fine], y[fine]).predict(scores)
    except NotCalibrated:  # a map is never inverted: predict the base rate
        return np.where(np.isfinite(scores), y.mean(), np.nan)


def _best(x: Floats, y: Floats, objective: str) -> Floats:
    """Return the best admissible weights (5,) on these labels."""
    measured = np.flatnonzero(np.isfinite(x).any(axis=0))
    return _by_grid(x, y, measured) if objective == "auc" else _by_descent(x, y, measured)


def _by_grid(x: Floats, y: Floats, measured: NDArray[np.int64]) -> Floats:
    """Return the weights of highest AUC on a grid, refined by moves between components."""
    best, worth = _pick(_grid(measured), x, y)
    for size in MOVES:
        while True:
            moved = [best]
            for into, out in permutations(measured, 2):
                candidate = best.copy()
                step = min(size, candidate[out])
                candidate[into] += step
                candidate[out] -= step
                moved.append(candidate)
            after, now = _pick(np.column_stack(moved), x, y)
            if now <= worth + 1e-12:
                break
            best, worth = after, now
    return best


def _pick(candidates: Floats, x: Floats, y: Floats) -> tuple[Floats, float]:
    from scipy.stats import rankdata

    good = int(y.sum())
    bad, step = len(y) - good, max(1, _CELLS // len(y))
    worth = np.full(candidates.shape[1], -np.inf)
    for at in range(0, candidates.shape[1], step):
        scores = np.round(weight_grid_means(x, candidates[:, at : at + step], MIN_WEIGHT), 12)
        fine = np.isfinite(scores).all(axis=0)
        ranks = rankdata(scores[:, fine], axis=0)
        worth[at : at + step][fine] = (ranks[y == 1].sum(axis=0) - good * (good + 1) / 2) / (
            good * bad
        )
    top = np.flatnonzero(worth >= worth.max() - 1e-12)
    if not np.isfinite(worth.max()):
        return weight_vector(WEIGHTS), -np.inf
    far = np.abs(candidates[:, top] - weight_vector(WEIGHTS)[:, None]).sum(axis=0)
    first = top[int(np.argmin(far))]
    return candidates[:, first].copy(), float(worth[first])


def _by_descent(x: Floats, y: Floats, measured: NDArray[np.int64]) -> Floats:
    """Return the weights of the lowest Brier score of σ(slope · r_raw + intercept), by SLSQP.

    Weights, slope (at least 0) and intercept are optimised at once, from the example weights and
    from near those that rank best.
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    values, mask = filled_components(x)
    values, mask = values[:, measured], mask[:, measured]
    k, example = len(measured), weight_vector(WEIGHTS)
    start_weights = example[measured] / example[measured].sum()
    ranked = _by_grid(x, y, measured)[measured]
    starts = [start_weights, 0.8 * ranked + 0.2 * start_weights]
    patterns = np.unique(mask, axis=0)

    def loss(at: Floats) -> tuple[float, Floats]:
        under = np.maximum(mask @ at[:k], 1e-6)
        r = (values @ at[:k]) / under
        p = expit(at[k] * r + at[k + 1])
        pull = 2 * (p - y) * p * (1 - p) / len(y)
        by_weight = (at[k] * pull / under) @ (values - r[:, None] * mask)
        return float(np.mean((p - y) ** 2)), np.r_[by_weight, pull @ r, pull.sum()]

    best, least = example, np.inf
    for start in starts:
        scores = (values @ start) / np.maximum(mask @ start, 1e-6)
        try:
            fitted = fit_any("platt", np.clip(scores, 0, 1), y).params
            first = np.r_[
                start, min(fitted["slope"], 100.0), np.clip(fitted["intercept"], -100.0, 100.0)
            ]
        except NotCalibrated:
            first = np.r_[start, 1.0, 0.0]
        optimum = minimize(
            loss,
            first,
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
                    "fun": lambda at: patterns @ at[:k] - MIN_WEIGHT - 1e-5,
                    "jac": lambda at: np.column_stack([patterns, np.zeros((len(patterns), 2))]),
                },
            ),
        )
        weights = np.zeros(len(COMPONENTS))
        weights[measured] = np.clip(np.round(optimum.x[:k], 6), 0.0, None)
        if weights.sum() > 0 and optimum.fun < least - 1e-9:
            fine = _admitted(x, weights / weights.sum())
            if fine is not None:
                best, least = fine, float(optimum.fun)
    return best


def _admitted(x: Floats, weights: Floats) -> Floats | None:
    """Return these weights, shrunk to the example weights until every label has an r_raw."""
    for share in SHRINK[:-1]:
        blended = (1 - share) * weights + share * weight_vector(WEIGHTS)
        if np.isfinite(weight_grid_means(x, blended[:, None], MIN_WEIGHT)).all():
            return np.asarray(blended)
    return None


def _grid(measured: NDArray[np.int64]) -> Floats:
    """Return all weights (5, m) on the simplex of the measured components that are tenths."""
    k = len(measured)
    cuts = np.array(list(combinations(range(GRID + k - 1), k - 1)), dtype=int).reshape(-1, k - 1)
    edges = np.column_stack([np.full(len(cuts), -1), cuts, np.full(len(cuts), GRID + k - 1)])
    points = np.zeros((len(COMPONENTS), len(cuts)))
    points[measured] = (np.diff(edges, axis=1) - 1).T / GRID
    return points


def _named(weights: Floats) -> Mapping[str, float]:
    """Return weights by component, with six decimals and a sum of 1."""
    rounded = np.round(weights / weights.sum(), 6)
    rounded[int(np.argmax(rounded))] += 1 - rounded.sum()
    return {
        part: float(weight) for part, weight in zip(COMPONENTS, np.round(rounded, 6), strict=True)
    }
