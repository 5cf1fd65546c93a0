"""Association of two measurements: Pearson, Spearman, and a mean with a covariate held at 0."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Sequence

from cotlab.stats.intervals import Interval, no_interval

TIE_DECIMALS = 9
"""Values that agree to so many decimals are tied, so that rounding errors make no order."""
MIN_PAIRS = 5
"""Fewest pairs of a rank correlation: of four pairs, one order in 24 is perfect by chance."""


def spearman(first: Sequence[float], second: Sequence[float]) -> Interval:
    """Return Spearman's rho of pairs, with an interval by Fisher's z.

    Parameters
    ----------
    first, second : sequence of float, finite, of one length
        Ties, to ``TIE_DECIMALS`` decimals, share their mean rank.

    Returns
    -------
    Interval
        In [-1, 1]. No point below ``MIN_PAIRS`` pairs or where one side is constant; no bounds
        where the order is perfect, since z is infinite there. The interval is approximate, more so
        where |rho| is above 0.9.

    Raises
    ------
    ValueError
        If the lengths differ or a number is not finite.

    References
    ----------
    Bonett and Wright (2000), Psychometrika 65:23: the variance of z is (1 + rho²/2)/(n − 3).
    """
    from scipy.stats import norm, spearmanr

    if len(first) != len(second) or not all(map(math.isfinite, (*first, *second))):
        raise ValueError("spearman needs finite pairs")
    n, first, second = (
        len(first),
        [round(v, TIE_DECIMALS) for v in first],
        [round(v, TIE_DECIMALS) for v in second],
    )
    if n < MIN_PAIRS:
        return no_interval(None, n, f"fewer than {MIN_PAIRS} pairs")
    if len(set(first)) == 1 or len(set(second)) == 1:
        return no_interval(None, n, "one of the two is constant")
    rho = min(1.0, max(-1.0, float(spearmanr(first, second).statistic)))
    if 1 - abs(rho) < 1e-12:
        return no_interval(
            math.copysign(1.0, rho),
            n,
            "the order is perfect, so Fisher's z has no interval",
        )
    half_width = float(norm.ppf(0.975)) * math.sqrt((1 + rho * rho / 2) / (n - 3))
    z = math.atanh(rho)
    return Interval(
        rho,
        math.tanh(z - half_width),
        math.tanh(z + half_width),
        n,
        "Fisher z, Bonett and Wright",
    )


def spearman_p(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return the two-sided p-value of Spearman's rho.

    Parameters
    ----------
    first, second : sequence of float, finite, of one length

    Returns
    -------
    float or None
        In [0, 1]; None where ``spearman`` has no point.

    Raises
    ------
    ValueError
        If the lengths differ or a number is not finite.

    References
    ----------
    scipy.stats.spearmanr: t approximation with n - 2 degrees of freedom.
    """
    from scipy.stats import spearmanr

    if spearman(first, second).point is None:
        return None
    return float(
        spearmanr(
            [round(v, TIE_DECIMALS) for v in first], [round(v, TIE_DECIMALS) for v in second]
        ).pvalue
    )


MIN_UNITS = 5
"""Fewest values, or clusters, of an interval."""


def at_equal(
    values: Sequence[float],
    covariate: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
) -> Interval:
    """Return the mean value that is expected where the covariate is 0.

    It is the intercept of a least-squares line.

    Parameters
    ----------
    values, covariate : sequence of float, finite, of one length
        One entry per independent unit, or per unit of a cluster.
    clusters : sequence of str or int, optional
        Units of one cluster depend on each other: the interval is then robust to that, and ``n``
        counts clusters.

    Returns
    -------
    Interval
        In the unit of the values; no bounds where all values are equal. Undefined (with the reason)
        below ``MIN_UNITS`` units or clusters, where the covariate is constant, and where all of it
        lies on one side of 0, since the line would be extrapolated.

    Raises
    ------
    ValueError
        If the lengths differ or a number is not finite.

    References
    ----------
    statsmodels OLS with HC3 errors (Long and Ervin 2000, Am. Stat. 54:217), or clustered ones, and
    t quantiles.
    """
    if len(values) != len(covariate) or (clusters is not None and len(clusters) != len(values)):
        raise ValueError("values, covariate and clusters must have one length")
    if not all(map(math.isfinite, (*values, *covariate))):
        raise ValueError("values and covariate must be finite")
    index_by_cluster = {name: k for k, name in enumerate(dict.fromkeys(clusters or ()))}
    n = len(index_by_cluster) if clusters is not None else len(values)
    if n < MIN_UNITS:
        return no_interval(
            None,
            n,
            f"fewer than {MIN_UNITS} {'clusters' if clusters is not None else 'values'}",
        )
    min_covariate, max_covariate = min(covariate), max(covariate)
    if min_covariate == max_covariate:
        return no_interval(None, n, "the covariate is constant")
    if min_covariate > 0 or max_covariate < 0:
        return no_interval(None, n, "the covariate lies on one side of 0")
    if max(values) - min(values) < 1e-12:
        return no_interval(
            math.fsum(values) / len(values),
            n,
            "all values are equal: they have no spread to show",
        )
    import numpy as np
    import statsmodels.api as sm

    scale = max(abs(min_covariate), abs(max_covariate))
    design = sm.add_constant(np.asarray(covariate, dtype=float) / scale)
    covariance_options = (
        {"cov_type": "HC3"}
        if clusters is None
        else {
            "cov_type": "cluster",
            "cov_kwds": {"groups": np.asarray([index_by_cluster[cluster] for cluster in clusters])},
        }
    )
    with warnings.catch_warnings():
        # a value with leverage 1 makes HC3 divide by 0; the test of the bounds below answers it
        warnings.simplefilter("ignore")
        fitted_model = sm.OLS(np.asarray(values, dtype=float), design).fit(
            use_t=True, **covariance_options
        )
        point = float(fitted_model.params[0])
        lo, hi = map(float, fitted_model.conf_int()[0])
    method = "least squares at 0, " + ("HC3" if clusters is None else "clustered errors")
    if not math.isfinite(point):
        return no_interval(None, n, "the values are too large for a line")
    if not (math.isfinite(lo) and math.isfinite(hi)):
        return no_interval(point, n, "one unit alone decides the line")
    return Interval(point, min(lo, point), max(hi, point), n, method)
