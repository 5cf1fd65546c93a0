"""Opening the store's file at a tenth of the cost: a database in memory is kept, and the file is attached to it for a moment.

To make a DuckDB database, even one without a file, takes about 20 ms of processor time; to attach a
file to one that is there takes 1.5 ms. Between two calls nothing of the file is held: no lock, no
handle, no page of it in memory.
"""

from __future__ import annotations

import atexit
import os
from contextlib import suppress
from functools import cache
from pathlib import Path

import duckdb

_SPARE: list[duckdb.DuckDBPyConnection] = []
"""Databases in memory that nobody uses now: at most one, made at the first use and given up at a
fork and at the end."""


class Attached:
    """The file at ``path``, open until ``close``; ``connection`` sees it as the one database there is.

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
            self._database.execute(
                "ATTACH ? AS cotlab (READ_ONLY)" if read_only else "ATTACH ? AS cotlab", [str(path)]
            )
            self.connection = self.another()
        except duckdb.IOException:
            _release(self._database)
            raise
        except BaseException:
            self._database.close()
            raise

    def another(self) -> duckdb.DuckDBPyConnection:
        """One more connection to the open file; it ends with the file's closing, if not before."""
        connection = self._database.cursor()
        connection.execute("USE cotlab")
        return connection

    def close(self) -> None:
        """Let go of the file. A database that does not do so in good order, as after an error of the disk, is not kept."""
        try:
            self.connection.close()
            self._database.execute("DETACH cotlab")
        except duckdb.Error:
            with suppress(duckdb.Error):
                self._database.close()
        else:
            _release(self._database)


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
    os.register_at_fork(
        before=_close_spares
    )  # a child would have the database without the threads that it relies on
    atexit.register(_close_spares)
