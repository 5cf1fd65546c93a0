"""Bootstrap over independent units, and a permutation test for paired differences."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cotlab.stats.intervals import FEWEST, Interval, checked_level, no_interval, too_few, wilson
from cotlab.stats.large_samples import ratio_bounds, sign_flip_p

Floats = NDArray[np.float64]
RESAMPLES = 2000
MAX_SCIPY_UNITS = 5000
"""Units up to which the draws are scipy's own for the seed. Beyond, its time grows with n squared:
``large_samples`` then draws in time linear in n, with the same quantity, method and number."""
_MAX_ABS_VALUE = 1e100
"""Largest value whose third power, in BCa's acceleration, does not overflow."""
_BLOCK_CELLS = 4_000_000
"""Most array cells of one block of resamples, which bounds the memory."""


def bootstrap_mean(
    values: Sequence[float],
    *,
    seed: int,
    level: float = 0.95,
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
    level : float in (0, 1)
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
    Up to ``MAX_SCIPY_UNITS`` units the draws are scipy's for the seed, and the bounds agree with
    scipy's to rounding; resamples at the point that differ from it by rounding only are put there:
    with one seed, the interval of 1 − x is that of x mirrored. Beyond, where values repeat, the
    bounds agree within the error of resampling.

    References
    ----------
    Efron (1987), JASA 82:171 (BCa); scipy.stats.bootstrap.
    """
    return bootstrap_ratio(
        values, [1.0] * len(values), seed=seed, level=level, share=share, min_units=min_units
    )


def cluster_bootstrap(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    *,
    seed: int,
    level: float = 0.95,
    share: bool = False,
) -> Interval:
    """Return the mean of clustered values (by item, by prompt), resampling whole clusters.

    Parameters
    ----------
    values : sequence of float, finite
    clusters : sequence of str or int, one a value
        A resample takes or leaves all values of a cluster together.
    seed : int
    level : float in (0, 1)
    share : bool
        As ``bootstrap_mean``.

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
    interval = bootstrap_ratio(
        cluster_sums,
        [float(len(members)) for members in cluster_values],
        seed=seed,
        level=level,
        share=share,
    )
    note = (
        f"{len(values)} values in {len(cluster_values)} clusters, resampled whole"
        if len(cluster_values) < len(values)
        else None
    )
    return replace(interval, note=note)


def bootstrap_ratio(
    numerators: Sequence[float],
    denominators: Sequence[float],
    *,
    seed: int,
    level: float = 0.95,
    share: bool = False,
    min_units: int = FEWEST,
) -> Interval:
    """Return the pooled ratio sum(numerators) / sum(denominators), resampling whole units.

    Parameters
    ----------
    numerators, denominators : sequence of float, one entry per independent unit
        For a pooled share of steps: the number of hits and of defined steps of each item.
    seed : int
    level : float in (0, 1)
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
    checked_level(level)
    numerator_values = np.asarray(numerators, dtype=float)
    denominator_values = np.asarray(denominators, dtype=float)
    if (
        numerator_values.shape != denominator_values.shape
        or not (np.isfinite(numerator_values).all() and np.isfinite(denominator_values).all())
        or (denominator_values < 0).any()
    ):
        raise ValueError(
            "bootstrap needs as many finite numerators as finite, non-negative denominators"
        )
    is_used = denominator_values > 0
    numerator_values, denominator_values = numerator_values[is_used], denominator_values[is_used]
    n = len(numerator_values)
    if n == 0:
        return no_interval(None, 0, "no defined value", level=level)
    if np.abs(numerator_values).max() > _MAX_ABS_VALUE:
        return no_interval(
            None,
            n,
            f"values beyond {_MAX_ABS_VALUE:g} are too large for the sums of a bootstrap",
            level=level,
        )
    point = float(numerator_values.sum() / denominator_values.sum())
    if n == 1:
        return no_interval(point, 1, "one unit has no spread", level=level)
    unit_ratios = numerator_values / denominator_values
    if share and np.ptp(unit_ratios) < 1e-12 and point in (0.0, 1.0):
        return replace(wilson(round(point * n), n, level=level), method="Wilson (all units equal)")
    if np.ptp(unit_ratios) < 1e-12:
        return no_interval(
            point, n, f"all {n} values are equal: a resample has no spread to show", level=level
        )
    if n < min_units:
        return no_interval(point, n, too_few(n, fewest=min_units) or "", level=level)
    lo, hi, method = ratio_bounds(
        numerator_values,
        denominator_values,
        seed=seed,
        level=level,
        n_resamples=RESAMPLES,
        as_scipy=n <= MAX_SCIPY_UNITS,
    )
    method_name = f"bootstrap ({method}, {RESAMPLES} resamples)"
    if not lo <= point <= hi:
        method_name = "bootstrap (percentile, widened to its point)"
    return Interval(point, min(lo, point), max(hi, point), n, method_name, level)


def paired_permutation(
    first: Sequence[float], second: Sequence[float], *, seed: int
) -> float | None:
    """Test whether paired units differ in mean, by flipping signs.

    Parameters
    ----------
    first, second : sequence of float, finite, of one length
    seed : int
        Of the flips, where there are more pairs than can be flipped in every way.

    Returns
    -------
    float or None
        Two-sided p-value in (0, 1]; None below two pairs.

    Raises
    ------
    ValueError
        If the lengths differ or a value is not finite.

    Notes
    -----
    Up to ``MAX_SCIPY_UNITS`` pairs the numbers are scipy's for the seed; beyond, as many flips are
    drawn in time linear in n.

    References
    ----------
    Fisher (1935), The Design of Experiments, 21; scipy.stats.permutation_test,
    ``permutation_type="samples"``.
    """
    first_values, second_values = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if first_values.shape != second_values.shape:
        raise ValueError("paired values must have the same length")
    if len(first_values) < 2:
        return None
    if not (np.isfinite(first_values).all() and np.isfinite(second_values).all()):
        raise ValueError("paired values must be finite")
    largest_value = max(np.abs(first_values).max(), np.abs(second_values).max())
    if largest_value > _MAX_ABS_VALUE:  # so that no difference overflows: p is free of scale
        first_values, second_values = first_values / largest_value, second_values / largest_value
    if np.allclose(first_values, second_values, rtol=0, atol=1e-12):
        return 1.0
    if len(first_values) > MAX_SCIPY_UNITS:
        return sign_flip_p(first_values - second_values, seed=seed, n_resamples=RESAMPLES)
    from scipy import stats

    result = stats.permutation_test(
        (first_values, second_values),
        _mean_difference,
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        rng=np.random.default_rng(seed),
        batch=max(1, _BLOCK_CELLS // len(first_values)),
    )
    return float(result.pvalue)


def _mean_difference(first: Floats, second: Floats, axis: int = -1) -> Floats:
    return np.asarray((first - second).mean(axis=axis))
