"""Bootstrap intervals over groups for measures of calibration, and for their differences."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from cotlab.stats.calibration import (
    Floats,
    Integers,
    auroc,
    bin_count,
    brier,
    checked_predictions,
    ece,
    equal_mass_bins,
    log_loss,
    log_losses,
)
from cotlab.stats.intervals import FEWEST, Interval, checked_level, no_interval, too_few
from cotlab.stats.resample import RESAMPLES

_BLOCK_CELLS, _N_CANDIDATES = 4_000_000, 61
ResampledMeasure = Callable[[Floats], Floats]
"""Counts of draws (n_draws, n_groups) -> one value a draw (n_draws,), NaN where undefined."""


def measure_interval(
    measure: str,
    predicted: ArrayLike,
    target: ArrayLike,
    groups: Sequence[Hashable],
    *,
    seed: int,
    level: float = 0.95,
) -> Interval:
    """Return a measure of predictions with its bootstrap interval over groups (questions).

    Parameters
    ----------
    measure : str
        ``brier``, ``log_loss``, ``ece`` or ``auroc``.
    predicted : array (n,), [0, 1]
        For ``auroc`` any finite score.
    target : array (n,) of bool, 0 or 1
    groups : sequence (n,) of str or int
        The group of each prediction: a resample takes or leaves all of a group together, and ``n``
        of the result counts the groups.
    seed : int
    level : float in (0, 1)

    Returns
    -------
    Interval
        In the measure's range, by the percentile bootstrap, widened to its point. The ECE's bounds
        invert a test instead: chance adds to an ECE and resampling adds once more. No bounds below
        five groups. The AUROC is undefined on one class; resamples of one class are left out, and
        ``note`` counts them.

    Raises
    ------
    ValueError
        As ``brier``, and if there is not one group for each prediction.

    References
    ----------
    Davison and Hinkley (1997), Bootstrap Methods and their Application, 3.8 and 5.5.
    """
    p, y = checked_predictions(predicted, target, is_probability=measure != "auroc")
    point = _POINT_MEASURES[measure](p, y)
    if point is None:
        return no_interval(
            None, 0, "there is one class only: nothing can be ranked against it", level=level
        )
    group_index = _group_index(groups, len(p))
    n = int(group_index.max()) + 1
    if measure == "ece" and n >= FEWEST:
        lo, hi = _ece_bounds(p, y, group_index, point, seed, checked_level(level))
        method = f"bootstrap over questions (test inversion, {RESAMPLES} resamples)"
        return Interval(point, min(lo, point), max(hi, point), n, method, level)
    method = f"bootstrap over questions (percentile, {RESAMPLES} resamples)"
    return _percentile_interval(
        point, _resampled_measure(measure, p, y, group_index), group_index, method, seed, level
    )


def measure_difference(
    measure: str,
    first: ArrayLike,
    second: ArrayLike,
    target: ArrayLike,
    groups: Sequence[Hashable],
    *,
    seed: int,
    level: float = 0.95,
) -> Interval:
    """Return a measure of ``second`` minus that of ``first``, with a paired bootstrap interval.

    Parameters
    ----------
    measure : str
        ``brier``, ``log_loss``, ``ece`` or ``auroc``.
    first, second : array (n,), [0, 1]
        Two predictions of the same targets.
    target : array (n,) of bool, 0 or 1
    groups : sequence (n,) of str or int
    seed : int
    level : float in (0, 1)

    Returns
    -------
    Interval
        As ``measure_interval``; both predictions are resampled together. Undefined where the
        measure is undefined; no bounds below five groups.

    Raises
    ------
    ValueError
        As ``measure_interval``.

    References
    ----------
    Davison and Hinkley (1997), Bootstrap Methods and their Application, 3.8.
    """
    is_probability = measure != "auroc"
    (first_p, y), (second_p, _) = (
        checked_predictions(first, target, is_probability=is_probability),
        checked_predictions(second, target, is_probability=is_probability),
    )
    first_value = _POINT_MEASURES[measure](first_p, y)
    second_value = _POINT_MEASURES[measure](second_p, y)
    if first_value is None or second_value is None:
        return no_interval(
            None, 0, "there is one class only: nothing can be ranked against it", level=level
        )
    group_index = _group_index(groups, len(y))
    first_measure = _resampled_measure(measure, first_p, y, group_index)
    second_measure = _resampled_measure(measure, second_p, y, group_index)
    return _percentile_interval(
        second_value - first_value,
        lambda counts: second_measure(counts) - first_measure(counts),
        group_index,
        f"paired bootstrap over questions (percentile, {RESAMPLES} resamples)",
        seed,
        level,
    )


def _make_weighted_auroc(scores: Floats, target: Floats) -> ResampledMeasure:
    """Return ``weighted_auroc`` as a function of the weights; the scores are sorted only once."""
    _, score_index = np.unique(scores, return_inverse=True)
    order = np.argsort(score_index, kind="stable")
    tie_starts = np.flatnonzero(np.r_[True, np.diff(score_index[order]) > 0])

    def compute_auroc(weights: Floats) -> Floats:
        positive_weights = np.add.reduceat((weights * target)[:, order], tie_starts, axis=1)
        negative_weights = np.add.reduceat((weights * (1 - target))[:, order], tie_starts, axis=1)
        negatives_below = np.cumsum(negative_weights, axis=1) - negative_weights
        n_pairs = positive_weights.sum(axis=1) * negative_weights.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(
                (positive_weights * (negatives_below + negative_weights / 2)).sum(axis=1) / n_pairs
            )

    return compute_auroc


def _percentile_interval(
    point: float,
    measure: ResampledMeasure,
    group_index: Integers,
    method: str,
    seed: int,
    level: float,
) -> Interval:
    """Return the percentile interval over resamples of whole groups, widened to its point."""
    n = int(group_index.max()) + 1
    values, n_undefined = _resampled_values(measure, group_index, seed)
    reason = too_few(n, "questions", FEWEST)
    if reason is None and not len(values):
        reason = "no resample has both classes"
    if reason:
        return no_interval(point, n, reason, level=level)
    lo, hi = (
        float(quantile) for quantile in np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    )
    note = (
        f"{n_undefined} of {RESAMPLES} resamples hold one class and are left out"
        if n_undefined
        else None
    )
    return Interval(point, min(lo, point), max(hi, point), n, method, level, note=note)


def _ece_bounds(
    p: Floats, y: Floats, group_index: Integers, point: float, seed: int, level: float
) -> tuple[float, float]:
    """Return the smallest and the largest true ECE that the observed one does not contradict.

    Each candidate ECE scales the observed gaps of the bins; what resampling whole groups adds to
    the gaps is added to it. A candidate is kept where the observed ECE lies in the middle ``level``
    of such sums. Plain or mirrored percentiles cover the truth far less often than they claim,
    since chance only ever adds to an absolute gap. For the upper bound an ECE below the median of a
    perfect forecaster is taken for that median.
    """
    error_sums, group_sizes = _bin_errors(p, y, group_index)
    mean_errors = error_sums.sum(axis=0) / len(p)
    noise = (
        np.concatenate(
            [
                (counts @ error_sums) / (counts @ group_sizes)[:, None]
                for counts in _group_draw_counts(group_index, seed)
            ]
        )
        - mean_errors
    )
    chance_quantiles = np.quantile(np.abs(noise).sum(axis=1), [0.5, (1 + level) / 2])
    error_direction = (
        mean_errors / point if point > 0 else np.full(len(mean_errors), 1 / len(mean_errors))
    )
    candidates = np.linspace(0.0, min(1.0, point + 2 * float(chance_quantiles[1])), _N_CANDIDATES)
    tail_levels = [(1 - level) / 2, (1 + level) / 2]
    candidate_bounds = np.array(
        [
            np.quantile(np.abs(candidate * error_direction + noise).sum(axis=1), tail_levels)
            for candidate in candidates
        ]
    )
    lower_candidates = candidates[candidate_bounds[:, 1] >= point - 1e-12]
    upper_candidates = candidates[
        candidate_bounds[:, 0] <= max(point, float(chance_quantiles[0])) + 1e-12
    ]
    return float(lower_candidates.min(initial=point)), float(upper_candidates.max(initial=point))


def _bin_errors(p: Floats, y: Floats, group_index: Integers) -> tuple[Floats, Floats]:
    """Return the sums of p - y by group and bin (n_groups, n_bins), and the group sizes."""
    group_sizes = np.bincount(group_index).astype(float)
    bin_index = equal_mass_bins(p, bin_count(len(p)))
    error_sums = np.zeros((len(group_sizes), int(bin_index.max()) + 1))
    np.add.at(error_sums, (group_index, bin_index), p - y)
    return error_sums, group_sizes


def _resampled_measure(
    measure: str, p: Floats, y: Floats, group_index: Integers
) -> ResampledMeasure:
    """Return a measure as a function of the draws of each group; ECE's bins stay fixed."""
    if measure == "auroc":
        compute_auroc = _make_weighted_auroc(p, y)
        return lambda counts: compute_auroc(counts[:, group_index])
    error_sums, group_sizes = _bin_errors(p, y, group_index)
    if measure == "ece":
        return lambda counts: np.asarray(
            np.abs(counts @ error_sums).sum(axis=1) / (counts @ group_sizes)
        )
    loss_sums = np.bincount(group_index, (p - y) ** 2 if measure == "brier" else log_losses(p, y))
    return lambda counts: np.asarray((counts @ loss_sums) / (counts @ group_sizes))


