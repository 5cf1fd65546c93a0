"""What of a store is damaged or missing, and on how many replies a run rests that are still there.

Damage is found by what each row carries: a reply its digest, a request its key, the scores of an
item the checksum of their sheet. The copy is compared with one that is made anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import duckdb

from cotlab.core.errors import StoreError
from cotlab.store.attached import DATABASE, Attached, is_damage
from cotlab.store.database import Store, copied_state, fill_copy, log_state
from cotlab.store.log import LOG, is_intact, open_log
from cotlab.store.log_connection import LogConnection
from cotlab.store.tables import SCHEMAS, STORED_TABLES, unpack_sheet

_KEYS_AT_ONCE = 10_000
_KEYS_SQL = """
    SELECT run, list(DISTINCT key) FROM (
        SELECT run, unnest(evidence) AS key FROM scores
        WHERE status = 'ok' AND ($run IS NULL OR run = $run)
    ) GROUP BY run ORDER BY run
    """


class RunReplies(NamedTuple):
    """The replies that a run's scores rest on."""

    run: str
    """Id of the run."""
    n_replies: int
    """Replies that its scores rest on."""
    n_missing: int
    """Those of them that are not in the log, or were changed there."""


def missing_reply_lines(store: Store, run: str | None = None) -> list[str]:
    """Return a sentence for each run, or for one, that rests on more replies than there are."""
    return [
        f"Run {replies.run} rests on {replies.n_replies:,} replies, of which"
        f" {replies.n_missing:,} are missing or changed in {LOG}: put a backup in its place (cotlab"
        " restore)."
        for replies in count_replies(store, run)
        if replies.n_missing
    ]


def count_replies(store: Store, run: str | None = None) -> list[RunReplies]:
    """Return on how many replies each run rests, or one of them, and how many are missing."""
    keys_by_run = store.query_rows(_KEYS_SQL, {"run": run})
    with closing(open_log(store.log_path)) as log:
        return [
            RunReplies(name, len(keys), len(keys) - _count_intact(log, keys))
            for name, keys in keys_by_run
        ]


def _count_intact(log: LogConnection, keys: list[str]) -> int:
    n_intact = 0
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        part = keys[start : start + _KEYS_AT_ONCE]
        places = ", ".join("?" * len(part))
        n_intact += sum(
            is_intact(*row)
            for row in log.execute(
                f"SELECT key, response, digest FROM replies WHERE key IN ({places})", part
            )
        )
    return n_intact


def find_faults(store: Store) -> list[str]:
    """Read every row of a store, and return what is damaged or missing, a sentence each.

    Raises
    ------
    StoreError
        If ``log.sqlite`` is no database of this version.
    """
    faults: list[str] = []
    with closing(open_log(store.log_path)) as log:
        faults += (f"{LOG}: {fault}" for fault in _damaged_pages(log))
        faults += (f"{LOG}: the reply {key} was changed or is damaged" for key in _bad_replies(log))
        faults += (f"{LOG}: the scores of {sheet} are damaged" for sheet in _bad_sheets(log))
        for table in STORED_TABLES:
            try:
                log.execute(f"SELECT * FROM {table}").fetchall()
            except StoreError as error:
                faults.append(f"{LOG}: rows of {table} cannot be read: {error}")
        if not faults:
            faults += _compare_copy(store, log)
    if not faults:
        faults += missing_reply_lines(store)
    return faults


def _damaged_pages(log: LogConnection) -> list[str]:
    rows = log.execute("PRAGMA integrity_check(20)").fetchall()
    return [str(text) for (text,) in rows if text != "ok"]


def _bad_replies(log: LogConnection) -> Iterator[str]:
    """Return the keys of the replies that were changed or cannot be read.

    The keys are those of the index, which lies on pages of its own.
    """
    for (key,) in log.execute("SELECT key FROM replies INDEXED BY sqlite_autoindex_replies_1"):
        try:
            row = log.execute(
                "SELECT key, response, digest FROM replies WHERE key = ?", (key,)
            ).fetchone()
        except StoreError:
            row = None
        if row is None or not is_intact(*row):
            yield key


def _bad_sheets(log: LogConnection) -> Iterator[str]:
    """Return which scores of which items are damaged."""
    keys = log.execute("SELECT run, scorer, item FROM ended INDEXED BY sqlite_autoindex_ended_1")
    sql = "SELECT sheet FROM ended WHERE run = ? AND scorer = ? AND item = ?"
    for run, scorer, item in keys:
        try:
            unpack_sheet(log.execute(sql, (run, scorer, item)).fetchone()[0])
        except (StoreError, ValueError, TypeError):
            yield f"item {item} by {scorer} in run {run}"


def _compare_copy(store: Store, log: LogConnection) -> Iterator[str]:
    """Return the tables whose rows in the copy are not those of the log."""
    with (
        TemporaryDirectory() as folder,
        closing(Attached(Path(folder) / DATABASE, read_only=False)) as attached,
    ):
        fill_copy(attached.connection, log)
        tables = (*STORED_TABLES, "scores")
        expected = {table: _table_sum(attached.connection, table) for table in tables}
    if not store.path.exists():
        return
    try:
        with closing(Attached(store.path, read_only=True)) as attached:
            if copied_state(attached.connection) != log_state(log):
                yield f"{DATABASE}: shows another state than {LOG}"
                return
            for table, table_sum in expected.items():
                if _table_sum(attached.connection, table) != table_sum:
                    yield f"{DATABASE}: rows of {table} are not those of {LOG}"
    except duckdb.Error as error:
        if not is_damage(error):
            raise
        yield f"{DATABASE}: cannot be read: {str(error).splitlines()[0][:200]}"


def _table_sum(connection: duckdb.DuckDBPyConnection, table: str) -> list[tuple[Any, ...]]:
    """Return the number of rows of a table and a sum over all values, in whatever order."""
    names = ", ".join(SCHEMAS[table].names)
    query = f"SELECT count(*), sum(hash(({names}))::HUGEINT) FROM {table}"
    rows: list[tuple[Any, ...]] = connection.execute(query).fetchall()
    return rows
