"""Damage of a store: ``find_damage`` says what cannot be read, ``salvage`` keeps what can.

Rows are read in ranges that are halved wherever one cannot be read, so that a damaged block costs
the rows in it. No row is repaired. SQLite has no checksums: a changed letter in a reply's text is
not seen, only what is no JSON any more.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from cotlab.core.errors import SchemaMismatch, StoreError
from cotlab.store.checkpoint import restore_blocks
from cotlab.store.database import Attached, Store, is_damage, quoted_name
from cotlab.store.log import SCHEMA_STEPS
from cotlab.store.log_connection import decode_object
from cotlab.store.migrations import MIGRATIONS
from cotlab.store.read_only import is_read_only
from cotlab.store.swap import (
    DATABASE,
    LOG,
    RESTORING,
    STORE_ENTRIES,
    check_integrity,
    swap_in,
    take_locks,
)

_ROWS_AT_ONCE = 100_000
_SMALLEST_RANGE = 64
"""Rows of the database that are given up together; those of the log are given up one by one."""
_SEQUENCES = {
    "label_order": "labels",
    "audit_order": "audit",
    "choice_order": "calibrator_choices",
}
"""Sequence to the table whose column ``seq`` it fills."""
_NOT_DAMAGE = ("Could not set lock", "version number", "Permission denied")
"""Parts of errors of the database that say nothing about the file's state."""
Range = tuple[int, int]
"""First and last row id."""


class _Unreadable(Exception):
    """A range of rows cannot be read."""


@dataclass(frozen=True, slots=True)
class Damage:
    """What cannot be read of one table, or of a whole file."""

    file: str
    """Name of the file."""
    table: str
    """Name of the table; "" where the file cannot be opened."""
    n_lost: int | None
    """Rows that cannot be read; None where the file cannot be opened."""
    reason: str
    """What the database says of it."""
    lost_ranges: tuple[Range, ...] = ()
    """The rows, by row id."""

    def __str__(self) -> str:
        if self.n_lost == 0:
            return f"{self.file}: damaged, though every row can be read: {self.reason}"
        rows = f"{self.n_lost:,} rows of {self.table}" if self.table else "all rows"
        return f"{self.file}: {rows} cannot be read: {self.reason}"


@dataclass(slots=True)
class Salvage:
    """What a salvage kept and lost."""

    damages: list[Damage]
    """What is lost."""
    runs: list[str] = field(default_factory=list)
    """Runs of which items must be scored again."""
    replaced: Path | None = None
    """Where the damaged files were moved."""


def find_damage(store: Store) -> list[Damage]:
    """Read each row of both files, and return what cannot be read.

    Raises
    ------
    StoreError
        If a restore was interrupted, or another process keeps the store locked.
    """
    check_integrity(store.folder)
    restore_blocks(store.path)
    damages = []
    if store.path.exists():
        damages += _read_database(store.path, None)
    if store.log_path.exists():
        damages += _read_log(store.log_path, None)
    return damages


def salvage(store: Store) -> Salvage:
    """Put what can be read into new files in place of the old ones, which are kept.

    Items whose scores are lost count as not scored: ``cotlab run --resume`` scores them again.

    Raises
    ------
    StoreError
        If another process uses the store, or the new files cannot be written.
    """
    staged = store.folder / f".{RESTORING}.{os.getpid()}"
    damaged, new = staged / "damaged", staged / "new"
    result = Salvage([])
    restore_blocks(store.path)
    try:
        shutil.rmtree(staged, ignore_errors=True)
        for folder in (damaged, new):
            folder.mkdir(parents=True)
        with take_locks(store.folder):
            for entry in STORE_ENTRIES:
                path = store.folder / entry
                if path.is_dir():
                    shutil.copytree(path, new / entry)
                elif path.exists() and entry != f"{LOG}-shm":
                    shutil.copy2(path, damaged / entry)
            if (damaged / DATABASE).exists():
                result.damages += _read_database(damaged / DATABASE, new)
                result.runs = _drop_incomplete_items(damaged / DATABASE, new, result.damages)
            if (damaged / LOG).exists():
                result.damages += _read_log(damaged / LOG, new / LOG)
            shutil.rmtree(damaged)
            result.replaced = swap_in(store.folder, staged, "damaged")
    except (OSError, sqlite3.Error, duckdb.Error) as error:
        raise StoreError(f"{store.folder}: cannot be salvaged: {error}") from error
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return result


