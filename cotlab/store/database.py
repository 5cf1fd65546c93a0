"""The store's DuckDB file: opened for milliseconds, with retries while another process holds it."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from cotlab.core.errors import StoreBusy, StoreError
from cotlab.core.resources import checkout
from cotlab.store.attach import Attached
from cotlab.store.migrations import is_current, migrate

PATIENCE_S = 30.0
"""Seconds to wait for another process before StoreBusy."""
_LOCKS: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)
_OPEN: dict[str, Attached] = {}
"""Files that are open now, each by the thread that holds its lock."""

_WRITTEN_BY = 52
"""Offset of the version of DuckDB that made the file, in its header: v2.0.0, padded with zeros."""


def store_folder() -> Path:
    """Return the folder: COTLAB_STORE, else data/store in a checkout, else one of the user."""
    if chosen := os.environ.get("COTLAB_STORE"):
        return Path(chosen)
    if (root := checkout()) is not None:
        return root / "data" / "store"
    from platformdirs import user_data_path

    return user_data_path("cotlab", appauthor=False) / "store"


class Store:
    """The store in ``folder``.

    It holds ``cotlab.duckdb`` and ``log.sqlite`` (see ``cotlab.store.responses``).

    Raises
    ------
    StoreBusy
        If another process keeps the file locked for longer than ``patience_s``.
    SchemaMismatch
        If a newer cotlab wrote it.
    StoreError
        If the file is not a DuckDB database or cannot be created.
    """

    def __init__(self, folder: Path | None = None, *, patience_s: float = PATIENCE_S) -> None:
        self.folder = (folder or store_folder()).resolve()
        self.patience_s = patience_s
        self._current = False

    @property
    def path(self) -> Path:
        """Return the path of the DuckDB file."""
        return self.folder / "cotlab.duckdb"

    @property
    def log_path(self) -> Path:
        """Return the path of the SQLite file."""
        return self.folder / "log.sqlite"

    @contextmanager
    def reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a read-only connection for the block."""
        with _LOCKS[str(self.path)]:
            if self.path.exists():
                with self._opened(read_only=True) as connection:
                    if self._current or is_current(connection):
                        self._current = True
                        yield connection
                        return
            with self.writing():
                pass  # makes the file, or migrates an older one
            with self._opened(read_only=True) as connection:
                yield connection

    @contextmanager
    def writing(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a connection in one transaction for the block, rolled back if it raises."""
        with _LOCKS[str(self.path)]:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreError(
                    f"{self.folder}: the store's folder cannot be made: {error.strerror}"
                ) from error
            if not self.path.exists():
                self._make()
            with self._opened(read_only=False) as connection:
                try:
                    if not self._current:
                        migrate(connection)
                        self._current = True
                    connection.begin()
                    try:
                        yield connection
                    except BaseException:
                        # An error in the database may have ended the transaction already.
                        with suppress(duckdb.Error):
                            connection.rollback()
                        raise
                    _commit(connection)
                except (duckdb.IOException, duckdb.FatalException) as error:
                    raise StoreError(
                        f"{self.path}: cannot be written: {_first_line(error)}"
                    ) from error

    def _make(self) -> None:
        """Make the file under another name and move it, so that a killed process leaves no part."""
        new = self.folder / f".{self.path.name}.{os.getpid()}-{threading.get_ident()}"
        try:
            with closing(Attached(new, read_only=False)) as file:
                migrate(file.connection)
                file.connection.execute("CHECKPOINT cotlab")  # moves all of it into this file
            with suppress(FileExistsError):
                os.link(new, self.path)
        except (duckdb.Error, OSError) as error:
            raise StoreError(
                f"{self.path}: cannot be made: {str(error).splitlines()[0][:300]}"
            ) from error
        finally:
            new.unlink(missing_ok=True)

    @contextmanager
    def _opened(self, *, read_only: bool) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a connection to the file.

        In a block that has it open in the same mode already, another connection to the same
        opening.
        """
        outer = _OPEN.get(str(self.path))
        if outer is not None:
            if outer.read_only != read_only:
                mode = "reading" if outer.read_only else "writing"
                raise StoreError(
                    f"{self.path}: is open for {mode} in this block already: end the block first"
                )
            with outer.another() as connection:
                yield connection
            return
        file = _OPEN[str(self.path)] = self._attached(read_only=read_only)
        try:
            yield file.connection
        finally:
            del _OPEN[str(self.path)]
            file.close()

    def _attached(self, *, read_only: bool) -> Attached:
        started, wait = time.monotonic(), 0.005
        while True:
            try:
                return Attached(self.path, read_only=read_only)
            except duckdb.IOException as error:
                waited = time.monotonic() - started
                if "Could not set lock" not in str(error):
                    raise StoreError(
                        f"{self.path}: cannot be opened: {self._version_message(error)}"
                    ) from error
                if waited > self.patience_s:
                    # Conflicting lock is held in /usr/bin/python3 (PID 42) by user me. See …
                    holder = re.search(r"held in (.+?)(?:\.? See|$)", str(error), re.DOTALL)
                    raise StoreBusy(
                        waited, holder.group(1).strip() if holder else "another process"
                    ) from error
            except duckdb.Error as error:
                raise StoreError(f"{self.path}: cannot be opened: {_first_line(error)}") from error
            time.sleep(wait)
            wait = min(wait * 1.5, 0.1)

    def _version_message(self, error: duckdb.Error) -> str:
        """Return the error; both versions where a newer DuckDB than the installed one wrote it."""
        if "version number" not in str(error):
            return _first_line(error)
        with self.path.open("rb") as file:
            file.seek(_WRITTEN_BY)
            writer = file.read(32).rstrip(b"\0").decode("ascii", "replace")
        return (
            f"it was written by DuckDB {writer.removeprefix('v') or 'of a newer version'}, which"
            f" the installed DuckDB {duckdb.__version__} cannot read: pip install --upgrade duckdb,"
            " or choose another store with COTLAB_STORE"
        )


def _commit(connection: duckdb.DuckDBPyConnection) -> None:
    try:
        connection.commit()
    except duckdb.Error as error:  # a full disk is reported as an error of the transaction
        raise duckdb.IOException(str(error)) from error


def _first_line(error: duckdb.Error) -> str:
    return str(error).splitlines()[0][:300]


def back_up(store: Store) -> Path:
    """Copy database and response log into a new folder under ``backups`` and return it.

    Writers wait meanwhile.
    """
    folder = store.folder / "backups" / f"{datetime.now(UTC):%Y%m%d-%H%M%S}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with store.writing():
            pass  # the file is current and checkpointed once a writer has closed it
        with store.reading():
            shutil.copy2(store.path, folder / store.path.name)
        with (
            closing(sqlite3.connect(store.log_path)) as source,
            closing(sqlite3.connect(folder / store.log_path.name)) as copy,
        ):
            source.backup(copy)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"{folder}: the backup could not be written: {error}") from error
    return folder
