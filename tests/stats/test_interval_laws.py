"""What holds of every interval on any data: bounds hold their point, what is missing has a reason,
nothing is NaN."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from cotlab.stats.agreement import cohen_kappa, percent_agreement
from cotlab.stats.correlation import spearman
from cotlab.stats.intervals import Interval, log_ratio_interval, t_interval, wilson
from cotlab.stats.paired import cohen_dz, paired_bootstrap
from cotlab.stats.paired_rates import mcnemar
from cotlab.stats.resample import bootstrap_mean, bootstrap_ratio, cluster_bootstrap

LEVEL = st.sampled_from([0.5, 0.8, 0.95, 0.99])
WIDE = st.floats(-1.7e308, 1.7e308)
PLAIN = st.floats(-1e6, 1e6, allow_subnormal=False)
CONSTANT = st.builds(
    lambda value, n: [value] * n,
    st.sampled_from([0.0, 1.0, 0.3, -2.5, 1e-12, 1e12]),
    st.integers(1, 30),
)
FEW = st.lists(st.sampled_from([0.0, 0.1, 0.1 + 0.2, 0.3, 1.0, -1.0]), max_size=30)
VALUES = CONSTANT | FEW | st.lists(PLAIN, max_size=30)
RATIOS = st.lists(st.none() | st.just(0.0) | st.floats(0, 1.7e308), max_size=30) | CONSTANT.map(
    lambda v: [abs(x) for x in v]
)
COUNT = st.integers(0, 60)
MANY = settings(max_examples=150, deadline=None)
SOME = settings(max_examples=25, deadline=None)


def holds(found: Interval, least: float = -math.inf, most: float = math.inf) -> None:
    known = [part for part in (found.lo, found.point, found.hi) if part is not None]
    assert all(map(math.isfinite, known)) and known == sorted(known)
    assert (found.lo is None) == (found.hi is None) and (found.lo is None) == (
        found.reason is not None
    )
    assert found.point is not None or found.lo is None
    assert all(least <= part <= most for part in known) and found.n >= 0


@MANY
@given(VALUES | st.lists(WIDE, max_size=12), LEVEL)
def test_means(values: list[float], level: float) -> None:
    found = t_interval(values, level=level)
    holds(found)
    if found.point is not None:
        assert (
            min(values) - 1e-6 * abs(min(values))
            <= found.point
            <= max(values) + 1e-6 * abs(max(values))
        )


@MANY
@given(RATIOS, LEVEL)
def test_ratios(ratios: Sequence[float | None], level: float) -> None:
    found = log_ratio_interval(ratios, level=level)
    holds(found, 0.0)
    assert found.n == sum(ratio is not None and ratio > 0 for ratio in ratios)
    assert (found.note is not None) == (found.n < len(ratios))


@MANY
@given(st.integers(1, 10**6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), LEVEL)
def test_rates(case: tuple[int, int], level: float) -> None:
    holds(wilson(*case, level=level), 0.0, 1.0)


@SOME
@given(VALUES, st.integers(1, 9), st.booleans())
def test_bootstraps(values: list[float], size: int, paired: bool) -> None:
    clusters = [k // size for k in range(len(values))]
    holds(bootstrap_mean(values, seed=1))
    holds(bootstrap_ratio(values, [float(k % 3) for k in range(len(values))], seed=1))
    found = (
        paired_bootstrap([0.0] * len(values), values, clusters, seed=1)
        if paired
        else cluster_bootstrap(values, clusters, seed=1)
    )
    holds(found)
    assert found.n == len(set(clusters))


@MANY
@given(COUNT, COUNT, COUNT, COUNT, LEVEL)
def test_pairs_of_yes_and_no(
    both: int, first_only: int, second_only: int, neither: int, level: float
) -> None:
    first = [1] * (both + first_only) + [0] * (second_only + neither)
    second = [1] * both + [0] * first_only + [1] * second_only + [0] * neither
    found = mcnemar(first, second)
    assert (found.p is None) == (not first) and (found.p is None or 0 < found.p <= 1)
    holds(found.difference, -1.0, 1.0)
    holds(cohen_kappa(first, second, level=level), -1.0, 1.0)
    holds(percent_agreement(first, second, level=level), 0.0, 1.0)


PAIRS = VALUES.flatmap(
    lambda v: st.tuples(st.just(v), st.lists(PLAIN, min_size=len(v), max_size=len(v)) | st.just(v))
)


@MANY
@given(PAIRS)
def test_pairs_of_numbers(pair: tuple[list[float], list[float]]) -> None:
    effect = cohen_dz(*pair)
    assert effect is None or math.isfinite(effect)
    holds(spearman(*pair), -1.0, 1.0)
