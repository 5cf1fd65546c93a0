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
    equal_mass,
    log_loss,
    log_losses,
)
from cotlab.stats.intervals import FEWEST, Interval, checked_level, no_interval, too_few
from cotlab.stats.resample import RESAMPLES

_CELLS, _GRID_POINTS = 4_000_000, 61
Measure = Callable[[Floats], Floats]
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
    p, y = checked_predictions(predicted, target, unit=measure != "auroc")
    point = _POINTS[measure](p, y)
    if point is None:
        return no_interval(
            None, 0, "there is one class only: nothing can be ranked against it", level=level
        )
    where = _grouped(groups, len(p))
    n = int(where.max()) + 1
    if measure == "ece" and n >= FEWEST:
        lo, hi = _ece_bounds(p, y, where, point, seed, checked_level(level))
        method = f"bootstrap over questions (test inversion, {RESAMPLES} resamples)"
        return Interval(point, min(lo, point), max(hi, point), n, method, level)
    method = f"bootstrap over questions (percentile, {RESAMPLES} resamples)"
    return _percentile(point, _value(measure, p, y, where), where, method, seed, level)


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
    unit = measure != "auroc"
    (a, y), (b, _) = (
        checked_predictions(first, target, unit=unit),
        checked_predictions(second, target, unit=unit),
    )
    first_value, second_value = _POINTS[measure](a, y), _POINTS[measure](b, y)
    if first_value is None or second_value is None:
        return no_interval(
            None, 0, "there is one class only: nothing can be ranked against it", level=level
        )
    where = _grouped(groups, len(y))
    of_a, of_b = _value(measure, a, y, where), _value(measure, b, y, where)
    return _percentile(
        second_value - first_value,
        lambda counts: of_b(counts) - of_a(counts),
        where,
        f"paired bootstrap over questions (percentile, {RESAMPLES} resamples)",
        seed,
        level,
    )


def weighted_auroc(weights: Floats, scores: Floats, target: Floats) -> Floats:
    """Return the AUROC of each row of weights, ties counting half.

    Parameters
    ----------
    weights : ndarray (n_draws, n), at least 0
        How often each prediction counts.
    scores : ndarray (n,), finite
    target : ndarray (n,) of 0 and 1

    Returns
    -------
    ndarray (n_draws,), [0, 1]
        NaN where a row leaves one class only.

    References
    ----------
    Hanley and McNeil (1982), Radiology 143:29.
    """
    return _auroc_of(scores, target)(weights)


def _auroc_of(scores: Floats, target: Floats) -> Measure:
    """Return ``weighted_auroc`` as a function of the weights; the scores are sorted only once."""
    _, where = np.unique(scores, return_inverse=True)
    order = np.argsort(where, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(where[order]) > 0])

    def value(weights: Floats) -> Floats:
        good = np.add.reduceat((weights * target)[:, order], starts, axis=1)
        bad = np.add.reduceat((weights * (1 - target))[:, order], starts, axis=1)
        below = np.cumsum(bad, axis=1) - bad
        pairs = good.sum(axis=1) * bad.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray((good * (below + bad / 2)).sum(axis=1) / pairs)

    return value


def _percentile(
    point: float, value: Measure, where: Integers, method: str, seed: int, level: float
) -> Interval:
    """Return the percentile interval over resamples of whole groups, widened to its point."""
    n = int(where.max()) + 1
    values, n_undefined = _draws(value, where, seed)
    reason = too_few(n, "questions", FEWEST)
    if reason is None and not len(values):
        reason = "no resample has both classes"
    if reason:
        return no_interval(point, n, reason, level=level)
    lo, hi = (float(q) for q in np.quantile(values, [(1 - level) / 2, (1 + level) / 2]))
    note = (
        f"{n_undefined} of {RESAMPLES} resamples hold one class and are left out"
        if n_undefined
        else None
    )
    return Interval(point, min(lo, point), max(hi, point), n, method, level, note=note)


