"""Spearman's rho against values worked by hand, and where it has none."""

from __future__ import annotations

import math

import pytest

from cotlab.stats.correlation import spearman


def test_rho_is_that_of_the_rank_differences() -> None:
    """Differences of rank 1, −1, 1, −1, 1, −1: 1 − 6·6/(6·35) = 0.828571; z ± 1.959964·sqrt((1 +
    rho²/2)/3)."""
    found = spearman([1, 2, 3, 4, 5, 6], [20, 10, 40, 30, 60, 50])
    assert found.point == pytest.approx(1 - 36 / 210)
    half = 1.959964 * math.sqrt((1 + found.point**2 / 2) / 3)
    assert found.lo == pytest.approx(math.tanh(math.atanh(1 - 36 / 210) - half), abs=1e-6)
    assert found.hi == pytest.approx(math.tanh(math.atanh(1 - 36 / 210) + half), abs=1e-6)


def test_there_is_none_of_few_pairs_or_a_constant() -> None:
    assert spearman([1, 2, 3, 4], [1, 2, 3, 4]).reason == "fewer than 5 pairs"
    told = spearman([1, 1, 1, 1, 1], [1, 2, 3, 4, 5])
    assert told.point is None and told.reason == "one of the two is constant" and told.n == 5


def test_rounding_errors_are_ties() -> None:
    """A mean of cosines of equal vectors is 1, or one unit in the last place below it."""
    told = spearman([1.0, 1.0, 1 - 2**-53, 1.0, 1 - 2**-53], [1, 2, 3, 4, 5])
    assert told.point is None and told.reason == "one of the two is constant"


def test_a_perfect_order_has_no_interval() -> None:
    told = spearman([1, 2, 3, 4, 5], [9, 7, 5, 3, 1])
    assert told.point == -1.0 and told.lo is None and "perfect" in str(told.reason)


def test_what_is_no_pair_is_refused() -> None:
    for bad in ([1.0, 2.0], [float("nan")] * 5):
        with pytest.raises(ValueError, match="finite pairs"):
            spearman(bad, [1.0, 2.0, 3.0, 4.0, 5.0])
