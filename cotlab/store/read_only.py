"""Opening a response log that this process may not write: a read-only disk or another's files."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

from cotlab.core.errors import StoreError
from cotlab.store.log_connection import LogConnection, LogError, connect_log


def is_read_only(path: Path) -> bool:
    """Return whether a file cannot be written or its folder takes no file beside it."""
    if not path.exists():
        return path.parent.exists() and not os.access(path.parent, os.W_OK)
    return not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def connect_read_only(path: Path, schema_version: int) -> LogConnection:
    """Open a response log that is not written.

    One of an older schema is read into memory, where it can be migrated; one that does not exist is
    empty.

    Raises
    ------
    StoreError
        If newer rows stand in a write-ahead log that cannot be read without writing.
    """
    if not path.exists():
        return connect_log(path, ":memory:")
    connection = connect_log(path, f"{path.resolve().as_uri()}?mode=ro")
    try:
        version = _user_version(connection)
    except LogError:
        connection.close()
        wal_path = path.with_name(f"{path.name}-wal")
        if wal_path.exists() and wal_path.stat().st_size:
            raise StoreError(
                f"{wal_path}: holds rows that cannot be read in a read-only folder: copy the store"
                " to a folder that can be written, and name that with COTLAB_STORE"
            ) from None
        connection = connect_log(path, f"{path.resolve().as_uri()}?immutable=1")
        version = _user_version(connection)
    if version >= schema_version:
        return connection
    memory_copy = connect_log(path, ":memory:")
    with closing(connection):
        connection.backup(memory_copy)
    return memory_copy


def _user_version(connection: LogConnection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
