"""Ranking measures equal scikit-learn's; location measures equal the benchmark's definition."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from cotlab.stats.intervals import Interval
from cotlab.stats.ranking import (
    NO_MISTAKE,
    RANK_MEASURES,
    ResampledChains,
    auroc_difference,
    location_difference,
    location_measures,
)

Arrays = tuple[NDArray[np.float64], NDArray[np.bool_], list[int]]


def rank_intervals(
    scores: ArrayLike, is_positive: ArrayLike, groups: Sequence[Hashable], *, seed: int
) -> dict[str, Interval]:
    chains = ResampledChains(np.asarray(is_positive), groups, seed)
    return {"auroc": chains.interval(chains.aurocs(scores)), **chains.rank_intervals(scores)}


def drawn(n: int, seed: int, decimals: int = 1) -> Arrays:
    """Scores with ties, classes, and the questions of two chains each."""
    rng = np.random.default_rng(seed)
    is_positive = rng.random(n) < 0.4
    scores = np.round(rng.normal(size=n) + is_positive, decimals)
    return scores, is_positive, [k // 2 for k in range(n)]


@pytest.mark.parametrize("seed", range(5))
def test_the_points_are_scikit_learns(seed: int) -> None:
    scores, is_positive, groups = drawn(200, seed)
    intervals = rank_intervals(scores, is_positive, groups, seed=0)
    fpr, tpr, _ = roc_curve(is_positive, scores, drop_intermediate=False)
    expected = {
        "auroc": roc_auc_score(is_positive, scores),
        "average_precision": average_precision_score(is_positive, scores),
        "tpr_at_1": tpr[fpr <= 0.01].max(),
        "tpr_at_5": tpr[fpr <= 0.05].max(),
    }
    assert {name: intervals[name].point for name in RANK_MEASURES} == pytest.approx(expected)
    for interval in intervals.values():
        assert interval.n == 100 and interval.lo <= interval.point <= interval.hi


def test_the_interval_of_the_mean_rank_covers_the_truth() -> None:
    # two normal classes one sd apart: the AUROC is Φ(1/√2) = .760
    n_covered = 0
    for seed in range(100):
        scores, is_positive, groups = drawn(120, seed, decimals=6)
        interval = rank_intervals(scores, is_positive, groups, seed=seed)["auroc"]
        n_covered += interval.lo <= 0.7602 <= interval.hi
    assert n_covered >= 88


def test_one_class_and_few_questions_are_refused() -> None:
    one_class = rank_intervals([0.1, 0.2], [True, True], ["a", "b"], seed=0)
    assert all(interval.point is None and interval.reason for interval in one_class.values())
    few = rank_intervals([0.1, 0.2], [True, False], ["a", "b"], seed=0)["auroc"]
    assert (few.point, few.lo) == (0, None) and few.reason
    with pytest.raises(ValueError, match="one group"):
        rank_intervals([0.1, 0.2], [True, False], ["a"], seed=0)


def test_pb_f1_is_the_mean_over_sets_of_the_harmonic_mean() -> None:
    true = [0, 1, NO_MISTAKE, NO_MISTAKE, 2, 2, 2, NO_MISTAKE]
    named = [0, 0, NO_MISTAKE, 1, 2, 2, NO_MISTAKE, NO_MISTAKE]
    sets = ["a", "a", "a", "a", "b", "b", "b", "b"]
    measures = location_measures(named, true, list(range(8)), sets, seed=0)
    assert measures.exact.point == pytest.approx(3 / 5)
    assert measures.none_right.point == pytest.approx(2 / 3)
    assert measures.pb_f1_by_set == pytest.approx({"a": 0.5, "b": 0.8})
    assert measures.pb_f1.point == pytest.approx(0.65)
    never = [NO_MISTAKE] * 8
    difference = location_difference(never, named, true, list(range(8)), sets, seed=0)
    assert difference.point == pytest.approx(0.65)  # who never names a step has a PB-F1 of 0


def test_a_set_of_one_kind_of_chain_has_no_pb_f1() -> None:
    measures = location_measures(
        [0, NO_MISTAKE, 0], [0, NO_MISTAKE, 0], [1, 2, 3], ["a", "a", "b"], seed=0
    )
    assert measures.pb_f1_by_set == {"a": 1, "b": None} and measures.pb_f1.point == 1
    alone = location_measures([0], [0], [1], seed=0)
    assert alone.pb_f1.point is None and alone.pb_f1.reason


@pytest.mark.parametrize("decimals", [0, 1, 12])
def test_aurocs_of_resamples_count_pairs_without_rounding(decimals: int) -> None:
    scores, is_positive, groups = drawn(60, 3, decimals)
    chains = ResampledChains(is_positive, groups, 5)
    aurocs = chains.aurocs(scores)
    generator = np.random.default_rng(5)
    positive, negative = scores[is_positive], scores[~is_positive]
    above = np.sign(positive[:, None] - negative[None, :]) / 2 + 0.5
    names = sorted(set(groups), key=str)
    for column in range(40):
        draw = generator.integers(0, len(names), len(names))
        count = dict(zip(names, np.bincount(draw, minlength=len(names)), strict=True))
        weights = np.array([count[group] for group in groups], dtype=float)
        pairs = np.outer(weights[is_positive], weights[~is_positive])
        assert aurocs[1 + column] == (pairs * above).sum() / pairs.sum()
    assert aurocs[0] == above.mean()
    assert chains.aurocs(-scores) == pytest.approx(1 - aurocs)


def test_a_difference_of_other_chains_resamples_shared_questions_together() -> None:
    """Of the same chains it is the paired difference; of chains of other questions it is wider."""
    scores, is_positive, groups = drawn(200, 7)
    better = scores + 0.05 * is_positive
    chains = ResampledChains(is_positive, groups, 3)
    paired = chains.difference(chains.aurocs(scores), chains.aurocs(better))
    assert auroc_difference(chains, scores, chains, better) == paired
    others = ResampledChains(is_positive, [f"other {group}" for group in groups], 3)
    apart = auroc_difference(chains, scores, others, better)
    assert apart.point == paired.point and apart.n == 2 * paired.n
    assert apart.hi - apart.lo > 2 * (paired.hi - paired.lo)
    assert (
        auroc_difference(
            chains, scores, ResampledChains(~(is_positive & False), groups, 3), better
        ).point
        is None
    )