def _group_index(groups: Sequence[Hashable], n: int) -> Integers:
    """Return each prediction's group, counted from 0 in the order of the groups' text."""
    if len(groups) != n:
        raise ValueError(f"one group for each prediction, got {len(groups)} for {n}")
    index_by_group = {name: k for k, name in enumerate(sorted(set(groups), key=str))}
    return np.array([index_by_group[group] for group in groups], dtype=np.int64)


def _resampled_values(
    measure: ResampledMeasure, group_index: Integers, seed: int
) -> tuple[Floats, int]:
    """Return the defined values of ``N_RESAMPLES`` resamples, and how many are undefined."""
    all_values = np.concatenate(
        [measure(counts) for counts in _group_draw_counts(group_index, seed)]
    )
    defined_values = all_values[np.isfinite(all_values)]
    return defined_values, len(all_values) - len(defined_values)


def _group_draw_counts(group_index: Integers, seed: int) -> Iterator[Floats]:
    """Yield how often each group is drawn: ``N_RESAMPLES`` rows, in blocks."""
    n_groups = int(group_index.max()) + 1
    rng, block_size = np.random.default_rng(seed), max(1, _BLOCK_CELLS // len(group_index))
    for start in range(0, RESAMPLES, block_size):
        n_rows = min(block_size, RESAMPLES - start)
        samples = (
            rng.integers(0, n_groups, size=(n_rows, n_groups))
            + n_groups * np.arange(n_rows)[:, None]
        )
        yield (
            np.bincount(samples.ravel(), minlength=n_rows * n_groups)
            .reshape(n_rows, n_groups)
            .astype(float)
        )


_POINT_MEASURES: dict[str, Callable[[Floats, Floats], float | None]] = {
    "brier": brier,
    "log_loss": log_loss,
    "ece": ece,
    "auroc": auroc,
}
