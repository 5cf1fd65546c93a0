"""The DuckDB file is a copy: made again it holds the same rows, and it is never taken for more."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from cotlab.core.errors import StoreBusy, StoreError
from cotlab.core.labels import Decision, Label
from cotlab.core.provider import Finding
from cotlab.core.types import Estimate, Item, ModelRef, Plan, Score, ScorerSpec, Step, Suite
from cotlab.store import calibrators, decisions, labels, read, run_names, write
from cotlab.store.check import record_replies
from cotlab.store.database import Store, Writer
from cotlab.store.live import LiveRunStore, RunProgress
from cotlab.store.responses import ResponseLog
from cotlab.store.server_checks import ServerCheck, add_server_check
from cotlab.store.tables import SCHEMAS, STORED_TABLES
from cotlab.store.write import EndedItem
from tests.support.store_worker import ended, reply, request

NOW = datetime(2026, 11, 28, 12, 0, 0, 123457, UTC)
SUITE = Suite.from_items(
    "s", [Item("i", "q\0🙂", None, (Step(0, "a"), Step(1, "b")), "c", {"k": [1, None]})]
)
PLAN = Plan("s", SUITE.digest, {"subject": ModelRef("echo", "echo")}, (ScorerSpec("x", 1),))
SCORES = (
    Score("m", "i", 0.1 + 0.2, step=1, facet=(("mode", "é"),), evidence=("k1", "k2")),
    Score("m", "i", None, status="error", reason="503", where=(1, 2)),
)


def fill(store: Store) -> None:
    """Put rows into every table."""
    with store.writing() as connection:
        write.add_suite(connection, SUITE, file_sha256="f")
        for run in ("r", "gone"):
            write.add_run(
                connection,
                run,
                PLAN,
                config={"model": "echo"},
                code_version="1",
                output="o",
                redacted=True,
                n_items=1,
                estimate={"requests": 4},
            )
        write.set_constants(connection, "r", "x", "p", {"a": 1.5})
        write.add_ended(connection, "r", [EndedItem("x", 1, "p", "i", SCORES)])
        write.add_ended(connection, "r", [EndedItem("y", 1, "p", "i", ()), ended("a")])
        estimate = Estimate("m", (("a", "b"),), 0.5, None, None, 0.95, 3, 1, "none", "items", None)
        write.set_estimates(connection, "r", [estimate] * 2)
        write.set_counts(
            connection, "r", n_sent=4, n_hits=1, n_failed=2, spent_micro=7, saved_micro=3
        )
        write.set_status(connection, "r", "done", "note")
        queued = [labels.QueuedItem("r", "i", 2, '{"a": 1}', "why")]
        labels.add_queue(connection, "q", "queue", queued, author="ada", params={"n": 1})
        steps = {"steps_judged": True, "step_verdicts": ("correct", None)}
        labels.add_labels(
            connection,
            [
                Label("l1", "r", "i", "ada", "acceptable", True, NOW, queue="q", **steps),
                Label("l2", "r", "i", "ben", "not_acceptable", None, NOW, ("post_hoc",)),
            ],
        )
        version = calibrators.add_calibrator(
            connection,
            method="platt",
            params={"all": {}},
            weights={"C": 0.5},
            labels_digest="d",
            n=9,
            n_positive=4,
            report={},
            author="ada",
        )
        calibrators.activate_calibrator(connection, version, author="ada", reason="r")
        decisions.add_policy(
            connection,
            thresholds={"": (0.2, 0.8)},
            capacity=None,
            params={},
            author="ada",
            reason="r",
        )
        made = Decision("d", "r", "i", "", 0.5, None, "review", "r", 0.2, 0.8, version, 1, NOW, "a")
        decisions.add_decisions(connection, [made])
        calibrators.add_drift_check(
            connection,
            "k",
            reference_runs=["r"],
            current_runs=["r"],
            checked_at=NOW,
            author="ada",
            alert=True,
            reason="x",
            result={"p": None},
        )
        run_names.edit_run(connection, "r", "ada", name="n", note="m", is_archived=True)
        run_names.edit_run(connection, "gone", "ada", name="other")
    finding = Finding("ok", "text")
    add_server_check(store, "r", ServerCheck(ModelRef("o", "m"), {"seed": finding}, 4, NOW))
    run_names.delete_run(store, "gone", "ada")
    record_replies(store, "r")


def rows(store: Store) -> dict[str, list[Any]]:
    """All rows of the copy by table."""
    with store.reading() as connection:
        return {
            table: connection.sql(f"SELECT * FROM {table} ORDER BY rowid")
            .to_arrow_table()
            .to_pylist()
            for table in SCHEMAS
        }


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "store")
    fill(store)
    return store


def test_a_copy_that_is_made_again_has_the_same_rows(store: Store) -> None:
    before = rows(store)
    assert {table for table, found in before.items() if not found} == {"run_results"}
    store.path.unlink()
    assert rows(Store(store.folder)) == before
    store.rebuild()
    assert rows(store) == before


def test_a_row_that_was_recorded_alone_is_in_the_copy_afterwards(store: Store) -> None:
    """As where a process is killed after the transaction of SQLite, before that of the copy."""
    with closing(sqlite3.connect(store.log_path)) as log, log:
        log.execute("UPDATE runs SET note = 'recorded' WHERE id = 'r'")
        log.execute("UPDATE store SET change = change + 1")
    assert read.get_run(Store(store.folder), "r")["note"] == "recorded"


def test_a_transaction_on_an_older_copy_is_refused(store: Store) -> None:
    with pytest.raises(StoreBusy), store.writing() as connection:
        with closing(sqlite3.connect(store.log_path)) as log, log:
            log.execute("UPDATE store SET change = change + 1")
        write.set_status(connection, "r", "failed")
    assert read.get_run(store, "r")["status"] == "done"


@pytest.mark.parametrize("loss", ["deleted", "emptied", "older"])
def test_a_log_that_was_lost_is_one_message_and_the_copy_stays(store: Store, loss: str) -> None:
    before = rows(store)
    if loss == "deleted":
        store.log_path.unlink()
    elif loss == "emptied":
        store.log_path.write_bytes(b"")
    else:
        with closing(sqlite3.connect(store.log_path)) as log, log:
            log.execute("UPDATE store SET change = change - 1")
    with pytest.raises(StoreError, match="was lost or replaced"), Store(store.folder).writing():
        pass
    with duckdb.connect(store.path, read_only=True) as copy:
        assert copy.execute("SELECT count(*) FROM labels").fetchone() == (len(before["labels"]),)


def older(store: Store, version: int) -> None:
    """Turn a store into one of an older version, whose tables are in DuckDB alone."""
    before = {table: SCHEMAS[table].names for table in SCHEMAS if table != "run_replies"}
    if version < 8:
        del before["run_names"], before["run_results"]
    if version < 6:
        before["calibrators"] = before["calibrators"][:-1]
    if version < 5:
        before["labels"] = before["labels"][:-5]
    if version < 3:
        first = ("suites", "items", "runs", "constants", "ended", "estimates", "scores")
        before = {table: before[table] for table in first}
        before["runs"] = before["runs"][:-1]
    path = store.path.with_name("older")
    with duckdb.connect(path) as connection:
        connection.execute("ATTACH ? AS copy (READ_ONLY)".replace("?", f"'{store.path}'"))
        for table, names in before.items():
            columns = ", ".join(names)
            connection.execute(f"CREATE TABLE {table} AS SELECT {columns} FROM copy.{table}")
        connection.execute("CREATE TABLE schema_version AS SELECT ? AS version", [version])
    path.replace(store.path)
    with closing(sqlite3.connect(store.log_path)) as log, log:
        for table in (*STORED_TABLES, "store"):
            log.execute(f"DROP TABLE {table}")
        log.execute("ALTER TABLE replies DROP COLUMN digest")
        log.execute("PRAGMA user_version = 5")


@pytest.mark.parametrize("version", [1, 3, 5, 8])
def test_an_older_store_is_brought_forward_and_its_files_stay(store: Store, version: int) -> None:
    asked = request("kept")
    with closing(ResponseLog(store.log_path)) as log:
        log.put([(asked, reply(asked))], "r")
    before = rows(store)
    older(store, version)
    old_bytes = store.path.read_bytes()
    after = rows(Store(store.folder))
    complete = {"suites", "items", "constants", "ended", "estimates", "scores"}
    for table in complete if version < 8 else SCHEMAS:
        assert after[table] == before[table], table
    if version >= 3:
        assert len(after["labels"]) == 2 and after["calibrators"][0]["kind"] == "chain"
    with closing(ResponseLog(store.log_path)) as log:
        assert log.get(asked.key) == reply(asked)
    assert (store.folder / "before-migration" / "cotlab.duckdb").read_bytes() == old_bytes
    assert (store.folder / "before-migration" / "log.sqlite").exists()
    fill_more(store)


def fill_more(store: Store) -> None:
    with store.writing() as connection:
        assert isinstance(connection, Writer)
        write.add_ended(connection, "new", [ended("b")])
    assert len(read.run_scores(store, "new")) == 3


def test_a_migration_that_fails_leaves_the_older_store(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    older(store, 8)
    content = store.path.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr("cotlab.store.older.pack_sheet", lambda scores: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            rows(Store(store.folder))
    assert store.path.read_bytes() == content
    with closing(sqlite3.connect(store.log_path)) as log:
        assert log.execute("PRAGMA user_version").fetchone() == (5,)
    assert rows(Store(store.folder))["labels"]


def test_a_run_of_an_older_version_that_goes_on_is_no_migration(store: Store) -> None:
    with closing(LiveRunStore(store.log_path)) as live:
        live.write_heartbeat("r", RunProgress())
    older(store, 8)
    with pytest.raises(StoreBusy):
        rows(Store(store.folder))
    with closing(sqlite3.connect(store.log_path)) as log, log:
        log.execute("UPDATE live SET heartbeat = heartbeat - 60")
    assert rows(Store(store.folder))["labels"]


def test_two_labellers_on_one_item_both_stand(store: Store) -> None:
    for rater in ("eve", "fay"):
        with store.writing() as connection:
            given = Label(f"i-{rater}", "r", "i", rater, "acceptable", True, NOW)
            assert labels.add_labels(connection, [given]) == 1
    assert {"eve", "fay"} <= set(labels.list_labels(store)["rater"])
