"""Agreement of two orders: Spearman's rank correlation with an interval, or the reason why there is none."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cotlab.stats.intervals import Interval, no_interval

DECIMALS = 9
"""Values that agree to so many decimals are tied: what only rounding errors tell apart has no
order."""
MIN_PAIRS = 5
"""Below so many pairs a rank correlation says nothing: of four pairs, one order in 24 is perfect by
chance."""


def spearman(first: Sequence[float], second: Sequence[float], *, level: float = 0.95) -> Interval:
    """Spearman's rho of pairs, with an interval by Fisher's z.

    Parameters
    ----------
    first, second : sequences of float, of one length, each finite
        Pairs stand at the same place; ties, to ``DECIMALS`` decimals, share their mean rank.
    level : float in (0, 1)

    Returns
    -------
    Interval
        In [-1, 1]. No point below ``FEWEST`` pairs or where one side is constant; no bounds where
        the order is perfect, for z is infinite there. The interval is approximate, more so where
        |rho| is above 0.9.

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
        [round(v, DECIMALS) for v in first],
        [round(v, DECIMALS) for v in second],
    )
    if n < MIN_PAIRS:
        return no_interval(None, n, f"fewer than {MIN_PAIRS} pairs", level=level)
    if len(set(first)) == 1 or len(set(second)) == 1:
        return no_interval(None, n, "one of the two is constant", level=level)
    rho = min(1.0, max(-1.0, float(spearmanr(first, second).statistic)))
    if 1 - abs(rho) < 1e-12:
        return no_interval(
            math.copysign(1.0, rho),
            n,
            "the order is perfect, so Fisher's z has no interval",
            level=level,
        )
    half = float(norm.ppf((1 + level) / 2)) * math.sqrt((1 + rho * rho / 2) / (n - 3))
    z = math.atanh(rho)
    return Interval(
        rho, math.tanh(z - half), math.tanh(z + half), n, "Fisher z, Bonett and Wright", level
    )


def spearman_p(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Two-sided p-value of Spearman's rho, in [0, 1]; None where `spearman` has no point.

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
        spearmanr([round(v, DECIMALS) for v in first], [round(v, DECIMALS) for v in second]).pvalue
    )
