"""The one resampler: whole groups drawn with replacement, and signs of paired differences flipped.

A measure is a function of weights, how often a resample holds each row. Time and draws are linear
in the number of rows, and no array is larger than a block of resamples.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cotlab.stats.intervals import (
    FEWEST,
    TAILS,
    Interval,
    checked_level,
    no_interval,
    too_few,
    wilson,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Counts = NDArray[np.uint16]
Measure = Callable[[Floats], Floats]
"""Weights (n_draws, n_rows) -> one value, or a row of values, a draw; NaN where undefined."""
RESAMPLES = 2000
MAX_UNDEFINED_SHARE = 0.05
"""Share of undefined resamples above which the others are no sample of what could be drawn."""
ONE_CLASS_REASON = "there is one class only: nothing can be ranked against it"
_MAX_ABS_VALUE = 1e100
"""Largest value whose third power, in BCa's acceleration, does not overflow."""
_TIE_BITS = 40
"""Differences below 2^-40 of the range of the values are rounding: 13 bits more than sums lose."""
_BLOCK_CELLS = 200_000
"""Array cells of one block of resamples: few enough for a processor's cache."""
_MAX_KEPT_GROUPS = 2000
"""Groups up to which draws are kept for the next measure of as many groups: 8 MB each."""


@dataclass(frozen=True, slots=True)
class GroupResamples:
    """Resamples of whole groups with replacement, the same for the same groups and seed.

    The draws are those of ``scipy.stats.bootstrap`` for the seed.
    """

    n: int
    """Number of groups."""
    seed: int
    group_of_row: Integers | None = None
    """Number of each row's group; None where each row is a group."""

    @classmethod
    def of(cls, groups: Sequence[Hashable], *, seed: int) -> GroupResamples:
        """Return the resamples of rows in groups, whose order does not matter."""
        index_by_group = {name: k for k, name in enumerate(sorted(set(groups), key=str))}
        rows = np.array([index_by_group[group] for group in groups], dtype=np.int64)
        return cls(len(index_by_group), seed, rows)

    def values(self, measure: Measure) -> Floats:
        """Return a measure of the sample, then of each resample (1 + RESAMPLES, ...)."""
        draw = _kept_counts if self.n <= _MAX_KEPT_GROUPS else _drawn_counts
        blocks = []
        for counts in draw(self.n, self.seed, RESAMPLES):
            rows = self.group_of_row
            weights = counts if rows is None else counts.take(rows, axis=1)
            blocks.append(measure(weights.astype(float)))
        return np.concatenate(blocks)

    def interval(self, measure: Measure, *, paired: bool = False) -> Interval:
        """Return ``percentile_interval`` of a measure with one value a draw."""
        return percentile_interval(self.values(measure), self.n, paired=paired)


def _drawn_counts(n: int, seed: int, n_resamples: int) -> Iterator[Counts]:
    """Yield how often each of n groups is drawn, in blocks: the sample itself, then resamples."""
    yield np.ones((1, n), np.uint16)
    rng = np.random.default_rng(seed)
    for block in row_blocks(n_resamples, n):
        n_rows = block.stop - block.start
        draws = rng.integers(0, n, (n_rows, n)) + n * np.arange(n_rows)[:, None]
        yield np.bincount(draws.ravel(), minlength=n_rows * n).astype(np.uint16).reshape(n_rows, n)


@lru_cache(maxsize=4)
def _kept_counts(n: int, seed: int, n_resamples: int) -> Iterable[Counts]:
    return tuple(_drawn_counts(n, seed, n_resamples))


