"""Intervals of means and of ratios: golden values, what has none and why, and where zeros go."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from cotlab.stats.intervals import Interval, log_ratio_interval, t_interval

# Student (1908), extra hours of sleep under the second drug minus under the first, as R's data set
# `sleep` holds them
SLEEP = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]


@pytest.mark.parametrize(
    ("values", "level", "point", "lo", "hi"),
    [
        # R: t.test(1:5)$conf.int; by hand 3 -+ 2.776445 · sqrt(2.5 / 5)
        ([1, 2, 3, 4, 5], 0.95, 3.0, 1.0367568, 4.9632432),
        # R, ?sleep: with(sleep, t.test(extra[group == 2], extra[group == 1], paired = TRUE)), 1.58
        # (0.7001142, 2.4598858)
        (SLEEP, 0.95, 1.58, 0.7001142, 2.4598858),
        # by hand: 3 -+ 2.131847 (t of 4 df at .95, from a printed table) · .7071068
        ([1, 2, 3, 4, 5], 0.90, 3.0, 1.4925566, 4.5074434),
    ],
)
def test_means(values: Sequence[float], level: float, point: float, lo: float, hi: float) -> None:
    found = t_interval(values, level=level)
    assert (found.point, found.lo, found.hi) == pytest.approx((point, lo, hi), abs=1e-6)
    assert (found.n, found.method, found.level, found.reason) == (len(values), "t", level, None)


@pytest.mark.parametrize(
    ("values", "point", "reason"),
    [
        ([], None, "no defined value"),
        ([2.0], 2.0, "an interval needs 5 values, here is 1"),
        ([1.0, 2.0, 3.0, 6.0], 3.0, "an interval needs 5 values, here are 4"),
        ([0.0] * 9, 0.0, "all 9 values are equal: they show no spread"),
        ([1.0] * 9, 1.0, "all 9 values are equal: they show no spread"),
        (
            [0.1 + 0.2, 0.3] * 4,
            0.3,
            "all 8 values are equal: they show no spread",
        ),  # but for rounding
        ([1.7e308] * 6, 1.7e308, "all 6 values are equal: they show no spread"),
        ([-1.7e308, 1.7e308] * 3, 0.0, "the bounds are too large for a floating-point number"),
    ],
)
def test_a_mean_without_an_interval_says_why(
    values: Sequence[float], point: float | None, reason: str
) -> None:
    found = t_interval(values)
    assert found.point == (None if point is None else pytest.approx(point))
    assert (found.lo, found.hi, found.n, found.method, found.reason) == (
        None,
        None,
        len(values),
        "none",
        reason,
    )


def test_tiny_values_that_differ_are_not_equal() -> None:
    """1e-15 and 1e-200 times 1 to 5: the interval of 1 to 5, as small, though the squares vanish;
    and as large."""
    for size in (1e-15, 1e-200, 1e200, 3e307):
        found = t_interval([k * size for k in range(1, 6)])
        assert found.lo is not None and found.hi is not None
        assert (found.lo / size, found.hi / size) == (
            pytest.approx(1.0367568),
            pytest.approx(4.9632432),
        )


def test_a_geometric_mean_by_hand() -> None:
    """exp of the interval of the logs 1 to 5: exp(3) and exp(1.0367568), exp(4.9632432); R:
    exp(t.test(1:5)$conf.int)."""
    found = log_ratio_interval([math.exp(k) for k in range(1, 6)])
    assert (found.point, found.lo, found.hi) == pytest.approx(
        (20.0855369, 2.8200562, 143.0570002), rel=1e-6
    )
    assert (found.n, found.method, found.note) == (5, "log-t", None)


def test_inverse_ratios_have_the_inverse_interval() -> None:
    ratios = [0.2, 0.5, 1.1, 2.0, 3.0, 0.9]
    found, inverse = log_ratio_interval(ratios), log_ratio_interval([1 / ratio for ratio in ratios])
    assert found.point is not None and found.lo is not None and found.hi is not None
    assert (inverse.point, inverse.lo, inverse.hi) == pytest.approx(
        (1 / found.point, 1 / found.hi, 1 / found.lo)
    )


def test_zeros_and_missing_denominators_are_left_out_counted_and_told() -> None:
    known = [math.exp(k) for k in range(1, 6)]
    found, without = log_ratio_interval([*known, 0.0, 0.0, None]), log_ratio_interval(known)
    assert (found.point, found.lo, found.hi, found.n) == (without.point, without.lo, without.hi, 5)
    assert (
        found.note
        == "2 of 8 ratios are 0 and 1 of 8 have a denominator of 0: left out of the geometric mean"
    )
    assert found.reason is None and without.note is None


@pytest.mark.parametrize(
    ("ratios", "point", "reason"),
    [
        ([], None, "no defined value"),
        (
            [0.0, 0.0, None],
            None,
            "no ratio above 0: 2 of 3 ratios are 0 and 1 of 3 have a denominator of 0",
        ),
        ([None] * 6, None, "no ratio above 0: 6 of 6 have a denominator of 0"),
        (
            [1.0, 4.0, 0.0, 0.0, 0.0],
            2.0,
            "an interval needs 5 ratios above 0, here are 2",
        ),  # sqrt(1 · 4)
        ([3.0] * 6, 3.0, "all 6 values are equal: they show no spread"),
        ([1.0] * 6, 1.0, "all 6 values are equal: they show no spread"),
        ([1e300, 1e-300] * 3, 1.0, "the bounds are too large or too small to be written"),
    ],
)
def test_a_ratio_without_an_interval_says_why(
    ratios: Sequence[float | None], point: float | None, reason: str
) -> None:
    found = log_ratio_interval(ratios)
    assert found.point == (None if point is None else pytest.approx(point))
    assert (found.lo, found.hi, found.method, found.reason) == (None, None, "none", reason)


@pytest.mark.parametrize("bad", [-0.1, math.inf, math.nan])
def test_what_is_no_ratio(bad: float) -> None:
    with pytest.raises(ValueError, match="at least 0 and finite"):
        log_ratio_interval([1.0, 2.0, bad])


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_what_is_no_value(bad: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        t_interval([1.0, bad])


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0, math.nan])
def test_what_is_no_level(level: float) -> None:
    for call in (
        lambda: t_interval([1.0, 2.0], level=level),
        lambda: log_ratio_interval([1.0], level=level),
    ):
        with pytest.raises(ValueError, match="confidence level"):
            call()


@pytest.mark.parametrize(
    ("point", "lo", "hi", "told"),
    [
        (0.5, 0.6, 0.7, "outside"),
        (0.5, 0.1, 0.4, "outside"),
        (0.5, 0.4, 0.1, "outside"),
        (math.nan, None, None, "finite"),
        (0.5, 0.4, math.inf, "finite"),
        (None, 0.1, 0.2, "need a point"),
    ],
)
def test_no_interval_leaves_out_its_point(
    point: float | None, lo: float | None, hi: float | None, told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        Interval(point, lo, hi, 7, "by hand")
