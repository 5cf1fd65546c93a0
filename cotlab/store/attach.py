"""Cheap opening of the store's file, by attaching it to a database in memory that is reused.

Making a DuckDB database takes about 20 ms of CPU time, even in memory; attaching a file to one
takes 1.5 ms. Between two calls the file is not held: no lock, no handle, no page in memory.
"""

from __future__ import annotations

import atexit
import os
from contextlib import suppress
from functools import cache
from pathlib import Path

import duckdb

_SPARE: list[duckdb.DuckDBPyConnection] = []
"""Unused databases in memory: at most one, made at the first use and closed at a fork and at exit.
"""


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
        self._database = _acquire()
        try:
            self._database.execute(
                "SET temp_directory = ?", [f"{path}.tmp"]
            )  # for what does not fit into memory
            mode = " (READ_ONLY)" if read_only else ""
            self._database.execute(f"ATTACH {_literal(path)} AS cotlab{mode}")
            self.connection = self.another()
        except duckdb.IOException:
            _release(self._database)
            raise
        except BaseException:
            self._database.close()
            raise

    def another(self) -> duckdb.DuckDBPyConnection:
        """Open another connection to the file; it ends with ``close`` at the latest."""
        connection = self._database.cursor()
        connection.execute("USE cotlab")
        return connection

    def close(self) -> None:
        """Detach the file; a database that fails to, as after a disk error, is discarded."""
        try:
            self.connection.close()
            self._database.execute("DETACH cotlab")
        except duckdb.Error:
            with suppress(duckdb.Error):
                self._database.close()
        else:
            _release(self._database)


def _literal(path: Path) -> str:
    """Return a path as a string of SQL: DuckDB 1.x takes no parameter in ATTACH."""
    return "'" + str(path).replace("'", "''") + "'"


def _acquire() -> duckdb.DuckDBPyConnection:
    _register_cleanup()
    try:
        return _SPARE.pop()
    except IndexError:
        return duckdb.connect(":memory:")


def _release(database: duckdb.DuckDBPyConnection) -> None:
    if _SPARE:
        database.close()
    else:
        _SPARE.append(database)


def _close_spares() -> None:
    while _SPARE:
        _SPARE.pop().close()


@cache
def _register_cleanup() -> None:
    # A child process would have the database without its threads.
    os.register_at_fork(before=_close_spares)
    atexit.register(_close_spares)
