"""The file of the response log (SQLite, WAL): schema, transactions, clock, and its writers."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from uuid import uuid4

from cotlab.core.errors import SchemaMismatch, StoreBusy, StoreError

PATIENCE_S = 30.0
"""Seconds to wait for another process before StoreBusy."""
COUNTED = ("calls", "replies", "uncounted", "tokens_in", "tokens_out", "cached", "reasoning")
"""Columns that sum over a run's calls; ``uncounted`` replies came without a number of tokens."""
_STEPS = (
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
        *(f"ALTER TABLE spends ADD COLUMN {name} INTEGER NOT NULL DEFAULT 0" for name in COUNTED),
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
)
"""The file's schema as ordered steps; PRAGMA user_version holds how many it has."""


def open_log(path: Path) -> sqlite3.Connection:
    """Open the log's file, made or migrated where needed; commits survive a killed process."""
    connection = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(
            path, timeout=PATIENCE_S, isolation_level=None, check_same_thread=False
        )
        _use_wal(connection)
        connection.execute("PRAGMA synchronous=NORMAL")
        _migrate(connection)
    except (sqlite3.Error, OSError, StoreError) as error:
        if connection is not None:
            connection.close()
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"{path}: the response log cannot be opened: {error}") from error
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection, what: str) -> Iterator[sqlite3.Connection]:
    """Run the block in one transaction, rolled back if it raises.

    Parameters
    ----------
    connection : Connection
    what : str
        What is written, for messages.

    Raises
    ------
    StoreBusy
        If another process writes for longer than ``PATIENCE_S``.
    StoreError
        If it cannot be written.
    """
    try:
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise StoreBusy(
                PATIENCE_S, "another process that writes to the response log"
            ) from error
        raise StoreError(f"{what} cannot be written: {error}") from error


def clock(connection: sqlite3.Connection) -> float:
    """Return the log's time in seconds since 1970, by which heartbeats are written and judged."""
    return float(
        connection.execute("SELECT (julianday('now') - 2440587.5) * 86400.0").fetchone()[0]
    )


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL, with retries of our own as SQLite's timeout does not cover the switch."""
    for wait in (0.01, 0.05, 0.2, 1.0, 3.0, None):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if wait is None or "locked" not in str(error):
                raise
            time.sleep(wait)


def _migrate(connection: sqlite3.Connection) -> None:
    if (have := _version(connection)) > len(_STEPS):
        raise SchemaMismatch(have, len(_STEPS))
    if have == len(_STEPS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in _STEPS[_version(connection) :]:
            for statement in step:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(_STEPS)}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


@cache
def this_machine() -> str:
    """Return where the process ids of this process count, as ``HOST/BOOT/NAMESPACE``.

    Where Linux does not show the boot or the namespace, the text is unique to this process, so that
    no
    process id is mistaken for one of another. Other systems have no PID namespaces: the host is
    enough.
    """
    host = platform.node()
    if sys.platform != "linux":
        return f"{host}//"
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{host}/{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return f"{host}/{uuid4().hex}/"


def host_of(machine: str | None) -> str:
    """Return the host of a text of ``this_machine``; older versions wrote none."""
    return (machine or "").partition("/")[0] or "another machine"


def is_alive(pid: int) -> bool:
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


def may_run(machine: str | None, pid: int, age_s: float, silent_s: float) -> bool:
    """Return whether the process that wrote a row may still run.

    Parameters
    ----------
    machine : str or None
        What ``this_machine`` returned there; None where an older version wrote the row.
    pid : int
    age_s : float, seconds
        Time since the row was written, by the log's clock. Below zero if the clock was set back
        since.
    silent_s : float, seconds
        Time without a heartbeat after which a process counts as gone. On another machine the time
        alone decides, in both directions: a time far ahead is of a clock that was set back.
    """
    if machine == this_machine():
        return age_s < silent_s and is_alive(pid)
    return abs(age_s) < silent_s
