"""Runs are named, noted, archived and deleted; what was given on them stays."""

from __future__ import annotations

import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cotlab.analysis.markdown import render_markdown
from cotlab.analysis.report import build_report
from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.labels import Label
from cotlab.export.run_report.page import report_html
from cotlab.store import decisions, read
from cotlab.store import labels as label_store
from cotlab.store.database import Store
from cotlab.store.live import LiveRunStore, RunProgress
from cotlab.store.run_names import count_run_content, delete_run, edit_run, is_run_deleted
from tests.support.command import cotlab
from tests.support.stores.queued import fill

HOSTILE = "<b>x</b> '; DROP TABLE runs; --"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return fill(tmp_path / "store", 2, ("run-1", "run-2"))


def edit(store: Store, run: str, **changes: object) -> None:
    with store.writing() as connection:
        edit_run(connection, run, "ann", **changes)  # type: ignore[arg-type]


def test_a_name_and_a_note_stand_in_rows_reports_and_the_audit(store: Store) -> None:
    assert read.get_run(store, "run-1")["name"] == ""
    edit(store, "run-1", name=f"  {HOSTILE}\n", note="two\nlines <i>y</i>")
    row = read.get_run(store, "run-1")
    assert (row["name"], row["user_note"]) == (HOSTILE, "two\nlines <i>y</i>")
    assert read.list_runs(store, text="drop table")["id"].tolist() == ["run-1"]
    page, report = report_html(store, "run-1"), build_report(store, "run-1")
    assert "Note: two lines &lt;i&gt;y" in page and "<b>x" not in page
    assert report["user_note"] == "two\nlines <i>y</i>"
    assert "**Note:** two lines" in render_markdown(report)
    assert decisions.list_audit(store)["what"].tolist() == ["run noted", "run named"]
    edit(store, "run-1", name="", note="")
    assert build_report(store, "run-1")["name"] is None


def test_a_run_is_archived_and_back(store: Store) -> None:
    for is_archived in (True, True, False):
        edit(store, "run-1", is_archived=is_archived)
        assert read.get_run(store, "run-1")["is_archived"] is is_archived
    assert len(read.list_runs(store)) == 2
    assert len(decisions.list_audit(store)) == 2


def test_texts_that_are_too_long_or_no_text_are_refused(store: Store) -> None:
    for changes in ({"name": "x" * 81}, {"note": "x" * 2001}, {"name": "\ud800"}, {"note": "\0x"}):
        with pytest.raises(ConfigError):
            edit(store, "run-1", **changes)
    edit(store, "run-1", name="x" * 80, note="x" * 2000)
    with pytest.raises(UnknownName):
        edit(store, "run-7", name="x")


def test_a_deleted_run_takes_its_scores_and_leaves_labels_and_the_other_run(store: Store) -> None:
    label = Label("l", "run-1", "i-0", "ann", "acceptable", True, datetime.now(UTC))
    with store.writing() as connection:
        label_store.add_labels(connection, [label])
    before = count_run_content(store, "run-2")
    content = delete_run(store, "run-1", "ann")
    assert content.n_scores == before.n_scores > 0 and content.n_labels == 1
    after = count_run_content(store, "run-1")
    assert (after.n_scores, after.n_estimates, after.n_labels) == (0, 0, 1)
    assert count_run_content(store, "run-2") == before
    assert is_run_deleted(store, "run-1") and not is_run_deleted(store, "run-2")
    with pytest.raises(UnknownName):
        delete_run(store, "run-1", "ann")


def test_a_running_run_is_not_deleted(store: Store) -> None:
    with closing(LiveRunStore(store.log_path)) as live_store:
        live_store.begin_run("run-1", RunProgress(started_at=0.0))
    with pytest.raises(ConfigError, match="is running"):
        delete_run(store, "run-1", "ann")
    assert count_run_content(store, "run-1").n_scores


def test_the_command_names_archives_and_deletes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    cotlab("runs", "name", "run-1", "first try", store=store.folder)
    cotlab("runs", "archive", "run-2", store=store.folder)
    text = cotlab("runs", store=store.folder).stdout
    assert "first try" in text and "run-2" not in text and "1 archived" in text
    assert "run-2" in cotlab("runs", "--archived", store=store.folder).stdout
    cotlab("runs", "name", "run-7", "x", store=store.folder, code=2)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: sys.exit(1))
    assert "scores" in cotlab("runs", "delete", "run-2", store=store.folder, code=1).stderr
    assert len(read.list_runs(store)) == 2
    cotlab("runs", "delete", "run-2", "--yes", store=store.folder)
    assert read.list_runs(store)["id"].tolist() == ["run-1"]
