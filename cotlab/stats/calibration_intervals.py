"""Bootstrap intervals over groups for measures of calibration, and for their differences."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from cotlab.stats.calibration import (
    Floats,
    bin_count,
    checked_predictions,
    equal_mass_bins,
    log_losses,
    weighted_auroc,
)
from cotlab.stats.intervals import FEWEST, TAILS, Interval
from cotlab.stats.resample import GroupResamples, Measure

_N_CANDIDATES = 61


def measure_interval(
    measure: str,
    predicted: ArrayLike,
    target: ArrayLike,
    groups: Sequence[Hashable],
    *,
    seed: int,
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

    Returns
    -------
    Interval
        In the measure's range, as ``percentile_interval``. The ECE's bounds invert a test instead:
        chance adds to an ECE and resampling adds once more. The AUROC is undefined on one class.

    Raises
    ------
    ValueError
        As ``brier``, and if there is not one group for each prediction.

    References
    ----------
    Davison and Hinkley (1997), Bootstrap Methods and their Application, 3.8 and 5.5.
    """
    p, y = checked_predictions(predicted, target, is_probability=measure != "auroc")
    resamples = _resamples(groups, len(p), seed)
    if measure == "ece" and resamples.n >= FEWEST:
        return _ece_interval(resamples.values(_bin_errors(p, y)), resamples.n)
    return resamples.interval(_weighted(measure, p, y))


def measure_difference(
    measure: str,
    first: ArrayLike,
    second: ArrayLike,
    target: ArrayLike,
    groups: Sequence[Hashable],
    *,
    seed: int,
) -> Interval:
    """Return a measure of ``second`` minus that of ``first``, with a paired bootstrap interval.

    Parameters
    ----------
    measure : str
        ``brier``, ``log_loss``, ``ece`` or ``auroc``.
    first, second : array (n,), [0, 1]
        Two predictions of the same targets, which are resampled together.
    target : array (n,) of bool, 0 or 1
    groups : sequence (n,) of str or int
    seed : int

    Returns
    -------
    Interval
        As ``percentile_interval``.

    Raises
    ------
    ValueError
        As ``measure_interval``.

    References
    ----------
    Davison and Hinkley (1997), Bootstrap Methods and their Application, 3.8.
    """
    first_measure, second_measure = (
        _weighted(
            measure, *checked_predictions(predicted, target, is_probability=measure != "auroc")
        )
        for predicted in (first, second)
    )
    resamples = _resamples(groups, len(np.asarray(target)), seed)
    return resamples.interval(
        lambda weights: second_measure(weights) - first_measure(weights), paired=True
    )


def _resamples(groups: Sequence[Hashable], n: int, seed: int) -> GroupResamples:
    if len(groups) != n:
        raise ValueError(f"one group for each prediction, got {len(groups)} for {n}")
    return GroupResamples.of(groups, seed=seed)


def _weighted(measure: str, p: Floats, y: Floats) -> Measure:
    """Return a measure as a function of the rows' weights; ECE's bins stay fixed."""
    if measure == "auroc":
        return weighted_auroc(p, y == 1)
    if measure == "ece":
        bin_errors = _bin_errors(p, y)
        return lambda weights: np.abs(bin_errors(weights)).sum(axis=1)
    losses = (p - y) ** 2 if measure == "brier" else log_losses(p, y)
    return lambda weights: np.asarray((weights @ losses) / weights.sum(axis=1))


def _bin_errors(p: Floats, y: Floats) -> Measure:
    """Return the sums of p - y by bin (n_draws, n_bins), as shares of all weights."""
    bin_index = equal_mass_bins(p, bin_count(len(p)))
    errors = np.eye(int(bin_index.max()) + 1)[bin_index] * (p - y)[:, None]
    return lambda weights: np.asarray((weights @ errors) / weights.sum(axis=1, keepdims=True))


def _ece_interval(errors: Floats, n: int) -> Interval:
    """Return the ECE from bin errors (1 + RESAMPLES, n_bins), with bounds that invert a test.

    They are the smallest and the largest true ECE that the observed one does not contradict. Each
    candidate ECE scales the observed gaps of the bins; what resampling whole groups adds to the
    gaps is added to it. A candidate is kept where the observed ECE lies in the middle 95 % of
    such sums. Plain or mirrored percentiles cover the truth far less often than they claim, since
    chance only ever adds to an absolute gap. For the upper bound an ECE below the median of a
    perfect forecaster is taken for that median.
    """
    noise, point = errors[1:] - errors[0], float(np.abs(errors[0]).sum())
    median, most = np.quantile(np.abs(noise).sum(axis=1), [0.5, TAILS[1]])
    direction = errors[0] / point if point > 0 else np.full(noise.shape[1], 1 / noise.shape[1])
    candidates = np.linspace(0.0, min(1.0, point + 2 * float(most)), _N_CANDIDATES)
    lower_tails, upper_tails = np.transpose(
        [
            np.quantile(np.abs(candidate * direction + noise).sum(axis=1), TAILS)
            for candidate in candidates
        ]
    )
    lo = candidates[upper_tails >= point - 1e-12].min(initial=point)
    hi = candidates[lower_tails <= max(point, float(median)) + 1e-12].max(initial=point)
    method = f"bootstrap over questions (test inversion, {len(noise)} resamples)"
    return Interval(point, float(lo), float(hi), n, method)
