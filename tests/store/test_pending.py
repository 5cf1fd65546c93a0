"""What waits for a person, from the store's rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cotlab.review.labelling.queue import make_queue, measure_progress, next_label_id
from cotlab.review.labelling.session import undo_label
from cotlab.store.database import Store
from cotlab.store.pending import labelled_runs, last_label_number, list_drift_alerts, pending_queues
from tests.support.stores.labelled import fill, label
from tests.support.stores.queued import submit


def due(store: Store, rater: str) -> dict[str, tuple[int, int]]:
    return {
        row["name"]: (row["due"], row["mine"])
        for row in pending_queues(store, rater).to_dict("records")
    }


def test_a_queue_is_due_until_its_items_have_the_labels_that_they_want(tmp_path: Path) -> None:
    store = fill(tmp_path, n=5)
    items = [("run-1", f"i-{k:03}", "") for k in range(4)]
    one = make_queue(store, "one each", items[:3], author="ana")
    two = make_queue(store, "two each", items[:2], raters=2, author="ana")
    gold = make_queue(
        store,
        "gold",
        items[:1],
        gold={("run-1", "i-003"): {"reasoning": "acceptable"}},
        author="ana",
    )
    assert due(store, "ana") == {"gold": (2, 0), "two each": (2, 0), "one each": (3, 0)}
    for queue, k, rater in (
        (one, 0, "ana"),
        (two, 0, "ana"),
        (two, 0, "ben"),
        (two, 1, "ben"),
        (gold, 3, "ben"),
    ):
        given = label("run-1", k, rater, queue=queue)
        assert submit(
            store, replace(given, id=next_label_id(queue, given.run_id, given.item_id, rater, 0))
        )
    assert due(store, "ana") == {"gold": (2, 0), "two each": (1, 1), "one each": (2, 1)}
    assert due(store, "ben") == {
        "gold": (1, 1),
        "one each": (2, 0),
    }  # of two each ben has labelled all
    for rater in ("ana", "ben", "cy"):
        told = {
            queue: measure_progress(store, queue, rater).n_rater_left for queue in (one, two, gold)
        }
        found = {row["id"]: row["due"] for row in pending_queues(store, rater).to_dict("records")}
        assert found == {queue: left for queue, left in told.items() if left}
    undo_label(store, gold, "ben")
    assert due(store, "ben")["gold"] == (2, 0)


def test_the_newest_label_and_the_labelled_runs_are_known(tmp_path: Path) -> None:
    store = fill(tmp_path)
    assert (last_label_number(store), labelled_runs(store)) == (0, set())
    fill(tmp_path, "run-2", labels=3)
    assert labelled_runs(store) == {"run-2"} and last_label_number(store) >= 3


def test_an_alert_holds_until_a_later_check_of_the_same_two_clears_it(tmp_path: Path) -> None:
    store, start = Store(tmp_path), datetime(2026, 1, 1, tzinfo=UTC)
    rows = [
        ("a", "b", True),
        ("a", "c", True),
        ("a", "b", False),
        ("b", "a", True),
        ("c", "a", False),
    ]
    with store.writing() as connection:
        for k, (reference, current, alert) in enumerate(rows):
            connection.execute(
                "INSERT INTO drift_checks VALUES (?, ?, ?, ?, 'ana', ?, ?, '{}')",
                [
                    f"check-{k}",
                    f'["{reference}"]',
                    f'["{current}"]',
                    start + timedelta(days=k),
                    alert,
                    f"reason {k}",
                ],
            )
    assert list_drift_alerts(store)[["reference", "current", "reason"]].values.tolist() == [
        [["b"], ["a"], "reason 3"],
        [["a"], ["c"], "reason 1"],
    ]
