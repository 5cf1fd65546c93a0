"""Policies, decisions and the audit: added, never changed."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from cotlab.core.labels import Action, Decision
from cotlab.store import decisions as decision_store
from cotlab.store.database import Store

HOSTILE = "'); DROP TABLE decisions; --"
START = datetime(2026, 1, 2, tzinfo=UTC)


def made(
    id: str,
    item: str,
    r_cal: float | None,
    action: Action = "review",
    *,
    hour: int = 0,
    run: str = "r",
) -> Decision:
    return Decision(
        id,
        run,
        item,
        "",
        0.5,
        r_cal,
        action,
        "why",
        0.3,
        0.8,
        None,
        1,
        START + timedelta(hours=hour),
        f"who {id}",
    )


def test_a_policy_has_a_version_and_the_audit_what_it_was_before() -> None:
    store = Store()
    assert decision_store.current_policy(store) is None
    with pytest.raises(ValueError, match="reason"), store.writing() as connection:
        decision_store.add_policy(
            connection, thresholds={}, capacity=None, params={}, author="Ann", reason=" "
        )
    with store.writing() as connection:
        decision_store.add_policy(
            connection,
            thresholds={"default": (0.3, 0.8)},
            capacity=None,
            params={},
            author="Ann",
            reason="start",
        )
        decision_store.add_policy(
            connection,
            thresholds={"default": (0.3, 0.9)},
            capacity=7,
            params={"minutes": 4},
            author=HOSTILE,
            reason=HOSTILE,
        )
    row = decision_store.current_policy(store)
    assert row is not None and json.loads(row["thresholds"]) == {"default": [0.3, 0.9]}
    assert (row["version"], row["capacity"]) == (2, 7)
    table = decision_store.list_policies(store)
    assert table["version"].tolist() == [2, 1] and table["capacity"].isna().tolist() == [
        False,
        True,
    ]
    last, first = decision_store.list_audit(store, action="policy").to_dict("records")
    assert (
        json.loads(last["before"])["thresholds"] == {"default": [0.3, 0.8]}
        and json.loads(last["after"])["capacity"] == 7
    )
    assert (last["who"], last["reason"], last["subject"]) == (
        HOSTILE,
        HOSTILE,
        "policy 2",
    ) and first["before"] is None
    assert decision_store.list_audit(store, action="decide").empty


def test_the_same_decision_is_not_written_again_and_another_is_appended() -> None:
    store = Store()

    def add(*given: Decision) -> int:
        with store.writing() as connection:
            return decision_store.add_decisions(connection, given)

    none = made("b", HOSTILE, None, "escalate")
    assert add(made("a", "1", 0.5, hour=5), none, made("b2", "1", 0.5, run="other")) == 3
    assert add(made("a", "1", 0.9)) == 0  # an id is written once
    assert add(made("c", "1", 0.5), replace(none, id="d")) == 0  # nothing new is said
    assert add(made("e", "1", 0.9, "release"), replace(none, id="f")) == 1
    # what was said once, and then otherwise, may be said again; the last holds, whatever the clock
    assert add(made("g", "1", 0.5, hour=3)) == 1
    found = decision_store.list_decisions(store, "r").set_index("item_id")
    assert found["id"].to_dict() == {"1": "g", HOSTILE: "b"}
    assert found["r_cal"].isna().to_dict() == {"1": False, HOSTILE: True}
    assert found["calibrator"].isna().all()
    every = decision_store.list_decisions(store, "r", history=True)
    assert every["id"].tolist() == ["a", "b", "e", "g"]
    assert len(decision_store.list_decisions(store)) == 3
    assert decision_store.list_decisions(store, "none").empty
