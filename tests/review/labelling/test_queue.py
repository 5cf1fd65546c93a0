"""A queue asks each rater once, keeps no more places than it wants filled, and loses nothing that
was said."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from cotlab.core.errors import UnknownName
from cotlab.review.labelling import queue as queues
from cotlab.review.labelling.queue import LeasedItem, QueueError, lease_next_items, make_queue
from cotlab.review.labelling.session import SkipAction, apply_actions, latest_labels, undo_label
from cotlab.store import labels as label_store
from cotlab.store.database import Store
from cotlab.store.live import Leases
from tests.support.stores.queued import fill, label_all, made_label, pairs, submit


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return fill(tmp_path / "s")


def asked(store: Store, queue: str, rater: str, *, skipped: bool = False) -> LeasedItem:
    (item,) = lease_next_items(store, queue, rater, with_skipped=skipped)
    return item


def let_run_out(store: Store) -> None:
    with Leases(store.log_path) as leases:
        leases._connection.execute("UPDATE leases SET until = until - 1000")


def test_an_item_is_kept_for_one_rater_and_shown_again_after_a_reload(store: Store) -> None:
    queue = make_queue(store, "q", pairs(), author="me")
    first = asked(store, queue, "ann")
    again = asked(store, queue, "ann")
    assert (
        (again.item_id, again.label_id)
        == (first.item_id, first.label_id)
        == ("i-0", first.label_id)
    )
    assert asked(store, queue, "bob").item_id == "i-1"
    assert submit(store, made_label(first, "acceptable", True))
    assert asked(store, queue, "ann").item_id == "i-2"  # i-1 is bob's


def test_a_clock_that_goes_back_keeps_no_item_from_others(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = make_queue(store, "q", pairs(1), author="t")
    first = asked(store, queue, "ann")
    assert not lease_next_items(store, queue, "bob")
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() - 3600)
    second = asked(store, queue, "bob")
    assert second.item_id == first.item_id and not lease_next_items(store, queue, "ann")
    assert submit(store, made_label(first, "acceptable", True))


def test_a_key_pressed_twice_writes_one_label_and_the_first_press_counts(store: Store) -> None:
    queue = make_queue(store, "q", pairs(), author="me")
    item = asked(store, queue, "ann")
    with ThreadPoolExecutor(4) as pool:
        landed = list(
            pool.map(lambda _: submit(store, made_label(item, "acceptable", True)), range(4))
        )
    assert sorted(landed) == [False, False, False, True]
    assert not submit(store, made_label(item, "not_acceptable", False))
    assert label_store.list_labels(store, history=True)["reasoning"].tolist() == ["acceptable"]


def test_threads_that_label_at_once_fill_each_place_once(store: Store) -> None:
    queue = make_queue(store, "q", pairs(4), overlap=0.5, author="me")
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda rater: label_all(store, queue, rater), ("ann", "bob", "cid")))
    table = label_store.list_labels(store, history=True)
    wants = dict(
        label_store.list_queue_items(store, queue)[["item_id", "raters"]].itertuples(index=False)
    )
    assert sorted(wants.values()) == [1] * 2 + [2] * 2
    assert Counter(table["item_id"]) == wants and not table.duplicated(["item_id", "rater"]).any()


@pytest.mark.soak
def test_processes_that_label_at_once_fill_each_place_once(tmp_path: Path) -> None:
    store = fill(tmp_path / "s", 12)
    queue = make_queue(store, "q", pairs(12), overlap=0.5, author="me")
    worker = [sys.executable, "-m", "tests.support.stores.queued", str(store.folder), queue]
    root = Path(__file__).parents[3]
    both = [
        subprocess.Popen([*worker, rater], cwd=root, stdout=subprocess.PIPE, text=True)
        for rater in ("ann", "bob", "bob")
    ]
    said = [
        process.communicate()[0].split() for process in both
    ]  # bob looks at the queue in two windows
    assert [process.returncode for process in both] == [0, 0, 0]
    table = label_store.list_labels(store, history=True)
    wants = dict(
        label_store.list_queue_items(store, queue)[["item_id", "raters"]].itertuples(index=False)
    )
    assert (
        Counter(table["item_id"]) == wants == Counter(sum(said, []))
        and sorted(wants.values()) == [1] * 6 + [2] * 6
    )
    assert not table.duplicated(["item_id", "rater"]).any()
    assert sorted(table.loc[table["rater"] == "ann", "item_id"]) == sorted(said[0])


def test_what_was_said_late_or_beyond_what_is_wanted_is_kept(store: Store) -> None:
    queue = make_queue(store, "q", pairs(1), author="me")
    late = asked(store, queue, "ann")
    assert not lease_next_items(store, queue, "bob")  # ann looks at the only one
    let_run_out(store)
    other = asked(store, queue, "bob")
    assert not lease_next_items(store, queue, "ann") and submit(
        store, made_label(other, "not_acceptable", True)
    )
    assert submit(store, made_label(late, "acceptable", True))
    assert label_store.list_labels(store)["rater"].tolist() == ["bob", "ann"]
    assert not lease_next_items(store, queue, "cid")


def test_who_asks_while_a_label_lands_is_not_asked_for_more_than_is_wanted(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ann's label lands, and her lease goes, between bob's look at the labels and his claim."""
    queue = make_queue(store, "q", pairs(2), author="me")
    item, claim = asked(store, queue, "ann"), Leases.claim

    def claim_late(*args: object, **more: object) -> object:
        submit(store, made_label(item, "acceptable", True))
        return claim(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Leases, "claim", claim_late)
    assert asked(store, queue, "bob").item_id == "i-1"


