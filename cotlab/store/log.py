"""The file ``log.sqlite`` (WAL): schema, connection, clock, writers, texts of the replies.

Errors of a connection are StoreErrors, and a damaged text is read like any other.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import sqlite3
import struct
import sys
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from cotlab.core.errors import SchemaMismatch, StoreBusy, StoreError
from cotlab.core.keys import to_json_value
from cotlab.core.requests import Located, Request, Response, Token, Usage
from cotlab.store.tables import SQLITE_STATEMENTS

LOG = "log.sqlite"
"""Name of the file in a store's folder."""
LOG_TIMEOUT_S = 30.0
"""Seconds to wait for another process before StoreBusy."""
COUNT_COLUMNS = ("calls", "replies", "uncounted", "tokens_in", "tokens_out", "cached", "reasoning")
"""Columns that sum over a run's calls; ``uncounted`` replies came without a number of tokens."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (
    key TEXT PRIMARY KEY, kind TEXT, request TEXT, response TEXT, redacted INTEGER, at TEXT);
CREATE TABLE IF NOT EXISTS calls (
    id INTEGER PRIMARY KEY, key TEXT, run TEXT, pid INTEGER, reserved INTEGER, cost INTEGER,
    outcome TEXT, at TEXT);
CREATE INDEX IF NOT EXISTS calls_by_run ON calls (run);
CREATE INDEX IF NOT EXISTS open_calls ON calls (key) WHERE outcome IS NULL;
CREATE TABLE IF NOT EXISTS live (
    run TEXT PRIMARY KEY, pid INTEGER, state TEXT, stop INTEGER DEFAULT 0, heartbeat REAL)
-- 2
CREATE TABLE spends (run TEXT PRIMARY KEY, paid INTEGER NOT NULL, reserved INTEGER NOT NULL);
INSERT INTO spends
    SELECT run, coalesce(sum(cost), 0), coalesce(sum(CASE WHEN cost IS NULL THEN reserved END), 0)
    FROM calls GROUP BY run
-- 3
ALTER TABLE calls ADD COLUMN batch TEXT;
ALTER TABLE calls ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE spends ADD COLUMN calls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE spends ADD COLUMN replies INTEGER NOT NULL DEFAULT 0;
ALTER TABLE spends ADD COLUMN uncounted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE spends ADD COLUMN tokens_in INTEGER NOT NULL DEFAULT 0;
ALTER TABLE spends ADD COLUMN tokens_out INTEGER NOT NULL DEFAULT 0;
ALTER TABLE spends ADD COLUMN cached INTEGER NOT NULL DEFAULT 0;
ALTER TABLE spends ADD COLUMN reasoning INTEGER NOT NULL DEFAULT 0;
UPDATE spends SET (calls, replies, uncounted) = (
    SELECT count(*), count(*) FILTER (WHERE outcome = 'ok'), count(*) FILTER (WHERE outcome = 'ok')
    FROM calls c WHERE c.run = spends.run);
CREATE INDEX calls_by_key ON calls (key);
CREATE TABLE batches (
    name TEXT PRIMARY KEY, run TEXT, model TEXT, vendor_id TEXT, ended INTEGER DEFAULT 0, at TEXT)
-- 4
CREATE TABLE leases (
    queue TEXT, run TEXT, item TEXT, rater TEXT, until REAL, PRIMARY KEY (queue, run, item, rater));
CREATE TABLE skips (
    queue TEXT, run TEXT, item TEXT, rater TEXT, at REAL, PRIMARY KEY (queue, run, item, rater))
-- 5
ALTER TABLE calls ADD COLUMN machine TEXT;
ALTER TABLE live ADD COLUMN machine TEXT;
ALTER TABLE live ADD COLUMN silent_s REAL NOT NULL DEFAULT 60
-- 6
ALTER TABLE replies ADD COLUMN digest TEXT;
UPDATE replies SET digest = reply_digest(key, CAST(response AS BLOB))
"""
_FIRST_STEPS = tuple(tuple(step.split(";")) for step in re.split(r"-- \d", _SCHEMA))
SCHEMA_STEPS = (*_FIRST_STEPS[:-1], (*_FIRST_STEPS[-1], *SQLITE_STATEMENTS))
"""The file's schema as ordered steps of statements; PRAGMA user_version holds how many it has."""
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
    connection.path = path
    # SQLite's own decoder would refuse all rows for the sake of one damaged byte
    connection.text_factory = lambda content: content.decode("utf-8", "surrogateescape")
    connection.create_function("reply_digest", 2, reply_digest, deterministic=True)
    return connection


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