def _ece_bounds(
    p: Floats, y: Floats, where: Integers, point: float, seed: int, level: float
) -> tuple[float, float]:
    """Return the smallest and the largest true ECE that the observed one does not contradict.

    Each candidate ECE scales the observed gaps of the bins; what resampling whole groups adds to
    the gaps is added to it. A candidate is kept where the observed ECE lies in the middle ``level``
    of such sums. Plain or mirrored percentiles cover the truth far less often than they claim,
    since chance only ever adds to an absolute gap. For the upper bound an ECE below the median of a
    perfect forecaster is taken for that median.
    """
    tops, sizes = _bin_gaps(p, y, where)
    mean_gaps = tops.sum(axis=0) / len(p)
    noise = (
        np.concatenate(
            [(counts @ tops) / (counts @ sizes)[:, None] for counts in _counts(where, seed)]
        )
        - mean_gaps
    )
    chance = np.quantile(np.abs(noise).sum(axis=1), [0.5, (1 + level) / 2])
    direction = mean_gaps / point if point > 0 else np.full(len(mean_gaps), 1 / len(mean_gaps))
    candidates = np.linspace(0.0, min(1.0, point + 2 * float(chance[1])), _GRID_POINTS)
    tails = [(1 - level) / 2, (1 + level) / 2]
    ends = np.array(
        [
            np.quantile(np.abs(candidate * direction + noise).sum(axis=1), tails)
            for candidate in candidates
        ]
    )
    small, large = (
        candidates[ends[:, 1] >= point - 1e-12],
        candidates[ends[:, 0] <= max(point, float(chance[0])) + 1e-12],
    )
    return float(small.min(initial=point)), float(large.max(initial=point))


def _bin_gaps(p: Floats, y: Floats, where: Integers) -> tuple[Floats, Floats]:
    """Return the sums of p - y by group and bin (n_groups, n_bins), and the group sizes."""
    sizes, bins = np.bincount(where).astype(float), equal_mass(p, bin_count(len(p)))
    tops = np.zeros((len(sizes), int(bins.max()) + 1))
    np.add.at(tops, (where, bins), p - y)
    return tops, sizes


def _value(measure: str, p: Floats, y: Floats, where: Integers) -> Measure:
    """Return a measure as a function of the draws of each group; ECE's bins stay fixed."""
    if measure == "auroc":
        of_weights = _auroc_of(p, y)
        return lambda counts: of_weights(counts[:, where])
    tops, sizes = _bin_gaps(p, y, where)
    if measure == "ece":
        return lambda counts: np.asarray(np.abs(counts @ tops).sum(axis=1) / (counts @ sizes))
    top = np.bincount(where, (p - y) ** 2 if measure == "brier" else log_losses(p, y))
    return lambda counts: np.asarray((counts @ top) / (counts @ sizes))


def _grouped(groups: Sequence[Hashable], n: int) -> Integers:
    """Return each prediction's group, counted from 0 in the order of the groups' text."""
    if len(groups) != n:
        raise ValueError(f"one group for each prediction, got {len(groups)} for {n}")
    names = {name: k for k, name in enumerate(sorted(set(groups), key=str))}
    return np.array([names[group] for group in groups], dtype=np.int64)


def _draws(value: Measure, where: Integers, seed: int) -> tuple[Floats, int]:
    """Return the defined values of ``RESAMPLES`` resamples, and how many are undefined."""
    every = np.concatenate([value(counts) for counts in _counts(where, seed)])
    known = every[np.isfinite(every)]
    return known, len(every) - len(known)


def _counts(where: Integers, seed: int) -> Iterator[Floats]:
    """Yield how often each group is drawn: ``RESAMPLES`` rows, in blocks."""
    n_groups = int(where.max()) + 1
    rng, step = np.random.default_rng(seed), max(1, _CELLS // len(where))
    for at in range(0, RESAMPLES, step):
        rows = min(step, RESAMPLES - at)
        samples = (
            rng.integers(0, n_groups, size=(rows, n_groups)) + n_groups * np.arange(rows)[:, None]
        )
        yield (
            np.bincount(samples.ravel(), minlength=rows * n_groups)
            .reshape(rows, n_groups)
            .astype(float)
        )


_POINTS: dict[str, Callable[[Floats, Floats], float | None]] = {
    "brier": brier,
    "log_loss": log_loss,
    "ece": ece,
    "auroc": auroc,
}
