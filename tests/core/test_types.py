"""The law of scores: a number that does not exist is None with a status and a reason, never 0 and
never NaN."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, fields, is_dataclass
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotlab.core import program, requests, types
from cotlab.core.errors import (
    BudgetReached,
    CotlabError,
    RateLimited,
    StoreBusy,
    SuiteError,
    SuiteErrors,
)
from cotlab.core.types import Item, MetricCard

CARD = MetricCard(
    name="m",
    symbol="M",
    lo=-1.0,
    hi=2.0,
    better="higher",
    formula="f",
    undefined="u",
    source="s",
    not_shown="n",
)
ITEM = Item("i", "q", "a", ())


@given(st.floats(-1, 2))
def test_a_value_in_range_is_ok(value: float) -> None:
    score = CARD.score(
        ITEM, value, step=1, sample=2, facet={"b": "2", "a": "1"}, where=(0, 3), evidence=["k"]
    )
    assert (score.metric, score.item_id, score.value, score.status, score.reason) == (
        "m",
        "i",
        value,
        "ok",
        None,
    )
    assert (score.step, score.sample, score.where, score.evidence) == (1, 2, (0, 3), ("k",))
    assert score.facet == (("a", "1"), ("b", "2"))


def test_rounding_at_the_edges_is_forgiven() -> None:
    assert CARD.score(ITEM, 2 + 1e-12).value == 2.0
    assert CARD.score(ITEM, -1 - 1e-12).value == -1.0
    assert isinstance(CARD.score(ITEM, 1).value, float)


@pytest.mark.parametrize("bad", [2.1, -1.1, math.nan, math.inf, -math.inf])
def test_a_value_outside_the_range_is_a_bug(bad: float) -> None:
    with pytest.raises(ValueError, match="m: .* lies outside"):
        CARD.score(ITEM, bad)


def test_none_needs_a_reason_and_is_undefined_unless_told_otherwise() -> None:
    assert CARD.score(ITEM, None, reason="why").status == "undefined"
    assert CARD.score(ITEM, None, reason="why", status="refused").status == "refused"
    for wrong in ({}, {"reason": ""}, {"status": "error"}, {"reason": "why", "status": "ok"}):
        with pytest.raises(ValueError, match="needs a reason"):
            CARD.score(ITEM, None, **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("status", ["undefined", "refused", "stopped", "error"])
def test_a_value_with_another_status_is_a_contradiction(status: Any) -> None:
    with pytest.raises(ValueError, match="has no value"):
        CARD.score(ITEM, 0.0, status=status, reason="why")


@pytest.mark.parametrize("module", [types, requests, program], ids=lambda m: m.__name__)
def test_every_type_is_frozen_and_has_slots(module: ModuleType) -> None:
    kinds = [
        kind for kind in vars(module).values() if is_dataclass(kind) and isinstance(kind, type)
    ]
    assert kinds
    for kind in kinds:
        assert kind.__dataclass_params__.frozen, kind  # type: ignore[attr-defined]
        assert "__slots__" in vars(kind), kind
        one = object.__new__(kind)
        with pytest.raises(FrozenInstanceError):
            setattr(one, fields(kind)[0].name, 1)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (SuiteError("s.jsonl", 3, "answer", "is empty"), "s.jsonl:3: answer: is empty"),
        (SuiteError("s.jsonl", None, "", "no items"), "s.jsonl: no items"),
        (
            BudgetReached(10, 400_000, 2_000_000, 1_700_000, 7),
            "The budget of $2.0000 is reached: $0.000010 paid, $0.400000 held for calls whose cost"
            " is unknown, $1.599990 left. The next call may cost up to $1.700000, and about 7"
            " requests are left.",
        ),
        (
            StoreBusy(10, "process 7"),
            "The store stayed locked for 10 s by process 7. Close that process and try again.",
        ),
        (RateLimited("slow down", 3.0), "slow down"),
    ],
)
def test_errors_tell_what_failed_and_what_to_do(error: CotlabError, told: str) -> None:
    assert str(error).startswith(told)


def test_many_defects_are_told_at_once_but_not_all() -> None:
    found = SuiteErrors([SuiteError("s", i, "f", "m") for i in range(25)], n_good_lines=2)
    assert (
        str(found).count("s:") == 20
        and "… and 5 more" in str(found)
        and "2 other lines are good" in str(found)
    )