def open_log(path: Path) -> LogConnection:
    """Open the file, made or migrated where needed; commits survive a killed process.

    One that may not be written is opened to be read.
    """
    connection = None
    try:
        if is_read_only(path):
            connection = _connect_read_only(path)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            connection = connect_log(path)
            _use_wal(connection)
            connection.execute("PRAGMA synchronous=NORMAL")
        _migrate(connection)
    except (sqlite3.Error, OSError, StoreError) as error:
        if connection is not None:
            connection.close()
        if isinstance(error, StoreError) and not isinstance(error, LogError):
            raise
        reason = error.reason if isinstance(error, LogError) else error
        raise StoreError(f"{path}: the response log cannot be opened: {reason}") from error
    return connection


def is_read_only(path: Path) -> bool:
    """Return whether a file cannot be written or its folder takes no file beside it."""
    if not path.exists():
        return path.parent.exists() and not os.access(path.parent, os.W_OK)
    return not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def _connect_read_only(path: Path) -> LogConnection:
    """Open a file that is not written; one that does not exist is empty."""
    if not path.exists():
        return connect_log(path, ":memory:")
    wal_path = path.with_name(f"{path.name}-wal")
    has_newer_rows = wal_path.exists() and wal_path.stat().st_size
    mode = "mode=ro" if has_newer_rows else "immutable=1"
    connection = connect_log(path, f"{path.resolve().as_uri()}?{mode}")
    fault = f"{path}: was written by an older cotlab and cannot be brought forward"
    try:
        if _schema_version(connection) >= len(SCHEMA_STEPS):
            return connection
    except LogError:  # of a write-ahead log SQLite would have to make an index
        if not has_newer_rows:
            raise
        fault = f"{wal_path}: holds rows that cannot be read"
    connection.close()
    raise StoreError(
        f"{fault} in a read-only folder: copy the store to a folder that can be written, and name"
        " that with COTLAB_STORE"
    )


@contextmanager
def transaction(connection: sqlite3.Connection, subject: str) -> Iterator[sqlite3.Connection]:
    """Run the block in one transaction, rolled back if it raises.

    Parameters
    ----------
    connection : Connection
    subject : str
        What is written, for messages.

    Raises
    ------
    StoreBusy
        If another process writes for longer than ``LOG_TIMEOUT_S``.
    StoreError
        If it cannot be written.
    """
    try:
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            if connection.in_transaction:
                with suppress(LogError):
                    connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
    except LogError as error:
        raise StoreError(f"{subject} cannot be written: {error.reason}") from error


def log_clock(connection: sqlite3.Connection) -> float:
    """Return the log's time in seconds since 1970, by which heartbeats are written and judged."""
    return float(
        connection.execute("SELECT (julianday('now') - 2440587.5) * 86400.0").fetchone()[0]
    )


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL, with retries of our own as SQLite's timeout does not cover the switch."""
    for wait_s in (0.01, 0.05, 0.2, 1.0, 3.0, None):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except StoreBusy:
            if wait_s is None:
                raise
            time.sleep(wait_s)


def _migrate(connection: LogConnection) -> None:
    if (version := _schema_version(connection)) > len(SCHEMA_STEPS):
        raise SchemaMismatch(version, len(SCHEMA_STEPS))
    if version == len(SCHEMA_STEPS):
        return
    with transaction(connection, "The schema of the response log"):
        version = _schema_version(connection)
        for step in SCHEMA_STEPS[version:]:
            for statement in step:
                connection.execute(statement)
        if version < len(SCHEMA_STEPS):
            # DuckDB is imported for a store only, and a log may stand alone
            from cotlab.store.older import import_older_store

            import_older_store(connection)
        connection.execute(f"PRAGMA user_version = {len(SCHEMA_STEPS)}")


def _schema_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


@cache
def machine_id() -> str:
    """Return where the process ids of this process count, as ``HOST/BOOT/NAMESPACE``.

    Where Linux does not show the boot or the namespace, the text is unique to this process, so that
    no process id is mistaken for one of another. Other systems have no PID namespaces: the host is
    enough.
    """
    host = platform.node()
    if sys.platform != "linux":
        return f"{host}//"
    try:
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{host}/{boot_id}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return f"{host}/{uuid4().hex}/"


def host_name(machine: str | None) -> str:
    """Return the host of a text of ``machine_id``; older versions wrote none."""
    return (machine or "").partition("/")[0] or "another machine"


