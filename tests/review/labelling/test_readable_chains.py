"""Which chains can be queued, guidelines by section, and the queue of disagreements."""

from __future__ import annotations

from pathlib import Path

import pytest

import cotlab
from cotlab.review.labelling.agreement import list_settlements, open_adjudication
from cotlab.review.labelling.queue import QueueError, lease_next_items, make_queue
from cotlab.review.labelling.readable_chains import (
    NO_CHAIN_REASON,
    keep_readable,
    require_readable,
    runs_to_label,
)
from cotlab.review.labelling.session import undo_label
from cotlab.review.labelling.truth import load_truth
from cotlab.store.database import Store
from tests.support.stores.queued import fill, label_all, made_label, pairs, submit


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return fill(tmp_path / "store", 4)


def test_chains_that_nobody_can_read_are_left_out_with_the_reason(store: Store) -> None:
    assert [row["id"] for row in runs_to_label(store)] == ["run-1"]
    with store.writing() as connection:
        connection.execute("UPDATE items SET steps = [] WHERE id = 'i-1'")
    kept = keep_readable(store, pairs(4))
    assert [item for _, item, _ in kept.items] == ["i-0", "i-2", "i-3"]
    assert kept.n_left_out_by_reason == {NO_CHAIN_REASON: 1}
    assert len(keep_readable(store, pairs(4), 2).items) == 2
    with store.writing() as connection:
        connection.execute("UPDATE items SET steps = []")
    with pytest.raises(QueueError, match="4 items: no chain is stored"):
        require_readable(store, pairs(4))
    with pytest.raises(QueueError, match="no replies yet"):
        require_readable(store, [])
    with store.writing() as connection:
        connection.execute("DELETE FROM scores")
    assert runs_to_label(store) == []


def test_a_run_that_no_model_answered_is_not_offered(tmp_path: Path) -> None:
    """The organism knows no word of these questions, so the chains are the suite's alone."""
    options = {"model": "r100", "limit": 2, "store": tmp_path, "allow_empty": True}
    cotlab.run_suite("commonsense", **options)
    assert runs_to_label(Store(tmp_path)) == []
    answered = cotlab.run_suite("wordproblems", **options).run_id
    assert [row["id"] for row in runs_to_label(Store(tmp_path))] == [answered]


def test_a_settled_label_beats_the_majority_until_it_is_taken_back(store: Store) -> None:
    queue = make_queue(store, "three", pairs(1), raters=3, author="test")
    for name in ("ann", "bob"):
        label_all(store, queue, name, "acceptable")
    label_all(store, queue, "cy", "not_acceptable")
    adjudication = open_adjudication(store, author="dee")
    assert open_adjudication(store, author="eve") == adjudication  # it has just these items

    def sound() -> object:
        return load_truth(store, ["run-1"]).set_index("item_id").loc["i-0", "sound"]

    assert sound() is True
    (item,) = lease_next_items(store, adjudication, "dee")
    label = made_label(item, "not_acceptable", None)
    submit(store, label)
    assert sound() is False
    settlement = list_settlements(store)["run-1", "i-0"]
    assert (settlement.rater, settlement.verdict, settlement.at) == (
        "dee",
        "not_acceptable",
        label.at,
    )
    with pytest.raises(QueueError, match="nothing to label was chosen"):
        open_adjudication(store, author="dee")
    undo_label(store, adjudication, "dee")
    assert sound() is True and list_settlements(store) == {}
    assert open_adjudication(store, author="dee") == adjudication
