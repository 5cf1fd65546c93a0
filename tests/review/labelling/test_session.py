"""What is told twice, late or out of turn is done once or refused in words; who holds several items
keeps nobody out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cotlab.core.errors import UnknownName
from cotlab.review.labelling.queue import lease_next_items, make_queue
from cotlab.review.labelling.session import SkipAction, UndoAction, apply_actions, latest_labels
from cotlab.store import labels as label_store
from cotlab.store.database import Store
from cotlab.store.live import Leases
from tests.support.stores.queued import fill, made_label, pairs


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return fill(tmp_path / "s")


def held(store: Store, queue: str, rater: str, most: int = 10) -> list[str]:
    return [item.item_id for item in lease_next_items(store, queue, rater, most)]


def test_what_is_told_again_is_done_once(store: Store) -> None:
    queue = make_queue(store, "q", pairs(4), author="t")
    first, second, third, _ = lease_next_items(store, queue, "ann", 10)
    acts = [
        made_label(first, "acceptable", True),
        made_label(second, "not_acceptable", None, note="no"),
        UndoAction(second.label_id),
        SkipAction(third.run, third.item_id),
    ]
    told = [
        apply_actions(store, queue, "ann", acts[: k + 1]) for k in range(4)
    ]  # as a desk whose answers never came back
    assert [one.n_written for one in told] == [1, 1, 0, 0] and not any(one.refusals for one in told)
    rows = label_store.list_labels(store, queue=queue, history=True)
    assert rows[["item_id", "origin"]].values.tolist() == [
        ["i-0", "page"],
        ["i-1", "page"],
        ["i-1", "undo"],
    ]
    again, *_ = lease_next_items(store, queue, "ann", 10, first_item=(second.run, second.item_id))
    assert (again.item_id, again.label_id != second.label_id) == ("i-1", True)
    assert held(store, queue, "ann") == ["i-1", "i-3"]
    assert (
        apply_actions(store, queue, "ann", [made_label(again, "acceptable", True)]).n_written == 1
    )
    assert [one.label.item_id for one in latest_labels(store, queue, "ann")] == ["i-1", "i-0"]


def test_a_label_of_another_moment_queue_or_person_is_refused_with_the_reason(store: Store) -> None:
    queue, other = (make_queue(store, name, pairs(2), author="t") for name in "qo")
    item, _ = lease_next_items(store, queue, "ann", 2)
    said = made_label(item, "acceptable", True)
    for wrong in (
        replace(said, id="made up"),
        replace(said, item_id="i-1"),
        replace(said, run_id="none"),
    ):
        (why,) = apply_actions(store, queue, "ann", [wrong]).refusals
        assert repr(wrong.item_id) in why and "was not kept" in why
    assert (
        apply_actions(store, other, "ann", [said]).refusals
        and apply_actions(store, queue, "bob", [said]).refusals
    )
    assert label_store.list_labels(store, history=True).empty
    assert apply_actions(store, queue, "ann", [said, said]).n_written == 1
    (why,) = apply_actions(
        store, queue, "ann", [replace(said, reasoning="unsure")]
    ).refusals  # from another window
    assert "already" in why and "acceptable" in why
    assert label_store.list_labels(store)["reasoning"].tolist() == ["acceptable"]


def test_raters_hold_equal_shares_of_what_is_left_and_keep_what_they_look_at(store: Store) -> None:
    queue = make_queue(store, "q", pairs(4), author="t")
    assert held(store, queue, "ann") == ["i-0", "i-1", "i-2", "i-3"]
    assert held(store, queue, "bob") == []  # who waits is seen …
    assert held(store, queue, "ann") == ["i-0", "i-1"]  # … and others give back the last ones
    assert held(store, queue, "bob") == ["i-2"]
    assert held(store, queue, "ann", 1) == ["i-0"]
    mine, *_ = lease_next_items(store, queue, "ann", 2)
    apply_actions(store, queue, "ann", [made_label(mine, "unsure", None)])
    assert held(store, queue, "ann")[0] == "i-1"
    assert not set(held(store, queue, "ann")) & set(held(store, queue, "bob"))


def test_an_item_that_becomes_free_does_not_push_away_the_one_on_the_screen(store: Store) -> None:
    queue = make_queue(store, "q", pairs(4), author="t")
    assert held(store, queue, "ann", 1) == ["i-0"] and held(store, queue, "bob", 1) == ["i-1"]
    (mine,) = lease_next_items(store, queue, "ann", 1)
    apply_actions(store, queue, "ann", [made_label(mine, "acceptable", True)])
    assert held(store, queue, "ann", 1) == ["i-2"]
    apply_actions(
        store, queue, "bob", [SkipAction("run-1", "i-1")]
    )  # free for ann now, and earlier in the order
    assert held(store, queue, "ann")[0] == "i-2" and "i-1" in held(store, queue, "ann")


def test_only_items_of_the_queue_are_skipped(store: Store) -> None:
    queue = make_queue(store, "q", pairs(2), author="t")
    told = apply_actions(
        store,
        queue,
        "ann",
        [SkipAction("run-1", "i-3"), SkipAction("run-1", "i-0"), SkipAction("x" * 2000, "i-1")],
    )
    assert [why.split(" was not skipped")[0] for why in told.refusals] == ["'i-3'", "'i-1'"]
    with pytest.raises(UnknownName):
        apply_actions(store, "no queue", "ann", [SkipAction("run-1", "i-0")])
    with Leases(store.log_path) as leases:
        assert (
            leases.skipped_items(queue, "ann") == [("run-1", "i-0")]
            and leases.skipped_items("no queue", "ann") == []
        )


def test_an_undo_of_a_label_that_is_no_longer_the_last_says_so(store: Store) -> None:
    queue = make_queue(store, "q", pairs(3), author="t")
    first, second, _ = lease_next_items(store, queue, "ann", 3)
    apply_actions(
        store,
        queue,
        "ann",
        [made_label(first, "acceptable", True), made_label(second, "acceptable", True)],
    )  # the second elsewhere
    (why,) = apply_actions(store, queue, "ann", [UndoAction(first.label_id)]).refusals
    assert "'i-0' stays" in why and "'i-1' since" in why
    assert len(label_store.list_labels(store, queue=queue, history=True)) == 2
    for _ in range(2):  # what is told again is silent
        assert apply_actions(store, queue, "ann", [UndoAction(second.label_id)]).refusals == []
    undone = apply_actions(
        store, queue, "ann", [UndoAction(first.label_id), UndoAction("never written")]
    )
    assert (
        undone.undone_label is not None
        and undone.undone_label.item_id == "i-0"
        and label_store.list_labels(store, queue=queue).empty
    )
