"""The planner against noncentral and multinomial sums, published sizes, and its own promises."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from cotlab.stats.intervals import wilson
from cotlab.stats.paired_rates import mcnemar_counts
from cotlab.stats.power import (
    Discordant,
    SampleSize,
    discordant,
    mcnemar_power,
    n_for_mcnemar,
    n_for_paired_t,
    n_for_rate,
    paired_t_power,
    rate_half_width,
)


def test_the_half_width_of_a_rate() -> None:
    found = wilson(30, 100)
    assert rate_half_width(100, 0.3) == pytest.approx((found.hi - found.lo) / 2)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("half_width", "n"),
    [
        (0.05, 381),  # by hand at rate .5: z² (1 / (4 · .05²) - 1) = 3.841459 · 99 = 380.3
        (0.1, 93),  # 3.841459 · 24 = 92.2
    ],
)
def test_items_for_a_rate(half_width: float, n: int) -> None:
    found = n_for_rate(half_width)
    assert found.n == n and found.reached == pytest.approx(rate_half_width(n))
    assert rate_half_width(n) <= half_width < rate_half_width(n - 1)
    assert n_for_rate(1e-4) == SampleSize(None, None, "more than 1,000,000 items")


def test_power_of_the_paired_t() -> None:
    """By definition: |T| beyond t(.975, 19) where T is noncentral with .5 · sqrt(20). R
    pwr.t.test(20, .5, type = "paired")."""
    edge, away = stats.t.ppf(0.975, 19), 0.5 * math.sqrt(20)
    wanted = stats.nct.sf(edge, 19, away) + stats.nct.cdf(-edge, 19, away)
    assert paired_t_power(20, 0.5) == pytest.approx(wanted, abs=1e-6) and wanted == pytest.approx(
        0.5645, abs=1e-4
    )
    assert paired_t_power(20, -0.5) == paired_t_power(20, 0.5)
    assert paired_t_power(20, 0.0) == pytest.approx(0.05)  # nothing but false alarms


def test_pairs_for_a_paired_t() -> None:
    """R: pwr.t.test(d = .5, power = .8, type = "paired") gives n = 33.36713, so 34."""
    found = n_for_paired_t(0.5)
    assert (
        found.n == 34
        and found.reached is not None
        and found.reached >= 0.8 > paired_t_power(33, 0.5)
    )
    assert n_for_paired_t(3.0).n == 5  # no fewer than an interval needs
    assert n_for_paired_t(0.0).reason == "no number of pairs shows a difference of 0"
    assert n_for_paired_t(1e-5).reason == "more than 1,000,000 pairs"


@pytest.mark.parametrize(
    "shares",
    [Discordant(0.1, 0.4), Discordant(0.0, 0.7), Discordant(0.5, 0.5), Discordant(0.02, 0.03)],
)
def test_power_of_mcnemar_is_the_sum_over_all_outcomes(shares: Discordant) -> None:
    """12 pairs: the multinomial probability of every outcome that the test itself rejects."""
    total, rest = 0.0, 1 - shares.first_only - shares.second_only
    for one in range(13):
        for other in range(13 - one):
            p = mcnemar_counts(12 - one - other, one, other, 0).p
            if p is not None and p <= 0.05:
                ways = math.comb(12, one) * math.comb(12 - one, other)
                total += (
                    ways
                    * shares.first_only**one
                    * shares.second_only**other
                    * max(0.0, rest) ** (12 - one - other)
                )
    assert mcnemar_power(12, shares) == pytest.approx(total, abs=1e-12)


def test_pairs_for_mcnemar_reach_what_they_promise() -> None:
    shares = discordant(0.637, 0.453, 0.3)
    found = n_for_mcnemar(shares)
    assert found.n is not None and mcnemar_power(
        found.n, shares
    ) == found.reached >= 0.8 > mcnemar_power(found.n - 1, shares)
    more = n_for_mcnemar(shares, power=0.95)
    assert more.n is not None and more.n > found.n
    assert (
        n_for_mcnemar(Discordant(0.2, 0.2)).reason == "no number of pairs shows a difference of 0"
    )
    assert n_for_mcnemar(Discordant(0.1, 0.1001)).reason == "more than 100,000 pairs"
    assert (
        mcnemar_power(50, Discordant(0.0, 0.0))
        == mcnemar_power(50, Discordant(5e-324, 1e-310))
        == 0
    )
    assert mcnemar_power(50, Discordant(0.2, 5e-324)) == pytest.approx(
        mcnemar_power(50, Discordant(0.2, 0.0))
    )
    assert mcnemar_power(4, Discordant(0.0, 1.0)) == 0  # four of four: p = 2 / 16, never below .05
    assert mcnemar_power(6, Discordant(0.0, 1.0)) == 1  # six of six: p = 2 / 64


def test_discordant_shares_of_two_rates() -> None:
    """Independent rates .6 and .5: .6 · .5 and .4 · .5; phi .5 adds .5 · sqrt(.24 · .25) = .122474
    to the pairs of two yes."""
    assert (discordant(0.6, 0.5).first_only, discordant(0.6, 0.5).second_only) == pytest.approx(
        (0.3, 0.2)
    )
    found = discordant(0.6, 0.5, 0.5)
    assert (found.first_only, found.second_only) == pytest.approx(
        (0.6 - 0.422474, 0.5 - 0.422474), abs=1e-6
    )
    with pytest.raises(ValueError, match="from -1 to 0.111, got 0.8"):
        discordant(0.9, 0.1, 0.8)
    assert discordant(1.0, 0.3) == Discordant(0.7, 0.0)


@settings(max_examples=40, deadline=None)
@given(st.floats(0, 1), st.floats(0, 1), st.integers(1, 400))
def test_a_power_is_a_probability(first: float, second: float, n: int) -> None:
    shares = discordant(first, second)
    assert min(shares.first_only, shares.second_only) >= 0
    assert shares.second_only - shares.first_only == pytest.approx(second - first, abs=1e-9)
    assert 0 <= mcnemar_power(n, shares) <= 1 and 0 < rate_half_width(n, first) < 0.5


@pytest.mark.parametrize(
    "call",
    [
        lambda: rate_half_width(0),
        lambda: rate_half_width(9, 1.2),
        lambda: n_for_rate(0),
        lambda: n_for_rate(0.5),
        lambda: paired_t_power(1, 0.5),
        lambda: paired_t_power(9, math.nan),
        lambda: n_for_paired_t(0.5, power=1.1),
        lambda: mcnemar_power(0, Discordant(0.1, 0.2)),
        lambda: mcnemar_power(9, Discordant(0.6, 0.6)),
        lambda: mcnemar_power(9, Discordant(-0.1, 0.6)),
        lambda: discordant(1.2, 0.1),
        lambda: discordant(0.5, 0.5, math.nan),
    ],
)
def test_what_cannot_be_planned(call: object) -> None:
    with pytest.raises(ValueError):
        call()  # type: ignore[operator]
