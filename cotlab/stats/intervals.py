"""Interval estimates: a point, its bounds, how many independent units it rests on, and the method by name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

FEWEST = 5
"""Values that a t interval rests on at least."""


@dataclass(frozen=True, slots=True)
class Interval:
    """``lo <= point <= hi`` where the bounds exist; ``reason`` says why a part is None."""

    point: float | None
    lo: float | None
    hi: float | None
    n: int
    method: str
    level: float = 0.95
    reason: str | None = None


def wilson(successes: int, n: int, *, level: float = 0.95) -> Interval:
    """Wilson score interval for a proportion.

    Parameters
    ----------
    successes : int in [0, n]
    n : int, at least 1
        Independent trials; the steps of one chain are not independent.
    level : float in (0, 1)

    Returns
    -------
    Interval
        0 <= lo <= point <= hi <= 1, unitless.

    Raises
    ------
    ValueError
        If n < 1 or successes lies outside [0, n].

    References
    ----------
    Wilson (1927), JASA 22:209. Checked: statsmodels 0.15, 7 of 10 -> (0.39678, 0.89221).
    """
    from statsmodels.stats.proportion import proportion_confint

    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"wilson needs 0 <= successes <= n and n >= 1, got {successes} of {n}")
    lo, hi = proportion_confint(successes, n, alpha=1 - level, method="wilson")
    point = successes / n
    return Interval(point, min(max(0.0, float(lo)), point), max(min(1.0, float(hi)), point), n, "Wilson", level)


def t_interval(values: Sequence[float], *, level: float = 0.95) -> Interval:
    """Mean of independent values with Student's t interval.

    Parameters
    ----------
    values : sequence of float, finite
        One value per independent unit.
    level : float in (0, 1)

    Returns
    -------
    Interval
        In the unit of the values. Undefined without a value; the mean alone (with the reason) below ``FEWEST`` values and
        where all are equal, for their spread is then unknown.

    Raises
    ------
    ValueError
        If a value is not finite.

    References
    ----------
    Student (1908), Biometrika 6:1; scipy.stats.t and scipy.stats.sem.
    """
    from scipy import stats

    if not all(map(math.isfinite, values)):
        raise ValueError("t_interval needs finite values")
    n = len(values)
    if n == 0:
        return no_interval(None, 0, "no defined value", level=level)
    point = math.fsum(values) / n
    if n < FEWEST:
        return no_interval(point, n, f"fewer than {FEWEST} values", level=level)
    if max(values) - min(values) < 1e-12:
        return no_interval(point, n, f"all {n} values are equal: they have no spread to show", level=level)
    lo, hi = stats.t.interval(level, n - 1, loc=point, scale=float(stats.sem(values)))
    return Interval(point, min(float(lo), point), max(float(hi), point), n, "t", level)


def no_interval(point: float | None, n: int, reason: str, *, level: float = 0.95) -> Interval:
    """A point (or nothing at all) without bounds, and the reason for it."""
    if point is not None and not math.isfinite(point):
        raise ValueError(f"a point must be finite or None, got {point!r}")
    return Interval(point, None, None, n, "none", level, reason)
