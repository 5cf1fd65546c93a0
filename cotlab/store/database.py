"""The store's DuckDB file: opened for milliseconds, with retries while another process holds it.

It is attached to a database in memory that is reused: making a DuckDB database takes about 20 ms of
CPU time, even in memory; attaching a file to one takes 1.5 ms. Between two calls the file is not
held: no lock, no handle, no page in memory.
"""

from __future__ import annotations

import atexit
import os
import re
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa

from cotlab.core.errors import StoreBusy, StoreError
from cotlab.core.resources import checkout_root
from cotlab.store.checkpoint import checkpoint, restore_blocks
from cotlab.store.migrations import is_schema_current, migrate
from cotlab.store.swap import check_integrity

LOCK_TIMEOUT_S = 30.0
"""Seconds to wait for another process before StoreBusy."""
_LOCK_BY_PATH: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)
_SPARE_DATABASES: list[duckdb.DuckDBPyConnection] = []
"""Unused databases in memory: at most one, made at the first use and closed at a fork and at exit.
"""
_OPEN_FILES: dict[str, Attached] = {}
"""Files that are open now, each by the thread that holds its lock."""

_DAMAGE_ERRORS = (
    duckdb.IOException,
    duckdb.FatalException,
    duckdb.InternalException,
    duckdb.SerializationException,
    duckdb.DataError,
)
"""What DuckDB raises where a file cannot be read, or holds values that nobody wrote."""
_VERSION_OFFSET = 52
"""Offset of the version of DuckDB that made the file, in its header: v2.0.0, padded with zeros."""


def store_folder() -> Path:
    """Return the folder: COTLAB_STORE, else data/store in a checkout, else one of the user."""
    if configured_folder := os.environ.get("COTLAB_STORE"):
        return Path(configured_folder)
    if (checkout := checkout_root()) is not None:
        return checkout / "data" / "store"
    from platformdirs import user_data_path

    return user_data_path("cotlab", appauthor=False) / "store"


def is_damage(error: duckdb.Error) -> bool:
    """Return whether an error says that a file cannot be read."""
    # a block that does not match its checksum has no class of its own
    return isinstance(error, _DAMAGE_ERRORS) or "Corrupt database" in str(error)


class Attached:
    """The file at ``path``, open until ``close``; ``connection`` sees it as the only database.

    Raises
    ------
    duckdb.Error
        As ``duckdb.connect`` does: IOException where another process holds the file, or where it is
        none of DuckDB's.
    """

    def __init__(self, path: Path, *, read_only: bool) -> None:
        self.read_only = read_only
        self._path = path
        self._file = path.open("rb") if path.exists() and not read_only else None
        self._database = _acquire_database()
        try:
            self._database.execute(
                "SET temp_directory = ?", [f"{path}.tmp"]
            )  # for what does not fit into memory
            mode_clause = " (READ_ONLY)" if read_only else ""
            self._database.execute(f"ATTACH {_sql_literal(path)} AS cotlab{mode_clause}")
            self.connection = self.connect_again()
        except BaseException as error:
            if isinstance(error, duckdb.IOException):
                _release_database(self._database)
            else:
                self._database.close()
            if self._file is not None:
                self._file.close()
            raise

    def connect_again(self) -> duckdb.DuckDBPyConnection:
        """Open another connection to the file; it ends with ``close`` at the latest."""
        connection = self._database.cursor()
        connection.execute("USE cotlab")
        return connection

    def close(self) -> None:
        """Detach the file; a database that fails to, as after a disk error, is discarded."""
        try:
            if not self.read_only:
                checkpoint(self.connection, self._path, self._file)
            self.connection.close()
            self._database.execute("DETACH cotlab")
        except (duckdb.Error, OSError):
            with suppress(duckdb.Error):
                self._database.close()
        else:
            _release_database(self._database)
        finally:
            if self._file is not None:
                self._file.close()


FileState = tuple[tuple[int, ...], ...]
"""What tells one state of a store's file from another."""


