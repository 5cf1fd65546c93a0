"""What others said of an item is kept from whoever a queue may still ask for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from cotlab.review.labelling.agreement import find_items_to_adjudicate
from cotlab.review.labelling.queue import make_queue
from cotlab.review.labelling.targets import load_hidden_items
from cotlab.store.database import Store
from cotlab.store.labels import add_labels, list_label_queues
from cotlab.ui import access
from tests.support.pages import opened, opened_item
from tests.support.stores.labelled import fill, label

ITEMS = [("run-1", f"i-{k:03}", "") for k in range(4)]


def hidden(store: Store, rater: str, *, rates: bool = True) -> list[str]:
    return sorted(item for _, item in load_hidden_items(store, rater, is_rater=rates))


def give(store: Store, queue: str, rater: str, k: int, *, good: bool = True) -> None:
    with store.writing() as connection:
        assert add_labels(connection, [label("run-1", k, rater, good=good, queue=queue)])


def test_an_item_is_hidden_until_it_is_labelled_or_the_queue_has_enough(tmp_path: Path) -> None:
    store = fill(tmp_path, n=5)
    queue = make_queue(store, "two each", ITEMS[:3], raters=2, author="root")
    assert hidden(store, "ana") == ["i-000", "i-001", "i-002"]
    give(store, queue, "ana", 0)
    give(store, queue, "ana", 1)
    assert hidden(store, "ana") == ["i-002"] and hidden(store, "ben") == ["i-000", "i-001", "i-002"]
    give(store, queue, "ben", 0, good=False)
    assert hidden(store, "ben") == ["i-001", "i-002"] and hidden(store, "cy") == ["i-001", "i-002"]


def test_an_adjudication_hides_nothing_and_uncovers_nothing(tmp_path: Path) -> None:
    store = fill(tmp_path, n=5)
    queue = make_queue(store, "two each", ITEMS[:1], raters=2, author="root")
    give(store, queue, "ana", 0)
    give(store, queue, "ben", 0, good=False)
    make_queue(store, "settle", find_items_to_adjudicate(store), kind="adjudication", author="root")
    assert hidden(store, "ana") == hidden(store, "cy") == []
    make_queue(store, "audit", ITEMS[:1], kind="audit", author="root")
    assert hidden(store, "cy") == ["i-000"]


def test_who_looks_after_queues_is_a_rater_where_they_labelled(tmp_path: Path) -> None:
    store = fill(tmp_path, n=5)
    one = make_queue(store, "one", ITEMS[:2], raters=2, author="root")
    make_queue(store, "two", ITEMS[2:], raters=2, author="root")
    assert hidden(store, "root", rates=False) == []
    give(store, one, "root", 0)
    assert hidden(store, "root", rates=False) == ["i-001"]


def texts(app: AppTest) -> list[str]:
    return [one.value for one in (*app.main.text, *app.main.caption, *app.main.info)]


@pytest.mark.soak
def test_pages_count_what_they_hide_from_a_labeller_and_show_it_after_their_label(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = fill(Store().folder, n=5)
    queue = make_queue(store, "three each", ITEMS[:2], raters=3, author="root")
    for k, rater, good in (
        (0, "ana", True),
        (0, "ben", False),
        (1, "ana", True),
        (1, "ben", False),
        (1, "cy", True),
    ):
        give(store, queue, rater, k, good=good)
    monkeypatch.setattr(access, "current_person", lambda: access.Person("cy", "labeller", "header"))
    seen = texts(opened("agreement"))
    assert (
        sum("ben: not acceptable" in one for one in seen) == 1
    )  # of the second item, which cy labelled
    assert any(one.startswith("1 item on which raters disagree is hidden: ") for one in seen)
    box = opened_item("run-1", "i-000")
    assert not any(one.key and str(one.key).startswith("labels-") for one in box.toggle)
    assert any("2 labels by other raters are hidden: " in one for one in texts(box))
    give(store, queue, "cy", 0)
    seen = texts(opened("agreement"))
    assert sum("ben: not acceptable" in one for one in seen) == 2 and not any(
        "hidden" in one for one in seen
    )
    box = opened_item("run-1", "i-000")
    assert (
        any(one.startswith("ben: not acceptable") for one in texts(box))
        and len(list_label_queues(store)) == 1
    )
