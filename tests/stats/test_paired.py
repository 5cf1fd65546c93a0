"""Paired tests, differences and effect sizes against published examples and arithmetic by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from cotlab.stats.paired import cohen_dz, paired_bootstrap, wilcoxon
from cotlab.stats.paired_rates import mcnemar, risk_difference
from cotlab.stats.resample import bootstrap_mean

# Fagerland, Lydersen and Laake (2013), BMC Med. Res. Methodol. 13:91, airway hyper-responsiveness
# in 21 children before and
# after a transplant: 1 in both, 1 before only, 7 after only, 12 in neither
AIRWAY = (1, 1, 7, 12)
SLEEP = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]  # R's `sleep`, second minus first
# R, ?wilcox.test: Hollander and Wolfe (1973), 29f, depression at the first and the second visit
FIRST = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
SECOND = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]


def pairs(
    both: int, first_only: int, second_only: int, neither: int
) -> tuple[list[int], list[int]]:
    first = [1] * (both + first_only) + [0] * (second_only + neither)
    return first, [1] * both + [0] * first_only + [1] * second_only + [0] * neither


# --- McNemar
# ------------------------------------------------------------------------------------------


def test_mcnemar() -> None:
    """Exact: 2 · (1 + 8) / 2^8 = .0703125, R binom.test(1, 8)."""
    exact = mcnemar(*pairs(*AIRWAY))
    assert (exact.p, exact.method) == (pytest.approx(0.0703125), "McNemar, exact")
    assert (exact.both, exact.first_only, exact.second_only, exact.neither, exact.n) == (
        *AIRWAY,
        21,
    )


def test_swapping_the_two_turns_everything_round() -> None:
    one, other = mcnemar(*pairs(3, 2, 9, 6)), mcnemar(*reversed(pairs(3, 2, 9, 6)))
    assert one.p == other.p and one.difference.point == -other.difference.point  # type: ignore[operator]
    assert (one.difference.lo, one.difference.hi) == pytest.approx(
        (-other.difference.hi, -other.difference.lo)
    )  # type: ignore[operator]


def test_no_pair_and_no_pair_that_differs() -> None:
    none = mcnemar([], [])
    assert (none.n, none.p, none.reason, none.difference.point) == (0, None, "no pair", None)
    same = mcnemar([1, 0, 1], [1, 0, 1])
    assert (same.p, same.reason) == (1.0, None)
    assert same.difference.point == 0 and same.difference.lo < 0 < same.difference.hi  # type: ignore[operator]


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [([1, 0], [1], "same length"), ([1, math.nan], [1, 0], "finite"), ([0.5, 1], [0, 1], "0 or 1")],
)
def test_what_is_no_pair(first: Sequence[float], second: Sequence[float], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        mcnemar(first, second)


@pytest.mark.parametrize(
    ("cells", "lo", "hi"),
    [
        # Newcombe (1998), Statistics in Medicine 17:2635, method 10 of 36, 12, 2, 0: first minus
        # second (.0569, .3404)
        ((36, 12, 2, 0), -0.3404, -0.0569),
        (
            AIRWAY,
            0.026,
            0.507,
        ),  # Fagerland et al. (2013), Newcombe's interval, before minus after: (-.507, -.026)
    ],
)
def test_risk_difference(cells: tuple[int, int, int, int], lo: float, hi: float) -> None:
    found = risk_difference(*cells)
    assert (found.lo, found.hi) == pytest.approx((lo, hi), abs=5e-4 if cells is AIRWAY else 5e-5)
    assert found.point == pytest.approx((cells[2] - cells[1]) / sum(cells))


# --- Wilcoxon
# -----------------------------------------------------------------------------------------


def test_wilcoxon_exact() -> None:
    """R: wilcox.test(x, y, paired = TRUE, alternative = "greater"): V = 40, p = 0.01953 = 10/512;
    both sides 20/512."""
    found = wilcoxon(FIRST, SECOND)
    assert (found.statistic, found.p, found.zeros) == (5, pytest.approx(20 / 512), 0)  # 45 - 40
    assert (
        found.rank_biserial == pytest.approx((5 - 40) / 45)
        and found.method == "Wilcoxon signed-rank, exact"
    )
    assert wilcoxon(SECOND, FIRST).rank_biserial == pytest.approx((40 - 5) / 45)


def test_wilcoxon_with_ties_and_a_zero_counts_all_signings() -> None:
    """Nine differ and all nine rise: 2 of 2^9 signings are as extreme; the one zero is named."""
    found = wilcoxon([0.0] * 10, SLEEP)
    assert (found.n, found.zeros, found.p, found.rank_biserial) == (
        10,
        1,
        pytest.approx(2 / 512),
        1,
    )
    assert (
        found.method
        == "Wilcoxon signed-rank, exact, over all signings; 1 of 10 pairs do not differ and are"
        " left out"
    )


def test_wilcoxon_of_many_tied_pairs_is_normal() -> None:
    """20 times 1 and 10 times -1: all ranks 15.5; z = (310 - 232.5) / sqrt(30 · 15.5² / 4) =
    1.825742."""
    found = wilcoxon([0.0] * 30, [1.0] * 20 + [-1.0] * 10)
    assert (found.statistic, found.method) == (155, "Wilcoxon signed-rank, normal approximation")
    assert found.p == pytest.approx(math.erfc(1.825742 / math.sqrt(2)), rel=1e-5)
    assert found.rank_biserial == pytest.approx(1 / 3)


def test_what_only_rounding_tells_apart_is_tied() -> None:
    found = wilcoxon([0.3, 0.0, 0.0, 0.0], [0.1 + 0.2, 0.1 + 0.2, 0.3, 1.0])
    assert found.zeros == 1 and "over all signings" in found.method


@pytest.mark.parametrize(
    ("values", "reason"), [([], "no pair"), ([1.0, 2.0], "no pair differs: 2 of 2 are 0")]
)
def test_wilcoxon_without_a_difference(values: list[float], reason: str) -> None:
    found = wilcoxon(values, values)
    assert (found.p, found.statistic, found.rank_biserial, found.method, found.reason) == (
        None,
        None,
        None,
        "none",
        reason,
    )


# --- differences and effects
# --------------------------------------------------------------------------


def test_cohen_dz() -> None:
    """t = 4.0621 (R, ?sleep) / sqrt(10) = 1.2846, at any scale; 2 / sqrt(2 / 3) by hand."""
    for size in (1, 1e-200, 1e200):
        found = cohen_dz([0.0] * 10, [gap * size for gap in SLEEP])
        assert found == pytest.approx(4.0621 / math.sqrt(10), abs=1e-4)
    assert cohen_dz([0.0] * 4, [1.0, 2.0, 3.0, 2.0]) == pytest.approx(math.sqrt(6))
    assert cohen_dz([0.0], [1.0]) is cohen_dz([0.0] * 6, [2.0] * 6) is None


def test_paired_bootstrap_resamples_differences() -> None:
    first, second = [1.0, 2.0, 4.0, 4.0, 5.0, 7.0], [2.0, 2.5, 4.0, 7.0, 5.5, 6.0]
    found = paired_bootstrap(first, second, seed=3)
    plain = bootstrap_mean([b - a for a, b in zip(first, second, strict=True)], seed=3)
    assert (found.point, found.lo, found.hi) == (plain.point, plain.lo, plain.hi)
    assert found.method == "paired bootstrap (BCa, 2000 resamples)"
    assert (
        paired_bootstrap(first[:4], second[:4], seed=3).reason
        == "an interval needs 5 values, here are 4"
    )


def test_repeated_prompts_are_resampled_together() -> None:
    """Each prompt stands three times with the same difference: n is the prompts, the interval
    theirs, not one of 24 pairs."""
    gaps = np.random.default_rng(4).normal(1, 1, 8)
    first = [0.0] * 24
    second = np.repeat(gaps, 3).tolist()
    prompts = [k for k in range(8) for _ in range(3)]
    clustered, alone = (paired_bootstrap(first, second, by, seed=1) for by in (prompts, None))
    once = paired_bootstrap([0.0] * 8, gaps.tolist(), seed=1)
    assert (clustered.lo, clustered.hi) == pytest.approx(
        (once.lo, once.hi), abs=0.02
    )  # sums of three round otherwise
    assert (clustered.n, clustered.note) == (8, "24 values in 8 clusters, resampled whole")
    assert clustered.hi - clustered.lo > 1.4 * (alone.hi - alone.lo)  # type: ignore[operator]
