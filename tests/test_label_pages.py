"""The pages Label and Agreement: what a rater is shown and not shown, who may write, and what stands in the store after."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from opened import opened
from reliability_store import HOSTILE, STEPS, fill
from streamlit.testing.v1 import AppTest

from cotlab.core.labels import Label
from cotlab.export.label_tables import agreement_points
from cotlab.figures.agreement import label_agreement
from cotlab.review.agreement import agreement
from cotlab.review.queue import make_queue
from cotlab.store import labels as kept
from cotlab.store.gate import Store
from cotlab.ui import access

pytestmark = pytest.mark.soak  # that each page opens, full and empty, is tested with every run


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labels") / "store"
    fill(folder, 12, estimated=False)
    return folder


@pytest.fixture
def store(filled: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("COTLAB_STORE", str(filled))
    return Store()


def queue_of(store: Store, name: str, **more: Any) -> str:
    return make_queue(store, name, [("run-1", f"i-{k:02}", "") for k in range(6)], by="test", **more)


def labelling(queue: str, name: str = "ada") -> AppTest:
    app = opened("label", "Label", queue=queue)
    app.text_input(key="rater-typed").input(name)
    press(app, "Begin")
    if any(b.key == "rater-same" for b in app.button):  # this name labels in a page of another test
        app.button(key="rater-same").click().run()
    return app


def press(app: AppTest, label: str) -> AppTest:
    next(b for b in app.button if b.label == label).click()
    app.run()
    assert not app.exception, [e.value for e in app.exception]
    return app


def blocks(app: AppTest) -> list[tuple[str, str]]:
    """The texts of the item on the page, each with its name; all of them plain text."""
    names = ["Question", *(f"Step {k + 1}" for k in range(len(STEPS))), "Model's answer", "Right answer"]
    texts = [t.value for t in app.main.text]  # the sidebar says who is logged in
    assert not texts or set(names) <= {c.value for c in app.caption}
    return list(zip(names, texts, strict=False))


def test_both_pages_open_on_an_empty_store() -> None:
    app = opened("label", "Label")
    assert [t.label for t in app.text_input] == ["Your name"]
    assert any("Nobody labelled anything" in i.value for i in opened("agreement", "Agreement").info)


def test_a_rater_sees_question_chain_and_answer_and_no_score_nor_markup(store: Store) -> None:
    app = labelling(queue_of(store, f"q {HOSTILE}", gold={("run-1", "i-00"): {"reasoning": "acceptable"}}), "<b>ada</b>")
    shown = blocks(app)
    assert shown[0] == ("Question", f"{HOSTILE} 0")
    assert [text for label, text in shown if label.startswith("Step")] == list(STEPS)
    assert ("Right answer", "12") in shown and shown[-2][0] == "Model's answer"
    every = [e.value for e in (*app.markdown, *app.caption, *app.warning, *app.info, *app.error)]
    assert not any("<script>" in text or "](javascript" in text or "<b>ada" in text for text in every)
    for word in ("gold", "r_raw", "C 0", "score of"):
        assert not any(word in text for text in [*every, *(text for _, text in shown)] if HOSTILE not in text), word
    assert [(b.label, b.proto.shortcut) for b in app.button if b.proto.shortcut] == [
        ("Acceptable", "1"), ("Not acceptable", "2"), ("Unsure", "3"), ("Skip", "s"), ("Flag", "f"), ("Undo", "z"),
        ("Help", "h"), ("Post hoc", "4"), ("Global drift", "5"), ("Semantic instability", "6"),
        ("Brittle continuation", "7"), ("Unsupported jump", "8"), ("Other", "9"),
    ]  # fmt: skip


def test_a_verdict_is_written_once_with_its_modes_and_the_next_item_comes(store: Store) -> None:
    queue = queue_of(store, "once")
    app = press(press(labelling(queue), "Other"), "Not acceptable")
    assert blocks(app)[0] == ("Question", f"{HOSTILE} 1")
    item = opened("item", "Item", run="run-1", item="i-00")  # another reader, who sees no label before asking for it
    assert not any("not acceptable" in t.value for t in item.text)
    item.toggle(key="labels-run-1-i-00").set_value(True).run()
    assert [t.value for t in item.text] == ["ada: not acceptable, answer wrong, other"]
    (row,) = kept.labels(store, queue=queue, history=True).to_dict("records")
    assert (row["item_id"], row["rater"], row["reasoning"], row["modes"]) == ("i-00", "ada", "not_acceptable", ("other",))
    assert row["answer_correct"] is False  # prefilled by the run
    press(app, "Undo")
    assert blocks(app)[0] == ("Question", f"{HOSTILE} 0") and kept.labels(store, queue=queue).empty


def test_who_may_only_look_is_shown_no_item_and_a_write_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = queue_of(store, "roles")
    app = labelling(queue)
    monkeypatch.setattr(access, "person", lambda: access.Person("ada", "viewer", "header"))
    next(b for b in app.button if b.label == "Acceptable").click()  # the page was drawn while the role was there
    app.run()
    assert kept.labels(store, queue=queue, history=True).empty
    looked = opened("label", "Label", queue=queue)
    assert not blocks(looked) and any("not label" in i.value for i in looked.info)
    assert not any(b.label in ("Acceptable", "Make it") for b in looked.button)


def test_a_queue_is_made_from_the_form(store: Store) -> None:
    app = labelling(queue_of(store, "form"))
    app.toggle(key="queue-make").set_value(True)
    app.run()
    app.text_input(key="queue-name").input("mine")
    app.number_input(key="queue-n").set_value(5)
    app.number_input(key="queue-overlap").set_value(40)
    press(app, "Make it")
    newest = kept.queues(store).iloc[0]
    assert (newest["name"], newest["n"], newest["made_by"]) == ("mine", 5, "ada")
    assert sorted(kept.queue_items(store, newest["id"])["raters"]) == [1, 1, 1, 2, 2]  # 40 % of five


def test_agreement_shows_alpha_kappa_and_who_differs(store: Store) -> None:
    queue = queue_of(store, "agree", raters=2)
    said = {"ada": "aannua", "bob": "aananu"}
    words = {"a": "acceptable", "n": "not_acceptable", "u": "unsure"}
    rows = [
        Label(f"{name}-{k}", "run-1", f"i-{k:02}", name, words[word], True, datetime.now(UTC), queue=queue)  # type: ignore[arg-type]
        for name, told in said.items() for k, word in enumerate(told)
    ]  # fmt: skip
    with store.writing() as connection:
        kept.add_labels(connection, rows)
    app = opened("agreement", "Agreement", queue=queue)
    (chart,) = [json.loads(e.proto.spec) for e in app.get("plotly_chart")]
    told = [a["text"] for a in chart["layout"]["annotations"]]
    # By hand: the same on 3 of 6; shares a 3 n 2 u 1 and a 3 n 2 u 1, so chance is (9 + 4 + 1) / 36 = 7/18 and kappa
    # (1/2 - 7/18) / (11/18) = 2/11 = 0.182. Pooled 6, 4, 2: chance to differ 1 - (30 + 12 + 2) / 132 = 2/3, alpha 1 - 3/4.
    assert told[0].startswith("0.250 [") and told[1].startswith("0.182 [")
    assert all("n = 6 items" in text for text in told)
    assert any(c.value == "3 items, 3 of them not settled." for c in app.caption)
    press(app, "Have 3 adjudicated")
    assert kept.queues(store).iloc[0][["kind", "n"]].tolist() == ["adjudication", 3]


def test_the_figure_says_what_is_not_there() -> None:
    table = agreement_points(agreement(Store()), "reasoning")
    assert table.empty and "no item has labels of two raters" in str(label_agreement(table).layout.annotations[0].text)


def test_nobody_judges_what_a_redacted_run_does_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path / "store"))
    fill(tmp_path / "store", 3, estimated=False)
    store = Store()
    queue = make_queue(store, "blind", [("run-1", "i-00", "")], by="test")
    with store.writing() as connection:
        connection.execute("UPDATE items SET question = 'sha256:1', steps = ['sha256:2'], answer = 'sha256:3', meta = NULL")
    app = labelling(queue)
    assert any("kept no texts" in w.value for w in app.warning)
    off = {b.label for b in app.button if b.disabled}
    assert {"Acceptable", "Not acceptable", "Unsure"} <= off and not off & {"Skip", "Flag"}
    with store.writing() as connection:
        connection.execute("UPDATE items SET question = 'How many?', meta = '{}'")
    assert press(app, "Help").text[0].value == "How many?"


def test_a_name_that_labels_elsewhere_is_not_taken_unasked(store: Store) -> None:
    queue = queue_of(store, "two of a name")
    labelling(queue, "eve")
    app = opened("label", "Label", queue=queue)
    app.text_input(key="rater-typed").input("eve")
    press(app, "Begin")
    assert not blocks(app) and any("eve is at an item right now" in w.value for w in app.warning)
    assert blocks(press(app, "I am eve"))[0] == ("Question", f"{HOSTILE} 0")


def test_an_item_that_is_scored_anew_is_read_anew(store: Store) -> None:
    app = labelling(queue_of(store, "anew"))
    (_, before), *_ = blocks(app)
    with store.writing() as connection:
        connection.execute("UPDATE items SET question = 'Another text' WHERE id = 'i-00'")
        connection.execute("UPDATE ended SET ended_at = ended_at + INTERVAL 1 HOUR WHERE item = 'i-00'")
    assert blocks(press(app, "Help"))[0] == ("Question", "Another text") != before
    with store.writing() as connection:
        connection.execute("UPDATE items SET question = ? WHERE id = 'i-00'", [before])
        connection.execute("UPDATE ended SET ended_at = ended_at + INTERVAL 1 HOUR WHERE item = 'i-00'")
