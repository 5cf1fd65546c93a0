"""The response log: every reply the moment it arrives, and every paid call before it is made (SQLite, WAL).

Rows of ``calls`` are reservations: what a call may cost at most is written before it is sent, what it did cost when its
reply is there. A call without a reply counts at its full reserve, also after the process was killed.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from cotlab.core.errors import StoreError
from cotlab.core.keys import digest, plain
from cotlab.core.requests import Request, Response, Token, Usage

_SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, kind TEXT, request TEXT, response TEXT, redacted INTEGER, at TEXT);
CREATE TABLE IF NOT EXISTS calls (id INTEGER PRIMARY KEY, key TEXT, run TEXT, pid INTEGER, reserved INTEGER, cost INTEGER,
                                  outcome TEXT, at TEXT);
CREATE INDEX IF NOT EXISTS calls_by_run ON calls (run);
CREATE INDEX IF NOT EXISTS open_calls ON calls (key) WHERE outcome IS NULL;
CREATE TABLE IF NOT EXISTS live (run TEXT PRIMARY KEY, pid INTEGER, state TEXT, stop INTEGER DEFAULT 0, heartbeat REAL);
"""


class Spend(NamedTuple):
    """Micro-dollars of one run: ``paid`` for replies that came, ``reserved`` for calls without one."""

    paid: int
    reserved: int


def connect(path: Path) -> sqlite3.Connection:
    """Open (or make) the log's file; commits are durable against a killed process."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.executescript(_SCHEMA)
    except (sqlite3.Error, OSError) as error:
        raise StoreError(f"{path}: the response log cannot be opened: {error}") from error
    return connection


class ResponseLog:
    """Replies by request key. Safe to use from several threads and by several processes at once."""

    def __init__(self, path: Path, *, redact: bool = False) -> None:
        self._connection, self._lock, self._redact = connect(path), threading.Lock(), redact

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def get(self, key: str) -> Response | None:
        """The stored reply, or None; a redacted row has no text and is none."""
        with self._lock:
            row = self._connection.execute("SELECT response FROM replies WHERE key = ? AND redacted = 0", (key,)).fetchone()
        return _read(row[0]) if row else None

    def put(self, pairs: Iterable[tuple[Request, Response]]) -> None:
        """Store replies in one commit; a reply that is there already stays."""
        now = datetime.now(UTC).isoformat()
        rows = [self._row(request, response, now) for request, response in pairs]
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany(
                "INSERT INTO replies VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET "
                "request = excluded.request, response = excluded.response, redacted = excluded.redacted, at = excluded.at "
                "WHERE replies.redacted > excluded.redacted",
                rows,
            )
            self._connection.execute("COMMIT")

    def reserve(self, request: Request, run: str, most: int, cap: int) -> int | None:
        """Note a call that may cost ``most`` micro-dollars; None if it would pass ``cap`` for this run."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                spend = self._spend(run)
                if spend.paid + spend.reserved + most > cap:
                    return None
                done = self._connection.execute(
                    "INSERT INTO calls (key, run, pid, reserved, at) VALUES (?, ?, ?, ?, ?)",
                    (request.key, run, os.getpid(), most, datetime.now(UTC).isoformat()),
                )
                return int(done.lastrowid or 0)
            finally:
                self._connection.execute("COMMIT")

    def settle(self, call: int, cost: int | None, outcome: str, reply: tuple[Request, Response] | None = None) -> None:
        """Close a call. ``cost`` None keeps it at its full reserve; its reply is stored in the same commit."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute("UPDATE calls SET cost = ?, outcome = ? WHERE id = ?", (cost, outcome, call))
            if reply is not None:
                row = self._row(*reply, datetime.now(UTC).isoformat())
                self._connection.execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?, ?)", row)
            self._connection.execute("COMMIT")

    def in_flight_elsewhere(self, key: str) -> bool:
        """Whether another living process has sent this request and waits for its reply."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT pid FROM calls WHERE key = ? AND outcome IS NULL AND pid != ?", (key, os.getpid())
            ).fetchall()
        return any(_alive(pid) for (pid,) in rows)

    def spend(self, run: str) -> Spend:
        with self._lock:
            return self._spend(run)

    def requests(self, keys: Sequence[str]) -> dict[str, tuple[dict[str, Any] | None, dict[str, Any] | None]]:
        """Request and reply of each known key as JSON objects; None where they were redacted."""
        with self._lock:
            marks = ",".join("?" * len(keys))
            rows = self._connection.execute(
                f"SELECT key, request, response FROM replies WHERE key IN ({marks})", list(keys)
            ).fetchall()
        return {key: (json.loads(asked) if asked else None, json.loads(said) if said else None) for key, asked, said in rows}

    def _spend(self, run: str) -> Spend:
        paid, open_ = self._connection.execute(
            "SELECT coalesce(sum(cost), 0), coalesce(sum(CASE WHEN cost IS NULL THEN reserved END), 0) FROM calls WHERE run = ?",
            (run,),
        ).fetchone()
        return Spend(int(paid), int(open_))

    def _row(self, request: Request, response: Response, now: str) -> tuple[str, str, str | None, str, int, str]:
        said = _told(response)
        if not self._redact:
            asked = json.dumps(request.asked(), ensure_ascii=False, sort_keys=True)
            return response.key, request.kind, asked, json.dumps(said, ensure_ascii=False), 0, now
        kept = {k: said[k] for k in ("key", "usage", "finish", "refused", "received_at") if k in said}
        kept["text_sha256"] = digest(response.text)
        return response.key, request.kind, None, json.dumps(kept), 1, now


def _told(response: Response) -> dict[str, Any]:
    """A reply as JSON values without what is empty; tokens as [text, logprob, alternatives]."""
    usage = response.usage
    told: dict[str, Any] = {
        "key": response.key, "text": response.text, "numbers": response.numbers, "vectors": response.vectors,
        "tokens": [(t.text, t.logprob, t.top) for t in response.tokens],
        "usage": {"tokens_in": usage.tokens_in, "tokens_out": usage.tokens_out, "cached": usage.cached, "reasoning": usage.reasoning},
        "finish": response.finish, "refused": response.refused, "reasoning": response.reasoning, "sent": plain(response.sent),
        "device": response.device, "batch": response.batch, "received_at": response.received_at,
    }  # fmt: skip
    return {k: v for k, v in told.items() if v is not None and v != [] and v != {} and (v != "" or k == "text")}


def _read(text: str) -> Response:
    row = json.loads(text)
    row["usage"] = Usage(**row.get("usage", {}))
    row["tokens"] = tuple(Token(text, logprob, tuple((o[0], o[1]) for o in top)) for text, logprob, top in row.get("tokens", ()))
    if "numbers" in row:
        row["numbers"] = tuple(row["numbers"])
    if "vectors" in row:
        row["vectors"] = tuple(map(tuple, row["vectors"]))
    return Response(**row)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
