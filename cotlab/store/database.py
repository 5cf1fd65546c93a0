"""A store: its tables in ``log.sqlite``, and their copy in ``cotlab.duckdb`` that is queried.

The copy is opened for milliseconds, with retries while another process holds it. It shows one
transaction of one store; one that is missing, damaged, behind, or of another schema is made again
from ``log.sqlite``.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pandas as pd
import pyarrow as pa

from cotlab.core.errors import StoreBusy, StoreError
from cotlab.core.resources import checkout_root
from cotlab.store.attached import DATABASE, OLD_FILES, Attached, is_damage
from cotlab.store.log import (
    LOG,
    LogConnection,
    LogError,
    connect_log,
    is_process_alive,
    open_log,
    transaction,
)
from cotlab.store.tables import (
    COPY_SCHEMA,
    DUCKDB_STATEMENTS,
    SCHEMAS,
    STORED_TABLES,
    from_stored,
    to_stored,
    unpack_sheet,
)

logger = logging.getLogger(__name__)
LOCK_TIMEOUT_S = 30.0
"""Seconds to wait for another process before StoreBusy."""
_LOCK_BY_PATH: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)
_OPEN_FILES: dict[str, Attached] = {}
"""Files that are open now, each by the thread that holds its lock."""
_OPEN_WRITERS: dict[str, Writer] = {}
"""Transactions that are open now."""
_COMPARED_FILES: dict[str, FileState] = {}
"""State of each file that was last found to show what ``log.sqlite`` holds."""
_CLEANED_STORES: set[str] = set()
"""Stores from which this process removed what killed ones had left."""
BACKUPS = "backups"
"""Folder of a store for its backups."""
_LEFTOVERS = r"cotlab\.duckdb|restoring|(?:replaced-)?\d{8}-\d{6}-\d{3}"
"""Names of files and folders that are being made; backups are 20261122-201500-123."""
_MOST_COPIES = 3
"""Times that a copy is made again in one call."""
_ROWS_AT_ONCE, _SHEETS_AT_ONCE = 50_000, 2_000
"""Rows that are copied at once, and items whose scores are."""


def store_folder() -> Path:
    """Return the folder: COTLAB_STORE, else data/store in a checkout, else one of the user."""
    if configured_folder := os.environ.get("COTLAB_STORE"):
        return Path(configured_folder)
    if (checkout := checkout_root()) is not None:
        return checkout / "data" / "store"
    from platformdirs import user_data_path

    return user_data_path("cotlab", appauthor=False) / "store"


class StoreState(NamedTuple):
    """Which transaction of which store a file shows."""

    store: str
    """Name of the store."""
    change: int
    """Transactions that wrote to it."""


class Writer:
    """A transaction of a store: what it writes is in the copy at once, in SQLite at its end."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, state: StoreState) -> None:
        self._connection, self._state = connection, state
        self._recorded: list[tuple[str, list[Sequence[Any]]]] = []

    def execute(self, query: str, parameters: Any = None) -> duckdb.DuckDBPyConnection:
        """Execute a query, or a statement that changes the copy alone."""
        return self._connection.execute(query, parameters)

    def record(self, statement: str, *rows: Sequence[Any]) -> None:
        """Execute a statement, in words that both databases know, for each row of parameters."""
        for row in rows:
            self._connection.execute(statement, row)
        self.record_stored(statement, rows)

    def record_stored(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Execute a statement in SQLite alone, for each row of parameters."""
        self._recorded.append((statement, [tuple(map(to_stored, row)) for row in rows]))

    def insert(self, table: str, *rows: Mapping[str, Any]) -> None:
        """Append rows of values by column; a column that a row does not name is NULL."""
        if not rows:
            return
        batch = pa.Table.from_pylist(rows, schema=SCHEMAS[table])
        self.insert_copied(table, batch)
        places = ", ".join("?" * batch.num_columns)
        columns = (column.to_pylist() for column in batch.columns)
        self.record_stored(f"INSERT INTO {table} VALUES ({places})", zip(*columns, strict=True))

    def next_number(self, table: str, column: str = "seq") -> int:
        """Return one more than the largest number of a column, 1 in an empty table."""
        query = f"SELECT coalesce(max({column}), 0) + 1 FROM {table}"
        [(number,)] = self._connection.execute(query).fetchall()
        return int(number)

    def insert_copied(self, table: str, batch: pa.Table) -> None:
        """Append the rows of ``batch`` to a table of the copy alone."""
        _append(self._connection, table, batch)

    @contextmanager
    def registered(self, name: str, batch: pa.Table) -> Iterator[None]:
        """Let queries of the block see a table in memory."""
        self._connection.register(name, batch)
        yield
        self._connection.unregister(name)

    def commit(self, log: LogConnection) -> None:
        """End the transaction in SQLite, then in the copy.

        A process that is killed in between leaves a copy that is behind, which is made again.

        Raises
        ------
        StoreBusy
            If another process wrote to the store meanwhile, as one may whose copy was made again.
        """
        if self._recorded:
            self._connection.execute("UPDATE copied SET change = change + 1")
            with transaction(log, f"{log.path}: the store"):
                for statement, rows in self._recorded:
                    log.executemany(statement, rows)
                change_sql = "UPDATE store SET change = change + 1 WHERE id = ? AND change = ?"
                if log.execute(change_sql, self._state).rowcount != 1:
                    raise StoreBusy(0.0, "another process that wrote to it meanwhile: try again")
        try:
            self._connection.commit()
        except duckdb.Error as error:  # a full disk is reported as an error of the transaction
            raise duckdb.IOException(str(error)) from error


Connection = duckdb.DuckDBPyConnection | Writer
"""What reads in a transaction: ``execute`` of a store that is open for reading or writing."""
FileState = tuple[tuple[int, ...], ...]
"""What tells one state of a store's file from another."""


class Store:
    """The store in ``folder``.

    It holds ``log.sqlite`` (see ``cotlab.store.responses``) and ``cotlab.duckdb``, its copy.

    Raises
    ------
    StoreBusy
        If another process keeps the file locked for longer than ``lock_timeout_s``.
    SchemaMismatch
        If a newer cotlab wrote it.
    StoreError
        If the store is damaged or cannot be created, or the copy is of another store.
    """

    def __init__(
        self, folder: Path | None = None, *, lock_timeout_s: float = LOCK_TIMEOUT_S
    ) -> None:
        self.folder = (folder or store_folder()).resolve()
        self.lock_timeout_s = lock_timeout_s

    @property
    def path(self) -> Path:
        """Return the path of the DuckDB file."""
        return self.folder / DATABASE

    @property
    def log_path(self) -> Path:
        """Return the path of the SQLite file."""
        return self.folder / LOG

    def file_state(self) -> FileState:
        """Return what tells one state of the copy from another; () where there is none.

        It is the identity, size and times of the file and of its write-ahead log, which every
        write changes: what was read of an unchanged file needs no second reading.
        """
        states: list[tuple[int, ...]] = []
        for path in (self.path, Path(f"{self.path}.wal")):
            with suppress(FileNotFoundError, NotADirectoryError):
                stat = path.stat()
                states.append((stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns))
        return tuple(states)

    @contextmanager
    def reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a read-only connection for the block."""
        with _LOCK_BY_PATH[str(self.path)], self._mapped_damage():
            if (outer_file := self._outer_file(read_only=True)) is not None:
                with outer_file.connect_again() as connection:
                    yield connection
                return
            attached = self._attach_to_read()
            if attached is None:
                with self.writing():
                    pass  # makes the copy, or brings an older store forward
                attached = self._attach(read_only=True)
            with self._opened(attached):
                yield attached.connection

    def query_frame(self, query: str, parameters: Any = None) -> pd.DataFrame:
        """Return the result of one query as a data frame."""
        with self.reading() as connection:
            return connection.execute(query, parameters).df()

    def query_columns(self, query: str, parameters: Any = None) -> pa.Table:
        """Return the result of one query as an Arrow table: of millions of rows in half the time.

        Columns of lists are those of Arrow, not of ``query_frame``.
        """
        with self.reading() as connection:
            return connection.sql(query, params=parameters).to_arrow_table()

    def query_rows(self, query: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        """Return the rows of the result of one query."""
        with self.reading() as connection:
            rows: list[tuple[Any, ...]] = connection.execute(query, parameters).fetchall()
        return rows

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """Open one transaction for the block, rolled back if it raises.

        In a block that writes already, it is that block's transaction.
        """
        with _LOCK_BY_PATH[str(self.path)]:
            if self._outer_file(read_only=False) is not None:
                yield _OPEN_WRITERS[str(self.path)]
                return
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreError(
                    f"{self.folder}: the store's folder cannot be made: {error.strerror}"
                ) from error
            if str(self.path) not in _CLEANED_STORES:
                for folder in (self.folder, self.folder / BACKUPS):
                    remove_leftovers(folder)
                _CLEANED_STORES.add(str(self.path))
            with closing(open_log(self.log_path)) as log:
                attached, state = self._attach_to_write(log)
                with self._opened(attached), self._mapped_write_errors():
                    connection = attached.connection
                    connection.begin()
                    writer = _OPEN_WRITERS[str(self.path)] = Writer(connection, state)
                    try:
                        yield writer
                        writer.commit(log)
                    except BaseException:
                        # An error in the database may have ended the transaction already.
                        with suppress(duckdb.Error):
                            connection.rollback()
                        raise
                    finally:
                        del _OPEN_WRITERS[str(self.path)]

    def rebuild(self) -> bool:
        """Make the copy again from ``log.sqlite``; where that was lost, make it from the copy.

        Returns
        -------
        bool
            Whether the tables of ``log.sqlite`` are those of the copy now: its replies are lost.
        """
        from cotlab.store.older import recover_tables

        with _LOCK_BY_PATH[str(self.path)], closing(open_log(self.log_path)) as log:
            is_recovered = not log_state(log).change and recover_tables(log)
            self._make_copy(log, keeps_old=True)
            return is_recovered

    @contextmanager
    def _mapped_damage(self) -> Iterator[None]:
        """Raise what DuckDB says of an unreadable file as StoreError; errors in SQL are bugs."""
        try:
            yield
        except duckdb.Error as error:
            if not is_damage(error):
                raise
            raise StoreError(
                f"{self.path}: cannot be read: {_first_line(error)}. It is a copy of {LOG}; make it"
                " again with: cotlab doctor --rebuild"
            ) from error

    @contextmanager
    def _mapped_write_errors(self) -> Iterator[None]:
        try:
            yield
        except (duckdb.IOException, duckdb.FatalException) as error:
            raise StoreError(f"{self.path}: cannot be written: {_first_line(error)}") from error

    def _outer_file(self, *, read_only: bool) -> Attached | None:
        """Return the file where an outer block has it open, which has to be in the same mode."""
        outer_file = _OPEN_FILES.get(str(self.path))
        if outer_file is not None and outer_file.read_only != read_only:
            mode = "reading" if outer_file.read_only else "writing"
            raise StoreError(
                f"{self.path}: is open for {mode} in this block already: end the block first"
            )
        return outer_file

    @contextmanager
    def _opened(self, attached: Attached) -> Iterator[None]:
        _OPEN_FILES[str(self.path)] = attached
        try:
            yield
        finally:
            del _OPEN_FILES[str(self.path)]
            attached.close()

    def _attach_to_read(self) -> Attached | None:
        """Open the copy; None where it has to be made first."""
        try:
            attached = self._attach(read_only=True) if self.path.exists() else None
        except _UnreadableCopy:
            return None
        if attached is None:
            return None
        # a file that was compared and did not change since is compared no second time
        file_state = self.file_state() if self.log_path.exists() else ()
        if file_state and _COMPARED_FILES.get(str(self.path)) == file_state:
            return attached
        state = copied_state(attached.connection)
        if state is not None and state == self._log_state():
            _COMPARED_FILES[str(self.path)] = file_state
            return attached
        attached.close()
        return None

    def _log_state(self) -> StoreState | None:
        """Return the state of ``log.sqlite``; None where it is not there or of another schema."""
        if not self.log_path.exists():
            return None
        try:
            with closing(connect_log(self.log_path)) as log:
                return log_state(log)
        except LogError:
            with suppress(StoreError), closing(open_log(self.log_path)) as log:  # read-only
                return log_state(log)
        return None

    def _attach_to_write(self, log: LogConnection) -> tuple[Attached, StoreState]:
        """Open the copy, made again where it does not show what the log holds."""
        for _ in range(_MOST_COPIES):
            try:
                attached = self._attach(read_only=False) if self.path.exists() else None
            except _UnreadableCopy as error:
                logger.warning("%s: is made again from %s: %s", self.path, LOG, error)
                self._make_copy(log, keeps_old=True)
                continue
            if attached is None:
                self._make_copy(log)
                continue
            copied, state = copied_state(attached.connection), log_state(log)
            if copied == state:
                return attached, state
            attached.close()
            if copied is not None and (copied.store != state.store or copied.change > state.change):
                raise StoreError(
                    f"{self.log_path}: was lost or replaced: {DATABASE} is a copy of a later state."
                    " Put a backup in its place with cotlab restore, or go on with what is there:"
                    " cotlab doctor --rebuild"
                )
            self._make_copy(log, keeps_old=copied is None)
        raise StoreBusy(0.0, "another process that makes it again")

    def _attach(self, *, read_only: bool) -> Attached:
        started_at, wait_s = time.monotonic(), 0.005
        while True:
            try:
                return Attached(self.path, read_only=read_only)
            except duckdb.Error as error:
                waited_s, message = time.monotonic() - started_at, str(error)
                if "Permission denied" in message or "Cannot open file" in message:
                    raise StoreError(
                        f"{self.path}: cannot be opened: {_first_line(error)}"
                    ) from error
                if "Could not set lock" not in message:
                    raise _UnreadableCopy(_first_line(error)) from error
                if waited_s > self.lock_timeout_s:
                    # Conflicting lock is held in /usr/bin/python3 (PID 42) by user me. See …
                    holder_match = re.search(r"held in (.+?)(?:\.? See|$)", message, re.DOTALL)
                    raise StoreBusy(
                        waited_s,
                        holder_match.group(1).strip() if holder_match else "another process",
                    ) from error
            time.sleep(wait_s)
            wait_s = min(wait_s * 1.5, 0.1)

    def _make_copy(self, log: LogConnection, *, keeps_old: bool = False) -> None:
        """Make the copy under another name and move it, so that a killed process leaves no part.

        What stood in its place is a copy as well, and goes; what is none is kept with ``.replaced``
        behind its name.
        """
        temporary_path = self.folder / f".{DATABASE}.{os.getpid()}"
        wal_path = Path(f"{self.path}.wal")
        try:
            with closing(Attached(temporary_path, read_only=False)) as attached:
                fill_copy(attached.connection, log)
            old_path = self.folder / OLD_FILES / DATABASE
            is_kept = old_path.exists() and self.path.exists() and old_path.samefile(self.path)
            if keeps_old and not is_kept and self.path.exists():
                self.path.replace(Path(f"{self.path}.replaced"))
            wal_path.unlink(missing_ok=True)
            temporary_path.replace(self.path)
        except (duckdb.Error, OSError) as error:
            raise StoreError(f"{self.path}: cannot be made: {_first_line(error)}") from error
        finally:
            temporary_path.unlink(missing_ok=True)
            Path(f"{temporary_path}.wal").unlink(missing_ok=True)


class _UnreadableCopy(Exception):
    """The DuckDB file cannot be opened; it is made again."""


def log_state(log: LogConnection) -> StoreState:
    """Return which transaction of which store a log shows."""
    row = log.execute("SELECT id, change FROM store").fetchone()
    if row is None:
        raise LogError(log.path, "it has lost the store's name. Put a backup in its place")
    return StoreState(*row)


def remove_leftovers(folder: Path, name: str = "") -> None:
    """Remove what killed processes left in a folder: ``.NAME.PID`` of a copy or a backup."""
    for path in folder.iterdir() if folder.is_dir() else ():
        match = re.fullmatch(rf"\.(?:{_LEFTOVERS}|{re.escape(name)})\.(\d+)(\.wal)?", path.name)
        if match and not is_process_alive(int(match[1])):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def copied_state(connection: duckdb.DuckDBPyConnection) -> StoreState | None:
    """Return what a copy shows; None where the file is none of this schema."""
    try:
        rows = connection.execute(
            "SELECT store, change FROM copied WHERE version = ?", [COPY_SCHEMA]
        ).fetchall()
    except duckdb.CatalogException:
        return None
    return StoreState(*rows[0]) if len(rows) == 1 else None


def fill_copy(connection: duckdb.DuckDBPyConnection, log: LogConnection) -> None:
    """Make the tables of an empty file, with the rows that the log holds at one moment."""
    connection.begin()
    log.execute("BEGIN")
    try:
        for statement in DUCKDB_STATEMENTS:
            connection.execute(statement)
        for table in STORED_TABLES:
            schema = SCHEMAS[table]
            rows = log.execute(f"SELECT {', '.join(schema.names)} FROM {table} ORDER BY rowid")
            while part := list(islice(rows, _ROWS_AT_ONCE)):
                columns = zip(zip(*part, strict=True), schema.types, strict=True)
                batch = pa.table([from_stored(*column) for column in columns], schema=schema)
                _append(connection, table, batch)
        _fill_scores(connection, log)
        connection.execute("INSERT INTO copied VALUES (?, ?, ?)", [COPY_SCHEMA, *log_state(log)])
        connection.commit()
    finally:
        log.execute("ROLLBACK")


def _fill_scores(connection: duckdb.DuckDBPyConnection, log: LogConnection) -> None:
    """Put the scores of each ended item into the copy; one with damaged scores is not ended."""
    schema = SCHEMAS["scores"]
    rows = log.execute("SELECT run, scorer, item, sheet FROM ended ORDER BY rowid")
    while part := list(islice(rows, _SHEETS_AT_ONCE)):
        columns: list[list[Any]] = [[] for _ in schema]
        for run, scorer, item, sheet in part:
            try:
                sheet_columns = unpack_sheet(sheet)
            except ValueError as error:
                logger.warning(
                    "%s: the scores by %s of item %s in run %s are damaged (%s) and left out:"
                    " cotlab run --resume %s",
                    log.path,
                    scorer,
                    item,
                    run,
                    error,
                    run,
                )
                key = [run, scorer, item]
                connection.execute(
                    "DELETE FROM ended WHERE run = ? AND scorer = ? AND item = ?", key
                )
                continue
            n_scores = len(sheet_columns[0]) if sheet_columns else 0
            for column, values in zip(
                columns, [[run] * n_scores, [scorer] * n_scores, *sheet_columns], strict=False
            ):
                column += values
        arrays = [pa.array(*column) for column in zip(columns, schema.types, strict=True)]
        _append(connection, "scores", pa.table(arrays, schema=schema))


def _append(connection: duckdb.DuckDBPyConnection, table: str, batch: pa.Table) -> None:
    connection.register("batch", batch)
    connection.execute(f"INSERT INTO {table} SELECT * FROM batch")
    connection.unregister("batch")


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:300]
