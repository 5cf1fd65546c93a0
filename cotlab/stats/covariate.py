"""A mean with a covariate held at zero: the intercept of a least squares line, with an interval that spread does not fool."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Sequence

from cotlab.stats.intervals import Interval, no_interval

MIN_UNITS = 5
"""Below so many values, or clusters, there is no interval."""


def at_equal(
    values: Sequence[float],
    covariate: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    *,
    level: float = 0.95,
) -> Interval:
    """The mean value that is expected where the covariate is 0.

    Parameters
    ----------
    values, covariate : sequences of float, of one length, each finite
        One entry an independent unit, or one of a cluster.
    clusters : sequence, optional
        Units of one cluster depend on each other: the interval is then robust to that, and ``n``
        counts clusters.
    level : float in (0, 1)

    Returns
    -------
    Interval
        In the unit of the values; no bounds where all values are equal. Undefined (with the reason)
        below ``FEWEST`` units or clusters, where the covariate is constant, and where all of it
        lies on one side of 0, for the line would then be extended beyond what was seen.

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
    names = list(dict.fromkeys(clusters)) if clusters is not None else []
    n = len(names) if clusters is not None else len(values)
    if n < MIN_UNITS:
        return no_interval(
            None,
            n,
            f"fewer than {MIN_UNITS} {'clusters' if clusters is not None else 'values'}",
            level=level,
        )
    lowest, highest = min(covariate), max(covariate)
    if lowest == highest:
        return no_interval(None, n, "the covariate is constant", level=level)
    if lowest > 0 or highest < 0:
        return no_interval(None, n, "the covariate lies on one side of 0", level=level)
    if max(values) - min(values) < 1e-12:
        return no_interval(
            math.fsum(values) / len(values),
            n,
            "all values are equal: they have no spread to show",
            level=level,
        )
    import numpy as np
    import statsmodels.api as sm

    scale = max(abs(lowest), abs(highest))
    design = sm.add_constant(np.asarray(covariate, dtype=float) / scale)
    how = (
        {"cov_type": "HC3"}
        if clusters is None
        else {
            "cov_type": "cluster",
            "cov_kwds": {"groups": np.asarray([names.index(c) for c in clusters])},
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # a value that the line cannot miss makes HC3 divide by 0; the test below answers it
        fitted = sm.OLS(np.asarray(values, dtype=float), design).fit(use_t=True, **how)
        point = float(fitted.params[0])
        lo, hi = map(float, fitted.conf_int(alpha=1 - level)[0])
    method = "least squares at 0, " + ("HC3" if clusters is None else "clustered errors")
    if not math.isfinite(point):
        return no_interval(None, n, "the values are too large for a line", level=level)
    if not (math.isfinite(lo) and math.isfinite(hi)):
        return no_interval(point, n, "one unit alone decides the line", level=level)
    return Interval(point, min(lo, point), max(hi, point), n, method, level)