class Store:
    """The store in ``folder``.

    It holds ``cotlab.duckdb`` and ``log.sqlite`` (see ``cotlab.store.responses``).

    Raises
    ------
    StoreBusy
        If another process keeps the file locked for longer than ``lock_timeout_s``.
    SchemaMismatch
        If a newer cotlab wrote it.
    StoreError
        If the file is not a DuckDB database or cannot be created.
    """

    def __init__(
        self, folder: Path | None = None, *, lock_timeout_s: float = LOCK_TIMEOUT_S
    ) -> None:
        self.folder = (folder or store_folder()).resolve()
        self.lock_timeout_s = lock_timeout_s
        self._is_migrated = False

    @property
    def path(self) -> Path:
        """Return the path of the DuckDB file."""
        return self.folder / "cotlab.duckdb"

    @property
    def log_path(self) -> Path:
        """Return the path of the SQLite file."""
        return self.folder / "log.sqlite"

    def file_state(self) -> FileState:
        """Return what tells one state of the file from another; () where there is no file.

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
            if self.path.exists():
                with self._open_connection(read_only=True) as connection:
                    if self._is_migrated or is_schema_current(connection):
                        self._is_migrated = True
                        yield connection
                        return
            with self.writing():
                pass  # makes the file, or migrates an older one
            with self._open_connection(read_only=True) as connection:
                yield connection

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
    def writing(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a connection in one transaction for the block, rolled back if it raises."""
        with _LOCK_BY_PATH[str(self.path)]:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreError(
                    f"{self.folder}: the store's folder cannot be made: {error.strerror}"
                ) from error
            check_integrity(self.folder)
            if not self.path.exists():
                self._create_file()
            with self._open_connection(read_only=False) as connection:
                try:
                    if not self._is_migrated:
                        migrate(connection)
                        self._is_migrated = True
                    connection.begin()
                    try:
                        yield connection
                    except BaseException:
                        # An error in the database may have ended the transaction already.
                        with suppress(duckdb.Error):
                            connection.rollback()
                        raise
                    _commit_transaction(connection)
                except (duckdb.IOException, duckdb.FatalException) as error:
                    raise StoreError(
                        f"{self.path}: cannot be written: {_first_line(error)}"
                    ) from error

    @contextmanager
    def _mapped_damage(self) -> Iterator[None]:
        """Raise what DuckDB says of an unreadable file as StoreError; errors in SQL are bugs."""
        try:
            yield
        except duckdb.Error as error:
            if not is_damage(error):
                raise
            raise StoreError(
                f"{self.path}: cannot be read: {_first_line(error)}. If it is damaged, put a backup"
                " in its place (cotlab restore), or keep what can be read: cotlab doctor --store"
            ) from error

    def _create_file(self) -> None:
        """Make the file under another name and move it, so that a killed process leaves no part."""
        temporary_path = self.folder / f".{self.path.name}.{os.getpid()}-{threading.get_ident()}"
        try:
            with closing(Attached(temporary_path, read_only=False)) as attached_file:
                migrate(attached_file.connection)
                checkpoint(attached_file.connection, temporary_path, None)
            with suppress(FileExistsError):
                os.link(temporary_path, self.path)
        except (duckdb.Error, OSError) as error:
            raise StoreError(f"{self.path}: cannot be made: {_first_line(error)}") from error
        finally:
            temporary_path.unlink(missing_ok=True)

    @contextmanager
    def _open_connection(self, *, read_only: bool) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a connection to the file.

        In a block that has it open in the same mode already, another connection to the same
        opening.
        """
        outer_file = _OPEN_FILES.get(str(self.path))
        if outer_file is not None:
            if outer_file.read_only != read_only:
                mode = "reading" if outer_file.read_only else "writing"
                raise StoreError(
                    f"{self.path}: is open for {mode} in this block already: end the block first"
                )
            with outer_file.connect_again() as connection:
                yield connection
            return
        attached_file = _OPEN_FILES[str(self.path)] = self._attach_file(read_only=read_only)
        try:
            yield attached_file.connection
        finally:
            del _OPEN_FILES[str(self.path)]
            attached_file.close()

    def _attach_file(self, *, read_only: bool) -> Attached:
        started_at, wait_s = time.monotonic(), 0.005
        while True:
            check_integrity(self.folder)
            restore_blocks(self.path)
            try:
                return Attached(self.path, read_only=read_only)
            except duckdb.IOException as error:
                waited_s = time.monotonic() - started_at
                if "Could not set lock" not in str(error):
                    raise StoreError(
                        f"{self.path}: cannot be opened: {self._version_message(error)}"
                    ) from error
                if waited_s > self.lock_timeout_s:
                    # Conflicting lock is held in /usr/bin/python3 (PID 42) by user me. See …
                    holder_match = re.search(r"held in (.+?)(?:\.? See|$)", str(error), re.DOTALL)
                    raise StoreBusy(
                        waited_s,
                        holder_match.group(1).strip() if holder_match else "another process",
                    ) from error
            except duckdb.Error as error:
                raise StoreError(f"{self.path}: cannot be opened: {_first_line(error)}") from error
            time.sleep(wait_s)
            wait_s = min(wait_s * 1.5, 0.1)

    def _version_message(self, error: duckdb.Error) -> str:
        """Return the error; both versions where a newer DuckDB than the installed one wrote it."""
        if "version number" not in str(error):
            return _first_line(error)
        with self.path.open("rb") as file:
            file.seek(_VERSION_OFFSET)
            writer_version = file.read(32).rstrip(b"\0").decode("ascii", "replace")
        return (
            f"it was written by DuckDB {writer_version.removeprefix('v') or 'of a newer version'},"
            f" which the installed DuckDB {duckdb.__version__} cannot read: pip install --upgrade"
            " duckdb, or choose another store with COTLAB_STORE"
        )


def _commit_transaction(connection: duckdb.DuckDBPyConnection) -> None:
    try:
        connection.commit()
    except duckdb.Error as error:  # a full disk is reported as an error of the transaction
        raise duckdb.IOException(str(error)) from error


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:300]


def quoted_name(name: str) -> str:
    """Return a name as SQL: that of a table or a column in a file may hold anything."""
    return '"' + name.replace('"', '""') + '"'


def _sql_literal(path: Path) -> str:
    """Return a path as a string of SQL: DuckDB 1.x takes no parameter in ATTACH."""
    return "'" + str(path).replace("'", "''") + "'"


def _acquire_database() -> duckdb.DuckDBPyConnection:
    _register_cleanup()
    try:
        return _SPARE_DATABASES.pop()
    except IndexError:
        database = duckdb.connect(":memory:")
        # checkpoints by ``checkpoint`` alone: those at a commit or a detach are not kill-safe
        database.execute("SET checkpoint_threshold = '1 TB'")
        database.execute("PRAGMA disable_checkpoint_on_shutdown")
        return database


def _release_database(database: duckdb.DuckDBPyConnection) -> None:
    if _SPARE_DATABASES:
        database.close()
    else:
        _SPARE_DATABASES.append(database)


def _close_spare_databases() -> None:
    while _SPARE_DATABASES:
        _SPARE_DATABASES.pop().close()


@cache
def _register_cleanup() -> None:
    # A child process would have the database without its threads.
    os.register_at_fork(before=_close_spare_databases)
    atexit.register(_close_spare_databases)
