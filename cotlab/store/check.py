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
from cotlab.store.log import LOG, LogConnection, count_intact, is_intact, open_log
from cotlab.store.tables import SCHEMAS, STORED_TABLES, unpack_sheet

_KEYS_SQL = """
    SELECT run, coalesce(any_value(n_replies), 0), list(DISTINCT key) FROM (
        SELECT s.run, r.n_replies, unnest(s.evidence) AS key
        FROM scores s LEFT JOIN run_replies r ON r.run = s.run
        WHERE $run IS NULL OR s.run = $run
    ) GROUP BY run ORDER BY run
    """


class RunReplies(NamedTuple):
    """The replies that a run's scores rest on."""

    run: str
    """Id of the run."""
    n_replies: int
    """Replies that they rested on when the run ended; 0 of one that never did."""
    n_intact: int
    """Replies that are in the log, as they were stored."""


def count_replies(store: Store, run: str | None = None) -> list[RunReplies]:
    """Return on how many replies each run rests, or one of them."""
    rows = store.query_rows(_KEYS_SQL, {"run": run})
    with closing(open_log(store.log_path)) as log:
        return [
            RunReplies(name, n_replies, count_intact(log, keys)) for name, n_replies, keys in rows
        ]


def record_replies(store: Store, run: str) -> None:
    """Store on how many replies a run rests that ended."""
    n_replies = sum(replies.n_intact for replies in count_replies(store, run))
    with store.writing() as connection:
        connection.record("DELETE FROM run_replies WHERE run = ?", [run])
        connection.record("INSERT INTO run_replies VALUES (?, ?)", [run, n_replies])


def missing_reply_lines(store: Store, run: str | None = None) -> list[str]:
    """Return a sentence for each run, or for one, that rests on more replies than there are."""
    return [
        f"Run {replies.run} rests on {replies.n_replies:,} replies, of which"
        f" {replies.n_replies - replies.n_intact:,} are missing or changed in {LOG}: put a backup"
        " in its place (cotlab restore)."
        for replies in count_replies(store, run)
        if replies.n_replies > replies.n_intact
    ]


def find_faults(store: Store) -> list[str]:
    """Read every row of a store, and return what is damaged or missing, a sentence each.

    Raises
    ------
    StoreError
        If ``log.sqlite`` is no database of this version.
    """
    faults: list[str] = []
    with closing(open_log(store.log_path)) as log:
        for find in (_damaged_pages, _bad_replies, _bad_sheets):
            try:
                faults += (f"{LOG}: {fault}" for fault in find(log))
            except StoreError as error:
                faults.append(str(error))
        copy_faults = [] if faults else list(_compare_copy(store, log))
    return [*faults, *copy_faults, *([] if copy_faults else missing_reply_lines(store))]


def _damaged_pages(log: LogConnection) -> Iterator[str]:
    for (text,) in log.execute("PRAGMA integrity_check(20)").fetchall():
        if text != "ok":
            yield str(text)


def _bad_replies(log: LogConnection) -> Iterator[str]:
    """Name the replies that were changed or cannot be read.

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
            yield f"the reply {key} was changed or is damaged"


def _bad_sheets(log: LogConnection) -> Iterator[str]:
    """Name the scores of items that are damaged."""
    keys = log.execute("SELECT run, scorer, item FROM ended INDEXED BY sqlite_autoindex_ended_1")
    sql = "SELECT sheet FROM ended WHERE run = ? AND scorer = ? AND item = ?"
    for run, scorer, item in keys:
        try:
            unpack_sheet(log.execute(sql, (run, scorer, item)).fetchone()[0])
        except (StoreError, ValueError, TypeError):
            yield f"the scores by {scorer} of item {item} in run {run} are damaged"


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
