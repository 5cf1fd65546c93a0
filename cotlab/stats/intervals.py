"""Interval estimates: a point, its bounds, the number of independent units, the method by name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

FEWEST = 5
"""Independent units that an interval by t, log-t, bootstrap or large samples needs; Wilson's and
exact intervals need one."""
TAILS = (0.025, 0.975)
"""Quantiles at the bounds of a 95 % interval."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A point and its bounds, ``lo <= point <= hi``; a part that does not exist is None.

    Raises
    ------
    ValueError
        If a number is not finite, bounds have no point, or the point lies outside its bounds.
    """

    point: float | None
    """The estimate; None where it is undefined."""
    lo: float | None
    """Lower bound; None where there is none."""
    hi: float | None
    """Upper bound; None where there is none."""
    n: int
    """Number of independent units."""
    method: str
    """How the bounds were computed; "none" without bounds."""
    level: float = 0.95
    """Confidence level, in (0, 1)."""
    reason: str | None = None
    """Why the point or the bounds are None."""
    note: str | None = None
    """What a reader must know of a number that exists, such as values left out of it."""

    def __post_init__(self) -> None:
        defined_bounds = [bound for bound in (self.lo, self.point, self.hi) if bound is not None]
        if not all(map(math.isfinite, defined_bounds)):
            raise ValueError(f"a point and its bounds must be finite or None, got {defined_bounds}")
        if self.point is None and defined_bounds:
            raise ValueError("bounds need a point")
        if defined_bounds != sorted(defined_bounds):
            raise ValueError(
                f"the point {self.point} lies outside its interval [{self.lo}, {self.hi}]"
            )


_QUANTILE_95 = 1.959963984540054
"""The value of ``_normal_quantile(0.95)``: importing scipy takes as long as a small report."""


def _normal_quantile(level: float) -> float:
    from scipy.special import ndtri

    return -float(ndtri((1 - level) / 2))


def wilson(successes: int, n: int, *, level: float = 0.95) -> Interval:
    """Return the Wilson score interval of a proportion.

    Parameters
    ----------
    successes : int in [0, n]
    n : int, at least 1
        Independent trials; the steps of one chain are not independent.
    level : float in (0, 1)
        Confidence level.

    Returns
    -------
    Interval
        0 <= lo <= point <= hi <= 1, unitless; bounds at every n.

    Raises
    ------
    ValueError
        If n < 1, or successes lies outside [0, n] or is not whole.

    References
    ----------
    Wilson (1927), JASA 22:209. Checked: statsmodels 0.15, 7 of 10 -> (0.39678, 0.89221).
    """
    if n < 1 or not 0 <= successes <= n or int(successes) != successes or int(n) != n:
        raise ValueError(
            f"wilson needs whole numbers, 0 <= successes <= n and n >= 1, got {successes} of {n}"
        )
    # as statsmodels computes it, to the last digit: importing that takes a second
    point = successes / n
    quantile = _QUANTILE_95 if level == 0.95 else _normal_quantile(checked_level(level))
    denominator = 1 + quantile**2 / n
    centre = (point + quantile**2 / (2 * n)) / denominator
    spread = quantile * math.sqrt(point * (1 - point) / n + quantile**2 / (4 * n**2)) / denominator
    lo, hi = centre - spread, centre + spread
    return Interval(
        point,
        min(max(0.0, float(lo)), point),
        max(min(1.0, float(hi)), point),
        int(n),
        "Wilson",
        level,
    )


def t_interval(values: Sequence[float], *, level: float = 0.95) -> Interval:
    """Return the mean of independent values with Student's t interval.

    Parameters
    ----------
    values : sequence of float, finite
        One value per independent unit.
    level : float in (0, 1)

    Returns
    -------
    Interval
        In the unit of the values. Undefined where there is no value; no bounds (with the reason)
        below ``FEWEST`` values and where all are equal, since they show no spread.

    Raises
    ------
    ValueError
        If a value is not finite.

    References
    ----------
    Student (1908), Biometrika 6:1; statsmodels ``DescrStatsW.tconfint_mean``. R:
    t.test(values)$conf.int.
    """
    checked_level(level)
    if not all(map(math.isfinite, values)):
        raise ValueError("t_interval needs finite values; leave out what is undefined and count it")
    n = len(values)
    if n == 0:
        return no_interval(None, 0, "no defined value", level=level)
    point, lo, hi = _t_bounds(values, level)
    reason = too_few(n) or all_equal(values)
    if reason is None and not (math.isfinite(lo) and math.isfinite(hi)):
        reason = "the bounds are too large for a floating-point number"
    if reason is not None:
        return no_interval(point, n, reason, level=level)
    return Interval(point, min(lo, point), max(hi, point), n, "t", level)


def log_ratio_interval(ratios: Sequence[float | None], *, level: float = 0.95) -> Interval:
    """Return the geometric mean of ratios, with the t interval of the mean log ratio.

    Point and bounds estimate the same quantity, the geometric mean. A pooled ratio (sum over sum)
    is another quantity with another interval: ``bootstrap_ratio``.

    Parameters
    ----------
    ratios : sequence of float at least 0, or None where a denominator is 0
        One ratio per independent unit.
    level : float in (0, 1)

    Returns
    -------
    Interval
        Positive, unitless. ``n`` counts the ratios above 0. A zero has no logarithm: zeros and
        undefined ratios are left out, and ``note`` counts them. Undefined where no ratio is above
        0; no bounds below ``FEWEST`` and where all are equal.

    Raises
    ------
    ValueError
        If a ratio is negative or not finite.

    References
    ----------
    R: exp(t.test(log(ratios))$conf.int).
    """
    checked_level(level)
    defined_ratios = [float(ratio) for ratio in ratios if ratio is not None]
    if not all(math.isfinite(ratio) and ratio >= 0 for ratio in defined_ratios):
        raise ValueError("a ratio is at least 0 and finite, or None where its denominator is 0")
    logs = [math.log(ratio) for ratio in defined_ratios if ratio > 0]
    n = len(logs)
    n_zero = len(defined_ratios) - len(logs)
    n_undefined = len(ratios) - len(defined_ratios)
    notes = [f"{n_zero} of {len(ratios)} ratios are 0"] * bool(n_zero)
    notes += [f"{n_undefined} of {len(ratios)} have a denominator of 0"] * bool(n_undefined)
    note = f"{' and '.join(notes)}: left out of the geometric mean" if notes else None
    if n == 0:
        no_value_reason = (
            f"no ratio above 0: {' and '.join(notes)}" if notes else "no defined value"
        )
        return no_interval(None, 0, no_value_reason, level=level, note=note)
    mean, lo, hi = _t_bounds(logs, level)
    point, reason = _exp(mean), too_few(n, "ratios above 0") or all_equal(logs)
    if point is None:
        return no_interval(
            None,
            n,
            "the geometric mean is too large or too small to be written",
            level=level,
            note=note,
        )
    lower_bound, upper_bound = (None, None) if reason else (_exp(lo), _exp(hi))
    if lower_bound is None or upper_bound is None:
        return no_interval(
            point,
            n,
            reason or "the bounds are too large or too small to be written",
            level=level,
            note=note,
        )
    return Interval(
        point, min(lower_bound, point), max(upper_bound, point), n, "log-t", level, note=note
    )


def no_interval(
    point: float | None,
    n: int,
    reason: str,
    *,
    level: float = 0.95,
    method: str = "none",
    note: str | None = None,
) -> Interval:
    """Return a point (or none) without bounds, and the reason for it."""
    return Interval(point, None, None, n, method, level, reason, note)


def interval_columns(interval: Interval, n_undefined: int = 0) -> dict[str, object]:
    """Return an interval as the columns of a figure's table."""
    return {
        "point": interval.point,
        "lo": interval.lo,
        "hi": interval.hi,
        "n": interval.n,
        "n_undefined": n_undefined,
        "method": interval.method,
        "confidence": interval.level,
        "reason": interval.reason,
    }


