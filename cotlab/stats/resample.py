"""Bootstrap over independent units, and a permutation test for paired differences."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cotlab.stats.intervals import FEWEST, Interval, checked_level, no_interval, too_few, wilson
from cotlab.stats.large_samples import ratio_bounds, sign_flip_p

Floats = NDArray[np.float64]
RESAMPLES = 2000
MAX_DIRECT = 5000
"""Units up to which scipy resamples. Beyond, its time grows with n squared: ``large_samples`` then
resamples in time linear in n, with the same quantity, method and number of resamples."""
_LARGEST = 1e100
"""Largest value whose third power, in BCa's acceleration, does not overflow."""
_CELLS = 4_000_000
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
    Up to ``MAX_DIRECT`` units the numbers are scipy's for the seed, to the last bit. Beyond,
    scipy's jackknife takes time in n squared: the same BCa interval is then computed in time linear
    in n. Its bounds agree with scipy's to rounding, or within the error of resampling where values
    repeat.

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
    by_cluster: dict[Hashable, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        by_cluster.setdefault(cluster, []).append(float(value))
    each = [
        by_cluster[cluster] for cluster in sorted(by_cluster, key=str)
    ]  # in the order of their text, so that the order of the rows does not matter
    sums = [
        math.fsum(members) if all(map(math.isfinite, members)) else math.nan for members in each
    ]
    interval = bootstrap_ratio(
        sums, [float(len(members)) for members in each], seed=seed, level=level, share=share
    )
    note = (
        f"{len(values)} values in {len(each)} clusters, resampled whole"
        if len(each) < len(values)
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
    top, bottom = np.asarray(numerators, dtype=float), np.asarray(denominators, dtype=float)
    if (
        top.shape != bottom.shape
        or not (np.isfinite(top).all() and np.isfinite(bottom).all())
        or (bottom < 0).any()
    ):
        raise ValueError(
            "bootstrap needs as many finite numerators as finite, non-negative denominators"
        )
    used = bottom > 0
    top, bottom = top[used], bottom[used]
    n = len(top)
    if n == 0:
        return no_interval(None, 0, "no defined value", level=level)
    if np.abs(top).max() > _LARGEST:
        return no_interval(
            None,
            n,
            f"values beyond {_LARGEST:g} are too large for the sums of a bootstrap",
            level=level,
        )
    point = float(top.sum() / bottom.sum())
    if n == 1:
        return no_interval(point, 1, "one unit has no spread", level=level)
    each = top / bottom
    if share and np.ptp(each) < 1e-12 and point in (0.0, 1.0):
        return replace(wilson(round(point * n), n, level=level), method="Wilson (all units equal)")
    if np.ptp(each) < 1e-12:
        return no_interval(
            point, n, f"all {n} values are equal: a resample has no spread to show", level=level
        )
    if n < min_units:
        return no_interval(point, n, too_few(n, fewest=min_units) or "", level=level)
    if n > MAX_DIRECT:
        lo, hi, method = ratio_bounds(top, bottom, seed=seed, level=level, n_resamples=RESAMPLES)
    else:
        lo, hi, method = _scipy_bounds(top, bottom, point, seed, level)
    name = f"bootstrap ({method}, {RESAMPLES} resamples)"
    if not lo <= point <= hi:
        name = "bootstrap (percentile, widened to its point)"
    return Interval(point, min(lo, point), max(hi, point), n, name, level)


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
    Up to ``MAX_DIRECT`` pairs the numbers are scipy's for the seed; beyond, as many flips are drawn
    in time linear in n.

    References
    ----------
    Fisher (1935), The Design of Experiments, 21; scipy.stats.permutation_test,
    ``permutation_type="samples"``.
    """
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if a.shape != b.shape:
        raise ValueError("paired values must have the same length")
    if len(a) < 2:
        return None
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("paired values must be finite")
    largest = max(np.abs(a).max(), np.abs(b).max())
    if largest > _LARGEST:  # so that no difference overflows: p is free of scale
        a, b = a / largest, b / largest
    if np.allclose(a, b, rtol=0, atol=1e-12):
        return 1.0
    if len(a) > MAX_DIRECT:
        return sign_flip_p(a - b, seed=seed, n_resamples=RESAMPLES)
    from scipy import stats

    result = stats.permutation_test(
        (a, b),
        _mean_difference,
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        rng=np.random.default_rng(seed),
        batch=max(1, _CELLS // len(a)),
    )
    return float(result.pvalue)


def _scipy_bounds(
    top: Floats, bottom: Floats, point: float, seed: int, level: float
) -> tuple[float, float, str]:
    """Return scipy's BCa bounds, or percentile bounds where BCa fails or excludes the point."""
    from scipy import stats

    rng = np.random.default_rng(seed)
    for method in ("BCa", "percentile"):
        with warnings.catch_warnings():
            # scipy warns before it returns NaN; the percentile bootstrap is the answer to it
            warnings.simplefilter("ignore")
            bounds = stats.bootstrap(
                (top, bottom),
                _pooled,
                paired=True,
                vectorized=True,
                n_resamples=RESAMPLES,
                confidence_level=level,
                method=method,
                rng=rng,
                batch=max(1, _CELLS // len(top)),
            ).confidence_interval
        lo, hi = float(bounds.low), float(bounds.high)
        if np.isfinite([lo, hi]).all() and lo <= point <= hi:
            break
    return lo, hi, method


def _pooled(top: Floats, bottom: Floats, axis: int = -1) -> Floats:
    return np.asarray(top.sum(axis=axis) / bottom.sum(axis=axis))


def _mean_difference(first: Floats, second: Floats, axis: int = -1) -> Floats:
    return np.asarray((first - second).mean(axis=axis))