def _read_database(path: Path, new: Path | None) -> list[Damage]:
    """Read every table, into a new store in the folder ``new`` if there is one."""
    try:
        source = Attached(path, read_only=True)
    except duckdb.Error as error:
        if not is_damage(error) or any(text in str(error) for text in _NOT_DAMAGE):
            raise StoreError(f"{path}: cannot be opened: {_first_line(error)}") from error
        return [Damage(path.name, "", None, _first_line(error))]
    with closing(source):
        connection = source.connection
        tables = [
            name
            for (name,) in connection.execute(
                "SELECT table_name FROM duckdb_tables() WHERE database_name = 'cotlab'"
            ).fetchall()
        ]
        if new is None:
            return [
                damage
                for table in tables
                if (damage := _read_table(connection, table, None)) is not None
            ]
        with closing(Attached(new / DATABASE, read_only=False)) as target:
            _create_tables(connection, target.connection)
            damages = [
                damage
                for table in tables
                if table != "schema_version"
                and (damage := _read_table(connection, table, target.connection)) is not None
            ]
            for sequence, table in _SEQUENCES.items():
                if table in tables:
                    target.connection.execute(
                        f"SELECT max(nextval('{sequence}')) FROM range((SELECT"
                        f" coalesce(max(seq), 0) FROM {table}))"
                    ).fetchall()
        return damages


def _create_tables(source: duckdb.DuckDBPyConnection, target: duckdb.DuckDBPyConnection) -> None:
    """Make the schema that the source has; the newest where its number cannot be read."""
    version = None
    with suppress(duckdb.Error):
        [(version,)] = source.execute("SELECT max(version) FROM schema_version").fetchall()
    version = version or len(MIGRATIONS)
    if version > len(MIGRATIONS):
        raise SchemaMismatch(version, len(MIGRATIONS))
    target.execute("CREATE TABLE schema_version (version INTEGER)")
    for number, step in enumerate(MIGRATIONS[:version], start=1):
        step(target)
        target.execute("INSERT INTO schema_version VALUES (?)", [number])


def _read_table(
    source: duckdb.DuckDBPyConnection, table: str, target: duckdb.DuckDBPyConnection | None
) -> Damage | None:
    reasons: list[str] = []
    n_read = 0

    def read_rows(first: int, last: int) -> None:
        nonlocal n_read
        try:
            rows = source.sql(
                f"SELECT * FROM {quoted_name(table)} WHERE rowid BETWEEN {first} AND {last}"
            ).to_arrow_table()
        except duckdb.Error as error:
            if not is_damage(error):
                raise
            reasons.append(_first_line(error))
            raise _Unreadable from error
        n_read += len(rows)
        if target is not None and len(rows):
            target.register("salvaged_rows", rows)
            target.execute(f"INSERT INTO {quoted_name(table)} BY NAME SELECT * FROM salvaged_rows")
            target.unregister("salvaged_rows")

    [(n_rows, last_row)] = source.execute(
        f"SELECT count(*), coalesce(max(rowid), -1) FROM {quoted_name(table)}"
    ).fetchall()
    lost_ranges = _unreadable_ranges(read_rows, 0, last_row, _SMALLEST_RANGE)
    if not lost_ranges:
        return None
    return Damage(DATABASE, table, n_rows - n_read, reasons[0], tuple(lost_ranges))


def _unreadable_ranges(
    read_rows: Callable[[int, int], None], first: int, last: int, smallest: int
) -> list[Range]:
    """Read rows ``first`` to ``last``, in halves where that fails; return what cannot be read."""
    lost_ranges: list[Range] = []
    waiting = [
        (start, min(start + _ROWS_AT_ONCE - 1, last))
        for start in range(first, last + 1, _ROWS_AT_ONCE)
    ][::-1]
    while waiting:
        start, end = waiting.pop()
        try:
            read_rows(start, end)
        except _Unreadable:
            if end - start < smallest:
                if lost_ranges and lost_ranges[-1][1] == start - 1:
                    start, _ = lost_ranges.pop()
                lost_ranges.append((start, end))
                continue
            middle = (start + end) // 2
            waiting += [(middle + 1, end), (start, middle)]
    return lost_ranges


def _drop_incomplete_items(path: Path, new: Path, damages: list[Damage]) -> list[str]:
    """Delete what is left of items that lost scores, so that they are scored again.

    The scores of an item stand in one place, so the lost ones are of the items before and after
    them, and of those that have none left.
    """
    lost_ranges = [
        lost_range
        for damage in damages
        if damage.table == "scores"
        for lost_range in damage.lost_ranges
    ]
    if not lost_ranges:
        return []
    neighbours = [row for first, last in lost_ranges for row in (first - 1, last + 1)]
    with closing(Attached(path, read_only=True)) as source:
        keys = []
        for row in neighbours:
            keys += source.connection.execute(
                f"SELECT run, scorer, item_id FROM scores WHERE rowid = {row}"
            ).fetchall()
    with closing(Attached(new / DATABASE, read_only=False)) as target:
        connection = target.connection
        for run, scorer, item in keys:
            connection.execute(
                "DELETE FROM scores WHERE run = ? AND scorer = ? AND item_id = ?",
                [run, scorer, item],
            )
        rows = connection.execute(
            "DELETE FROM ended WHERE NOT EXISTS (SELECT 1 FROM scores s WHERE s.run = ended.run AND"
            " s.scorer = ended.scorer AND s.item_id = ended.item) RETURNING run"
        ).fetchall()
    return sorted({run for (run,) in rows})


