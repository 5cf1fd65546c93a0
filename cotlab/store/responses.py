"""The response log: every reply when it arrives, and every paid call before it is made (SQLite).

Rows of ``calls`` are reservations: what a call may cost at most is written before it is sent, what
it did cost when its reply is there. A call without a reply counts at its full reserve, also after
the process was killed. ``spends`` holds each run's sums, so that a reservation costs the same
however many calls a run has made.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from cotlab.core.keys import digest
from cotlab.core.requests import Request, Response, Usage
from cotlab.store.codec import decode_response, encode_json, encode_request, encode_response
from cotlab.store.log import COUNTED, clock, may_run, open_log, this_machine, transaction
from cotlab.store.overshoots import Overshoot, read_overshoots

_SILENT_S = 30.0
"""Seconds without a heartbeat after which a run waits for no reply any more."""
_ADD_TO_SPENDS = (
    "UPDATE spends SET paid = paid + ?, reserved = reserved - ?, "
    + ", ".join(f"{name} = {name} + ?" for name in COUNTED[1:])
    + " WHERE run = ?"
)
_KEEP_FIRST = (
    "INSERT INTO replies VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET request ="
    " excluded.request, response = excluded.response, redacted = excluded.redacted, at ="
    " excluded.at WHERE replies.redacted > excluded.redacted OR json_extract(replies.response,"
    " '$.refused')"
)


class Spend(NamedTuple):
    """Micro-dollars of one run."""

    paid: int
    """For replies that came."""
    reserved: int
    """For calls without a reply."""


class OpenBatch(NamedTuple):
    """A batch that was handed to a vendor and is not settled yet."""

    name: str
    """Our name for it."""
    vendor_id: str | None
    """The vendor's id; None where its answer was never read."""
    at: str
    """When it was noted."""
    calls: dict[str, int]
    """Request key → call."""


class Claim(NamedTuple):
    """Outcome of a reservation; all fields empty where the budget does not allow the call."""

    call: int | None = None
    """Id of the reserved call."""
    reply: Response | None = None
    """A reply that is stored by now."""
    elsewhere: bool = False
    """Whether the same request is in flight in another process."""


