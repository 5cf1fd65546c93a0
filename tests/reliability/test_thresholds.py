"""Thresholds by cost and by target precision."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotlab.reliability.policy import PolicyError, Thresholds, decide_action
from cotlab.reliability.thresholds import (
    Costs,
    _cheapest_thresholds,
    choose_cost_thresholds,
    choose_high_threshold,
    thresholds_by_cost,
)
from cotlab.stats.intervals import wilson

COSTS = st.builds(
    Costs,
    st.floats(1, 1000),
    st.floats(0, 100),
    st.floats(0, 100),
    st.sampled_from([0.0, 0.05, 0.1, 0.5]),
)


def expected_cost(costs: Costs, action: str, p: float) -> float:
    return {
        "release": (1 - p) * costs.error,
        "review": costs.review + (1 - p) * costs.missed_share * costs.error,
        "escalate": costs.escalation,
    }[action]


def test_the_closed_form_by_hand() -> None:
    """Error 100, review 5, escalation 8, missed 0.1: release = review at 1 − p = 5/90; review =
    escalation at 3/10."""
    found = thresholds_by_cost(Costs(100, 5, 8, 0.1))
    assert (found.low, found.high) == pytest.approx((1 - 3 / 10, 1 - 5 / 90))
    assert thresholds_by_cost(Costs(100, 30, 20, 0.1)) == Thresholds(0.8, 0.8), (
        "a review dearer than an escalation"
    )
    assert thresholds_by_cost(Costs(10, 1, 5, 0.0)) == Thresholds(0.0, 0.9), (
        "a perfect review leaves nothing to escalate"
    )
    assert thresholds_by_cost(Costs(10, 50, 60)) == Thresholds(0.0, 0.0), (
        "no review is worth it: all is released"
    )


@given(COSTS, st.floats(0, 1))
def test_no_action_is_cheaper_than_that_of_the_closed_form(costs: Costs, p: float) -> None:
    own = decide_action(p, "ok", thresholds_by_cost(costs)).action
    least = min(expected_cost(costs, action, p) for action in ("release", "review", "escalate"))
    assert expected_cost(costs, own, p) <= least + 1e-9 * costs.error


@given(
    COSTS,
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]), st.booleans()),
        min_size=1,
        max_size=8,
    ),
)
def test_the_labelled_optimum_is_that_of_trying_every_pair(
    costs: Costs, rows: list[tuple[float, bool]]
) -> None:
    rows = sorted(rows)
    p, good = np.array([r[0] for r in rows]), np.array([r[1] for r in rows], dtype=float)
    low, high, cost = (
        float(v[0]) for v in _cheapest_thresholds(p, 1 - good, np.ones((1, len(p))), costs)
    )

    def mean(bounds: Thresholds) -> float:
        return float(
            np.mean(
                [
                    expected_cost(costs, decide_action(q, "ok", bounds).action, one)
                    for q, one in zip(p, good, strict=True)
                ]
            )
        )

    edges = [0.0, *((a + b) / 2 for a, b in itertools.pairwise(sorted({*p.tolist()}))), 1.0]
    tried = [mean(Thresholds(a, b)) for a, b in itertools.combinations_with_replacement(edges, 2)]
    assert cost == pytest.approx(min(tried), abs=1e-9) and mean(
        Thresholds(low, high)
    ) == pytest.approx(cost, abs=1e-9)


def test_labels_recover_the_closed_form_of_a_calibrated_score() -> None:
    draw = np.random.default_rng(5)
    p = draw.random(4000)
    found = choose_cost_thresholds(
        p.tolist(), (draw.random(4000) < p).tolist(), Costs(10, 1, 2, 0.2), seed=1
    )
    closed_form = thresholds_by_cost(Costs(10, 1, 2, 0.2))
    for one, true in ((found.low, closed_form.low), (found.high, closed_form.high)):
        assert one.lo is not None and one.hi is not None and one.lo <= true <= one.hi, (one, true)
    assert (
        found.cost.point is not None
        and found.release_all_cost is not None
        and found.cost.point < found.release_all_cost
    )


def test_questions_are_resampled_whole() -> None:
    """Ten copies of each answer tell no more than one: the interval is that of single answers."""
    draw = np.random.default_rng(2)
    p = draw.random(60)
    good, costs = (draw.random(60) < p).tolist(), Costs(10, 1, 2, 0.2)
    once = choose_cost_thresholds(p.tolist(), good, costs, seed=3)
    many = choose_cost_thresholds(
        p.tolist() * 10, good * 10, costs, groups=list(range(60)) * 10, seed=3
    )
    assert many.cost.n == once.cost.n == 60 and many.cost.lo == pytest.approx(once.cost.lo)


def test_few_labels_have_no_interval_and_none_has_no_threshold() -> None:
    few = choose_cost_thresholds([0.2, 0.8], [False, True], Costs(10, 1, 2), seed=1)
    assert (
        few.high.point is not None
        and few.high.lo is None
        and "5 questions" in (few.high.reason or "")
    )
    none = choose_cost_thresholds([], [], Costs(10, 1, 2), seed=1)
    assert none.high.point is None and none.release_all_cost is None


@pytest.mark.parametrize("wrong", [(0, 1, 1, 0), (1, -1, 1, 0), (1, 1, math.nan, 0), (1, 1, 1, 1)])
def test_costs_that_cannot_be_are_refused(wrong: tuple[float, float, float, float]) -> None:
    with pytest.raises(PolicyError, match="error above 0"):
        Costs(*wrong)


def test_the_smallest_threshold_whose_lower_bound_reaches_the_target() -> None:
    """Wilson's lower bound at n of n is n/(n + 3.8415): 0.9 needs 35 without an error (34 → .8985,
    35 → .9011)."""
    p = [0.3] * 5 + [0.6] * 1 + [0.9] * 35
    good = [False] * 5 + [False] * 1 + [True] * 35
    found = choose_high_threshold(p, good, 0.9)
    assert (found.high, found.precision.point, found.reason) == (0.9, 1.0, "")
    assert found.precision.lo == wilson(found.precision.n, found.precision.n).lo
    assert choose_high_threshold(p[:-1], good[:-1], 0.9).high is None


def test_missing_labels_are_counted_and_would_do() -> None:
    p, good = [0.2] * 10 + [0.9] * 20, [False] * 10 + [True] * 20
    found = choose_high_threshold(p, good, 0.9)
    assert found.high is None and "15 more labels from r_cal 0.9 on" in found.reason
    assert choose_high_threshold(p + [0.9] * 15, good + [True] * 15, 0.9).high == 0.9
    assert choose_high_threshold(p + [0.9] * 14, good + [True] * 14, 0.9).high is None
    assert "35 labels" in choose_high_threshold([], [], 0.9).reason, "as many as without one error"
    hopeless = choose_high_threshold([0.5] * 8, [True] * 4 + [False] * 4, 0.9)
    assert (hopeless.high, hopeless.precision.point) == (None, None)
    with pytest.raises(PolicyError):
        choose_high_threshold(p, good, 1.0)


def test_answers_to_one_question_in_several_runs_are_no_more_evidence_than_one() -> None:
    p, good = [0.3] * 40 + [0.9] * 80, [False] * 40 + [True] * 80
    each, shared = list(range(120)), [k // 4 for k in range(120)]
    assert choose_high_threshold(p, good, 0.9, groups=each) == choose_high_threshold(p, good, 0.9)
    found = choose_high_threshold(
        p, good, 0.9, groups=shared
    )  # 80 labels of 20 questions: as 20 of 20, which lack 15
    assert found.high is None
    assert "15 more labels of other questions from r_cal 0.9 on" in found.reason
    more = choose_high_threshold(
        [*p, *[0.9] * 15], [*good, *[True] * 15], 0.9, groups=[*shared, *range(200, 215)]
    )
    assert more.high == 0.9 and more.precision.n <= 35


def test_the_precision_of_a_chosen_threshold_is_that_of_other_answers() -> None:
    """Answers of r_cal p are right with probability p, so those from ``high`` on with (1 + high)/2;
    of the labels that chose ``high``, .04 more are."""
    excess = []
    for seed in range(60):
        draw = np.random.default_rng(seed)
        p = draw.random(300)
        found = choose_high_threshold(p.tolist(), (draw.random(300) < p).tolist(), 0.85)
        if found.high is not None:
            assert found.precision.point is not None
            excess.append(found.precision.point - (1 + found.high) / 2)
    assert len(excess) > 30 and np.mean(excess) == pytest.approx(0, abs=0.015)
