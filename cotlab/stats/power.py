"""Power and sample size: how many items a comparison needs, and what it can detect."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from cotlab.stats.intervals import FEWEST, checked_level

MAX_ITEMS = 1_000_000
"""Largest number of items of a plan."""
_MAX_PAIRS = 100_000
_NEGLIGIBLE_SHARE = 1e-15
"""A share below this adds nothing that a power shows, and scipy's binomial overflows on the
smallest numbers."""


@dataclass(frozen=True, slots=True)
class SampleSize:
    """The smallest number of items that suffices."""

    n: int | None
    """Number of items; None where none suffices."""
    reached: float | None
    """Power, or half width, at ``n``."""
    reason: str | None = None
    """Why there is no number."""


@dataclass(frozen=True, slots=True)
class Discordant:
    """Expected shares of discordant pairs."""

    first_only: float
    """Share of pairs that are yes in the first alone, in [0, 1]."""
    second_only: float
    """Share of pairs that are yes in the second alone, in [0, 1]."""


def rate_half_width(n: int, rate: float = 0.5, *, level: float = 0.95) -> float:
    """Return half the width of the Wilson interval of a rate.

    Parameters
    ----------
    n : int, at least 1
    rate : float in [0, 1]
        0.5 gives the widest interval.
    level : float in (0, 1)

    Returns
    -------
    float in (0, 0.5)

    Raises
    ------
    ValueError
        If n < 1, or the rate lies outside [0, 1].

    References
    ----------
    Wilson (1927), JASA 22:209; statsmodels ``proportion_confint``, at an expected count that need
    not be whole.
    """
    from statsmodels.stats.proportion import proportion_confint

    _check_range("a rate", rate, 0, 1)
    if n < 1:
        raise ValueError(f"a rate needs at least one item, got {n}")
    lo, hi = proportion_confint(rate * n, n, alpha=1 - checked_level(level), method="wilson")
    return float(hi - lo) / 2


def n_for_rate(half_width: float, rate: float = 0.5, *, level: float = 0.95) -> SampleSize:
    """Return the items after which a rate is known to within a half width.

    Parameters
    ----------
    half_width : float in (0, 0.5)
        Of the Wilson interval.
    rate : float in [0, 1]
    level : float in (0, 1)

    Returns
    -------
    SampleSize
        ``reached`` is the half width.

    Raises
    ------
    ValueError
        If the half width lies outside (0, 0.5) or the rate outside [0, 1].
    """
    if not 0 < half_width < 0.5:
        raise ValueError(f"a half width lies between 0 and 0.5, got {half_width}")
    half_width_at_n = partial(rate_half_width, rate=rate, level=level)
    return _smallest_n(
        half_width_at_n, lambda n: half_width_at_n(n) <= half_width, 1, MAX_ITEMS, "items"
    )


def paired_t_power(n: int, dz: float, *, alpha: float = 0.05) -> float:
    """Return the power of the two-sided paired t test.

    Parameters
    ----------
    n : int, at least 2
        Pairs.
    dz : float, finite
        Mean difference in standard deviations of the differences.
    alpha : float in (0, 1)

    Returns
    -------
    float in [0, 1]

    Raises
    ------
    ValueError
        If a number lies outside its range.

    References
    ----------
    statsmodels ``TTestPower``. R: power.t.test(n, delta = dz, sd = 1, sig.level = alpha, type =
    "paired", strict = TRUE).
    """
    from statsmodels.stats.power import TTestPower

    _check_range("alpha", alpha, 0, 1)
    if n < 2 or not math.isfinite(dz):
        raise ValueError(f"a paired t test needs two pairs and a finite effect, got {n} and {dz}")
    return min(1.0, float(TTestPower().power(abs(dz), n, alpha, alternative="two-sided")))


def n_for_paired_t(dz: float, *, power: float = 0.8, alpha: float = 0.05) -> SampleSize:
    """Return the pairs after which a paired t test detects a mean difference.

    Parameters
    ----------
    dz : float, finite
        Mean difference in standard deviations of the differences.
    power : float in [0, 1]
    alpha : float in (0, 1)

    Returns
    -------
    SampleSize
        At least ``FEWEST`` pairs; ``reached`` is the power. None, with the reason, for ``dz`` = 0.

    Raises
    ------
    ValueError
        If a number lies outside its range.
    """
    _check_range("power", power, 0, 1)
    if dz == 0:
        return SampleSize(None, None, "no number of pairs shows a difference of 0")
    power_at_n = partial(paired_t_power, dz=dz, alpha=alpha)
    return _smallest_n(power_at_n, lambda n: power_at_n(n) >= power, FEWEST, MAX_ITEMS, "pairs")


def discordant(first: float, second: float, correlation: float = 0.0) -> Discordant:
    """Return the shares of discordant pairs from two rates and the correlation of the answers.

    Parameters
    ----------
    first, second : float in [0, 1]
        Rates.
    correlation : float
        Phi of the two answers about one item; 0 for independent answers. Two unequal rates cannot
        have every phi.

    Returns
    -------
    Discordant

    Raises
    ------
    ValueError
        If a rate lies outside [0, 1], or no pairs with these rates have this correlation (the
        possible range is named).
    """
    _check_range("a rate", first, 0, 1)
    _check_range("a rate", second, 0, 1)
    spread = math.sqrt(first * (1 - first) * second * (1 - second))
    both_rate = first * second + correlation * spread
    min_both_rate, max_both_rate = max(0.0, first + second - 1), min(first, second)
    if not min_both_rate - 1e-12 <= both_rate <= max_both_rate + 1e-12 or not math.isfinite(
        correlation
    ):
        correlation_range = (
            [
                (extreme_rate - first * second) / spread
                for extreme_rate in (min_both_rate, max_both_rate)
            ]
            if spread
            else [0.0, 0.0]
        )
        raise ValueError(
            f"rates {first:g} and {second:g} allow a correlation from {correlation_range[0]:.3g} to"
            f" {correlation_range[1]:.3g}, got {correlation:g}"
        )
    both_rate = min(max_both_rate, max(min_both_rate, both_rate))
    return Discordant(first - both_rate, second - both_rate)


def mcnemar_power(n: int, shares: Discordant, *, alpha: float = 0.05) -> float:
    """Return the power of McNemar's exact two-sided test.

    It is summed over every number of discordant pairs.

    Parameters
    ----------
    n : int from 1 to 100,000
        Pairs.
    shares : Discordant
        Both shares together at most 1.
    alpha : float in (0, 1)

    Returns
    -------
    float in [0, 1]

    Raises
    ------
    ValueError
        If a number lies outside its range.

    References
    ----------
    Duffy (1984), Biometrics 40:1005: the exact unconditional power. scipy.stats.binom.
    """
    from scipy.stats import binom

    _check_range("alpha", alpha, 0, 1)
    discordant_share = shares.first_only + shares.second_only
    if min(shares.first_only, shares.second_only) < 0 or discordant_share > 1 + 1e-12:
        raise ValueError(f"shares of pairs lie in [0, 1] and sum to at most 1, got {shares}")
    if not 1 <= n <= _MAX_PAIRS:
        raise ValueError(f"the exact power is summed for 1 to {_MAX_PAIRS:,} pairs, got {n}")
    if discordant_share < _NEGLIGIBLE_SHARE:
        return 0.0
    mean_discordant_count, half_range = (
        n * discordant_share,
        12 * math.sqrt(n * discordant_share) + 40,
    )  # what lies beyond has less than 1e-12 of the probability
    m = np.arange(
        max(0, math.floor(mean_discordant_count - half_range)),
        min(n, math.ceil(mean_discordant_count + half_range)) + 1,
    )
    critical_counts = binom.ppf(
        alpha / 2, m, 0.5
    )  # the smallest count with P(X <= count) >= alpha / 2 ...
    critical_counts = np.where(
        2 * binom.cdf(critical_counts, m, 0.5) <= alpha, critical_counts, critical_counts - 1
    )  # ... and the last that is rejected
    second_share = (
        0.0
        if shares.second_only < _NEGLIGIBLE_SHARE * discordant_share
        else shares.second_only / discordant_share
    )
    rejection_rates = binom.cdf(critical_counts, m, second_share) + binom.sf(
        m - critical_counts - 1, m, second_share
    )
    return float(
        min(
            1.0,
            (
                binom.pmf(m, n, min(1.0, discordant_share))
                * np.where(critical_counts < 0, 0.0, rejection_rates)
            ).sum(),
        )
    )


def n_for_mcnemar(shares: Discordant, *, power: float = 0.8, alpha: float = 0.05) -> SampleSize:
    """Return the pairs after which McNemar's exact test detects a difference of two paired rates.

    Parameters
    ----------
    shares : Discordant
    power : float in [0, 1]
    alpha : float in (0, 1)

    Returns
    -------
    SampleSize
        ``reached`` is the power. The exact power rises in small teeth: ``n`` reaches ``power`` and
        n - 1 does not, but a few more pairs may fall short by a hair. None, with the reason, where
        both shares are equal.

    Raises
    ------
    ValueError
        If a number lies outside its range.
    """
    _check_range("power", power, 0, 1)
    if math.isclose(shares.first_only, shares.second_only, abs_tol=1e-12):
        return SampleSize(None, None, "no number of pairs shows a difference of 0")
    power_at_n = partial(mcnemar_power, shares=shares, alpha=alpha)
    return _smallest_n(power_at_n, lambda n: power_at_n(n) >= power, 1, _MAX_PAIRS, "pairs")


def _smallest_n(
    measure: Callable[[int], float],
    is_enough: Callable[[int], bool],
    min_n: int,
    max_n: int,
    unit: str,
) -> SampleSize:
    """Return an n that is enough while n - 1 is not, or ``min_n``, with its measure."""
    low, high = min_n - 1, min_n
    while not is_enough(high):
        if high == max_n:
            return SampleSize(None, None, f"more than {max_n:,} {unit}")
        low, high = high, min(2 * high, max_n)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return SampleSize(high, measure(high))


def _check_range(name: str, value: float, lo: float, hi: float) -> None:
    if not lo <= value <= hi:
        raise ValueError(f"{name} lies from {lo} to {hi}, got {value}")
