"""The page Label: what a rater sees and does not see, who may label, and what is stored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from cotlab.review.labelling.queue import make_queue
from cotlab.store import labels as label_store
from cotlab.store.database import Store
from cotlab.ui import access
from tests.support.label_widget import desk, label, press, queue_of, tell
from tests.support.pages import opened, opened_item
from tests.support.stores.reliability import HOSTILE, STEPS, fill

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


def labelling(queue: str, name: str = "ada", **query: str) -> AppTest:
    app = opened("label", queue=queue, **query)
    app.text_input(key="rater-typed").input(name)
    press(app, "Begin")
    if any(b.key == "rater-same" for b in app.button):  # this name labels in a page of another test
        app.button(key="rater-same").click().run()
    return app


def blocks(app: AppTest) -> list[tuple[str, str]]:
    """Return the texts of the current item, each with its label."""
    items = desk(app).get("items")
    return [(name, text) for name, text in items[0]["rows"]] if items else []


def test_both_pages_open_on_an_empty_store() -> None:
    app = opened("label")
    assert [t.label for t in app.text_input] == ["Your name"]
    assert any("Nobody labelled anything" in i.value for i in opened("agreement").info)


def test_a_rater_sees_question_chain_and_answer_and_no_score_nor_markup(store: Store) -> None:
    app = labelling(
        queue_of(store, f"q {HOSTILE}", gold={("run-1", "i-00"): {"reasoning": "acceptable"}}),
        "<b>ada</b>",
    )
    shown = blocks(app)
    assert shown[0] == ("Question", f"{HOSTILE} 0")
    assert [text for label, text in shown if label.startswith("Step")] == list(STEPS)
    assert shown[-1][0] == "Model's answer" and desk(app)["items"][0]["answer"] == "key"
    every = [e.value for e in (*app.markdown, *app.caption, *app.warning, *app.info, *app.error)]
    assert not any(
        "<script>" in text or "](javascript" in text or "<b>ada" in text for text in every
    )
    told = {key for item in desk(app)["items"] for key in item}
    assert told == {
        "id",
        "run",
        "item",
        "answer",
        "readable",
        "rows",
        "steps",
        "digest",
        "marks",
        "whose",
        "notes",
        "until",
        "known",
        "corrects",
        "note",
        "modes",
        "faithful",
        "others",
    }
    for word in ("gold", "r_raw", "C 0", "score of"):
        assert word not in json.dumps([desk(app)["items"], every]).replace(HOSTILE, ""), word
    assert [(key, words) for key, _, words in desk(app)["verdicts"]] == [
        ("1", "Acceptable"),
        ("2", "Not acceptable"),
        ("3", "Unsure"),
    ]
    assert [key for key, *_ in desk(app)["modes"]] == list("456789")


def test_a_verdict_is_written_once_with_its_modes_and_the_next_item_comes(store: Store) -> None:
    queue = queue_of(store, "once")
    app = labelling(queue)
    first = label(app, "not_acceptable", modes=["other"])
    tell(
        app, first, {**first, "verdict": "acceptable"}
    )  # the second time another verdict: told, and not kept
    assert blocks(app)[0] == ("Question", f"{HOSTILE} 1")
    assert len(app.warning) == 1 and "already, in another window" in app.warning[0].value
    assert desk(app)["ack"] == {"client": "browser", "seq": 2} and desk(app)["last"] == first["id"]
    tell(app, first, client="the same one, after a reload")
    assert not app.warning
    item = opened_item("run-1", "i-00")  # another reader, who sees no label before asking for it
    assert not any("not acceptable" in t.value for t in item.text)
    (row,) = label_store.list_labels(store, queue=queue, history=True).to_dict("records")
    assert (row["item_id"], row["rater"], row["reasoning"], row["modes"]) == (
        "i-00",
        "ada",
        "not_acceptable",
        ("other",),
    )
    assert row["answer_correct"] is False  # prefilled by the run
    tell(app, {"kind": "undo", "of": first["id"]})
    assert (
        blocks(app)[0] == ("Question", f"{HOSTILE} 0")
        and label_store.list_labels(store, queue=queue).empty
    )
    assert desk(app)["items"][0]["id"] != first["id"] and desk(app)["last"] is None


def test_what_no_desk_would_tell_is_refused_in_words(store: Store) -> None:
    queue = queue_of(store, "forged")
    app = labelling(queue)
    good = label(app, "acceptable")
    for wrong in (
        {"verdict": "great"},
        {"note": "x" * 2001},
        {"answer": "yes"},
        {"kind": "drop"},
        {"more": 1},
    ):
        tell(app, {**good, **wrong})
        assert any("cannot be read" in w.value for w in app.warning), wrong
    for wrong in ({"id": "made up"}, {"item": "i-11"}, {"run": "run-2"}):
        tell(app, {**good, **wrong})
        assert any("was not kept" in w.value for w in app.warning), wrong
    tell(app, {**good, "queue": "none"}, {"kind": "undo", "of": "x", "queue": "none"})
    assert any("Unknown queue" in w.value for w in app.warning)
    tell(
        app,
        {"kind": "undo", "of": "another's"},
        {"kind": "skip", "run": "run-2", "item": "nothing"},
    )
    assert label_store.list_labels(store, queue=queue, history=True).empty
    tell(app, good)
    assert not app.warning and len(label_store.list_labels(store, queue=queue)) == 1


def test_an_act_that_cannot_be_read_keeps_no_other_back(store: Store) -> None:
    queue = queue_of(store, "unreadable")
    app = labelling(queue)
    first = label(app, "acceptable")
    second = {**first, "id": desk(app)["items"][1]["id"], "item": desk(app)["items"][1]["item"]}
    tell(app, {**first, "note": "half a pair \ud800"}, second)
    (warning,) = [w.value for w in app.warning]
    assert "cannot be read" in warning and "note" in warning
    assert desk(app)["ack"] == {"client": "browser", "seq": 2} and blocks(app)[0] == (
        "Question",
        f"{HOSTILE} 0",
    )
    assert label_store.list_labels(store, queue=queue)["item_id"].tolist() == ["i-01"]
    tell(app, *[{**first, "id": str(k)} for k in range(60)])
    assert len(app.warning) == 6 and "55 more" in app.warning[-1].value
    tell(app, *[{**first, "id": str(k)} for k in range(65)])
    assert "at most 64" in app.warning[0].value and desk(app)["ack"]["seq"] == 62


def test_what_was_taken_back_can_be_skipped_like_any_other(store: Store) -> None:
    app = labelling(
        make_queue(store, "skips", [("run-1", f"i-{k:02}", "") for k in range(3)], author="test")
    )
    first = label(app, "acceptable")
    tell(app, first)
    tell(app, {"kind": "undo", "of": first["id"]})

    def skip() -> str:
        item = desk(app)["items"][0]
        tell(app, {"kind": "skip", "id": item["id"], "run": item["run"], "item": item["item"]})
        return str(item["item"])

    assert [skip() for _ in range(3)] == ["i-00", "i-01", "i-02"]
    press(app, "Show what I skipped")
    assert [skip() for _ in range(4)] == ["i-00", "i-01", "i-02", "i-00"]  # round and round


def test_the_desk_holds_fewer_items_where_their_texts_are_long(store: Store) -> None:
    long = "Why is the sky blue? " * 5000
    with store.writing() as connection:
        before = dict(connection.execute("SELECT id, question FROM items").fetchall())
        connection.execute("UPDATE items SET question = ?", [long])
        connection.execute("UPDATE ended SET ended_at = ended_at + INTERVAL 1 HOUR")
    app = labelling(queue_of(store, "long"), "lea")
    assert [item["item"] for item in desk(app)["items"]] == ["i-00", "i-01"]
    tell(app, label(app, "acceptable"))
    assert [item["item"] for item in desk(app)["items"]] == ["i-01", "i-02"]
    with store.writing() as connection:
        for item, question in before.items():
            connection.execute("UPDATE items SET question = ? WHERE id = ?", [question, item])
        connection.execute("UPDATE ended SET ended_at = ended_at + INTERVAL 1 HOUR")


def test_a_second_window_frees_nothing_that_the_first_one_holds(store: Store) -> None:
    queue = make_queue(
        store, "windows", [("run-1", f"i-{k:02}", "") for k in range(12)], author="test"
    )
    app = tell(labelling(queue, "two"), {"kind": "renew"})
    assert len(desk(app)["items"]) == 12
    again = labelling(queue, "two")
    assert len(desk(again)["items"]) == 8  # at first: the others come while those are read
    assert not desk(labelling(queue, "guest"))["items"]


def test_a_name_that_cannot_stand_beside_a_label_is_refused_in_words(store: Store) -> None:
    app = opened("label", queue=queue_of(store, "names"))
    for name in ("", "  ", "a\u200bda", "x" * 61):
        app.text_input(key="rater-typed").input(name)
        press(app, "Begin")
        assert not desk(app) and [
            "1 to 60 printable characters" in w.value for w in app.warning
        ] == [True], name


def test_who_may_only_look_is_shown_no_item_and_a_write_is_refused(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = queue_of(store, "roles")
    others = (access.Person("ada", "viewer", "header"), access.Person("eve", "labeller", "header"))
    for app, who in [(labelling(queue), who) for who in others]:
        with monkeypatch.context() as changed:
            changed.setattr(
                access, "current_person", lambda who=who: who
            )  # the page was drawn for another, or for another role
            tell(app, label(app, "acceptable"))
        assert label_store.list_labels(store, queue=queue, history=True).empty
        assert desk(app).get("rater") in (None, "eve")  # who may label gets a desk of their own
    monkeypatch.setattr(access, "current_person", lambda: access.Person("ada", "viewer", "header"))
    looked = opened("label", queue=queue)
    assert not blocks(looked) and any("not label" in i.value for i in looked.info)
    assert not any(b.label == "Make the queue" for b in looked.button)


def test_who_does_nothing_keeps_one_item_and_gets_more_on_coming_back(store: Store) -> None:
    app = labelling(queue_of(store, "idle"))
    assert len(desk(tell(app, {"kind": "renew"}))["items"]) == 6
    (kept_one,) = desk(tell(app, {"kind": "idle"}))["items"]
    assert (
        kept_one["item"] == "i-00"
        and not label_store.list_labels(store)["queue"].eq(desk(app)["queue"]).any()
    )
    assert [one["item"] for one in desk(tell(app, {"kind": "renew"}))["items"]][:2] == [
        "i-00",
        "i-01",
    ]


def test_a_correction_is_asked_for_given_and_can_be_left(store: Store) -> None:
    app = labelling(queue_of(store, "change"))
    tell(app, label(app, "not_acceptable", note="hm", modes=["post_hoc"]))
    press(app, "Change")
    first, second, *_ = desk(app)["items"]
    assert (first["item"], first["corrects"], first["note"], first["modes"]) == (
        "i-00",
        True,
        "hm",
        ["post_hoc"],
    )
    assert (second["item"], second["corrects"]) == ("i-01", False)
    tell(app, {"kind": "leave", "id": first["id"], "run": "run-1", "item": "i-00"})
    assert desk(app)["items"][0]["item"] == "i-01"
    press(app, "Change")
    tell(app, label(app, "acceptable"))
    assert label_store.list_labels(store, queue=desk(app)["queue"])["reasoning"].tolist() == [
        "acceptable"
    ]
    assert desk(app)["items"][0]["item"] == "i-01"


def test_a_queue_is_made_from_the_form(store: Store) -> None:
    app = labelling(queue_of(store, "form"), more="true")
    app.text_input(key="queue-name").input("mine")
    app.number_input(key="queue-n").set_value(5)
    app.number_input(key="queue-overlap").set_value(40)
    press(app, "Make the queue")
    newest = label_store.list_label_queues(store).iloc[0]
    assert (newest["name"], newest["n"], newest["made_by"]) == ("mine", 5, "ada")
    assert sorted(label_store.list_queue_items(store, newest["id"])["raters"]) == [
        1,
        1,
        1,
        2,
        2,
    ]  # 40 % of five


def test_nobody_judges_what_a_redacted_run_does_not_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path / "store"))
    fill(tmp_path / "store", 3, estimated=False)
    store = Store()
    queue = make_queue(store, "blind", [("run-1", "i-00", "")], author="test")
    with store.writing() as connection:
        connection.execute(
            "UPDATE items SET question = 'sha256:1', steps = ['sha256:2'], answer = 'sha256:3',"
            " meta = NULL"
        )
    app = labelling(queue)
    (item,) = desk(app)["items"]
    assert not item["readable"] and any("stored no texts" in note for note in item["notes"])
    with store.writing() as connection:
        connection.execute("UPDATE items SET question = 'How many?', meta = '{}'")
    assert blocks(app.run())[0] == ("Question", "How many?") and desk(app)["items"][0]["readable"]


def test_a_name_that_labels_elsewhere_is_not_taken_unasked(store: Store) -> None:
    queue = queue_of(store, "two of a name")
    labelling(queue, "eve")
    app = opened("label", queue=queue)
    app.text_input(key="rater-typed").input("eve")
    press(app, "Begin")
    assert not blocks(app) and any("eve is labelling right now" in w.value for w in app.warning)
    assert blocks(press(app, "I am eve"))[0] == ("Question", f"{HOSTILE} 0")


def test_an_item_that_is_scored_anew_is_read_anew(store: Store) -> None:
    app = labelling(queue_of(store, "anew"))
    (_, before), *_ = blocks(app)
    with store.writing() as connection:
        connection.execute("UPDATE items SET question = 'Another text' WHERE id = 'i-00'")
        connection.execute(
            "UPDATE ended SET ended_at = ended_at + INTERVAL 1 HOUR WHERE item = 'i-00'"
        )
    assert blocks(app.run())[0] == ("Question", "Another text") != before
    with store.writing() as connection:
        connection.execute("UPDATE items SET question = ? WHERE id = 'i-00'", [before])
        connection.execute(
            "UPDATE ended SET ended_at = ended_at + INTERVAL 1 HOUR WHERE item = 'i-00'"
        )
