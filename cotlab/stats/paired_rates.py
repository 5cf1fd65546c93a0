"""Two yes-or-no answers about the same items: McNemar's test, risk difference, odds ratio."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cotlab.stats.intervals import Interval, checked_level, no_interval, wilson
from cotlab.stats.paired import checked_pairs


@dataclass(frozen=True, slots=True)
class McNemar:
    """McNemar's test of pairs of yes-or-no answers, with both effect sizes."""

    both: int
    """Pairs that are yes in both."""
    first_only: int
    """Pairs that are yes in the first alone."""
    second_only: int
    """Pairs that are yes in the second alone."""
    neither: int
    """Pairs that are yes in neither."""
    n: int
    """Number of pairs."""
    statistic: float | None
    """Smaller discordant count (exact test), or chi-squared with one degree of freedom."""
    p: float | None
    """Two-sided p-value; None without a pair, and for chi-squared where no pair differs."""
    method: str
    """Which of the two tests it is."""
    difference: Interval
    """Rate of the second minus rate of the first."""
    odds_ratio: Interval
    """Second-only over first-only pairs."""
    reason: str | None = None
    """Why there is no p-value."""


def mcnemar(
    first: Sequence[float], second: Sequence[float], *, exact: bool = True, level: float = 0.95
) -> McNemar:
    """Test whether two yes-or-no answers about the same items say yes equally often.

    Parameters
    ----------
    first, second : sequence of bool, 0 or 1, of one length
        Pairs are independent of each other.
    exact : bool
        The binomial test of the discordant pairs; False gives chi-squared without continuity
        correction, to reproduce figures that were published so.
    level : float in (0, 1)
        Of the intervals of both effect sizes.

    Returns
    -------
    McNemar

    Raises
    ------
    ValueError
        If the lengths differ or a value is neither 0 nor 1.

    References
    ----------
    McNemar (1947), Psychometrika 12:153; statsmodels ``contingency_tables.mcnemar``. R:
    binom.test(first_only, discordant); mcnemar.test(table, correct = FALSE).
    """
    counts = pair_counts(first, second)
    return mcnemar_counts(*counts, exact=exact, level=level)


def mcnemar_counts(
    both: int,
    first_only: int,
    second_only: int,
    neither: int,
    *,
    exact: bool = True,
    level: float = 0.95,
) -> McNemar:
    """Return McNemar's test from the four counts of pairs.

    Parameters
    ----------
    both, first_only, second_only, neither : int, at least 0
        Pairs that are yes in both, in the first alone, in the second alone, and in neither.
    exact : bool
    level : float in (0, 1)

    Returns
    -------
    McNemar
        As ``mcnemar``.

    Raises
    ------
    ValueError
        If a count is negative or not whole.
    """
    from statsmodels.stats.contingency_tables import mcnemar as test

    cells = (both, first_only, second_only, neither)
    if any(int(cell) != cell or cell < 0 for cell in cells):
        raise ValueError(f"counts of pairs are whole and at least 0, got {cells}")
    n, n_discordant = sum(cells), first_only + second_only
    method = "McNemar, exact" if exact else "McNemar, chi-squared without continuity correction"
    statistic: float | None = None
    p: float | None = None
    reason = (
        "no pair"
        if n == 0
        else "no pair differs, so chi-squared is 0 / 0"
        if n_discordant == 0 and not exact
        else None
    )
    if reason is None:
        result = test([[both, first_only], [second_only, neither]], exact=exact, correction=False)
        statistic, p = float(result.statistic), min(1.0, float(result.pvalue))
    return McNemar(
        *cells,
        n,
        statistic,
        p,
        method,
        risk_difference(*cells, level=level),
        discordant_odds(first_only, second_only, level=level),
        reason,
    )


