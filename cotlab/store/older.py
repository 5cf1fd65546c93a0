"""Bring the tables of a DuckDB file into ``log.sqlite``: those of an older store, or of a copy.

Until schema 8 the DuckDB file was the store. Its tables are read by the names of their columns, so
that each of those schemas is read alike.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from cotlab.core.errors import SchemaMismatch, StoreBusy, StoreError
from cotlab.store.attached import DATABASE, OLD_FILES, Attached
from cotlab.store.cut_replies import EVIDENCE_SQL
from cotlab.store.log import (
    LOG,
    LOG_TIMEOUT_S,
    LogConnection,
    count_intact,
    log_clock,
    open_log,
    transaction,
)
from cotlab.store.tables import (
    COPY_SCHEMA,
    SCHEMAS,
    SCORE_COLUMNS,
    STORED_TABLES,
    pack_sheet,
    to_stored,
)

_DEFAULTS = {("calibrators", "kind"): "'chain'"}
"""What a column says where an older schema did not have it; all others are NULL."""

_RUNNING_SQL = (
    'SELECT run FROM live WHERE state LIKE \'%"status": "running"%\' AND abs(? - heartbeat) < 10'
)
"""Runs that wrote a heartbeat in the last seconds: they write to the old tables."""


def import_older_store(log: LogConnection) -> None:
    """Bring the DuckDB file of an older version beside a log into it, in the log's transaction.

    The files are kept as they are in ``OLD_FILES``. Nothing is done where there is none.
    """
    path = log.path.with_name(DATABASE)
    if not path.exists():
        return
    try:
        with closing(Attached(path, read_only=True)) as attached:
            if (version := older_version(attached.connection)) is None:
                return
            if version > COPY_SCHEMA - 1:
                raise SchemaMismatch(version, COPY_SCHEMA - 1)
            for (run,) in log.execute(_RUNNING_SQL, (log_clock(log),)).fetchall():
                raise StoreBusy(0.0, f"run {run}, of an older version of cotlab: stop it first")
            _keep_old_files(log.path)
            import_tables(log, attached.connection)
    except duckdb.Error as error:
        if "Could not set lock" in str(error):
            raise StoreBusy(LOG_TIMEOUT_S, f"a process that uses {path}") from error
        raise StoreError(
            f"{path}: cannot be read, so that the store cannot be brought forward:"
            f" {str(error).splitlines()[0][:300]}. Put a backup in its place: cotlab restore"
        ) from error


def recover_tables(log: LogConnection) -> bool:
    """Bring the tables of another store's copy into an empty log; return whether there is one."""
    path = log.path.with_name(DATABASE)
    if not path.exists():
        return False
    with suppress(duckdb.Error), closing(Attached(path, read_only=True)) as attached:
        [(store,)] = attached.connection.execute("SELECT store FROM copied").fetchall()
        if store != log.execute("SELECT id FROM store").fetchone()[0]:
            with transaction(log, f"{log.path}: the store"):
                import_tables(log, attached.connection)
            return True
    return False


def use_old_files(folder: Path) -> Path:
    """Put the files of before the migration in the place of a store's; return where its own are.

    Raises
    ------
    StoreError
        If there are none.
    StoreBusy
        If another process uses the store.
    """
    old_folder = folder / OLD_FILES
    if not (old_folder / DATABASE).exists():
        raise StoreError(f"{old_folder}: holds no files of an older version")
    with closing(open_log(folder / LOG)) as log:
        log.execute("PRAGMA journal_mode=DELETE").fetchall()  # fails where another has it open
    new_folder = folder / f"after-migration-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    new_folder.mkdir()
    for name in (LOG, DATABASE, f"{DATABASE}.wal"):
        if (folder / name).exists():
            (folder / name).rename(new_folder / name)
    for path in old_folder.iterdir():
        path.rename(folder / path.name)
    old_folder.rmdir()
    return new_folder


def older_version(connection: duckdb.DuckDBPyConnection) -> int | None:
    """Return the schema of a file of an older version; None of a copy, and of an empty file."""
    with suppress(duckdb.CatalogException):
        [(version,)] = connection.execute("SELECT max(version) FROM schema_version").fetchall()
        return int(version or 0)
    return None


def import_tables(log: sqlite3.Connection, source: duckdb.DuckDBPyConnection) -> None:
    """Put the rows of a DuckDB file into the tables of a log, in its transaction."""
    columns_by_table: dict[str, set[str]] = {}
    for table, column in source.execute(
        "SELECT table_name, column_name FROM duckdb_columns() WHERE database_name = 'cotlab'"
    ).fetchall():
        columns_by_table.setdefault(table, set()).add(column)
    for table in STORED_TABLES:
        if table in columns_by_table and table != "ended":
            names = SCHEMAS[table].names
            selected = ", ".join(
                name if name in columns_by_table[table] else _DEFAULTS.get((table, name), "NULL")
                for name in names
            )
            places = ", ".join("?" * len(names))
            log.executemany(
                f"INSERT INTO {table} ({', '.join(names)}) VALUES ({places})",
                (
                    tuple(map(to_stored, row))
                    for row in _rows(source, f"SELECT {selected} FROM {table} ORDER BY rowid")
                ),
            )
    # scores of an item that never ended count as those of an error: they are scored again
    query = (
        "SELECT coalesce(e.run, s.run), coalesce(e.scorer, s.scorer), coalesce(e.item, s.item_id),"
        " coalesce(version, 0), coalesce(params_digest, ''), coalesce(errors, 1),"
        f" coalesce(refusals, 0), ended_at, {', '.join(f's.{name}' for name in SCORE_COLUMNS)}"
        " FROM ended e FULL JOIN scores s ON (e.run, e.scorer, e.item) = (s.run, s.scorer,"
        " s.item_id) ORDER BY e.rowid, s.run, s.scorer, s.item_id, s.rowid"
    )
    n = len(SCHEMAS["ended"])
    for _, rows in groupby(_rows(source, query), lambda row: row[:3]):
        scores = list(rows)
        sheet = pack_sheet(row[n:] for row in scores if row[n] is not None)
        row = [*map(to_stored, scores[0][:n]), sheet]
        log.execute(f"INSERT OR REPLACE INTO ended VALUES ({', '.join('?' * (n + 1))})", row)
    if "run_replies" not in columns_by_table:
        for (run,) in log.execute("SELECT DISTINCT run FROM ended").fetchall():
            keys = [key for (key,) in source.execute(EVIDENCE_SQL, [run]).fetchall()]
            log.execute("INSERT INTO run_replies VALUES (?, ?)", (run, count_intact(log, keys)))
    log.execute("UPDATE store SET change = change + 1")


def _rows(source: duckdb.DuckDBPyConnection, query: str) -> Iterator[tuple[Any, ...]]:
    for batch in pa.RecordBatchReader.from_stream(source.sql(query)):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _keep_old_files(log_path: Path) -> None:
    folder = log_path.parent / OLD_FILES
    folder.mkdir(exist_ok=True)
    for name in (DATABASE, f"{DATABASE}.wal"):
        (folder / name).unlink(missing_ok=True)
        if log_path.with_name(name).exists():
            try:
                os.link(log_path.with_name(name), folder / name)
            except OSError:  # a file system without links
                shutil.copy2(log_path.with_name(name), folder / name)
    with (
        closing(sqlite3.connect(log_path)) as before,
        closing(sqlite3.connect(folder / log_path.name)) as copy,
    ):
        before.backup(copy)