def test_skipped_items_come_back_at_the_end_when_asked_for(store: Store) -> None:
    queue = make_queue(store, "q", pairs(3), author="me")
    for expected in ("i-0", "i-1"):
        item = asked(store, queue, "ann")
        assert item.item_id == expected
        apply_actions(store, queue, "ann", [SkipAction(item.run, item.item_id)])
    assert asked(store, queue, "bob").item_id == "i-0"  # skipped by ann alone
    submit(store, made_label(asked(store, queue, "ann"), "acceptable", True))
    assert not lease_next_items(store, queue, "ann")
    assert queues.measure_progress(store, queue, "ann") == queues.QueueProgress(
        3, 1, 1, 3, n_rater_labelled=1, n_rater_left=0, n_rater_skipped=2
    )
    item = asked(store, queue, "ann", skipped=True)
    assert item.item_id == "i-1"  # i-0 is bob's by now
    apply_actions(store, queue, "ann", [SkipAction(item.run, item.item_id)])
    assert asked(store, queue, "ann", skipped=True).item_id == "i-1"


def test_undo_withdraws_or_restores_and_goes_further_back(store: Store) -> None:
    queue = make_queue(store, "q", pairs(), author="me")
    one = asked(store, queue, "ann")
    submit(store, made_label(one, "acceptable", True, note="first thought"))
    submit(store, made_label(asked(store, queue, "ann"), "acceptable", False))
    given = latest_labels(store, queue, "ann")
    assert [each.label.item_id for each in given] == ["i-1", "i-0"]
    changed = replace(
        given[1].label, id=given[1].correction_id, reasoning="not_acceptable", note="second"
    )
    assert submit(store, changed) and not submit(store, changed)

    def holding() -> dict[str, tuple[str, str]]:
        rows = label_store.list_labels(store).to_dict("records")
        return {row["item_id"]: (row["reasoning"], row["note"]) for row in rows}

    assert holding() == {"i-1": ("acceptable", ""), "i-0": ("not_acceptable", "second")}
    assert undo_label(store, queue, "ann", undone_id=changed.id) == changed
    assert undo_label(store, queue, "ann", undone_id=changed.id) is None  # pressed twice
    assert holding() == {"i-1": ("acceptable", ""), "i-0": ("acceptable", "first thought")}
    for item, left in (("i-1", ["i-0"]), ("i-0", [])):
        top = latest_labels(store, queue, "ann")[0].label
        undone = undo_label(store, queue, "ann", undone_id=top.id)
        assert undone == top and undone.item_id == item and list(holding()) == left
    assert undo_label(store, queue, "ann") is None
    assert len(label_store.list_labels(store, history=True)) == 6  # three labels, three undoings
    again = asked(store, queue, "ann")
    assert again.item_id == "i-0" and again.label_id != one.label_id
    assert not submit(
        store, made_label(one, "unsure", None)
    )  # a press that comes late is still the first one
    assert submit(store, made_label(again, "unsure", None))


