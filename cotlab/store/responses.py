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
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from cotlab.core.keys import digest
from cotlab.core.requests import Request, Response, Usage
from cotlab.store.cut_replies import CutReplies, read_cut_replies
from cotlab.store.log import (
    COUNT_COLUMNS,
    decode_object,
    decode_response,
    encode_json,
    encode_request,
    encode_response,
    is_intact,
    log_clock,
    machine_id,
    may_be_running,
    open_log,
    reply_digest,
    transaction,
)

_HEARTBEAT_TIMEOUT_S = 30.0
"""Seconds without a heartbeat after which a run waits for no reply any more."""
_UPSERT_REPLY_SQL = """
    INSERT INTO replies VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET
        request = excluded.request, response = excluded.response, redacted = excluded.redacted,
        at = excluded.at, digest = excluded.digest
    WHERE replies.redacted > excluded.redacted
       OR CASE WHEN replies.digest IS reply_digest(replies.key, CAST(replies.response AS BLOB))
          THEN json_extract(replies.response, '$.refused') ELSE true END
    """
"""Stores a reply; a stored one stays, unless it was redacted, damaged or a refusal."""
_ADD_TO_SPENDS_SQL = (
    "UPDATE spends SET paid = paid + ?, reserved = reserved - ?, "
    + ", ".join(f"{name} = {name} + ?" for name in COUNT_COLUMNS[1:])
    + " WHERE run = ?"
)
"""Adds a settled call: cost, freed reserve, ``_usage_counts`` of its reply, run."""
_OVERSHOOTS_SQL = """
    SELECT json_extract(r.request, '$.model'), count(*), sum(c.cost - c.reserved),
           max(coalesce(json_extract(r.response, '$.usage.tokens_in'), c.tokens)),
           max(coalesce(json_extract(r.response, '$.usage.tokens_out'), c.tokens)),
           max(json_extract(r.response, '$.usage.tokens_in') - length(CAST(r.request AS BLOB))),
           max(CASE WHEN r.request IS NOT NULL
               THEN json_extract(r.response, '$.usage.tokens_out')
                    - coalesce(json_extract(r.request, '$.max_tokens'), 0) END)
    FROM calls c LEFT JOIN replies r
      ON r.key = c.key AND json_valid(r.response) AND json_valid(coalesce(r.request, 'null'))
    WHERE c.run = ? AND c.cost > c.reserved
    GROUP BY 1 ORDER BY 1
    """


class RunSpend(NamedTuple):
    """Micro-dollars of one run."""

    paid_micro: int
    """For replies that came."""
    reserved_micro: int
    """For calls without a reply."""


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


class OpenBatch(NamedTuple):
    """A batch that was handed to a vendor and is not settled yet."""

    name: str
    """Our name for it."""
    vendor_id: str | None
    """The vendor's id; None where its answer was never read."""
    recorded_at: str
    """When it was noted."""
    calls_by_key: dict[str, int]
    """Request key → call."""


