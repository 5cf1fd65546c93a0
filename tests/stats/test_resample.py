"""Bootstrap and permutation: known cases, scipy's own numbers, invariants on any data, coverage by
simulation, and time and memory linear in n."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from cotlab.stats import resample
from cotlab.stats.intervals import Interval
from cotlab.stats.resample import (
    RESAMPLES,
    Floats,
    GroupResamples,
    bootstrap_mean,
    bootstrap_ratio,
    cluster_bootstrap,
    jackknife_ratio,
    paired_permutation,
    percentile_interval,
    row_blocks,
)


def in_order(found: Interval) -> bool:
    assert found.point is not None and found.lo is not None and found.hi is not None
    return found.lo <= found.point <= found.hi


# --- bootstrap


def test_equal_values_have_no_spread() -> None:
    found = bootstrap_mean([0.3] * 7, seed=1)
    assert (found.point, found.lo, found.hi) == (pytest.approx(0.3), None, None)
    assert (found.n, found.method) == (7, "none")
    assert found.reason == "all 7 values are equal: a resample has no spread to show"
    zeros = bootstrap_mean(
        [0.0] * 7, seed=1
    )  # not a rate: nothing says that the next one is 0 or 1
    assert (zeros.point, zeros.lo, zeros.hi, zeros.method) == (0.0, None, None, "none")


def test_rates_that_all_agree_get_wilson_and_equal_shares_between_do_not() -> None:
    none = bootstrap_mean([0.0] * 7, seed=1, share=True)
    every = bootstrap_mean([1.0] * 7, seed=1, share=True)
    assert (none.point, none.lo, none.method) == (0.0, 0.0, "Wilson (all units equal)")
    assert none.hi == pytest.approx(0.35433, abs=1e-5)  # z^2 / (7 + z^2), z = 1.959964
    assert (every.lo, every.hi) == (pytest.approx(0.64567, abs=1e-5), 1.0)
    assert bootstrap_mean([0.5] * 7, seed=1, share=True).lo is None


def test_no_value_and_one_value() -> None:
    none, one = bootstrap_mean([], seed=1), bootstrap_mean([0.7], seed=1)
    assert (none.point, none.n, none.method, none.reason) == (None, 0, "none", "no defined value")
    assert (one.point, one.lo, one.n, one.reason) == (0.7, None, 1, "one unit has no spread")


@pytest.mark.parametrize(
    ("tops", "bottoms"),
    [([1], [1, 2]), ([math.nan, 1], [1, 1]), ([1, 1], [1, math.inf]), ([1, 1], [1, -1])],
)
def test_what_is_no_ratio(tops: Sequence[float], bottoms: Sequence[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        bootstrap_ratio(tops, bottoms, seed=1)


def test_a_ratio_pools_and_leaves_out_units_without_a_denominator() -> None:
    """(3 + 0 + 0) / (4 + 1 + 0) = .6 over the two units that have steps."""
    found = bootstrap_ratio([3, 0, 0], [4, 1, 0], seed=1)
    assert (found.point, found.n, found.lo) == (0.6, 2, None)
    more = bootstrap_ratio([3, 0, 0] * 3, [4, 1, 0] * 3, seed=1)
    assert (more.point, more.n) == (0.6, 6) and in_order(more)
    assert bootstrap_ratio([0, 0], [0, 0], seed=1).point is None


def test_the_seed_alone_decides() -> None:
    values = [0.1, 0.9, 0.4, 0.4, 1.0, 0.0, 0.3]
    assert bootstrap_mean(values, seed=5) == bootstrap_mean(values, seed=5)
    assert bootstrap_mean(values, seed=5) != bootstrap_mean(values, seed=6)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [0.1, 0.9, 0.4, 0.4, 1.0, 0.0, 0.3]
    whole, p = bootstrap_mean(values, seed=5), paired_permutation(values * 3, [0.2] * 21, seed=5)
    monkeypatch.setattr(resample, "_BLOCK_CELLS", 70)
    resample._kept_counts.cache_clear()
    assert bootstrap_mean(values, seed=5) == whole
    assert paired_permutation(values * 3, [0.2] * 21, seed=5) == p
    for rows, columns in ((7, 1), (2000, 300_000), (3, 10_000_000), (1, 0)):
        assert [row for block in row_blocks(rows, columns) for row in range(rows)[block]] == list(
            range(rows)
        )


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.integers(0, 6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
        min_size=1,
        max_size=25,
    )
)
def test_a_pooled_share_stays_a_share(units: list[tuple[int, int]]) -> None:
    found = bootstrap_ratio([low for low, _ in units], [n for _, n in units], seed=3)
    if found.lo is not None and found.hi is not None:
        assert in_order(found) and found.lo >= 0 and found.hi <= 1
    else:
        assert found.reason


def test_the_method_that_was_used_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """An ordinary sample gets BCa; where BCa gives no number the percentile bootstrap stands in
    under its own name."""
    values = [0.1, 0.5, 0.9, 0.3, 0.7]
    assert bootstrap_mean(values, seed=1).method == "bootstrap (BCa, 2000 resamples)"
    monkeypatch.setattr(resample, "_bca_quantiles", lambda *given: np.array([math.nan] * 2))
    found = bootstrap_mean(values, seed=1)
    assert found.method == "bootstrap (percentile, 2000 resamples)" and in_order(found)


def test_coverage_of_the_mean_of_skewed_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """200 samples of 40 exponential values: the 95 % interval holds the true mean 1 in about 93 %
    of them."""
    monkeypatch.setattr(resample, "RESAMPLES", 500)
    rng = np.random.default_rng(7)
    held = 0
    for k in range(200):
        found = bootstrap_mean(rng.exponential(1.0, 40).tolist(), seed=k)
        held += found.lo <= 1.0 <= found.hi  # type: ignore[operator]
    assert 0.88 <= held / 200 <= 0.99


# --- few units, and clusters


@pytest.mark.parametrize("n", [2, 3, 4])
def test_below_five_units_there_are_points_and_no_bounds(n: int) -> None:
    values = [0.1, 0.5, 0.9, 0.3, 0.7]
    few = bootstrap_mean(values[:n], seed=1)
    assert (few.point, few.lo, few.method) == (pytest.approx(sum(values[:n]) / n), None, "none")
    assert few.reason == f"an interval needs 5 values, here are {n}"
    assert in_order(bootstrap_mean(values, seed=1)) and in_order(
        bootstrap_mean(values[:n], seed=1, min_units=2)
    )
    assert bootstrap_mean([1.0] * n, seed=1, share=True).lo == pytest.approx(
        n / (n + 3.841459), abs=1e-6
    )  # Wilson's


def test_clusters_are_resampled_whole() -> None:
    """Ten prompts with two values each, 0 and 1: every resample has as many of both, so the
    clusters show no spread."""
    prompts = [f"p{k}" for k in range(10) for _ in range(2)]
    found = cluster_bootstrap([0.0, 1.0] * 10, prompts, seed=1)
    assert (
        (found.point, found.lo, found.n) == (0.5, None, 10)
        and found.reason
        and "all 10 values are equal" in found.reason
    )
    assert in_order(bootstrap_mean([0.0, 1.0] * 10, seed=1))


def test_the_mean_of_clusters_is_over_values() -> None:
    """(1 + 1 + 1 + 0 + 0 + 0 + 1) / 7, where the mean of the five clusters' means would be (1 + 0 +
    0 + 0 + 1) / 5."""
    values, names = [1.0, 1, 1, 0, 0, 0, 1], ["a", "a", "a", "b", "c", "d", "e"]
    found = cluster_bootstrap(values, names, seed=1)
    assert (found.point, found.n, found.note) == (
        pytest.approx(4 / 7),
        5,
        "7 values in 5 clusters, resampled whole",
    )
    assert in_order(found)
    mixed = [(names[k], values[k]) for k in (6, 0, 4, 2, 3, 5, 1)]
    assert cluster_bootstrap([v for _, v in mixed], [c for c, _ in mixed], seed=1) == found


def test_clusters_of_one_are_no_clusters() -> None:
    values = [0.1, 0.9, 0.4, 0.45, 1.0, 0.0, 0.3]
    found = cluster_bootstrap(values, list("abcdefg"), seed=5)
    assert found == bootstrap_mean(values, seed=5) and found.note is None


def test_clusters_that_are_too_few_too_many_or_not_finite() -> None:
    few = cluster_bootstrap([0.1, 0.2, 0.3, 0.4, 0.5, 0.9], [1, 1, 2, 2, 3, 4], seed=1)
    assert (few.point, few.lo, few.reason) == (
        pytest.approx(0.4),
        None,
        "an interval needs 5 values, here are 4",
    )
    assert cluster_bootstrap([], [], seed=1).reason == "no defined value"
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        cluster_bootstrap([1.0, 2.0], [1], seed=1)
    with pytest.raises(ValueError, match="finite"):
        cluster_bootstrap([1.0, math.inf], [1, 1], seed=1)


# --- permutation


def scipys_p(first: Sequence[float], second: Sequence[float]) -> float:
    """The exact p-value over all signings."""
    return float(
        stats.permutation_test(
            (np.array(first), np.array(second)),
            lambda a, b, axis=-1: (a - b).mean(axis=axis),
            permutation_type="samples",
            n_resamples=np.inf,
        ).pvalue
    )


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([1, 1, 1], [0, 0, 0], 0.25),  # one of 8 signings is as large: 2 · 1/8
        ([1] * 8, [0] * 8, 2 / 256),
        ([1, 0], [0, 1], 1.0),  # +1 and -1 cancel
        ([3, 1], [0, 0], 0.5),  # sums 4, 2, -2, -4: one of 4 is as large
    ],
)
def test_permutation_by_hand(
    first: Sequence[float], second: Sequence[float], expected: float
) -> None:
    assert paired_permutation(first, second, seed=1) == pytest.approx(expected)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=8))
def test_permutation_is_exact_for_few_pairs(pairs: list[tuple[int, int]]) -> None:
    first, second = ([pair[side] / 4 for pair in pairs] for side in (0, 1))
    found = paired_permutation(first, second, seed=1)
    assert found == pytest.approx(scipys_p(first, second))
    assert found == pytest.approx(paired_permutation(second, first, seed=1))


def test_many_pairs_are_sampled() -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 1, 200)
    clear = paired_permutation((noise + 0.5).tolist(), [0.0] * 200, seed=1)
    none = paired_permutation(noise.tolist(), (-noise).tolist()[::-1], seed=1)
    assert clear is not None and none is not None and clear <= 2 / 2001 + 1e-9 < 0.05 < none
    assert paired_permutation(noise.tolist(), [0.0] * 200, seed=1) == paired_permutation(
        noise.tolist(), [0.0] * 200, seed=1
    )


def test_too_few_pairs_equal_pairs_and_unequal_lengths() -> None:
    assert paired_permutation([], [], seed=1) is None
    assert paired_permutation([1], [0], seed=1) is None
    assert paired_permutation([0.2, 0.4], [0.2, 0.4], seed=1) == 1.0
    with pytest.raises(ValueError, match="same length"):
        paired_permutation([1, 2], [1], seed=1)
    with pytest.raises(ValueError, match="finite"):
        paired_permutation([1, math.nan], [1, 2], seed=1)


def test_a_small_difference_between_large_values_is_a_difference() -> None:
    large = [100_000.0] * 8
    assert paired_permutation([v + 0.5 for v in large], large, seed=1) == pytest.approx(2 / 256)


def test_values_too_large_for_the_sums_are_undefined() -> None:
    for values in ([1e308, 1.1e308, 1e308, 1e308, 1e308], [1e308, -1e308, 1.2e308, -1e308, 1e307]):
        found = bootstrap_mean(values, seed=1)
        assert (found.point, found.lo, found.n) == (None, None, 5)
        assert "too large" in (found.reason or "")
    assert in_order(bootstrap_mean([1e99, 2e99, 3e99, 1e99, 5e99], seed=1))


LATTICES = st.integers(1, 12).flatmap(
    lambda k: st.lists(st.integers(0, k).map(lambda j: j / k), min_size=5, max_size=40)
)


@settings(max_examples=25, deadline=None)
@given(LATTICES, st.integers(0, 3))
def test_the_interval_of_a_complement_is_mirrored(values: list[float], seed: int) -> None:
    share = bootstrap_mean(values, seed=seed, share=True)
    rest = bootstrap_mean([1 - value for value in values], seed=seed, share=True)
    assert share.method == rest.method
    if share.lo is None or share.hi is None:
        assert rest.lo is None
        return
    assert rest.lo == pytest.approx(1 - share.hi, abs=1e-9)
    assert rest.hi == pytest.approx(1 - share.lo, abs=1e-9)
    assert 0 <= share.lo <= share.hi <= 1


def test_ties_of_thirds_count_as_ties() -> None:
    thirds = [0.0] * 19 + [1 / 3] * 12 + [2 / 3] * 14 + [1.0] * 15
    whole = bootstrap_mean([round(3 * value) for value in thirds], seed=3)  # exact sums
    found = bootstrap_mean(thirds, seed=3)
    assert whole.lo is not None and whole.hi is not None
    assert (found.lo, found.hi) == pytest.approx((whole.lo / 3, whole.hi / 3), abs=1e-9)


# --- scipy's numbers, groups, and large samples


def scipys(top: Floats, bottom: Floats, seed: int) -> tuple[float, float]:
    found = stats.bootstrap(
        (top, bottom),
        lambda a, b, axis=-1: a.sum(axis=axis) / b.sum(axis=axis),
        paired=True,
        vectorized=True,
        n_resamples=RESAMPLES,
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return float(found.low), float(found.high)


@pytest.mark.parametrize("n", [30, 700])
@pytest.mark.parametrize("kind", ["mean", "weighted", "skewed", "eighths"])
def test_bounds_are_scipys(n: int, kind: str) -> None:
    """To rounding. Of eighths the sums are exact: of sevenths scipy counts resamples at the point
    as below or above it by the rounding of their sums."""
    rng = np.random.default_rng(n)
    top = rng.exponential(2.0, n) if kind == "skewed" else rng.normal(3.0, 1.0, n)
    top = np.arange(n) % 8 / 8 if kind == "eighths" else top
    bottom = rng.integers(1, 9, n).astype(float) if kind == "weighted" else np.ones(n)
    found = bootstrap_ratio(top.tolist(), bottom.tolist(), seed=5)
    assert found.method == f"bootstrap (BCa, {RESAMPLES} resamples)"
    assert (found.lo, found.hi) == pytest.approx(scipys(top, bottom, 5), rel=1e-9)


def test_the_jackknife_by_hand() -> None:
    """Means of 1, 2, 6 without each: 8/2, 7/2, 3/2. Ratios of (1, 2, 6) to (1, 1, 2): 8/3, 7/3,
    3/2. Of one unit nothing is left."""
    assert jackknife_ratio(np.array([1.0, 2, 6]), np.ones(3)).tolist() == [4, 3.5, 1.5]
    ratios = jackknife_ratio(np.array([1.0, 2, 6]), np.array([1.0, 1, 2]))
    assert ratios == pytest.approx([8 / 3, 7 / 3, 1.5])
    assert not np.isfinite(jackknife_ratio(np.array([1.0]), np.array([1.0]))).any()


def test_any_measure_of_rows_is_resampled_by_group() -> None:
    """Row 0 of the values is the sample; in the others the rows of a group weigh alike."""
    groups = ["b", "a", "b", "c", "a"]
    weights = GroupResamples.of(groups, seed=2).values(lambda weights: weights)
    assert weights.shape == (1 + RESAMPLES, 5) and (weights[0] == 1).all()
    assert (weights[:, 0] == weights[:, 2]).all() and (weights[:, 1] == weights[:, 4]).all()
    assert (weights[:, [1, 0, 3]].sum(axis=1) == 3).all()
    draws = np.random.default_rng(2).integers(0, 3, (RESAMPLES, 3))
    assert (weights[1:, 3] == (draws == 2).sum(axis=1)).all()


def test_resamples_without_a_value_are_counted_and_too_many_refused() -> None:
    values = np.r_[0.5, np.full(5, np.nan), np.linspace(0, 1, 95)]
    found = percentile_interval(values, 9, over="items", undefined="hold one label")
    assert in_order(found) and found.note == "5 of 100 resamples hold one label and are left out"
    values[6] = np.nan
    refused = percentile_interval(values, 9)
    assert (refused.point, refused.lo, refused.reason) == (
        0.5,
        None,
        "6 of 100 resamples hold one class",
    )


def test_a_weight_that_outweighs_all_others_has_percentile_bounds() -> None:
    """Without the heavy unit only rounding is left of the sum of weights: no acceleration."""
    bottom = np.r_[1e300, np.full(500, 1e-300)]
    found = bootstrap_ratio(np.r_[1e90, np.ones(500)].tolist(), bottom.tolist(), seed=1)
    assert in_order(found) and "percentile" in found.method


def test_sign_flips_of_repeated_differences_agree_with_a_binomial() -> None:
    """400 differences of ±1, 215 of them +1: the sign test, whose p of .147 2,000 flips know to
    about .016; scipy's flips know no more."""
    first = np.repeat([1.0, -1.0], [215, 185]).tolist()
    exact = stats.binomtest(215, 400).pvalue
    assert paired_permutation(first, [0.0] * 400, seed=1) == pytest.approx(exact, abs=0.04)
    assert paired_permutation([1e308, -1e308] * 300, [-1e308, 1e308] * 300, seed=1) == 1.0


