"""Measures of probabilities: by hand, against scikit-learn, and by what a perfectly calibrated
forecaster shows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from cotlab.stats import calibration as cal
from cotlab.stats import calibration_intervals as intervals
from cotlab.stats import resample

UNIT = st.floats(0, 1)
PAIRS = st.lists(st.tuples(UNIT, st.booleans()), min_size=1, max_size=60)


def test_brier_and_log_loss_by_hand() -> None:
    assert cal.brier([0.9, 0.2], [1, 0]) == pytest.approx((0.01 + 0.04) / 2)
    for p, y, loss in (
        ([0.5, 0.25], [1, 0], (math.log(2) - math.log(0.75)) / 2),
        ([0.0], [1], -math.log(1e-6)),
    ):
        found = intervals.measure_interval("log_loss", p, y, list(range(len(p))), seed=0)
        assert found.point == pytest.approx(loss)


def test_ece_by_hand() -> None:
    p, y = [0.1, 0.1, 0.9, 0.9], [0, 1, 1, 1]
    assert cal.ece(p, y) == pytest.approx(0.5 * abs(0.5 - 0.1) + 0.5 * abs(1 - 0.9))


def test_bins_are_of_equal_mass_and_keep_ties_together() -> None:
    rng = np.random.default_rng(1)
    free = rng.permutation(np.linspace(0, 1, 103))
    assert set(np.bincount(cal.equal_mass_bins(free, 10))) <= {10, 11}
    assert cal.equal_mass_bins([0.3] * 7 + [0.9], 4).tolist() == [0] * 7 + [
        1
    ]  # the empty bins are left out
    assert [cal.bin_count(n) for n in (5, 20, 39, 60, 100, 5000)] == [2, 2, 3, 6, 10, 10]


@given(
    st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]) | UNIT, min_size=1, max_size=80),
    st.integers(1, 12),
)
def test_bins_are_ordered_and_never_split_a_tie(p: list[float], bins: int) -> None:
    where = cal.equal_mass_bins(p, bins)
    assert set(where) == set(range(where.max() + 1)) and where.max() < bins
    ordered = sorted(zip(p, where.tolist(), strict=True))
    assert [k for _, k in ordered] == sorted(where.tolist())
    assert len({(value, k) for value, k in ordered}) == len(set(p))


@settings(max_examples=30)
@given(PAIRS)
def test_measures_stay_in_their_range_and_agree_with_scikit_learn(
    pairs: list[tuple[float, bool]],
) -> None:
    p, y = [one for one, _ in pairs], [int(good) for _, good in pairs]
    assert cal.brier(p, y) == pytest.approx(metrics.brier_score_loss(y, p, pos_label=1))
    assert 0 <= cal.ece(p, y) <= 1
    rank = cal.auroc(p, y)
    assert (rank is None) == (len(set(y)) == 1)
    bins = cal.reliability_bins(p, y)
    assert sum(one.observed.n for one in bins) == len(p)
    assert cal.ece(p, y) == pytest.approx(
        sum(one.observed.n * abs((one.observed.point or 0) - one.predicted) for one in bins)
        / len(p),
        abs=1e-12,
    )


def test_a_perfectly_calibrated_forecaster_lies_in_its_band() -> None:
    rng, inside, many = np.random.default_rng(7), 0, 400
    for k in range(8):
        p = rng.beta(2, 1.5, size=200)
        lo, hi = cal.perfect_band(p, seed=k)
        inside += sum(lo <= cal.ece(p, rng.random(200) < p) <= hi for _ in range(many // 8))
    # 95 % of 400 is 380, with a standard deviation of 4.4; the band's own draws add about as much
    # again
    assert 360 <= inside <= 396


@pytest.mark.parametrize("shift", [0.0, 0.1])
def test_an_ece_interval_holds_the_true_one_as_often_as_it_says(
    shift: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mirrored percentiles held 0 for a perfect forecaster in half of all cases, where 95 % was
    written on them."""
    monkeypatch.setattr(resample, "RESAMPLES", 250)
    rng, held, many = np.random.default_rng(12), 0, 40
    for k in range(many):
        p = rng.beta(2, 1.5, size=120)
        true = np.clip(p - shift, 0, 1)
        where = cal.equal_mass_bins(p, cal.bin_count(120))
        ece = float(np.abs(np.bincount(where, p - true)).sum()) / 120
        found = intervals.measure_interval(
            "ece", p, rng.random(120) < true, list(range(120)), seed=k
        )
        held += found.lo <= ece + 1e-12 and ece <= found.hi  # type: ignore[operator]
    assert held >= 0.85 * many