class CallReservation(NamedTuple):
    """Outcome of a reservation; all fields empty where the budget does not allow the call."""

    call_id: int | None = None
    """Id of the reserved call."""
    reply: Response | None = None
    """A reply that is stored by now."""
    is_in_flight: bool = False
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
            return self._stored_reply(key)

    def put(self, request_replies: Sequence[tuple[Request, Response]], run: str) -> None:
        """Store replies of a model that costs nothing, in one commit, and count them for a run.

        A stored reply stays, unless it was redacted or a refusal.
        """
        stored_at = datetime.now(UTC).isoformat()
        rows = [
            self._reply_row(request, response, stored_at) for request, response in request_replies
        ]
        count_sums = [
            sum(column)
            for column in zip(
                *(_usage_counts(response.usage) for _, response in request_replies), strict=True
            )
        ] or [0] * 6
        with self._transaction() as connection:
            connection.executemany(_UPSERT_REPLY_SQL, rows)
            connection.execute(
                "INSERT OR IGNORE INTO spends (run, paid, reserved) VALUES (?, 0, 0)", (run,)
            )
            connection.execute(
                "UPDATE spends SET calls = calls + ? WHERE run = ?", (len(rows), run)
            )
            connection.execute(_ADD_TO_SPENDS_SQL, (0, 0, *count_sums, run))

    def reserve(
        self, request: Request, run: str, max_cost: int, max_spend: int, max_tokens: int = 0
    ) -> CallReservation:
        """Reserve a call, unless it has a reply, is in flight or would exceed the cap.

        Parameters
        ----------
        request : Request
        run : str
        max_cost : int
            Most that the call may cost, in micro-dollars.
        max_spend : int
            Most that the run may spend.
        max_tokens : int
            Most tokens that the call can use.
        """
        key = request.key
        with self._transaction() as connection:
            if (stored_reply := self._stored_reply(key)) is not None:
                return CallReservation(reply=stored_reply)
            if self._in_flight_elsewhere(key, run):
                return CallReservation(is_in_flight=True)
            if sum(self._read_spend(run)) + max_cost > max_spend:
                return CallReservation()
            insert_cursor = connection.execute(
                "INSERT INTO calls (key, run, pid, machine, reserved, tokens, at) VALUES (?, ?, ?,"
                " ?, ?, ?, ?)",
                (
                    key,
                    run,
                    os.getpid(),
                    machine_id(),
                    max_cost,
                    max_tokens,
                    datetime.now(UTC).isoformat(),
                ),
            )
            connection.execute(
                "INSERT INTO spends (run, paid, reserved, calls) VALUES (?, 0, ?, 1) ON CONFLICT"
                " (run) DO UPDATE SET reserved = reserved + excluded.reserved, calls = calls + 1",
                (run, max_cost),
            )
            return CallReservation(call_id=insert_cursor.lastrowid)

    def settle(
        self,
        call_id: int,
        cost: int | None,
        outcome: str,
        request_reply: tuple[Request, Response] | None = None,
    ) -> None:
        """Close a call and store its reply in the same commit.

        ``cost`` None keeps it at its full reserve.
        """
        reply_row = None
        if request_reply is not None:
            reply_row = self._reply_row(*request_reply, datetime.now(UTC).isoformat())
        with self._transaction() as connection:
            closed_call = connection.execute(
                "UPDATE calls SET cost = ?, outcome = ? WHERE id = ? AND outcome IS NULL RETURNING"
                " run, reserved",
                (cost, outcome, call_id),
            ).fetchone()
            if closed_call is not None:
                run, reserved_cost = closed_call
                paid_cost, freed_reserve = (0, 0) if cost is None else (cost, reserved_cost)
                usage_counts = _usage_counts(request_reply[1].usage if request_reply else None)
                connection.execute(
                    _ADD_TO_SPENDS_SQL, (paid_cost, freed_reserve, *usage_counts, run)
                )
                if cost is not None or usage_counts[0] > usage_counts[1]:
                    connection.execute(
                        "UPDATE calls SET tokens = ? WHERE id = ?",
                        (usage_counts[2] + usage_counts[3], call_id),
                    )
            if reply_row is not None:
                connection.execute(_UPSERT_REPLY_SQL, reply_row)

    def lower_reserves(self, reserves: Sequence[tuple[int, int]]) -> None:
        """Lower what closed calls without a cost hold.

        Parameters
        ----------
        reserves : Sequence of (int, int)
            Id of a call, and the micro-dollars that it holds at most from now on.
        """
        if not reserves:
            return
        with self._transaction() as connection:
            for call_id, reserved_cost in reserves:
                for run, freed_cost in connection.execute(
                    "SELECT run, reserved - ? FROM calls WHERE id = ? AND outcome IS NOT NULL AND"
                    " cost IS NULL AND reserved > ?",
                    (reserved_cost, call_id, reserved_cost),
                ).fetchall():
                    connection.execute(
                        "UPDATE calls SET reserved = ? WHERE id = ?", (reserved_cost, call_id)
                    )
                    connection.execute(
                        "UPDATE spends SET reserved = reserved - ? WHERE run = ?", (freed_cost, run)
                    )

    def get_spend(self, run: str) -> RunSpend:
        """Return what a run has paid and reserved."""
        with self._lock:
            return self._read_spend(run)

    def _read_spend(self, run: str) -> RunSpend:
        query = "SELECT paid, reserved FROM spends WHERE run = ?"
        return RunSpend(*(self._connection.execute(query, (run,)).fetchone() or (0, 0)))

    def list_overshoots(self, run: str) -> list[Overshoot]:
        """Return what the calls of a run cost beyond their reserve, one entry a model."""
        return [
            Overshoot(model and json.loads(model), *counts)
            for model, *counts in self._query_rows(_OVERSHOOTS_SQL, (run,))
        ]

    def count_cut_replies(self, keys: Sequence[str]) -> list[CutReplies]:
        """Return the replies with these keys, and how many of them were cut off."""
        with self._lock:
            return read_cut_replies(self._connection, keys)

    def get_call_counts(self, run: str) -> dict[str, int]:
        """Return the sums of ``COUNT_COLUMNS`` over a run's calls, by all its processes."""
        rows = self._query_rows(
            f"SELECT {', '.join(COUNT_COLUMNS)} FROM spends WHERE run = ?", (run,)
        )
        return dict(zip(COUNT_COLUMNS, rows[0] if rows else (0,) * len(COUNT_COLUMNS), strict=True))

    def was_sent(self, run: str, key: str) -> bool:
        """Return whether a run has sent this request before."""
        return bool(self._query_rows("SELECT 1 FROM calls WHERE key = ? AND run = ?", (key, run)))

    def list_recent_tokens(self, run: str, window_s: float) -> list[int]:
        """Return the tokens of each call of the last ``window_s`` seconds."""
        since = (datetime.now(UTC) - timedelta(seconds=window_s)).isoformat()
        sql = "SELECT tokens FROM calls WHERE run = ? AND at > ?"
        return [tokens for (tokens,) in self._query_rows(sql, (run, since))]

    def add_batch(self, name: str, run: str, model: str, call_ids: Iterable[int]) -> None:
        """Note a batch with its calls before it is submitted."""
        with self._transaction() as connection:
            now = datetime.now(UTC).isoformat()
            connection.execute(
                "INSERT INTO batches (name, run, model, at) VALUES (?, ?, ?, ?)",
                (name, run, model, now),
            )
            connection.executemany(
                "UPDATE calls SET batch = ? WHERE id = ?", [(name, call_id) for call_id in call_ids]
            )

    def update_batch(
        self, name: str, vendor_id: str | None = None, *, is_ended: bool = False
    ) -> None:
        """Record that the vendor accepted a batch, or that all of it is settled."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE batches SET vendor_id = coalesce(?, vendor_id), ended = ? WHERE name = ?",
                (vendor_id, is_ended, name),
            )

    def has_batch(self, vendor_id: str) -> bool:
        """Return whether a batch of the vendor is noted already."""
        return bool(self._query_rows("SELECT 1 FROM batches WHERE vendor_id = ?", (vendor_id,)))

    def list_open_batches(self, run: str, model: str) -> list[OpenBatch]:
        """Return the batches of a run that are not settled, oldest first."""
        batches = self._query_rows(
            "SELECT name, vendor_id, at FROM batches WHERE run = ? AND model = ? AND NOT ended"
            " ORDER BY at",
            (run, model),
        )
        query = "SELECT key, id FROM calls WHERE batch = ? AND outcome IS NULL"
        return [
            OpenBatch(
                name, vendor_id, recorded_at, calls_by_key=dict(self._query_rows(query, (name,)))
            )
            for name, vendor_id, recorded_at in batches
        ]

    def reply_time_by_key(self, keys: Sequence[str]) -> dict[str, datetime]:
        """Return key → time of the stored reply; a refusal is none."""
        rows = self._query_rows(
            "SELECT key, at FROM replies WHERE key IN (SELECT value FROM json_each(?)) AND CASE"
            " WHEN json_valid(response) THEN NOT coalesce(json_extract(response, '$.refused'), 0)"
            " END",
            (json.dumps(list(keys)),),
        )
        time_by_key = {}
        for key, stored_at in rows:
            with suppress(ValueError):  # one that is damaged
                time_by_key[key] = datetime.fromisoformat(stored_at)
        return time_by_key

    def load_exchanges(
        self, keys: Sequence[str], *, with_requests: bool = True
    ) -> dict[str, tuple[dict[str, Any] | None, dict[str, Any] | None]]:
        """Return key → (request, reply) as JSON objects; None where not read or damaged."""
        rows = self._query_rows(
            "SELECT key, CASE WHEN ? THEN request END, response, digest FROM replies"
            " WHERE key IN (SELECT value FROM json_each(?))",
            (with_requests, json.dumps(list(keys))),
        )
        return {
            key: (
                decode_object(request),
                decode_object(response) if is_intact(key, response, stored_digest) else None,
            )
            for key, request, response, stored_digest in rows
        }

    def _query_rows(self, query: str, parameters: Sequence[Any]) -> list[Any]:
        """Return the rows of a query that is not part of a transaction."""
        with self._lock:
            return self._connection.execute(query, parameters).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, transaction(self._connection, "The response log") as connection:
            yield connection

    def _stored_reply(self, key: str) -> Response | None:
        row = self._connection.execute(
            "SELECT response, at, digest FROM replies WHERE key = ? AND redacted = 0", (key,)
        ).fetchone()
        if row is None:
            return None
        reply = decode_response(row[0]) if is_intact(key, row[0], row[2]) else None
        is_missing = reply is None or (reply.refused and row[1] < self._refused_before)
        return None if is_missing else reply

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
                "machine": machine_id(),
                "run": run,
                "now": log_clock(self._connection),
            },
        ).fetchall()
        return any(
            is_owner and may_be_running(machine, pid, age_s, _HEARTBEAT_TIMEOUT_S)
            for machine, pid, is_owner, age_s in rows
        )

    def _reply_row(
        self, request: Request, response: Response, stored_at: str
    ) -> tuple[str, str, str | None, str, int, str, str]:
        key, reply_fields = response.key, encode_response(response)
        if not self.redact:
            text = encode_json(reply_fields)
            row_digest = reply_digest(key, text)
            return key, request.kind, encode_request(request), text, 0, stored_at, row_digest
        redacted_fields: dict[str, Any] = {
            field_name: reply_fields[field_name]
            for field_name in ("key", "usage", "finish", "refused", "received_at")
            if field_name in reply_fields
        }
        redacted_fields["text_sha256"] = digest(response.text)
        text = json.dumps(redacted_fields)
        return key, request.kind, None, text, 1, stored_at, reply_digest(key, text)


def _usage_counts(usage: Usage | None) -> tuple[int, ...]:
    """Return what one settled call adds to the columns of ``COUNT_COLUMNS`` after ``calls``."""
    if usage is None:
        return (0,) * 6
    is_known = usage.tokens_in is not None and usage.tokens_out is not None
    return (
        1,
        int(not is_known),
        *(
            count or 0
            for count in (usage.tokens_in, usage.tokens_out, usage.cached, usage.reasoning)
        ),
    )
