"""Two measurements of the same items: Wilcoxon's test, paired bootstrap, Cohen's d of pairs."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cotlab.stats.intervals import Interval, all_equal, checked_level, no_interval, too_few
from cotlab.stats.resample import bootstrap_mean, cluster_bootstrap

Floats = NDArray[np.float64]
MAX_EXACT, MAX_TIED = 50, 13
"""Pairs up to which Wilcoxon's p is exact: by scipy's table without ties, over all 2**n signings
with them."""


@dataclass(frozen=True, slots=True)
class Wilcoxon:
    """Wilcoxon's signed-rank test of pairs.

    ``statistic``, ``p`` and ``rank_biserial`` are None, with the reason, where no pair differs.
    """

    n: int
    """Number of pairs."""
    zeros: int
    """Pairs that do not differ; they are left out."""
    statistic: float | None
    """The smaller rank sum."""
    p: float | None
    """Two-sided p-value."""
    rank_biserial: float | None
    """Share of the rank sum in favour of the second minus that of the first, [-1, 1]."""
    method: str
    """Exact or normal approximation, and how many pairs were left out."""
    reason: str | None = None
    """Why there is no statistic."""


def wilcoxon(first: Sequence[float], second: Sequence[float]) -> Wilcoxon:
    """Test whether the differences of pairs are symmetric about 0 (Wilcoxon's signed ranks).

    Parameters
    ----------
    first, second : sequence of float, finite, of one length
        Differences that only rounding tells apart (12 digits of the largest value) are tied.

    Returns
    -------
    Wilcoxon
        Exact up to 50 differing pairs without ties and up to 13 with them, else the normal
        approximation with tie correction and without continuity correction; ``method`` says which.

    Raises
    ------
    ValueError
        If the lengths differ or a value is not finite.

    References
    ----------
    Wilcoxon (1945), Biometrics 1:80; Kerby (2014), Comprehensive Psychology 3:1 (rank-biserial);
    scipy.stats.wilcoxon. R: wilcox.test(second, first, paired = TRUE, correct = FALSE).
    """
    from scipy import stats

    gaps = np.round(_differences(first, second), 12)
    used = gaps[gaps != 0]
    n, zeros = len(gaps), len(gaps) - len(used)
    if not len(used):
        return Wilcoxon(
            n,
            zeros,
            None,
            None,
            None,
            "none",
            "no pair" if n == 0 else f"no pair differs: {zeros} of {n} are 0",
        )
    tied = len(np.unique(np.abs(used))) < len(used)
    how: tuple[str, object] = ("normal approximation", "asymptotic")
    if not tied and len(used) <= MAX_EXACT:
        how = ("exact", "exact")
    elif tied and len(used) <= MAX_TIED:
        how = ("exact, over all signings", stats.PermutationMethod(n_resamples=np.inf))
    result = stats.wilcoxon(used, method=how[1], correction=False)
    ranks = stats.rankdata(np.abs(used))
    balance = float((np.sign(used) * ranks).sum() / ranks.sum())
    method = f"Wilcoxon signed-rank, {how[0]}" + (
        f"; {zeros} of {n} pairs do not differ and are left out" if zeros else ""
    )
    return Wilcoxon(
        n, zeros, float(result.statistic), min(1.0, float(result.pvalue)), balance, method
    )


def paired_bootstrap(
    first: Sequence[float],
    second: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    *,
    seed: int,
    level: float = 0.95,
) -> Interval:
    """Return the mean difference of pairs, second minus first, with a bootstrap interval.

    Parameters
    ----------
    first, second : sequence of float, finite, of one length
    clusters : sequence of str or int, one a pair, or None
        Pairs of one cluster (the same prompt) are resampled together.
    seed : int
    level : float in (0, 1)

    Returns
    -------
    Interval
        In the unit of the values; as ``bootstrap_mean``, or ``cluster_bootstrap`` with clusters.

    Raises
    ------
    ValueError
        If the lengths differ or a value is not finite.

    References
    ----------
    Efron (1987), JASA 82:171 (BCa).
    """
    a, b = checked_pairs(first, second)
    gaps = (b - a).tolist()
    interval = (
        bootstrap_mean(gaps, seed=seed, level=level)
        if clusters is None
        else cluster_bootstrap(gaps, clusters, seed=seed, level=level)
    )
    return (
        replace(interval, method=f"paired {interval.method}")
        if interval.lo is not None
        else interval
    )


def cohen_dz(first: Sequence[float], second: Sequence[float], *, level: float = 0.95) -> Interval:
    """Return Cohen's d of pairs: the mean difference over the differences' standard deviation.

    Parameters
    ----------
    first, second : sequence of float, finite, of one length
    level : float in (0, 1)

    Returns
    -------
    Interval
        Unitless; positive where the second is larger. Undefined below two pairs and where all
        differences are equal; no bounds below five pairs. The bounds invert the noncentral t with
        n - 1 degrees of freedom.

    Raises
    ------
    ValueError
        If the lengths differ or a value is not finite.

    References
    ----------
    Lakens (2013), Frontiers in Psychology 4:863 (d_z); Cumming and Finch (2001), Educ. Psych. Meas.
    61:532 (the interval).
    """
    checked_level(level)
    gaps = _differences(first, second)
    n = len(gaps)
    if n < 2:
        return no_interval(None, n, "fewer than two pairs have no spread", level=level)
    flat = all_equal(np.round(gaps, 12).tolist())
    if flat:
        return no_interval(None, n, flat.replace("values", "differences"), level=level)
    point = float(gaps.mean() / gaps.std(ddof=1))
    reason = too_few(n, "pairs")
    bounds = None if reason else _noncentral(point * math.sqrt(n), n - 1, level)
    if bounds is None:
        return no_interval(
            point, n, reason or "the noncentral t has no bounds that can be computed", level=level
        )
    lo, hi = (bound / math.sqrt(n) for bound in bounds)
    return Interval(point, min(lo, point), max(hi, point), n, "noncentral t", level)


def checked_pairs(first: Sequence[float], second: Sequence[float]) -> tuple[Floats, Floats]:
    """Return both sides as arrays; ValueError where lengths differ or values are not finite."""
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if a.shape != b.shape or not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError(
            "paired values must be finite and of the same length; leave out what is undefined and"
            " count it"
        )
    return a, b


def _differences(first: Sequence[float], second: Sequence[float]) -> Floats:
    """Return second minus first in units of the largest value, as 12 digits tell them apart."""
    a, b = checked_pairs(first, second)
    largest = max([1e-300, *np.abs(a), *np.abs(b)])
    return np.asarray(b / largest - a / largest)


def _noncentral(t: float, df: int, level: float) -> tuple[float, float] | None:
    """Return the noncentralities at which t has (1 - level) / 2 beyond it on either side."""
    from scipy import optimize, stats

    reach = 10 + 2 * abs(
        t
    )  # the bounds lie within a few standard errors, sqrt(1 + t² / 2 df), of t
    out = []
    for target in ((1 + level) / 2, (1 - level) / 2):
        try:
            out.append(
                optimize.brentq(
                    lambda d, at=target: stats.nct.cdf(t, df, d) - at, t - reach, t + reach
                )
            )
        except ValueError:  # no change of sign, or NaN from an extreme t
            return None
    return (float(out[0]), float(out[1])) if all(map(math.isfinite, out)) else None