def _read_log(path: Path, new: Path | None) -> list[Damage]:
    """Read every table of the log, into a new log if there is one."""
    with closing(sqlite3.connect(new or ":memory:", isolation_level=None, uri=True)) as log:
        suffix = "?immutable=1" if is_read_only(path) else ""
        try:
            log.execute("ATTACH ? AS damaged", (f"{path.resolve().as_uri()}{suffix}",))
            version = int(log.execute("PRAGMA damaged.user_version").fetchone()[0])
            tables = [
                name
                for (name,) in log.execute(
                    "SELECT name FROM damaged.sqlite_master WHERE type = 'table' ORDER BY name"
                ).fetchall()
            ]
        except (sqlite3.DatabaseError, UnicodeError) as error:
            if isinstance(error, sqlite3.OperationalError):
                raise StoreError(f"{path}: cannot be opened: {_first_line(error)}") from error
            return [Damage(path.name, "", None, _first_line(error))]
        if version > len(SCHEMA_STEPS):
            raise SchemaMismatch(version, len(SCHEMA_STEPS))
        if new is not None:
            for step in SCHEMA_STEPS[:version]:
                for statement in step:
                    log.execute(statement)
            log.execute(f"PRAGMA user_version = {version}")
        damages = [
            damage
            for table in tables
            if (damage := _read_log_table(log, table, is_kept=new is not None)) is not None
        ]
        if not damages and (fault := _integrity_fault(log)):
            damages.append(Damage(path.name, "", 0, fault))
        return damages


def _read_log_table(log: sqlite3.Connection, table: str, *, is_kept: bool) -> Damage | None:
    reasons: list[str] = []
    columns = [row[1] for row in log.execute(f"PRAGMA damaged.table_info({quoted_name(table)})")]
    names = ", ".join(map(quoted_name, columns))
    # a search reads each value to its end, where its length would not
    searches = " + ".join(
        f"total(instr(CAST({quoted_name(name)} AS BLOB), x'00'))" for name in columns
    )
    table_name = quoted_name(table)
    query = (
        f"INSERT INTO main.{table_name} ({names}) SELECT {names} FROM damaged.{table_name}"
        if is_kept
        else f"SELECT count(*), {searches} FROM damaged.{table_name}"
    )
    n_read = 0

    def read_rows(first: int, last: int) -> None:
        nonlocal n_read
        try:
            cursor = log.execute(f"{query} WHERE rowid BETWEEN ? AND ?", (first, last))
            n_read += cursor.rowcount if is_kept else cursor.fetchone()[0]
        except sqlite3.DatabaseError as error:
            if type(error) is not sqlite3.DatabaseError:  # SQLITE_CORRUPT has no class of its own
                raise
            reasons.append(_first_line(error))
            raise _Unreadable from error

    lost_ranges = _unreadable_ranges(read_rows, 1, _last_row_id(log, table), 1)
    n_lost = sum(last - first + 1 for first, last in lost_ranges)
    if lost_ranges:
        with suppress(sqlite3.Error):  # by the index of the keys: row ids have gaps
            [(n_rows,)] = log.execute(
                f"SELECT count(*) FROM damaged.{quoted_name(table)}"
            ).fetchall()
            n_lost = max(0, n_rows - n_read)
    if table == "replies" and (is_kept or not lost_ranges):
        bad_rows = _invalid_replies(log, "main" if is_kept else "damaged")
        n_lost += len(bad_rows)
        if is_kept:
            log.executemany("DELETE FROM main.replies WHERE rowid = ?", bad_rows)
    if not n_lost and not lost_ranges:
        return None
    return Damage(LOG, table, n_lost, [*reasons, "is no JSON"][0], tuple(lost_ranges))


def _invalid_replies(log: sqlite3.Connection, schema: str) -> list[tuple[int]]:
    """Return the row ids of replies that are no JSON object, or not even text."""
    return [
        (row_id,)
        for row_id, response in log.execute(
            f"SELECT rowid, CAST(response AS BLOB) FROM {schema}.replies"
        )
        if decode_object((response or b"").decode("utf-8", "surrogateescape")) is None
    ]


def _last_row_id(log: sqlite3.Connection, table: str) -> int:
    """Return the last row id; where it cannot be read, more than the file has room for."""
    with suppress(sqlite3.Error):
        return int(
            log.execute(f"SELECT max(rowid) FROM damaged.{quoted_name(table)}").fetchone()[0] or 0
        )
    return 100 * int(log.execute("PRAGMA damaged.page_count").fetchone()[0])


def _integrity_fault(log: sqlite3.Connection) -> str:
    try:
        text = str(log.execute("PRAGMA damaged.integrity_check(1)").fetchone()[0])
    except sqlite3.Error as error:
        return _first_line(error)
    return "" if text == "ok" else text.splitlines()[-1][:200]


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:200]