def row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Yield slices of ``n_rows`` whose blocks of ``n_columns`` fit into a processor's cache."""
    size = max(1, _BLOCK_CELLS // max(1, n_columns))
    for start in range(0, n_rows, size):
        yield slice(start, min(n_rows, start + size))


def percentile_interval(
    values: Floats,
    n: int,
    *,
    level: float = 0.95,
    paired: bool = False,
    refusal: str | None = None,
    over: str = "questions",
    undefined: str = "hold one class",
) -> Interval:
    """Return the interval of a measure from its values by ``GroupResamples``.

    Parameters
    ----------
    values : array (1 + n_resamples,)
        The point first, then its resamples, NaN where undefined.
    n : int
        Number of groups.
    level : float in (0, 1)
    paired : bool
        Whether the measure is a difference, which the name of the method then says.
    refusal : str, optional
        Why there can be no bounds.
    over, undefined : str
        What the groups are, and what resamples without a value do.

    Returns
    -------
    Interval
        Widened to its point. Undefined where the point is; no bounds below ``FEWEST`` groups, nor
        where more than ``MAX_UNDEFINED_SHARE`` of the resamples have no value; fewer are left out,
        and ``note`` counts them.

    References
    ----------
    Davison and Hinkley (1997), Bootstrap Methods and their Application, 3.8.
    """
    checked_level(level)
    point, draws = float(values[0]), values[1:]
    if not math.isfinite(point):
        return no_interval(None, 0, ONE_CLASS_REASON, level=level)
    defined = draws[np.isfinite(draws)]
    n_undefined = len(draws) - len(defined)
    note = f"{n_undefined} of {len(draws)} resamples {undefined}" if n_undefined else None
    refusal = refusal or too_few(n, over)
    if refusal is None and n_undefined > MAX_UNDEFINED_SHARE * len(draws):
        refusal, note = note, None
    if refusal:
        return no_interval(point, n, refusal, level=level)
    lo, hi = (float(bound) for bound in np.quantile(defined, [(1 - level) / 2, (1 + level) / 2]))
    method = f"{'paired ' * paired}bootstrap over {over} (percentile, {len(draws)} resamples)"
    note = note and f"{note} and are left out"
    return Interval(point, min(lo, point), max(hi, point), n, method, level, note=note)


def bootstrap_mean(
    values: Sequence[float],
    *,
    seed: int,
    share: bool = False,
    min_units: int = FEWEST,
) -> Interval:
    """Return the mean of independent values with a BCa bootstrap interval.

    Parameters
    ----------
    values : sequence of float, finite
        One value per independent unit (an item's mean, not its steps).
    seed : int
        Of the resampling; the same seed gives the same interval.
    share : bool
        The values are rates of yes and no, in [0, 1]: where all are 0 or all are 1, a resample has
        no spread, and the interval is Wilson's for n units.
    min_units : int, at least 2
        Units that bounds need. Change it only to reproduce a published report with fewer.

    Returns
    -------
    Interval
        In the unit of the values. Undefined (with the reason) where there is no value; no bounds
        (with the reason) below ``min_units`` values and where all are equal; where BCa fails or
        excludes its point, the percentile bootstrap under that name.

    Raises
    ------
    ValueError
        If a value is not finite.

    Notes
    -----
    The draws are scipy's for the seed, and the bounds agree with scipy's to rounding; resamples at
    the point that differ from it by rounding only are put there: with one seed, the interval of
    1 − x is that of x mirrored.

    References
    ----------
    Efron (1987), JASA 82:171 (BCa); scipy.stats.bootstrap.
    """
    return bootstrap_ratio(values, [1.0] * len(values), seed=seed, share=share, min_units=min_units)


def cluster_bootstrap(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    *,
    seed: int,
) -> Interval:
    """Return the mean of clustered values (by item, by prompt), resampling whole clusters.

    Parameters
    ----------
    values : sequence of float, finite
    clusters : sequence of str or int, one a value
        A resample takes or leaves all values of a cluster together.
    seed : int

    Returns
    -------
    Interval
        The point is the mean over values, not over clusters; ``n`` counts the clusters, and
        ``note`` says how many values they hold. No bounds below five clusters, nor where the means
        of all clusters are equal.

    Raises
    ------
    ValueError
        If the lengths differ or a value is not finite.

    References
    ----------
    Davison and Hinkley (1997), Bootstrap Methods and their Application, 3.8: the pooled ratio of
    cluster sums to sizes.
    """
    values_by_cluster: dict[Hashable, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        values_by_cluster.setdefault(cluster, []).append(float(value))
    cluster_values = [
        values_by_cluster[cluster] for cluster in sorted(values_by_cluster, key=str)
    ]  # in the order of their text, so that the order of the rows does not matter
    cluster_sums = [
        math.fsum(members) if all(map(math.isfinite, members)) else math.nan
        for members in cluster_values
    ]
    interval = bootstrap_ratio(cluster_sums, list(map(len, cluster_values)), seed=seed)
    note = f"{len(values)} values in {len(cluster_values)} clusters, resampled whole"
    return replace(interval, note=note if len(cluster_values) < len(values) else None)


def bootstrap_ratio(
    numerators: Sequence[float],
    denominators: Sequence[float],
    *,
    seed: int,
    share: bool = False,
    min_units: int = FEWEST,
) -> Interval:
    """Return the pooled ratio sum(numerators) / sum(denominators), resampling whole units.

    Parameters
    ----------
    numerators, denominators : sequence of float, one entry per independent unit
        For a pooled share of steps: the number of hits and of defined steps of each item.
    seed : int
    share : bool
    min_units : int, at least 2
        As ``bootstrap_mean``.

    Returns
    -------
    Interval
        As ``bootstrap_mean``; ``n`` counts the units with a positive denominator.

    Raises
    ------
    ValueError
        If the lengths differ, a value is not finite or a denominator is negative.

    References
    ----------
    Efron (1987), JASA 82:171 (BCa); scipy.stats.bootstrap.
    """
    tops, bottoms = np.asarray(numerators, dtype=float), np.asarray(denominators, dtype=float)
    if (
        tops.shape != bottoms.shape
        or not (np.isfinite(tops).all() and np.isfinite(bottoms).all())
        or (bottoms < 0).any()
    ):
        raise ValueError(
            "bootstrap needs as many finite numerators as finite, non-negative denominators"
        )
    tops, bottoms = tops[bottoms > 0], bottoms[bottoms > 0]
    n = len(tops)
    if n == 0:
        return no_interval(None, 0, "no defined value")
    if np.abs(tops).max() > _MAX_ABS_VALUE:
        reason = f"values beyond {_MAX_ABS_VALUE:g} are too large for the sums of a bootstrap"
        return no_interval(None, n, reason)
    point = float(tops.sum() / bottoms.sum())
    if n == 1:
        return no_interval(point, 1, "one unit has no spread")
    unit_range = float(np.ptp(tops / bottoms))
    if unit_range < 1e-12 and share and point in (0.0, 1.0):
        return replace(wilson(round(point * n), n), method="Wilson (all units equal)")
    if unit_range < 1e-12:
        return no_interval(point, n, f"all {n} values are equal: a resample has no spread to show")
    if few := too_few(n, fewest=min_units):
        return no_interval(point, n, few)
    ratios = GroupResamples(n, seed).values(lambda weights: (weights @ tops) / (weights @ bottoms))
    # 1/3 + 1/3 + 1/3 need not be the float 1 + 0 + 0, and BCa counts what lies at the point
    is_tied = np.abs(ratios[1:] - point) <= unit_range * 2.0**-_TIE_BITS
    ratios = np.where(is_tied, point, ratios[1:])
    method, quantiles = "BCa", _bca_quantiles(ratios, point, jackknife_ratio(tops, bottoms))
    lo, hi = np.quantile(ratios, quantiles) if np.isfinite(quantiles).all() else (math.inf, point)
    if not lo <= point <= hi:
        method = "percentile"
        lo, hi = np.quantile(ratios, TAILS)
    method = f"bootstrap ({method}, {len(ratios)} resamples)"
    if not lo <= point <= hi:
        method = "bootstrap (percentile, widened to its point)"
    return Interval(point, min(float(lo), point), max(float(hi), point), n, method)


def jackknife_ratio(numerators: Floats, denominators: Floats) -> Floats:
    """Return sum(numerators) / sum(denominators) without each unit in turn, in closed form.

    By hand (Efron and Tibshirani 1993, 11.1): the means of 1, 2, 6 without each in turn are 4, 3.5
    and 1.5. Not finite where the divisor is 0.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((numerators.sum() - numerators) / (denominators.sum() - denominators))


def _bca_quantiles(ratios: Floats, point: float, jackknife: Floats) -> Floats:
    """Return the two quantiles that BCa reads from resamples; NaN where it has none."""
    from scipy.special import ndtr, ndtri

    share_below = ((ratios < point).mean() + (ratios <= point).mean()) / 2
    influence = jackknife.mean() - jackknife
    with np.errstate(divide="ignore", invalid="ignore"):
        influence = influence / np.abs(influence).max()  # so that no third power overflows
        acceleration = (influence**3).sum() / (6 * (influence**2).sum() ** 1.5)
        bias = ndtri(share_below)
        shifted = bias + ndtri(TAILS)
        return np.asarray(ndtr(bias + shifted / (1 - acceleration * shifted)))


def paired_permutation(
    first: Sequence[float], second: Sequence[float], *, seed: int
) -> float | None:
    """Test whether paired units differ in mean, by flipping signs.

    Parameters
    ----------
    first, second : sequence of float, finite, of one length
    seed : int
        Of the flips, where there are more than ``RESAMPLES`` ways to flip.

    Returns
    -------
    float or None
        Two-sided p-value in (0, 1], twice the smaller tail; None below two pairs.

    Raises
    ------
    ValueError
        If the lengths differ or a value is not finite.

    References
    ----------
    Fisher (1935), The Design of Experiments, 21; scipy.stats.permutation_test,
    ``permutation_type="samples"``; Phipson and Smyth (2010), Stat. Appl. Genet. Mol. Biol. 9:39
    (the 1 that is added to what is drawn).
    """
    first_values, second_values = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if first_values.shape != second_values.shape:
        raise ValueError("paired values must have the same length")
    n = len(first_values)
    if n < 2:
        return None
    if not (np.isfinite(first_values).all() and np.isfinite(second_values).all()):
        raise ValueError("paired values must be finite")
    # in units of the largest, so that no sum overflows, and as 12 digits tell the two apart
    largest_value = max(1e-300, np.abs(first_values).max(), np.abs(second_values).max())
    differences = np.round(first_values / largest_value - second_values / largest_value, 12)
    is_exact = 2**n <= RESAMPLES
    if is_exact:
        sums = np.array(list(itertools.product((1.0, -1.0), repeat=n))) @ differences
    else:
        rng = np.random.default_rng(seed)
        sums = np.concatenate(
            [
                (rng.integers(0, 2, (block.stop - block.start, n)) * 2.0 - 1) @ differences
                for block in row_blocks(RESAMPLES, n)
            ]
        )
    rounding = 1e-12 * np.abs(differences).sum()
    observed = differences.sum()
    tail = min((sums <= observed + rounding).sum(), (sums >= observed - rounding).sum())
    return float(min(1.0, 2 * (tail + (not is_exact)) / (len(sums) + (not is_exact))))