def test_undo_gives_back_what_was_said_in_another_queue(store: Store) -> None:
    here, there = (make_queue(store, name, pairs(1), author="me") for name in ("here", "there"))
    submit(store, made_label(asked(store, there, "ann"), "not_acceptable", True))
    submit(store, made_label(asked(store, here, "ann"), "acceptable", True))
    with pytest.raises(QueueError, match="outside of this queue"):
        undo_label(store, there, "ann")
    undo_label(store, here, "ann")
    assert label_store.list_labels(store)[["reasoning", "queue"]].values.tolist() == [
        ["not_acceptable", there]
    ]
    assert asked(store, here, "ann").item_id == "i-0" and not lease_next_items(store, there, "ann")


def test_the_answer_is_prefilled_where_the_run_knows(store: Store) -> None:
    queue = make_queue(store, "q", pairs(), author="me")
    assert [item.prefilled_correct for item in lease_next_items(store, queue, "ann", 4)] == [
        True,
        False,
        None,
        True,
    ]


def test_gold_items_go_to_everybody_and_look_like_the_others(store: Store) -> None:
    gold = {
        ("run-1", "i-0"): {"reasoning": "acceptable"},
        ("run-1", "i-7"): {"reasoning": "not_acceptable"},
    }
    queue = make_queue(store, "q", pairs(2), gold=gold, author="me")
    assert len(label_store.list_queue_items(store, queue)) == 3
    for rater in ("ann", "bob"):
        label_all(store, queue, rater)
    counts = Counter(label_store.list_labels(store)["item_id"])
    assert counts == {"i-0": 2, "i-7": 2, "i-1": 1}
    assert not {"gold", "reason"} & {name.lower() for name in LeasedItem.__dataclass_fields__}


def test_the_share_of_overlap_is_the_same_each_time(store: Store) -> None:
    def chosen(name: str, **more: float) -> list[int]:
        return [
            int(n)
            for n in label_store.list_queue_items(
                store, make_queue(store, name, pairs(), author="me", **more)
            )["raters"]
        ]  # type: ignore[arg-type]

    assert chosen("a", overlap=0.5) == chosen("a", overlap=0.5) != chosen("b", overlap=0.5)
    assert sorted(chosen("a", overlap=0.5, raters=3)) == [1, 1, 1, 1, 3, 3, 3, 3]
    assert chosen("a", raters=2) == [2] * 8


def test_flagging_is_a_label_of_its_own_and_finds_its_way_to_a_queue(store: Store) -> None:
    queue = make_queue(store, "q", pairs(), author="me")
    assert submit(
        store,
        made_label(
            asked(store, queue, "ann"), "unsure", None, note="the question is cut off", flagged=True
        ),
    )
    row = label_store.list_labels(store).iloc[0]
    assert (row["reasoning"], bool(row["flagged"]), row["target"]) == ("unsure", True, None)
    assert queues.find_flagged_items(store, ["run-1"]) == [("run-1", "i-0", "flagged by ann")]
    assert queues.find_flagged_items(store, ["run-2"]) == []
    undo_label(store, queue, "ann")
    assert queues.find_flagged_items(store) == []


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"items": []}, QueueError, "would be empty"),
        (
            {"items": [("run-1", "i-8", "")]},
            UnknownName,
            "item of run run-1 'i-8'",
        ),  # in the suite, never measured
        ({"items": [("run-9", "i-0", "")]}, UnknownName, "run 'run-9'"),
        ({"raters": 0}, QueueError, "1 to 1000 raters"),
        ({"raters": 10**11}, QueueError, "1 to 1000 raters"),
        ({"overlap": 1.5}, QueueError, "overlap"),
        ({"kind": "lable"}, UnknownName, "Did you mean 'label'"),
        (
            {"gold": {("run-1", "i-0"): {"reasoning": "unsure"}}},
            QueueError,
            "expected label of 'i-0'",
        ),
        ({"name": " "}, QueueError, "name"),
    ],
)
def test_what_makes_no_queue(
    store: Store, change: dict[str, object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        make_queue(store, **({"name": "q", "items": pairs(), "author": "me"} | change))  # type: ignore[arg-type]
    assert label_store.list_label_queues(store).empty


def test_a_label_has_to_be_of_the_queue(store: Store) -> None:
    queue = make_queue(store, "q", pairs(2), author="me")
    label = made_label(asked(store, queue, "ann"), "acceptable", True)
    assert not submit(store, replace(label, item_id="i-7"))
    with pytest.raises(UnknownName, match="queue 'nope'"):
        submit(store, replace(label, queue="nope"))
    with pytest.raises(UnknownName, match="queue 'nope'"):
        lease_next_items(store, "nope", "ann")
    assert label_store.list_labels(store, history=True).empty
