"""The page Label hides model, run and answer key before the verdict, and settles disagreements."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from cotlab.review.labelling.queue import make_queue
from cotlab.review.labelling.truth import load_truth
from cotlab.store import labels as label_store
from cotlab.store.database import Store
from cotlab.ui import access
from tests.support.label_widget import desk, label, press, queue_of, tell
from tests.support.pages import opened
from tests.support.stores import MODEL
from tests.support.stores.reliability import fill

pytestmark = pytest.mark.soak


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    fill(tmp_path / "store", 6, estimated=False)
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path / "store"))
    return Store()


def labelling(queue: str, name: str) -> AppTest:
    app = opened("label", queue=queue)
    app.text_input(key="rater-typed").input(name)
    return press(app, "Begin")


def on_page(app: AppTest) -> str:
    """Return every text of the page, links and the options of pickers among them, and the texts of
    the item."""
    elements = (*app.text, *app.markdown, *app.caption, *app.info, *app.success, *app.selectbox)
    texts = [str(getattr(element, "options", element.value)) for element in elements]
    links = [f"{link.proto.label} {link.proto.query_string}" for link in app.get("page_link")]
    items = [[item["rows"], item["whose"], item["notes"]] for item in desk(app).get("items", [])]
    return json.dumps([texts, links, items])


def test_key_model_and_run_come_after_the_verdict(store: Store) -> None:
    items = [("run-1", f"i-{k:02}", "") for k in range(2)]
    app = labelling(make_queue(store, "Review of run-1", items, author="test"), "ada")
    for name in ("run-1", MODEL.name, "ight answer", "orrect"):
        assert name not in on_page(app), name
    assert "Review of a hidden run" in on_page(app)
    tell(app, label(app, "acceptable"))  # the answer is left to the key
    (row,) = label_store.list_labels(store).to_dict("records")
    assert row["answer_correct"] is False and row["target"] is False
    page = on_page(app)
    assert "right answer 12" in page and "answer wrong" in page
    assert "run-1" not in page and MODEL.name not in page  # the other chain is of the same run
    tell(app, label(app, "acceptable", answer=True))
    page = on_page(app)
    assert "run=run-1" in page and MODEL.name in page
    assert label_store.list_labels(store)["answer_correct"].tolist() == [False, True]


def test_no_link_beside_a_chain_names_the_run_that_was_open(store: Store) -> None:
    queries = [
        {link.proto.query_string for link in opened(page, run="run-1").get("page_link")}
        for page in ("steps", "label")
    ]
    assert "run=run-1" in queries[0] and "run=run-1" not in queries[1]


def test_disagreements_are_settled_after_a_view_of_ones_own_and_undone(store: Store) -> None:
    queue = queue_of(store, "twice", raters=2)
    tell(app := labelling(queue, "ada"), label(app, "acceptable", judged=True, first=None))
    steps = {"judged": True, "first": 1, "digest": desk(app)["items"][0]["digest"]}
    tell(app := labelling(queue, "<b>bob</b>"), label(app, "not_acceptable", **steps))
    assert any("disagree on 1 chain" in text.value for text in app.text)
    app = press(app, "Settle them")
    made = label_store.list_label_queues(store).iloc[0]
    assert (made["kind"], made["n"], desk(app)["queue"]) == ("adjudication", 1, made["id"])
    (item,) = desk(app)["items"]
    assert item["others"]["raters"] == ["ada", "<b>bob</b>"]
    rows = {name: (differs, cells) for name, differs, cells in item["others"]["rows"]}
    assert rows["Chain"] == (True, ["acceptable", "not acceptable"])
    assert any("one of the raters" in note for note in item["notes"])

    def truth() -> tuple[object, object]:
        row = load_truth(store, ["run-1"]).set_index("item_id").loc["i-00"]
        return row["sound"], row["first_wrong_step"]

    assert truth() == (None, None)
    tell(app, settled := label(app, "not_acceptable", **steps))
    assert truth() == (False, 1)
    shown = opened("disagreements", queue=queue)
    assert any("settled by" in caption.value for caption in shown.caption)
    tell(app, {"kind": "undo", "of": settled["id"]})
    assert truth() == (None, None)


def test_who_still_has_to_label_a_chain_does_not_read_what_raters_said(store: Store) -> None:
    queue = queue_of(store, "three", raters=3)
    tell(app := labelling(queue, "ada"), label(app, "acceptable"))
    tell(app := labelling(queue, "bob"), label(app, "not_acceptable"))
    app = press(labelling(queue, "cy"), "Settle them")
    (item,) = desk(app)["items"]
    assert item["others"] is None and not item["readable"]
    assert any("Label it there first" in note for note in item["notes"])


def test_a_run_without_replies_is_offered_to_nobody(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.writing() as connection:
        connection.execute("DELETE FROM scores")
    app = opened("label")
    app.text_input(key="rater-typed").input("ada")
    press(app, "Begin")
    assert not app.selectbox
    assert any("No run has replies that can be read" in info.value for info in app.info)


def test_a_kept_name_is_not_asked_for_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = queue_of(store, "kept")
    monkeypatch.setattr(access, "_cookie_name", lambda: "Ada%20L%C3%B6")
    app = opened("label", queue=queue)
    assert desk(app)["rater"] == "Ada Lö" and not app.text_input
    press(app, "Somebody else")
    assert app.text_input(key="rater-typed") and not desk(app)


def test_labels_are_exported_without_those_that_a_rater_may_not_read(store: Store) -> None:
    items = [("run-1", f"i-{k:02}", "") for k in range(2)]
    queue = make_queue(store, "export", items, raters=2, author="test")

    def label_both(name: str) -> None:
        app = labelling(queue, name)
        digest = desk(app)["items"][0]["digest"]
        tell(app, label(app, "acceptable", judged=True, answer=True, digest=digest))
        tell(app, label(app, "not_acceptable", judged=True, first=1, digest=digest))

    def buttons(name: str) -> set[str]:
        app = opened("agreement", queue=queue, more="true")
        app.session_state["local_rater"] = name
        app.run()
        return {button.proto.label for button in app.get("download_button")}

    label_both("ada")
    assert {"2 labels (JSONL)", "2 labels (CSV)", "2 chains (JSONL)"} <= buttons("ada")
    assert "0 labels (JSONL)" in buttons("bob") and "2 chains (JSONL)" not in buttons("bob")
    label_both("bob")
    assert {"4 labels (JSONL)", "2 chains (JSONL)"} <= buttons("bob")