def too_few(n: int, what: str = "values", fewest: int = FEWEST) -> str | None:
    """Return why ``n`` units get no interval, or None where they are enough."""
    return (
        None
        if n >= fewest
        else f"an interval needs {fewest} {what}, here {'is' if n == 1 else 'are'} {n}"
    )


def all_equal(values: Sequence[float]) -> str | None:
    """Return why values without spread get no interval, or None where they do differ."""
    spread = np.ptp(np.asarray(values, dtype=float) / max(1e-300, *map(abs, values)))
    return f"all {len(values)} values are equal: they show no spread" if spread < 1e-12 else None


def checked_level(level: float) -> float:
    """Return the confidence level; ValueError where it lies outside (0, 1)."""
    if not 0 < level < 1:
        raise ValueError(f"a confidence level lies between 0 and 1, got {level}")
    return level


def _t_bounds(values: Sequence[float], level: float) -> tuple[float, float, float]:
    """Return mean and t bounds: NaN for one value, infinite where they overflow."""
    from statsmodels.stats.weightstats import DescrStatsW

    exponent = math.frexp(max(map(abs, values)))[1]  # a power of two scales without rounding
    summary = DescrStatsW(np.array([math.ldexp(value, -exponent) for value in values]))
    bounds = summary.tconfint_mean(alpha=1 - level) if len(values) > 1 else (math.nan, math.nan)
    mean, lo, hi = (_times(float(scaled), exponent) for scaled in (summary.mean, *bounds))
    return mean, lo, hi


def _times(value: float, exponent: int) -> float:
    """Return value · 2 ** power, infinite where it overflows."""
    try:
        return math.ldexp(value, exponent)
    except OverflowError:
        return math.copysign(math.inf, value)


def _exp(value: float) -> float | None:
    """Return exp(value), or None where it overflows or underflows."""
    try:
        return math.exp(value) or None
    except OverflowError:
        return None