def risk_difference(
    both: int, first_only: int, second_only: int, neither: int, *, level: float = 0.95
) -> Interval:
    """Return the rate of the second minus that of the first over the same pairs.

    Parameters
    ----------
    both, first_only, second_only, neither : int, at least 0
        Counts of pairs, as ``mcnemar_counts``.
    level : float in (0, 1)

    Returns
    -------
    Interval
        In [-1, 1]; bounds from one pair on, also where no pair differs. Undefined without a pair.

    References
    ----------
    Newcombe (1998), Statistics in Medicine 17:2635, method 10: the two Wilson intervals, joined by
    the pairs' correlation.
    """
    n = both + first_only + second_only + neither
    if n == 0:
        return no_interval(None, 0, "no pair", level=level)
    first_rate, second_rate = (
        wilson(n_yes, n, level=level) for n_yes in (both + first_only, both + second_only)
    )
    (p1, lo1, hi1), (p2, lo2, hi2) = (
        (rate_interval.point or 0.0, rate_interval.lo or 0.0, rate_interval.hi or 0.0)
        for rate_interval in (first_rate, second_rate)
    )
    margin_product = (
        (both + first_only)
        * (second_only + neither)
        * (both + second_only)
        * (first_only + neither)
    )
    covariance_excess = float(both * neither - first_only * second_only)
    covariance_excess = (
        max(covariance_excess - n / 2, 0.0) if covariance_excess > 0 else covariance_excess
    )
    phi = covariance_excess / math.sqrt(margin_product) if margin_product else 0.0

    def bound_distance(first_distance: float, second_distance: float) -> float:
        return math.sqrt(
            max(
                0.0,
                first_distance**2 - 2 * phi * first_distance * second_distance + second_distance**2,
            )
        )

    point = (second_only - first_only) / n
    lo, hi = point - bound_distance(p2 - lo2, hi1 - p1), point + bound_distance(hi2 - p2, p1 - lo1)
    return Interval(point, max(-1.0, lo), min(1.0, hi), n, "Newcombe, paired", level)


def discordant_odds(first_only: int, second_only: int, *, level: float = 0.95) -> Interval:
    """Return the odds ratio of matched pairs, second-only over first-only.

    Parameters
    ----------
    first_only, second_only : int, at least 0
        Counts of discordant pairs.
    level : float in (0, 1)

    Returns
    -------
    Interval
        At least 0, with exact bounds; ``n`` counts the discordant pairs. Undefined where no pair
        differs, and where none is yes in the first alone: the ratio is then unbounded, and the
        reason gives its lower bound.

    References
    ----------
    Clopper and Pearson (1934), Biometrika 26:404, for second-only among the discordant pairs. R:
    binom.test(second_only, discordant)$conf.int, and p / (1 - p) of it.
    """
    from statsmodels.stats.proportion import proportion_confint

    n = first_only + second_only
    if n == 0:
        return no_interval(None, 0, "no pair differs", level=level)
    lo, hi = (
        float(p)
        for p in proportion_confint(second_only, n, alpha=1 - checked_level(level), method="beta")
    )
    if first_only == 0:
        reason = (
            "no pair is yes in the first alone: the ratio is unbounded, at least"
            f" {lo / (1 - lo):.3g} at level {level:g}"
        )
        return no_interval(None, n, reason, level=level)
    point = second_only / first_only
    return Interval(
        point,
        min(lo / (1 - lo), point),
        max(hi / (1 - hi), point),
        n,
        "exact, of discordant pairs",
        level,
    )


def pair_counts(first: Sequence[float], second: Sequence[float]) -> tuple[int, int, int, int]:
    """Count the pairs that are yes in both, the first alone, the second alone, neither.

    Parameters
    ----------
    first, second : sequence of bool, 0 or 1, of one length

    Returns
    -------
    tuple of four int

    Raises
    ------
    ValueError
        If the lengths differ or a value is neither 0 nor 1.
    """
    first_values, second_values = checked_pairs(first, second)
    if not (np.isin(first_values, (0, 1)).all() and np.isin(second_values, (0, 1)).all()):
        raise ValueError("a yes or no is 0 or 1")
    return tuple(
        int(((first_values == x) & (second_values == y)).sum())
        for x, y in ((1, 1), (1, 0), (0, 1), (0, 0))
    )  # type: ignore[return-value]
