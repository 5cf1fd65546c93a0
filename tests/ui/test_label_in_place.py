"""A chain is labelled where it is read, outside of queues, and never before a blind label."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from cotlab.core.labels import Label, steps_digest
from cotlab.review.labelling.queue import make_queue
from cotlab.store import labels as label_store
from cotlab.store.database import Store
from tests.support.stores.judged import add_measured_run
from tests.ui.test_pages import open_page


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    store = Store(tmp_path / "store")
    for run, change in (("base", 1.0), ("other", 0.0)):
        add_measured_run(store, run, {"change": change, "control": 0.0})
    monkeypatch.setenv("COTLAB_STORE", str(store.folder))
    return store


def stored_labels(store: Store) -> list[Label]:
    return label_store.labels_from_table(label_store.list_labels(store))


def give_label(page: AppTest, position: int, **values: str) -> AppTest:
    for name, value in values.items():
        box = [box for box in page.selectbox if box.label == "First wrong step"]
        groups = [group for group in page.button_group if group.label == name.capitalize()]
        (box if name == "first" else groups)[position].set_value(value)
    [button for button in page.button if button.label == "Store the label"][position].click()
    return page.run()


def test_each_side_of_a_comparison_is_labelled(store: Store) -> None:
    page = open_page("compare", base="base", other="other", item="i3")
    assert not page.exception
    page = give_label(page, 1, first="step 1", answer="wrong")
    (label,) = stored_labels(store)
    assert (label.run_id, label.item_id, label.origin, label.queue) == ("other", "i3", "open", None)
    assert (label.reasoning, label.first_wrong_step) == ("not_acceptable", 0)
    assert label.answer_correct is False
    assert label.steps_digest == steps_digest(("1 + 3 = 4.",))
    give_label(page, 0, reasoning="Acceptable", faithful="faithful")
    by_run = {label.run_id: label for label in stored_labels(store)}
    assert (by_run["base"].reasoning, by_run["base"].faithful) == ("acceptable", True)
    assert not by_run["base"].steps_judged


def test_the_last_label_counts_and_contradictions_are_refused(store: Store) -> None:
    page = open_page("items", run="base", item="i0")
    page = give_label(page, 0)
    assert "Choose what you say" in page.warning[0].value and not stored_labels(store)
    page = give_label(page, 0, first="step 1", reasoning="Acceptable")
    assert page.warning and not stored_labels(store)
    page = give_label(page, 0, first="no step is wrong", reasoning="Acceptable")
    give_label(page, 0, first="no step is wrong", reasoning="Not acceptable")
    assert [label.reasoning for label in stored_labels(store)] == ["not_acceptable"]


def test_a_chain_that_a_queue_may_ask_for_is_labelled_there(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_queue(store, "q", [("base", "i0", "")], author="lead")
    monkeypatch.setattr("cotlab.ui.access.typed_name", lambda: "rater")
    page = open_page("items", run="base", item="i0")
    assert not [button for button in page.button if button.label == "Store the label"]
    assert any("label it on the page Label" in caption.value for caption in page.caption)