@pytest.mark.parametrize("kind", ["distinct", "repeated", "clustered"])
def test_a_large_sample_has_the_interval_of_its_standard_error(kind: str) -> None:
    """Of 40,000 values: the normal interval, mean ± 1.96 standard errors, to a tenth of the half
    width; scipy's jackknife alone would be 40,000 x 40,000."""
    rng = np.random.default_rng(4)
    n = 40_000
    values = rng.random(n) if kind != "repeated" else rng.integers(0, 5, n) / 4
    if kind == "clustered":
        names = np.arange(n) // 4
        found = cluster_bootstrap(values.tolist(), names.tolist(), seed=1)
        se = values.reshape(-1, 4).mean(axis=1).std(ddof=1) / math.sqrt(n / 4)
        assert found.n == n / 4
    else:
        found = bootstrap_mean(values.tolist(), seed=1)
        se = values.std(ddof=1) / math.sqrt(n)
        assert found.n == n
    assert found.method == "bootstrap (BCa, 2000 resamples)"
    expected = [values.mean() - 1.96 * se, values.mean() + 1.96 * se]
    assert [found.lo, found.hi] == pytest.approx(expected, abs=0.2 * se)


def test_memory_stays_small_at_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """200 resamples of 50,000 values are 10^7 draws, 80 MB at once; a block is 2 MB."""
    monkeypatch.setattr(resample, "RESAMPLES", 200)
    values = np.random.default_rng(0).random(50_000).tolist()
    tracemalloc.start()
    try:
        bootstrap_mean(values, seed=1)
        paired_permutation(values, values[::-1], seed=1)
        assert tracemalloc.get_traced_memory()[1] < 40e6
    finally:
        tracemalloc.stop()