class ResponseLog:
    """Replies by request key, for several threads and several processes at once.

    Parameters
    ----------
    path : Path
    redact : bool
        Store hashes instead of texts; such a row is no reply to anybody.
    retry_refused : bool
        Treat refusals that were stored before this log was opened as missing.
    """

    def __init__(self, path: Path, *, redact: bool = False, retry_refused: bool = False) -> None:
        self._connection, self._lock, self.redact = open_log(path), threading.Lock(), redact
        self._refused_before = datetime.now(UTC).isoformat() if retry_refused else ""

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._connection.close()

    def get(self, key: str) -> Response | None:
        """Return the stored reply, or None; a redacted row has no text and is none."""
        with self._lock:
            return self._stored(key)

    def put(self, pairs: Sequence[tuple[Request, Response]], run: str) -> None:
        """Store replies of a model that costs nothing, in one commit, and count them for a run.

        A stored reply stays, unless it was redacted or a refusal.
        """
        now = datetime.now(UTC).isoformat()
        rows = [self._row(request, response, now) for request, response in pairs]
        sums = [
            sum(column)
            for column in zip(*(_counted(response.usage) for _, response in pairs), strict=True)
        ] or [0] * 6
        with self._transaction() as connection:
            connection.executemany(_KEEP_FIRST, rows)
            connection.execute(
                "INSERT OR IGNORE INTO spends (run, paid, reserved) VALUES (?, 0, 0)", (run,)
            )
            connection.execute(
                "UPDATE spends SET calls = calls + ? WHERE run = ?", (len(rows), run)
            )
            connection.execute(_ADD_TO_SPENDS, (0, 0, *sums, run))

    def reserve(
        self, request: Request, run: str, max_cost: int, cap: int, tokens: int = 0
    ) -> Claim:
        """Reserve a call, unless it has a reply, is in flight or would exceed the cap.

        Parameters
        ----------
        request : Request
        run : str
        max_cost : int
            Most that the call may cost, in micro-dollars.
        cap : int
            Most that the run may spend.
        tokens : int
            Most tokens that the call can use.
        """
        key = request.key
        with self._transaction() as connection:
            if (stored := self._stored(key)) is not None:
                return Claim(reply=stored)
            if self._in_flight_elsewhere(key, run):
                return Claim(elsewhere=True)
            if sum(self._spend(run)) + max_cost > cap:
                return Claim()
            done = connection.execute(
                "INSERT INTO calls (key, run, pid, machine, reserved, tokens, at) VALUES (?, ?, ?,"
                " ?, ?, ?, ?)",
                (
                    key,
                    run,
                    os.getpid(),
                    this_machine(),
                    max_cost,
                    tokens,
                    datetime.now(UTC).isoformat(),
                ),
            )
            connection.execute(
                "INSERT INTO spends (run, paid, reserved, calls) VALUES (?, 0, ?, 1) ON CONFLICT"
                " (run) DO UPDATE SET reserved = reserved + excluded.reserved, calls = calls + 1",
                (run, max_cost),
            )
            return Claim(call=done.lastrowid)

    def settle(
        self,
        call: int,
        cost: int | None,
        outcome: str,
        reply: tuple[Request, Response] | None = None,
    ) -> None:
        """Close a call and store its reply in the same commit.

        ``cost`` None keeps it at its full reserve.
        """
        row = self._row(*reply, datetime.now(UTC).isoformat()) if reply is not None else None
        with self._transaction() as connection:
            closed = connection.execute(
                "UPDATE calls SET cost = ?, outcome = ? WHERE id = ? AND outcome IS NULL RETURNING"
                " run, reserved",
                (cost, outcome, call),
            ).fetchone()
            if closed is not None:
                run, reserved = closed
                paid, freed = (0, 0) if cost is None else (cost, reserved)
                counted = _counted(reply[1].usage if reply else None)
                connection.execute(_ADD_TO_SPENDS, (paid, freed, *counted, run))
                if cost is not None or counted[0] > counted[1]:
                    connection.execute(
                        "UPDATE calls SET tokens = ? WHERE id = ?", (counted[2] + counted[3], call)
                    )
            if row is not None:
                connection.execute(_KEEP_FIRST, row)

    def spend(self, run: str) -> Spend:
        """Return what a run has paid and reserved."""
        with self._lock:
            return self._spend(run)

    def overshoots(self, run: str) -> list[Overshoot]:
        """Return what the calls of a run cost beyond their reserve, one entry a model."""
        with self._lock:
            return read_overshoots(self._connection, run)

    def counts(self, run: str) -> dict[str, int]:
        """Return the sums of ``COUNTED`` over a run's calls, by all its processes."""
        with self._lock:
            row = self._connection.execute(
                f"SELECT {', '.join(COUNTED)} FROM spends WHERE run = ?", (run,)
            ).fetchone()
        return dict(zip(COUNTED, row or (0,) * len(COUNTED), strict=True))

    def was_sent(self, run: str, key: str) -> bool:
        """Return whether a run has sent this request before."""
        with self._lock:
            return bool(
                self._connection.execute(
                    "SELECT 1 FROM calls WHERE key = ? AND run = ?", (key, run)
                ).fetchone()
            )

    def sends_since(self, run: str, window_s: float) -> list[tuple[float, int]]:
        """Return age in seconds and tokens of each call of the last ``window_s``."""
        now = datetime.now(UTC)
        with self._lock:
            rows = self._connection.execute(
                "SELECT at, tokens FROM calls WHERE run = ? AND at > ?",
                (run, (now - timedelta(seconds=window_s)).isoformat()),
            ).fetchall()
        return [((now - datetime.fromisoformat(at)).total_seconds(), tokens) for at, tokens in rows]

    def add_batch(self, name: str, run: str, model: str, calls: Iterable[int]) -> None:
        """Note a batch with its calls before it is submitted."""
        with self._transaction() as connection:
            now = datetime.now(UTC).isoformat()
            connection.execute(
                "INSERT INTO batches (name, run, model, at) VALUES (?, ?, ?, ?)",
                (name, run, model, now),
            )
            connection.executemany(
                "UPDATE calls SET batch = ? WHERE id = ?", [(name, call) for call in calls]
            )

    def set_batch(self, name: str, vendor_id: str | None = None, *, ended: bool = False) -> None:
        """Record that the vendor accepted a batch, or that all of it is settled."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE batches SET vendor_id = coalesce(?, vendor_id), ended = ? WHERE name = ?",
                (vendor_id, ended, name),
            )

    def knows_batch(self, vendor_id: str) -> bool:
        """Return whether a batch of the vendor is noted already."""
        with self._lock:
            return bool(
                self._connection.execute(
                    "SELECT 1 FROM batches WHERE vendor_id = ?", (vendor_id,)
                ).fetchone()
            )

    def open_batches(self, run: str, model: str) -> list[OpenBatch]:
        """Return the batches of a run that are not settled, oldest first."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT name, vendor_id, at FROM batches WHERE run = ? AND model = ? AND NOT ended"
                " ORDER BY at",
                (run, model),
            ).fetchall()
            return [
                OpenBatch(
                    name,
                    vendor_id,
                    at,
                    dict(
                        self._connection.execute(
                            "SELECT key, id FROM calls WHERE batch = ? AND outcome IS NULL", (name,)
                        )
                    ),
                )
                for name, vendor_id, at in rows
            ]

    def answered_at(self, keys: Sequence[str]) -> dict[str, datetime]:
        """Return key → time of the stored reply; a refusal is none."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT key, at FROM replies WHERE key IN (SELECT value FROM json_each(?)) "
                "AND NOT coalesce(json_extract(response, '$.refused'), 0)",
                [json.dumps(list(keys))],
            ).fetchall()
        return {key: datetime.fromisoformat(at) for key, at in rows}

    def requests(
        self, keys: Sequence[str]
    ) -> dict[str, tuple[dict[str, Any] | None, dict[str, Any] | None]]:
        """Return key → (request, reply) as JSON objects; None where they were redacted."""
        with self._lock:
            marks = ",".join("?" * len(keys))
            rows = self._connection.execute(
                f"SELECT key, request, response FROM replies WHERE key IN ({marks})", list(keys)
            ).fetchall()
        return {
            key: (
                json.loads(request) if request else None,
                json.loads(response) if response else None,
            )
            for key, request, response in rows
        }

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, transaction(self._connection, "The response log") as connection:
            yield connection

    def _stored(self, key: str) -> Response | None:
        row = self._connection.execute(
            "SELECT response, at FROM replies WHERE key = ? AND redacted = 0", (key,)
        ).fetchone()
        if row is None:
            return None
        reply = decode_response(row[0])
        return None if reply.refused and row[1] < self._refused_before else reply

    def _in_flight_elsewhere(self, key: str, run: str) -> bool:
        """Return whether a live process of another run waits for this reply.

        One that stopped beating or moved on does not.
        """
        rows = self._connection.execute(
            "SELECT c.machine, c.pid, l.run IS NULL OR (l.pid = c.pid AND l.machine IS c.machine), "
            "CASE WHEN l.run IS NOT NULL THEN :now - l.heartbeat WHEN c.machine = :machine THEN 0 "
            # without a heartbeat: since it was sent
            "ELSE coalesce((julianday('now') - julianday(c.at)) * 86400.0, 1e9) END "
            "FROM calls c LEFT JOIN live l ON l.run = c.run "
            "WHERE c.key = :key AND c.outcome IS NULL AND NOT (c.pid = :pid AND c.machine IS"
            " :machine AND c.run = :run)",
            {
                "key": key,
                "pid": os.getpid(),
                "machine": this_machine(),
                "run": run,
                "now": clock(self._connection),
            },
        ).fetchall()
        return any(
            owner and may_run(machine, pid, age_s, _SILENT_S) for machine, pid, owner, age_s in rows
        )

    def _spend(self, run: str) -> Spend:
        row = self._connection.execute(
            "SELECT paid, reserved FROM spends WHERE run = ?", (run,)
        ).fetchone()
        return Spend(*row) if row else Spend(0, 0)

    def _row(
        self, request: Request, response: Response, now: str
    ) -> tuple[str, str, str | None, str, int, str]:
        fields = encode_response(response)
        if not self.redact:
            return response.key, request.kind, encode_request(request), encode_json(fields), 0, now
        redacted: dict[str, Any] = {
            k: fields[k]
            for k in ("key", "usage", "finish", "refused", "received_at")
            if k in fields
        }
        redacted["text_sha256"] = digest(response.text)
        return response.key, request.kind, None, json.dumps(redacted), 1, now


def _counted(usage: Usage | None) -> tuple[int, ...]:
    """Return what one settled call adds to the columns of ``COUNTED`` after ``calls``."""
    if usage is None:
        return (0,) * 6
    known = usage.tokens_in is not None and usage.tokens_out is not None
    return (
        1,
        int(not known),
        *(n or 0 for n in (usage.tokens_in, usage.tokens_out, usage.cached, usage.reasoning)),
    )
