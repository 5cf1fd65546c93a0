"""A run is named, archived and deleted on its page; lists and pickers follow, links stay."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import closing

import pytest
from streamlit.testing.v1 import AppTest

from cotlab.store import read
from cotlab.store.database import Store, store_folder
from cotlab.store.live import LiveRunStore, RunProgress
from cotlab.store.run_names import edit_run
from cotlab.ui import access
from cotlab.ui.identity import Forbidden, Person
from cotlab.ui.places import PAGE_BY_PLACE
from cotlab.ui.runs import header
from tests.support.hostile import ALL, RAW
from tests.support.stores.queued import fill
from tests.ui.test_pages import open_page

CHROMIUM = shutil.which("chromium")
NAME = f"first try {ALL}"[:80]


@pytest.fixture
def store() -> Store:
    return fill(store_folder(), 2, ("run-1", "run-2"))


def press(app: AppTest, label: str) -> AppTest:
    (button,) = [button for button in app.button if button.label == label]
    assert not button.disabled
    app = button.click().run()
    assert not app.exception
    return app


def listed(app: AppTest) -> list[str]:
    """Return the texts of the first column of the table of runs."""
    (table,) = [
        json.loads(element.proto.json)
        for element in app.get("bidi_component")
        if '"title": "Runs"' in element.proto.json
    ]
    return [f"{row[0]['text']} {row[0]['small']}" for row in table["rows"]]


def test_a_name_stands_in_list_and_picker_and_the_note_on_the_page(store: Store) -> None:
    app = open_page("run", run="run-1")
    app.text_input(key="name-text-run-1").set_value(NAME)
    app.text_area(key="note-text-run-1").set_value(ALL)
    app = press(app, "Save")
    row = read.get_run(store, "run-1")
    assert row["name"] == " ".join(NAME.split()) and row["user_note"] == ALL.strip()
    texts = [text.value for text in (*app.markdown, *app.caption, *app.title)]
    unescaped = re.sub(r"\\.", "", " ".join(texts))
    assert not [raw for raw in RAW if raw in unescaped]
    assert any("first try" in text.value for text in app.title)
    assert [text for text in listed(open_page("runs")) if text.startswith("first try")]
    options = open_page("figures").selectbox(key="pick-run").options
    assert [text for text in options if text.startswith("first try") and text.endswith("run-1")]


def test_an_archived_run_leaves_lists_that_say_so_and_its_link_still_opens(store: Store) -> None:
    app = press(open_page("run", run="run-1"), "Archive")
    assert any("Archived" in info.value for info in app.info)
    assert read.get_run(store, "run-1")["is_archived"]
    app = open_page("runs")
    assert len(listed(app)) == 1 and app.checkbox[0].label == "Archived too (1 archived)"
    assert len(listed(app.checkbox[0].check().run())) == 2
    found = open_page("runs", q="run-1")  # it alone matches
    assert len(listed(found)) == 1 and "Only archived" in " ".join(c.value for c in found.caption)
    picker = open_page("figures").selectbox(key="pick-run")
    assert [text[-5:] for text in picker.options] == ["run-2"]
    assert open_page("figures", run="run-1").selectbox(key="pick-run").value == "run-1"
    press(open_page("run", run="run-1"), "Unarchive")
    assert len(listed(open_page("runs"))) == 2


def test_a_run_is_deleted_after_what_is_lost_was_confirmed(store: Store) -> None:
    app = open_page("run", run="run-1")
    assert any(text.value.startswith("Lost: ") and "scores" in text.value for text in app.markdown)
    (button,) = [button for button in app.button if button.label == "Delete this run"]
    assert button.disabled
    app = app.checkbox(key="confirm-delete-run-1").check().run()
    press(app, "Delete this run")
    assert read.list_runs(store)["id"].tolist() == ["run-2"]
    app = open_page("run", run="run-1")
    assert [info.value for info in app.info] == ["There is no run run\\-1 in this store."]
    for page in PAGE_BY_PLACE:
        assert not open_page(page).exception, page


def test_a_running_run_has_no_button_to_delete_it(store: Store) -> None:
    with closing(LiveRunStore(store.log_path)) as live_store:
        live_store.begin_run("run-1", RunProgress(started_at=0.0))
    with store.writing() as connection:
        connection.execute("UPDATE runs SET status = 'running' WHERE id = 'run-1'")
    app = open_page("run", run="run-1")
    assert not [button for button in app.button if button.label == "Delete this run"]
    assert any("stop it first" in text.value for text in app.markdown)


def test_a_viewer_writes_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with store.writing() as connection:
        edit_run(connection, "run-1", "ann", name="kept")
    monkeypatch.setattr(access, "current_person", lambda: Person("bob", "viewer"))
    app = open_page("run", run="run-1")
    labels = {"Save", "Archive", "Delete this run"}
    assert {button.label for button in app.button if button.disabled} >= labels
    for write, arguments in (
        (header._store_name, ("run-1", "x", "")),
        (header._store_archived, ("run-1", True)),
        (header._delete_confirmed_run, ("run-1",)),
    ):
        with pytest.raises(Forbidden):
            write(*arguments)
    assert read.get_run(store, "run-1")["name"] == "kept"
