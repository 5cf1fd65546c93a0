"""Two yes-or-no answers about the same items: McNemar's test and the difference of the rates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cotlab.stats.intervals import Interval, no_interval, wilson
from cotlab.stats.paired import checked_pairs


@dataclass(frozen=True, slots=True)
class McNemar:
    """McNemar's exact test of pairs of yes-or-no answers, with the effect size."""

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
    p: float | None
    """Two-sided p-value; None without a pair."""
    method: str
    """Name of the test."""
    difference: Interval
    """Rate of the second minus rate of the first."""
    reason: str | None = None
    """Why there is no p-value."""


def mcnemar(first: Sequence[float], second: Sequence[float]) -> McNemar:
    """Test whether two yes-or-no answers about the same items say yes equally often.

    Parameters
    ----------
    first, second : sequence of bool, 0 or 1, of one length
        Pairs are independent of each other.

    Returns
    -------
    McNemar
        The binomial test of the discordant pairs.

    Raises
    ------
    ValueError
        If the lengths differ or a value is neither 0 nor 1.

    References
    ----------
    McNemar (1947), Psychometrika 12:153; statsmodels ``contingency_tables.mcnemar``. R:
    binom.test(first_only, discordant).
    """
    from statsmodels.stats.contingency_tables import mcnemar as test

    first_values, second_values = checked_pairs(first, second)
    if not (np.isin(first_values, (0, 1)).all() and np.isin(second_values, (0, 1)).all()):
        raise ValueError("a yes or no is 0 or 1")
    both, first_only, second_only, neither = (
        int(((first_values == x) & (second_values == y)).sum())
        for x, y in ((1, 1), (1, 0), (0, 1), (0, 0))
    )
    n = len(first_values)
    p = None
    if n:
        p = min(1.0, float(test([[both, first_only], [second_only, neither]], exact=True).pvalue))
    return McNemar(
        both,
        first_only,
        second_only,
        neither,
        n,
        p,
        "McNemar, exact",
        risk_difference(both, first_only, second_only, neither),
        None if n else "no pair",
    )


def risk_difference(both: int, first_only: int, second_only: int, neither: int) -> Interval:
    """Return the rate of the second minus that of the first, from the four counts of pairs.

    In [-1, 1]; bounds from one pair on, also where no pair differs. Newcombe (1998), Statistics in
    Medicine 17:2635, method 10: the two Wilson intervals, joined by the pairs' correlation.
    """
    n = both + first_only + second_only + neither
    if n == 0:
        return no_interval(None, 0, "no pair")
    n_first, n_second = both + first_only, both + second_only
    below, above = [], []  # distances of each rate from its Wilson bounds
    for n_yes in (n_first, n_second):
        rate = wilson(n_yes, n)
        below.append(n_yes / n - (rate.lo or 0.0))
        above.append((rate.hi or 0.0) - n_yes / n)
    product = n_first * (n - n_first) * n_second * (n - n_second)
    excess = float(both * neither - first_only * second_only)
    excess = max(excess - n / 2, 0.0) if excess > 0 else excess
    phi = excess / math.sqrt(product) if product else 0.0

    def distance(a: float, b: float) -> float:
        return math.sqrt(max(0.0, a**2 - 2 * phi * a * b + b**2))

    point = (second_only - first_only) / n
    lo, hi = point - distance(below[1], above[0]), point + distance(above[1], below[0])
    return Interval(point, max(-1.0, lo), min(1.0, hi), n, "Newcombe, paired")
