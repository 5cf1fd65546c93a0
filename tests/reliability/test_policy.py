"""What is released, and above all what never is."""

from __future__ import annotations

import math
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cotlab.core.labels import ACTIONS
from cotlab.core.types import ScoreStatus
from cotlab.reliability.policy import (
    DEFAULT_DOMAIN,
    NO_POLICY_REASON,
    UNCALIBRATED_REASON,
    Policy,
    PolicyError,
    Thresholds,
    decide_action,
)

SEED = Thresholds(0.5, 0.8)
"""Its own thresholds are not given; these make the actions of its example cases."""
BOUNDS = st.tuples(st.floats(0, 1), st.floats(0, 1)).map(lambda pair: Thresholds(*sorted(pair)))


@pytest.mark.parametrize(
    ("r_cal", "action"),
    [
        (0.88, "release"),
        (0.41, "escalate"),
        (0.69, "review"),
        (0.5, "review"),
        (0.8, "release"),
        (math.nextafter(0.8, 0), "review"),
        (math.nextafter(0.5, 0), "escalate"),
    ],
)
def test_the_three_actions_and_their_bounds(r_cal: float, action: str) -> None:
    """The first three are the reliability specification's example cases, section 11; a bound
    belongs to the upper side."""
    assert decide_action(r_cal, "ok", SEED).action == action


@given(
    st.none() | st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([*get_args(ScoreStatus), "", "OK", "done"]),
    st.none() | BOUNDS,
)
@example(math.nan, "ok", Thresholds(0, 0))
@example(math.inf, "ok", Thresholds(0, 0))
@example(-math.inf, "ok", Thresholds(0, 0))
@example(None, "ok", Thresholds(0, 0))
@example(1.0, "error", Thresholds(0, 0))
@example(1.0, "ok", None)
def test_nothing_is_released_but_a_calibrated_probability_from_high_on(
    r_cal: float | None, status: str, thresholds: Thresholds | None
) -> None:
    found = decide_action(r_cal, status, thresholds)
    sound = status == "ok" and thresholds is not None and r_cal is not None and 0 <= r_cal <= 1
    assert found.action in ACTIONS and found.reason
    if not sound:
        assert found.action == "escalate"
    else:
        assert (found.action == "release") == (r_cal >= thresholds.high)
        assert (found.action == "escalate") == (r_cal < thresholds.low)


@given(BOUNDS, st.floats(0, 1), st.floats(0, 1))
def test_a_higher_probability_is_never_treated_worse(
    thresholds: Thresholds, one: float, other: float
) -> None:
    lower, upper = (
        ACTIONS.index(decide_action(p, "ok", thresholds).action) for p in sorted((one, other))
    )
    assert lower <= upper


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (0.9, 0.1),
        (-0.1, 0.5),
        (0.5, 1.1),
        (math.nan, 0.5),
        (0.5, math.inf),
        (None, 0.5),
        ("0", 1),
        (True, True),
    ],
)
def test_thresholds_out_of_order_are_refused(low: float, high: float) -> None:
    with pytest.raises(PolicyError, match="0 <= low <= high <= 1"):
        Thresholds(low, high)


def test_a_domain_falls_back_to_the_default_and_to_nothing_without_one() -> None:
    maths, other = Thresholds(0.1, 0.2), Thresholds(0.3, 0.4)
    assert Policy({"maths": maths, DEFAULT_DOMAIN: other}).domain_thresholds("maths") is maths
    assert Policy({"maths": maths, DEFAULT_DOMAIN: other}).domain_thresholds("law") is other
    lone = Policy({"maths": maths})
    assert lone.domain_thresholds("law") is None and decide_action(
        1.0, "ok", lone.domain_thresholds("law")
    ) == (
        "escalate",
        NO_POLICY_REASON,
    )
    assert decide_action(math.nan, "ok", maths).reason == UNCALIBRATED_REASON


def test_a_policy_comes_back_from_its_row() -> None:
    policy = Policy(
        {DEFAULT_DOMAIN: Thresholds(0.25, 0.75), "maths": Thresholds(0, 1)},
        12,
        2.5,
        None,
        {"by": "hand"},
    )
    found = Policy.from_row({"version": 3, **policy.to_columns()})
    assert (found.thresholds, found.capacity, found.minutes, found.version) == (
        policy.thresholds,
        12,
        2.5,
        3,
    )
    assert (
        found.how == {"by": "hand"}
        and Policy.from_row({"version": 1, **Policy({}).to_columns()}).capacity is None
    )
    assert policy.with_domain("maths", SEED).domain_thresholds(
        "maths"
    ) is SEED and policy.domain_thresholds("maths") == Thresholds(0, 1)


@pytest.mark.parametrize(
    "row",
    [
        {"thresholds": '{"default": [0.9, 0.1]}'},
        {"thresholds": "[]"},
        {"thresholds": "{"},
        {"version": None},
    ],
)
def test_a_stored_policy_that_makes_no_sense_is_no_policy(row: dict[str, object]) -> None:
    with pytest.raises(PolicyError):
        Policy.from_row({"version": 1, "thresholds": "{}", "params": "{}", "capacity": None, **row})


@pytest.mark.parametrize(
    "wrong", [{"capacity": -1}, {"capacity": 1.5}, {"minutes": 0}, {"minutes": math.nan}]
)
def test_a_capacity_and_a_time_that_cannot_be_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(PolicyError):
        Policy({}, **wrong)  # type: ignore[arg-type]
