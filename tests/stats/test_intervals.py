"""Wilson intervals against published software, and what an interval must never do."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from cotlab.stats.intervals import no_interval, wilson


@pytest.mark.parametrize(
    ("successes", "n", "level", "lo", "hi"),
    [
        # statsmodels 0.15: proportion_confint(7, 10, method="wilson"); R: prop.test(7, 10,
        # correct=FALSE)
        (7, 10, 0.95, 0.39678, 0.89221),
        # by hand, z = 1.959964: 0 of n gives [0, z²/(n + z²)] = 3.841459/13.841459; n of n gives
        # [n/(n + z²), 1]
        (0, 10, 0.95, 0.0, 0.277533),
        (10, 10, 0.95, 0.722467, 1.0),
        # Newcombe (1998), Statistics in Medicine 17:857, table I, method 3: 81 of 263, 15 of 148, 1
        # of 29
        (81, 263, 0.95, 0.2553, 0.3662),
        (15, 148, 0.95, 0.0624, 0.1605),
        (1, 29, 0.95, 0.0061, 0.1718),
        # by hand, z = 1.644854: (5 + z²/2)/(10 + z²) -+ z/(10 + z²) · sqrt(2.5 + z²/4) = .5 -+
        # .230728
        (5, 10, 0.90, 0.269272, 0.730728),
    ],
)
def test_wilson(successes: int, n: int, level: float, lo: float, hi: float) -> None:
    found = wilson(successes, n, level=level)
    assert (found.lo, found.hi) == pytest.approx((lo, hi), abs=5e-5)
    assert (found.point, found.n, found.method, found.level) == (successes / n, n, "Wilson", level)


@pytest.mark.parametrize(("successes", "n"), [(0, 0), (-1, 5), (6, 5), (0, -1)])
def test_what_is_no_proportion(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match="0 <= successes <= n"):
        wilson(successes, n)


@given(st.integers(1, 10**6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_of_a_complement_is_mirrored(case: tuple[int, int]) -> None:
    found, mirrored = wilson(*case), wilson(case[1] - case[0], case[1])
    assert found.hi is not None and mirrored.lo == pytest.approx(1 - found.hi, abs=1e-12)


def test_no_interval() -> None:
    found = no_interval(0.5, 1, "one unit has no spread")
    assert (found.point, found.lo, found.hi, found.reason) == (
        0.5,
        None,
        None,
        "one unit has no spread",
    )
    for bad in (math.nan, math.inf):
        with pytest.raises(ValueError, match="finite"):
            no_interval(bad, 3, "why")


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_wilson_is_that_of_statsmodels_to_the_last_digit(level: float) -> None:
    for n in (1, 2, 7, 31, 986, 123_457):
        for successes in {0, 1, n // 3, n // 2, n - 1, n}:
            lo, hi = proportion_confint(successes, n, alpha=1 - level, method="wilson")
            found, point = wilson(successes, n, level=level), successes / n
            assert (found.lo, found.hi) == (min(lo, point), max(hi, point))
