"""Pearson's correlation of pairs, with its interval and its p-value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cotlab.stats.intervals import Interval, all_equal, checked_level, no_interval, too_few


@dataclass(frozen=True, slots=True)
class Correlation:
    """``r`` with its bounds, and the two-sided ``p`` of no correlation; None, with the reason in ``r``, where undefined."""

    r: Interval
    p: float | None


def pearson(first: Sequence[float], second: Sequence[float], *, level: float = 0.95) -> Correlation:
    """Pearson's r of pairs, with an interval by Fisher's z.

    Parameters
    ----------
    first, second : sequences of float, finite, of one length
    level : float in (0, 1)

    Returns
    -------
    Correlation
        r in [-1, 1]. Undefined below three pairs and where one side is constant; no bounds below
        five pairs and where the pairs lie on a line: z is infinite there.

    Raises
    ------
    ValueError
        If the lengths differ or a number is not finite.

    References
    ----------
    Fisher (1921), Metron 1:3; scipy.stats.pearsonr. R: cor.test(first, second).
    """
    from scipy import stats

    checked_level(level)
    if len(first) != len(second) or not all(map(math.isfinite, (*first, *second))):
        raise ValueError("pearson needs finite pairs")
    n = len(first)
    if n < 3:
        return Correlation(no_interval(None, n, "fewer than 3 pairs", level=level), None)
    if all_equal(first) or all_equal(second):
        return Correlation(no_interval(None, n, "one of the two is constant", level=level), None)
    scaled_first, scaled_second = (
        [value / max(map(abs, side)) for value in side] for side in (first, second)
    )  # r is free of scale
    result = stats.pearsonr(scaled_first, scaled_second)
    r = min(1.0, max(-1.0, float(result.statistic)))
    reason = too_few(n, "pairs") or (
        "the pairs lie on a line: Fisher's z has no interval" if 1 - abs(r) < 1e-12 else None
    )
    if reason:
        return Correlation(no_interval(r, n, reason, level=level), float(result.pvalue))
    lo, hi = (float(bound) for bound in result.confidence_interval(level))
    return Correlation(
        Interval(r, min(lo, r), max(hi, r), n, "Fisher z", level), float(result.pvalue)
    )
