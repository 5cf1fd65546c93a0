"""What an item's line says of its steps is returned as it is; what it does not has no value."""

from __future__ import annotations

from typing import Any

import pytest

from cotlab.core.program import Params, Peers
from cotlab.core.types import Item, ModelRef, Step
from cotlab.metrics.ratings import ratings
from tests.support.replies import finish

STEPS = (Step(0, "a"), Step(1, "b"))


def scores(told: Any) -> dict[tuple[str, int | None], float | None]:
    item = Item("i", "q", None, STEPS, meta={"step_ratings": told})
    end = finish(ratings(item, Params({"subject": ModelRef("echo", "echo")}), Peers((item,))))
    return {(score.metric, score.step): score.value for score in end}


def test_each_rated_step_has_its_numbers() -> None:
    told = [{"step": 1, "rating": 4, "drop": -0.5, "flip": True}, {"step": 0, "rating": 0}]
    assert scores(told) == {
        ("step_rating", 0): 0.0,
        ("step_drop", 0): None,
        ("step_flip", 0): None,
        ("step_rating", 1): 4.0,
        ("step_drop", 1): -0.5,
        ("step_flip", 1): 1.0,
    }


@pytest.mark.parametrize(
    "told",
    [
        None,
        [],
        "x",
        [5],
        [{"step": 2, "rating": 1}],
        [{"step": True, "rating": 1}],
        [{"rating": 1}],
    ],
)
def test_a_line_that_rates_no_step_gives_no_value(told: Any) -> None:
    assert scores(told) == {
        (name, None): None for name in ("step_rating", "step_drop", "step_flip")
    }


@pytest.mark.parametrize(
    "row",
    [
        {"rating": 5},
        {"rating": "4"},
        {"rating": True},
        {"drop": 2},
        {"drop": float("nan")},
        {"flip": 1},
    ],
)
def test_a_number_out_of_range_is_none(row: dict[str, Any]) -> None:
    assert set(scores([{"step": 0, **row}]).values()) == {None}