def is_process_alive(pid: int) -> bool:
    """Return whether a process runs on this machine; a zombie does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (OSError, IndexError):
        return True


def may_be_running(machine: str | None, pid: int, age_s: float, timeout_s: float) -> bool:
    """Return whether the process that wrote a row may still run.

    Parameters
    ----------
    machine : str or None
        What ``machine_id`` returned there; None where an older version wrote the row.
    pid : int
    age_s : float, seconds
        Time since the row was written, by the log's clock. Below zero if the clock was set back
        since.
    timeout_s : float, seconds
        Time without a heartbeat after which a process counts as gone. On another machine the time
        alone decides, in both directions: a time far ahead is of a clock that was set back.
    """
    if machine == machine_id():
        return age_s < timeout_s and is_process_alive(pid)
    return abs(age_s) < timeout_s


def reply_digest(key: str, response: str | bytes | None) -> str:
    """Return the digest that is stored with a reply, by which a changed one is known."""
    content = response.encode() if isinstance(response, str) else response or b""
    return hashlib.sha256(f"{key}\n".encode("utf-8", "surrogateescape") + content).hexdigest()[:32]


def is_intact(key: str, response: object, stored_digest: object) -> bool:
    """Return whether a stored reply is the one that was stored."""
    return isinstance(response, str) and stored_digest == reply_digest(
        key, response.encode("utf-8", "surrogateescape")
    )


def count_intact(log: sqlite3.Connection, keys: list[str]) -> int:
    """Return how many of the replies with these keys are in a log, as they were stored."""
    rows = log.execute(
        "SELECT key, response, digest FROM replies WHERE key IN (SELECT value FROM json_each(?))",
        (json.dumps(keys),),
    )
    return sum(is_intact(*row) for row in rows)


_SURROGATE_RE = re.compile("[\ud800-\udfff]")
"""Half of a character: a lone \\ud83d."""


def encode_request(request: Request) -> str:
    """Return a request as text."""
    try:
        return request.json_bytes.decode("utf-8")
    except UnicodeDecodeError:
        return encode_json(request.to_json())


def encode_json(value: Any) -> str:
    """Return JSON text; lone surrogates, which no encoding takes, stay escapes."""
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isascii() or not _SURROGATE_RE.search(text) else json.dumps(value)


def encode_response(response: Response) -> dict[str, Any]:
    """Return a reply as JSON values without empty fields.

    Tokens are [text, logprob, alternatives].
    """
    values = {field.name: getattr(response, field.name) for field in fields(response)}
    if response.vectors is not None:
        values["vectors"] = tuple(map(_pack_vector, response.vectors))
    values["tokens"] = [(token.text, token.logprob, token.top) for token in response.tokens]
    for name in ("located", "usage", "sent"):
        values[name] = to_json_value(values[name])
    return {
        field_name: value
        for field_name, value in values.items()
        if value not in (None, [], {}) and (value != "" or field_name in ("text", "reasoning"))
    }


def decode_object(text: object) -> dict[str, Any] | None:
    """Return a stored JSON object; None where there is none, or where it is damaged."""
    if not isinstance(text, str):
        return None
    try:
        text.encode()  # a byte that nobody wrote was read as half a character
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def decode_response(text: str) -> Response | None:
    """Return the reply of a stored text; None where it is damaged."""
    row = decode_object(text)
    try:
        return None if row is None else _response_from_row(row)
    except (LookupError, TypeError, ValueError, struct.error):
        return None


def _response_from_row(row: dict[str, Any]) -> Response:
    row["usage"] = Usage(**row.get("usage", {}))
    row["tokens"] = tuple(
        Token(
            text, logprob, tuple((alternative[0], alternative[1]) for alternative in alternatives)
        )
        for text, logprob, alternatives in row.get("tokens", ())
    )
    if "numbers" in row:
        row["numbers"] = tuple(row["numbers"])
    if "vectors" in row:
        row["vectors"] = tuple(map(_unpack_vector, row["vectors"]))
    if "located" in row:
        located = row["located"]
        row["located"] = Located(
            tuple(map(tuple, located["positions"])),
            tuple(located["pieces"]),
            located["layers"],
            located["dtype"],
        )
    return Response(**row)


def _pack_vector(vector: Sequence[float]) -> str | Sequence[float]:
    """Return a vector as base64 of little-endian float32, a quarter of its size as JSON.

    Where that would change a number, the vector stays as it is.
    """
    try:
        packed_bytes = struct.pack(f"<{len(vector)}f", *vector)
    except (OverflowError, struct.error):
        return vector
    is_exact = vector and struct.unpack(f"<{len(vector)}f", packed_bytes) == tuple(vector)
    return b64encode(packed_bytes).decode() if is_exact else vector


def _unpack_vector(stored_vector: str | Sequence[float]) -> tuple[float, ...]:
    if not isinstance(stored_vector, str):
        return tuple(stored_vector)
    packed_bytes = b64decode(stored_vector)
    return struct.unpack(f"<{len(packed_bytes) // 4}f", packed_bytes)
