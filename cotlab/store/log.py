"""The file ``log.sqlite`` (WAL): schema, transactions, clock, writers, texts of the replies."""

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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from cotlab.core.errors import SchemaMismatch, StoreBusy, StoreError
from cotlab.core.keys import to_json_value
from cotlab.core.requests import Located, Request, Response, Token, Usage
from cotlab.store.log_connection import LogConnection, LogError, connect_log, decode_object
from cotlab.store.tables import SQLITE_STATEMENTS

LOG = "log.sqlite"
"""Name of the file in a store's folder."""
COUNT_COLUMNS = ("calls", "replies", "uncounted", "tokens_in", "tokens_out", "cached", "reasoning")
"""Columns that sum over a run's calls; ``uncounted`` replies came without a number of tokens."""
SCHEMA_STEPS = (
    (
        (
            "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, kind TEXT, request TEXT,"
            " response TEXT, redacted INTEGER, at TEXT)"
        ),
        (
            "CREATE TABLE IF NOT EXISTS calls (id INTEGER PRIMARY KEY, key TEXT, run TEXT, pid"
            " INTEGER, reserved INTEGER, cost INTEGER, outcome TEXT, at TEXT)"
        ),
        "CREATE INDEX IF NOT EXISTS calls_by_run ON calls (run)",
        "CREATE INDEX IF NOT EXISTS open_calls ON calls (key) WHERE outcome IS NULL",
        (
            "CREATE TABLE IF NOT EXISTS live (run TEXT PRIMARY KEY, pid INTEGER, state TEXT, stop"
            " INTEGER DEFAULT 0, heartbeat REAL)"
        ),
    ),
    (
        (
            "CREATE TABLE spends (run TEXT PRIMARY KEY, paid INTEGER NOT NULL, reserved INTEGER NOT"
            " NULL)"
        ),
        (
            "INSERT INTO spends SELECT run, coalesce(sum(cost), 0), coalesce(sum(CASE WHEN cost IS"
            " NULL THEN reserved END), 0) FROM calls GROUP BY run"
        ),
    ),
    (
        "ALTER TABLE calls ADD COLUMN batch TEXT",
        "ALTER TABLE calls ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0",
        *(
            f"ALTER TABLE spends ADD COLUMN {name} INTEGER NOT NULL DEFAULT 0"
            for name in COUNT_COLUMNS
        ),
        (
            "UPDATE spends SET calls = (SELECT count(*) FROM calls c WHERE c.run = spends.run),"
            " replies = (SELECT count(*) FROM calls c WHERE c.run = spends.run AND c.outcome ="
            " 'ok'), uncounted = (SELECT count(*) FROM calls c WHERE c.run = spends.run AND"
            " c.outcome = 'ok')"
        ),
        "CREATE INDEX calls_by_key ON calls (key)",
        (
            "CREATE TABLE batches (name TEXT PRIMARY KEY, run TEXT, model TEXT, vendor_id TEXT,"
            " ended INTEGER DEFAULT 0, at TEXT)"
        ),
    ),
    (
        (
            "CREATE TABLE leases (queue TEXT, run TEXT, item TEXT, rater TEXT, until REAL, PRIMARY"
            " KEY (queue, run, item, rater))"
        ),
        (
            "CREATE TABLE skips (queue TEXT, run TEXT, item TEXT, rater TEXT, at REAL, PRIMARY KEY"
            " (queue, run, item, rater))"
        ),
    ),
    (
        "ALTER TABLE calls ADD COLUMN machine TEXT",
        "ALTER TABLE live ADD COLUMN machine TEXT",
        "ALTER TABLE live ADD COLUMN silent_s REAL NOT NULL DEFAULT 60",
    ),
    (
        "ALTER TABLE replies ADD COLUMN digest TEXT",
        "UPDATE replies SET digest = reply_digest(key, CAST(response AS BLOB))",
        *SQLITE_STATEMENTS,
    ),
)
"""The file's schema as ordered steps; PRAGMA user_version holds how many it has."""


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
    connection = connect_log(path, f"{path.resolve().as_uri()}?mode=ro")
    try:
        version = _schema_version(connection)
    except LogError:  # of a write-ahead log beside it, SQLite would have to make an index
        connection.close()
        wal_path = path.with_name(f"{path.name}-wal")
        if wal_path.exists() and wal_path.stat().st_size:
            raise _read_only_error(wal_path, "holds rows that cannot be read") from None
        connection = connect_log(path, f"{path.resolve().as_uri()}?immutable=1")
        version = _schema_version(connection)
    if version < len(SCHEMA_STEPS):
        connection.close()
        raise _read_only_error(path, "was written by an older cotlab and cannot be brought forward")
    return connection


def _read_only_error(path: Path, fault: str) -> StoreError:
    return StoreError(
        f"{path}: {fault} in a read-only folder: copy the store to a folder that can be written,"
        " and name that with COTLAB_STORE"
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
    connection.create_function("reply_digest", 2, reply_digest, deterministic=True)
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


class Overshoot(NamedTuple):
    """What one model's replies of a run cost beyond their reserve, in micro-dollars."""

    model: dict[str, Any] | None
    """The model as in the request; None where requests are redacted."""
    n_replies: int
    """Replies that cost more than their reserve."""
    excess_micro: int
    """What they cost beyond it, in all."""
    tokens_in: int
    """Most input tokens that one of them reported."""
    tokens_out: int
    """Most output tokens that one of them reported."""
    excess_tokens_in: int | None
    """Most input tokens of one beyond the bytes of its request; None where redacted."""
    excess_tokens_out: int | None
    """Most output tokens of one beyond its max_tokens; None where redacted."""


_OVERSHOOTS_SQL = """
SELECT json_extract(r.request, '$.model'), count(*), sum(c.cost - c.reserved),
       max(coalesce(json_extract(r.response, '$.usage.tokens_in'), c.tokens)),
       max(coalesce(json_extract(r.response, '$.usage.tokens_out'), c.tokens)),
       max(json_extract(r.response, '$.usage.tokens_in') - length(CAST(r.request AS BLOB))),
       max(json_extract(r.response, '$.usage.tokens_out')
           - coalesce(json_extract(r.request, '$.max_tokens'), 0))
FROM calls c LEFT JOIN replies r
  ON r.key = c.key AND json_valid(r.response) AND json_valid(coalesce(r.request, 'null'))
WHERE c.run = ? AND c.cost > c.reserved
GROUP BY 1 ORDER BY 1
"""


def read_overshoots(connection: sqlite3.Connection, run: str) -> list[Overshoot]:
    """Return what the calls of a run cost beyond their reserve, one entry a model."""
    rows = []
    for (
        model,
        n_replies,
        excess_micro,
        tokens_in,
        tokens_out,
        excess_tokens_in,
        excess_tokens_out,
    ) in connection.execute(_OVERSHOOTS_SQL, (run,)):
        is_known = model is not None
        rows.append(
            Overshoot(
                json.loads(model) if is_known else None,
                n_replies,
                excess_micro,
                tokens_in,
                tokens_out,
                excess_tokens_in if is_known else None,
                excess_tokens_out if is_known else None,
            )
        )
    return rows