def test_an_ece_of_0_by_luck_is_no_proof_of_calibration() -> None:
    found = intervals.measure_interval("ece", [0.5] * 40, [1, 0] * 20, list(range(40)), seed=0)
    assert found.point == found.lo == 0 and found.hi is not None and 0.1 < found.hi < 0.3


def test_intervals_hold_whole_questions() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(60)
    y = rng.random(60) < p
    once = intervals.measure_interval("brier", p, y, list(range(60)), seed=1)
    thrice = intervals.measure_interval(
        "brier", np.repeat(p, 3), np.repeat(y, 3), [k for k in range(60) for _ in range(3)], seed=1
    )
    assert once.n == thrice.n == 60
    assert (thrice.point, thrice.lo, thrice.hi) == pytest.approx((once.point, once.lo, once.hi))
    apart = intervals.measure_interval(
        "brier", np.repeat(p, 3), np.repeat(y, 3), list(range(180)), seed=1
    )
    assert apart.hi - apart.lo < 0.75 * (once.hi - once.lo)  # type: ignore[operator]  # the width of three times the evidence


@pytest.mark.parametrize("measure", ["brier", "log_loss", "ece", "auroc"])
def test_intervals_hold_their_point_and_do_not_depend_on_the_order_of_rows(measure: str) -> None:
    rng = np.random.default_rng(4)
    p = rng.random(80)
    y = rng.random(80) < p
    groups = [f"q{k // 2}" for k in range(80)]
    found, order = intervals.measure_interval(measure, p, y, groups, seed=2), rng.permutation(80)
    again = intervals.measure_interval(
        measure, p[order], y[order], [groups[k] for k in order], seed=2
    )
    assert (
        found.lo is not None and found.hi is not None and found.lo <= (found.point or 0) <= found.hi
    )
    assert (again.point, again.lo, again.hi) == pytest.approx((found.point, found.lo, found.hi))
    if measure != "log_loss":
        assert found.point == pytest.approx(getattr(cal, measure)(p, y))


def test_brier_interval_is_as_wide_as_the_standard_error_says() -> None:
    rng = np.random.default_rng(5)
    p = rng.random(400)
    y = rng.random(400) < p
    found = intervals.measure_interval("brier", p, y, list(range(400)), seed=0)
    half = 1.959964 * np.std((p - y) ** 2, ddof=1) / 20
    assert (found.hi - found.lo) / 2 == pytest.approx(half, rel=0.1)  # type: ignore[operator]


def test_a_difference_is_paired() -> None:
    rng = np.random.default_rng(6)
    p = rng.random(100)
    y = rng.random(100) < p
    gap = intervals.measure_difference(
        "brier", p, np.clip(p + 0.01, 0, 1), y, list(range(100)), seed=0
    )
    alone = intervals.measure_interval("brier", p, y, list(range(100)), seed=0)
    assert gap.hi - gap.lo < 0.2 * (alone.hi - alone.lo)  # type: ignore[operator]
    assert intervals.measure_difference("auroc", p, p, y, list(range(100)), seed=0).point == 0
    swapped = intervals.measure_difference(
        "brier", np.clip(p + 0.01, 0, 1), p, y, list(range(100)), seed=0
    )
    assert (swapped.lo, swapped.point, swapped.hi) == pytest.approx((-gap.hi, -gap.point, -gap.lo))  # type: ignore[operator]


def test_what_does_not_exist_is_none_with_its_reason() -> None:
    one = intervals.measure_interval("auroc", [0.2, 0.4, 0.6], [1, 1, 1], ["a", "b", "c"], seed=0)
    assert one.point is None and "one class" in (one.reason or "")
    few = intervals.measure_interval("brier", [0.2, 0.4, 0.6], [1, 0, 1], ["a", "a", "b"], seed=0)
    assert few.point is not None and few.lo is None and "5 questions" in (few.reason or "")
    assert (
        intervals.measure_difference(
            "auroc", [0.2, 0.4], [0.1, 0.4], [1, 1], ["a", "b"], seed=0
        ).point
        is None
    )


@pytest.mark.parametrize(
    ("p", "y"),
    [
        ([], []),
        ([0.1], [0, 1]),
        ([1.2], [1]),
        ([float("nan")], [1]),
        ([0.5], [0.5]),
        ([[0.5]], [[1]]),
    ],
)
def test_wrong_input_is_refused(p: list[float], y: list[float]) -> None:
    with pytest.raises(ValueError, match="targets? |predictions"):
        cal.brier(p, y)
