"""A connection to the response log whose errors are StoreErrors, and whose texts may be damaged."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from cotlab.core.errors import StoreBusy, StoreError

LOG_TIMEOUT_S = 30.0
"""Seconds to wait for another process before StoreBusy."""
_DAMAGED_TEXT_PATTERN = re.compile("[\udc80-\udcff]")
"""A byte of a stored text that is not UTF-8, as ``_decode_text`` reads it."""
ResultT = TypeVar("ResultT")


class LogError(StoreError):
    """SQLite cannot use the response log; ``reason`` is the message without the file."""

    def __init__(self, path: Path, reason: str) -> None:
        self.reason = reason
        super().__init__(f"{path}: the response log cannot be used: {reason}")


class LogCursor(sqlite3.Cursor):
    """A cursor that raises StoreErrors."""

    def execute(self, sql: str, parameters: Any = ()) -> LogCursor:
        """Execute one statement."""
        self._call(super().execute, sql, parameters)
        return self

    def executemany(self, sql: str, parameters: Iterable[Any]) -> LogCursor:
        """Execute one statement for each set of parameters."""
        self._call(super().executemany, sql, parameters)
        return self

    def fetchone(self) -> Any:
        """Return the next row, None after the last."""
        return self._call(super().fetchone)

    def fetchall(self) -> list[Any]:
        """Return all remaining rows."""
        return self._call(super().fetchall)

    def __next__(self) -> Any:
        """Return the next row."""
        return self._call(super().__next__)

    def _call(self, method: Callable[..., ResultT], *arguments: Any) -> ResultT:
        try:
            return method(*arguments)
        except (sqlite3.Error, UnicodeError) as error:  # a damaged schema may not even be text
            raise _store_error(self.connection, error) from error


class LogConnection(sqlite3.Connection):
    """A connection whose cursors raise StoreErrors."""

    path: Path
    """The file."""

    def execute(self, sql: str, parameters: Any = ()) -> LogCursor:
        """Execute one statement."""
        return self.cursor(LogCursor).execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Any]) -> LogCursor:
        """Execute one statement for each set of parameters."""
        return self.cursor(LogCursor).executemany(sql, parameters)


def connect_log(path: Path, address: str | None = None) -> LogConnection:
    """Open the file of the response log as it is, or what SQLite finds at ``address`` for it."""
    connection = sqlite3.connect(
        address or path,
        uri=address is not None,
        timeout=LOG_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,
        factory=LogConnection,
    )
    connection.path, connection.text_factory = path, _decode_text
    return connection


def decode_object(text: str | None) -> dict[str, Any] | None:
    """Return a stored JSON object; None where there is none, or where it is damaged."""
    if not isinstance(text, str) or _is_damaged(text):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def parse_stored_time(text: Any) -> datetime | None:
    """Return a stored time; None where it is damaged."""
    try:
        stored_time = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return stored_time if stored_time.tzinfo else None


def _is_damaged(text: str) -> bool:
    """Return whether a text of the log holds bytes that nobody wrote."""
    return not text.isascii() and _DAMAGED_TEXT_PATTERN.search(text) is not None


def _decode_text(stored_bytes: bytes) -> str:
    """Decode a text; SQLite's decoder would refuse all rows for the sake of one damaged byte."""
    return stored_bytes.decode("utf-8", "surrogateescape")


def _store_error(connection: sqlite3.Connection, error: Exception) -> StoreError:
    if "locked" in str(error):
        return StoreBusy(LOG_TIMEOUT_S, "another process that writes to the response log")
    assert isinstance(connection, LogConnection)
    reason = str(error)
    # SQLITE_CORRUPT and SQLITE_NOTADB have no class of their own
    if type(error) is sqlite3.DatabaseError or isinstance(error, UnicodeError):
        reason = (
            f"it is damaged ({error}). Put a backup of the store in its place; or move it away, and"
            " what is asked again is paid for again"
        )
    return LogError(connection.path, reason)
