"""What a policy does with answers, in numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotlab.reliability.policy import (
    DEFAULT_DOMAIN,
    NO_POLICY_REASON,
    UNCALIBRATED_REASON,
    Policy,
    Thresholds,
)
from cotlab.reliability.volumes import (
    AT_OR_ABOVE_LABEL,
    EXPECTED_LABEL,
    OBSERVED_LABEL,
    apply_policy,
    expected_errors,
    observed_error_rate,
    policy_effects,
    schedule_reviews,
    threshold_points,
)

NAN = float("nan")


def answers(*r_cal: float, domain: str = "", status: str = "ok") -> pd.DataFrame:
    names = [f"i-{k}" for k in range(len(r_cal))]
    return pd.DataFrame(
        {"item_id": names, "domain": domain, "status": status, "r_cal": list(r_cal)}
    )


def policy(low: float = 0.3, high: float = 0.8, capacity: int | None = None) -> Policy:
    return Policy({DEFAULT_DOMAIN: Thresholds(low, high)}, capacity, 6.0)


def test_volumes_of_a_policy_by_hand() -> None:
    table = answers(0.1, 0.3, 0.5, 0.7, 0.8, 0.9, NAN).assign(
        target=[False, None, None, None, True, False, None]
    )
    found = policy_effects(table, policy(capacity=2))
    assert (found.n, found.n_released, found.n_reviews, found.n_escalated) == (7, 2, 3, 2)
    assert found.expected_error_count.point == pytest.approx(0.2 + 0.1) and (
        found.expected_error_count.lo,
        found.expected_error_count.hi,
    ) == (
        0,
        1,
    )  # P(2) = .02
    assert (found.observed_error_rate.point, found.observed_error_rate.n) == (0.5, 2)
    assert (found.hours, found.days, found.n_waiting) == (pytest.approx(0.3), 2, 1)
    assert (
        policy_effects(table, policy()).days is None
        and policy_effects(table, policy(capacity=0)).n_waiting == 3
    )


def test_the_reasons_of_what_is_not_decided_by_thresholds() -> None:
    table = pd.concat(
        [answers(NAN, 0.9), answers(0.9, status="refused"), answers(0.9, domain="law")],
        ignore_index=True,
    )
    found = apply_policy(table, Policy({"": Thresholds(0.3, 0.8)}))
    assert found["why"].tolist() == [
        UNCALIBRATED_REASON,
        "r_cal is at least high",
        "refused",
        NO_POLICY_REASON,
    ]
    assert found["action"].tolist() == ["escalate", "release", "escalate", "escalate"] and np.isnan(
        found["high"].iloc[3]
    )
    assert (
        apply_policy(answers(), policy()).empty
        and policy_effects(answers(), policy()).expected_error_count.point is None
    )


@settings(max_examples=40)
@given(st.lists(st.floats(0, 1) | st.sampled_from([0.0, 0.5, 1.0, 1e-9]), min_size=1, max_size=40))
def test_bounds_of_expected_errors_are_those_of_the_whole_convolution(r_cal: list[float]) -> None:
    whole = np.array([1.0])
    for p in r_cal:
        whole = np.convolve(whole, [p, 1 - p])
    found, below = expected_errors(r_cal), np.cumsum(whole)
    assert found.point is not None and found.lo is not None and found.hi is not None
    one, other = (
        [int(np.searchsorted(below, tail + slack)) for slack in (-1e-9, 1e-9)]
        for tail in (0.025, 0.975)
    )
    assert min(one[0], found.point) <= found.lo <= min(one[1], found.point)
    assert max(other[0], found.point) <= found.hi <= max(other[1], found.point)


def test_expected_errors_of_many_answers_that_are_all_but_surely_wrong() -> None:
    found = expected_errors([1e-7] * 30_000 + [1 - 1e-7] * 20_000)
    assert found.lo == pytest.approx(30_000 - 0.003 + 0.002) and found.hi == 30_000


@settings(max_examples=40)
@given(st.lists(st.floats(0, 1), max_size=30), st.integers(0, 5))
def test_every_answer_has_one_action_and_every_review_its_place(
    r_cal: list[float], capacity: int
) -> None:
    table = apply_policy(answers(*r_cal, NAN), policy(capacity=capacity))
    found = schedule_reviews(table, policy(capacity=capacity))
    volumes = policy_effects(table, policy(capacity=capacity))
    assert (
        volumes.n_released + volumes.n_reviews + volumes.n_escalated == volumes.n == len(r_cal) + 1
    )
    assert sorted(found["item_id"]) == sorted(table[table["action"] != "release"]["item_id"])
    reviews = found[found["action"] == "review"]
    assert (
        reviews["place"].tolist() == list(range(1, volumes.n_reviews + 1))
        and reviews["r_cal"].is_monotonic_increasing
    )
    assert volumes.n_waiting == max(0, volumes.n_reviews - capacity)
    if capacity and volumes.n_reviews:
        assert (
            reviews["day"].max() == volumes.days
            and (reviews["day"].value_counts() <= capacity).all()
        )
    else:
        assert found["day"].isna().all()
    assert (
        found["action"].tolist()
        == ["escalate"] * volumes.n_escalated + ["review"] * volumes.n_reviews
    )


def test_the_order_of_reviews() -> None:
    table = apply_policy(answers(0.55, 0.78, 0.31, 0.60), policy())
    assert schedule_reviews(table, policy())["item_id"].tolist() == ["i-2", "i-0", "i-3", "i-1"]
    assert schedule_reviews(table, policy(), order="boundary")["item_id"].tolist() == [
        "i-2",
        "i-1",
        "i-3",
        "i-0",
    ]


def test_expected_errors_are_the_poisson_binomial() -> None:
    """Against scipy.stats.poisson_binom, which takes up to 62 trials; equal chances are the
    binomial."""
    from scipy import stats

    p = np.random.default_rng(4).random(50)
    found = expected_errors(p.tolist())
    assert (found.lo, found.hi) == tuple(stats.poisson_binom(1 - p).ppf([0.025, 0.975]))
    equal = expected_errors([0.95] * 400)
    assert equal.point == pytest.approx(20)
    assert (equal.lo, equal.hi) == tuple(stats.binom(400, 0.05).ppf([0.025, 0.975]))
    certain = expected_errors([1.0] * 3)
    assert (certain.lo, certain.point, certain.hi) == (0, 0, 0)


def test_many_answers_take_the_normal_approximation_and_rare_errors_do_not() -> None:
    """5,000 at .9: mean 500, sd √450 = 21.21; 5,000 at .999 keep the exact distribution."""
    from scipy import stats

    many, rare = expected_errors([0.9] * 5000), expected_errors([0.999] * 5000)
    assert (many.lo, many.hi) == pytest.approx(
        (500 - 1.959964 * 450**0.5, 500 + 1.959964 * 450**0.5), abs=1e-3
    )
    assert "normal" in many.method and "normal" not in rare.method
    assert (rare.lo, rare.hi) == tuple(stats.binom(5000, 0.001).ppf([0.025, 0.975]))
    with pytest.raises(ValueError, match="probabilities"):
        expected_errors([1.5])


def test_the_points_of_the_figure() -> None:
    table = answers(0.2, 0.6, 0.9, NAN).assign(target=[False, True, None, None])
    found = threshold_points(table, 0.3, 0.62).set_index(["group", "threshold"])
    assert (
        found.loc[(AT_OR_ABOVE_LABEL, 0.0), "point"] == 0.75
        and found.loc[(AT_OR_ABOVE_LABEL, 0.62), "point"] == 0.25
    )
    assert (
        found.loc[(AT_OR_ABOVE_LABEL, 0.5), "n"] == 4
        and found.loc[(AT_OR_ABOVE_LABEL, 0.5), "n_undefined"] == 1
    )
    assert found.loc[(EXPECTED_LABEL, 0.5), "point"] == pytest.approx((0.4 + 0.1) / 2)
    assert (
        found.loc[(OBSERVED_LABEL, 0.0), "point"] == 0.5
        and found.loc[(OBSERVED_LABEL, 0.62), "reason"] == "none of these answers is labelled"
    )
    assert (
        np.isnan(found.loc[(EXPECTED_LABEL, 1.0), "point"])
        and "so high" in found.loc[(EXPECTED_LABEL, 1.0), "reason"]
    )
    assert threshold_points(answers(), None, None).empty
    assert observed_error_rate(table.drop(columns="target")).point is None


def test_answers_to_one_question_count_as_one() -> None:
    """Each of 10 questions is answered in 4 runs: 8 of 40 errors, as sure as 2 of 10, whose Wilson
    bounds are .0567 and .5098 (statsmodels 0.15, proportion_confint(2, 10, method="wilson"))."""
    table = pd.DataFrame(
        {"question": [f"q{k % 10}" for k in range(40)], "target": [k % 10 > 1 for k in range(40)]}
    )
    found = observed_error_rate(table)
    assert found.point == 0.2 and (found.lo, found.hi) == pytest.approx(
        (0.05668, 0.50984), abs=1e-5
    )
    assert (found.n, found.note, found.method) == (
        10,
        "40 answers to 10 questions",
        "Wilson over questions",
    )
    single = observed_error_rate(table.iloc[:10])
    assert (single.point, single.lo, single.hi, single.n, single.note) == (
        0.2,
        found.lo,
        found.hi,
        10,
        None,
    )
    assert observed_error_rate(table.assign(target=None)).point is None
