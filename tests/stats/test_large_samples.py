"""Resampling of large samples: scipy's own numbers where the draws are the same, and time linear in
n by construction (no array larger than a block)."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from scipy import stats

from cotlab.stats import large_samples, resample
from cotlab.stats.large_samples import jackknife_ratio, ratio_bounds, row_blocks, sign_flip_p
from cotlab.stats.resample import (
    MAX_SCIPY_UNITS,
    bootstrap_mean,
    bootstrap_ratio,
    cluster_bootstrap,
    paired_permutation,
)

Floats = large_samples.Floats


def scipys(
    top: Floats, bottom: Floats, method: str, seed: int, n_resamples: int = 1000
) -> tuple[float, float]:
    found = stats.bootstrap(
        (top, bottom),
        lambda a, b, axis=-1: a.sum(axis=axis) / b.sum(axis=axis),
        paired=True,
        vectorized=True,
        n_resamples=n_resamples,
        method=method,
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return float(found.low), float(found.high)


@pytest.mark.parametrize("n", [30, 700])
@pytest.mark.parametrize("kind", ["mean", "weighted", "skewed"])
def test_distinct_values_give_scipys_bounds(n: int, kind: str) -> None:
    rng = np.random.default_rng(n)
    top = rng.exponential(2.0, n) if kind == "skewed" else rng.normal(3.0, 1.0, n)
    bottom = rng.integers(1, 9, n).astype(float) if kind == "weighted" else np.ones(n)
    found = ratio_bounds(top, bottom, seed=5, level=0.95, n_resamples=1000)
    assert found.method == "BCa"
    assert found[:2] == pytest.approx(scipys(top, bottom, "BCa", 5), rel=1e-12)


def test_repeated_values_give_scipys_bounds_within_the_error_of_resampling() -> None:
    """The bounds of 3,000 shares of eighths, of sd about .33: a standard error of .006, whose
    quantiles 1,000 draws know to about .0004; and of a rate over clusters of 1 to 4."""
    rng = np.random.default_rng(2)
    top = rng.integers(0, 9, 3000) / 8
    ones = np.ones(3000)
    found = ratio_bounds(top, ones, seed=5, level=0.95, n_resamples=20_000)
    assert found[:2] == pytest.approx(scipys(top, ones, "BCa", 5), abs=0.0015)
    sizes = rng.integers(1, 5, 3000).astype(float)
    hits = rng.binomial(sizes.astype(int), 0.3).astype(float)
    found = ratio_bounds(hits, sizes, seed=5, level=0.95, n_resamples=20_000)
    assert found[:2] == pytest.approx(scipys(hits, sizes, "BCa", 5), abs=0.0015)


def test_the_jackknife_by_hand() -> None:
    """Means of 1, 2, 6 without each: 8/2, 7/2, 3/2. Ratios of (1, 2, 6) to (1, 1, 2): 8/3, 7/3,
    3/2. Of one unit nothing is left."""
    assert jackknife_ratio(np.array([1.0, 2, 6]), np.ones(3)).tolist() == [4, 3.5, 1.5]
    ratios = jackknife_ratio(np.array([1.0, 2, 6]), np.array([1.0, 1, 2]))
    assert ratios == pytest.approx([8 / 3, 7 / 3, 1.5])
    assert not np.isfinite(jackknife_ratio(np.array([1.0]), np.array([1.0]))).any()


def test_percentile_stands_in_where_bca_has_no_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_samples, "_bca_levels", lambda *given: (math.nan, math.nan))
    top = np.random.default_rng(0).normal(size=300)
    found = ratio_bounds(top, np.ones(300), seed=1, level=0.9, n_resamples=1000)
    assert found.method == "percentile" and found.lo < top.mean() < found.hi


def test_a_weight_that_outweighs_all_others_has_percentile_bounds() -> None:
    """Without the heavy unit only rounding is left of the sum of weights: no acceleration."""
    bottom = np.r_[1e300, np.full(MAX_SCIPY_UNITS, 1e-300)]
    found = bootstrap_ratio(np.r_[1e90, np.ones(MAX_SCIPY_UNITS)].tolist(), bottom.tolist(), seed=1)
    assert found.point is not None and found.lo is not None and found.hi is not None
    assert found.lo <= found.point <= found.hi and "percentile" in found.method


def test_sign_flips_of_distinct_differences_are_exact_in_the_limit() -> None:
    """Nine differences: 10,000 flips come near the p-value over all 512 signings."""
    differences = np.array([1.0, -2, 3.5, 4, -5.5, 6, 7, 8, 9])
    exact = stats.permutation_test(
        (differences, np.zeros(9)),
        lambda a, b, axis=-1: (a - b).mean(axis=axis),
        permutation_type="samples",
        n_resamples=np.inf,
    ).pvalue
    assert sign_flip_p(differences, seed=1, n_resamples=10_000) == pytest.approx(exact, abs=0.01)


def test_sign_flips_of_repeated_differences_agree_with_a_binomial() -> None:
    """400 differences of ±1, 230 of them +1: the sign test. Binomial tail P(X >= 230) = .0015."""
    differences = np.repeat([1.0, -1.0], [230, 170])
    exact = stats.binomtest(230, 400).pvalue
    assert sign_flip_p(differences, seed=1, n_resamples=200_000) == pytest.approx(exact, abs=4e-4)
    assert sign_flip_p(np.repeat([1.0, -1.0], 200), seed=1, n_resamples=999) == 1.0


def test_samples_up_to_the_bound_keep_scipys_numbers() -> None:
    """To rounding, for eighths, whose sums are exact: of sevenths scipy counts resamples at the
    point as below or above it by the rounding of their sums."""
    values = np.arange(500) % 8 / 8
    found = bootstrap_mean(values.tolist(), seed=3)
    bounds = scipys(values, np.ones(500), "BCa", 3, resample.RESAMPLES)
    assert (found.lo, found.hi) == pytest.approx(bounds, rel=1e-12)


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


def test_memory_does_not_grow_with_the_resamples_times_n() -> None:
    """50,000 values in 2,000 resamples are 10^8 draws, 800 MB at once; a block is 8 MB."""
    values = np.random.default_rng(0).random(50_000)
    shifted = values + 0.001 * np.random.default_rng(1).normal(size=50_000)
    tracemalloc.start()
    try:
        bootstrap_mean(values.tolist(), seed=1)
        p = paired_permutation(values.tolist(), shifted.tolist(), seed=1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert p is not None and 0 < p <= 1
    assert peak < 80e6


def test_large_pairs_beyond_floating_point_sums_have_a_p_value() -> None:
    first = [1e308, -1e308] * (MAX_SCIPY_UNITS // 2 + 1)
    p = paired_permutation(first, [-v for v in first], seed=1)
    assert p == 1.0


def test_blocks_cover_every_row_once() -> None:
    for rows, columns in ((7, 1), (2000, 300_000), (3, 10_000_000), (1, 0)):
        seen = [row for block in row_blocks(rows, columns) for row in range(rows)[block]]
        assert seen == list(range(rows))


@pytest.mark.parametrize("kind", ["distinct", "eighths"])
def test_own_resamples_give_bounds_within_a_tenth_of_the_width(kind: str) -> None:
    """100 samples of each kind: 2,000 own draws against 2,000 others by scipy. The error of one
    bound is about 1.5 % of the width, so a tenth is five times that of their difference."""
    rng = np.random.default_rng(41)
    for k in range(100):
        values = rng.exponential(1.0, 80)
        if kind == "eighths":
            values = rng.integers(0, 5, 80) / 4
        ones = np.ones(80)
        found = ratio_bounds(values, ones, seed=k, level=0.95, n_resamples=2000)
        lo, hi = scipys(values, ones, "BCa", 1000 + k, 2000)
        assert found.method == "BCa"
        assert max(abs(found.lo - lo), abs(found.hi - hi)) <= 0.1 * (hi - lo)
