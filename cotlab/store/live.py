"""Live state beside the response log: progress of runs, and leases of items that raters look at."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from sqlite3 import Connection
from types import TracebackType
from typing import NamedTuple

from cotlab.store.log import clock, host_of, may_run, open_log, this_machine, transaction

STALE_S = 10.0
"""Seconds without a heartbeat after which a run counts as interrupted."""
SILENT_S = 60.0
"""Seconds without a heartbeat after which a run of another machine or PID namespace may be resumed,
as its process cannot be tested."""
LOADING_S = 600.0
"""Seconds that a process which claimed a run may take to load its model before its first heartbeat.
"""


@dataclass(slots=True)
class Progress:
    """Counts of a running run; amounts are micro-dollars, times seconds."""

    status: str = "running"
    """Status of the run."""
    items_done: int = 0
    """Items that every scorer has finished."""
    items_total: int = 0
    """Items of the run."""
    replies: int = 0
    """Replies so far."""
    expected: int = 0
    """Replies expected in all."""
    hits: int = 0
    """Requests answered from the response log."""
    failed: int = 0
    """Requests without a reply."""
    in_flight: int = 0
    """Requests waiting for a reply."""
    concurrency: int | None = None
    """Most requests in flight; None where there is no limit."""
    per_minute: int | None = None
    """Most requests a minute; None where there is no limit."""
    limited: int = 0
    """Replies that said too many requests (429)."""
    spent_micro: int = 0
    """Cost of the replies."""
    reserved_micro: int = 0
    """Most that the calls in flight may cost."""
    cap_micro: int | None = None
    """Cap on the spend; None without one."""
    rate: float = 0.0
    """Replies a second."""
    eta_s: float | None = None
    """Estimated time left; None where unknown."""
    started_at: float = 0.0
    """Start, in seconds since 1970."""
    waiting_for: str = ""
    """What the run waits for; "" for nothing."""
    paused_until: float = 0.0
    """End of a pause, in seconds since 1970."""
    asked_again: int = 0
    """Requests sent again after a failure."""
    last_errors: list[str] = field(default_factory=list)
    """Messages of the last errors."""


@dataclass(frozen=True, slots=True)
class LiveRun:
    """The last state that a run's process wrote."""

    run: str
    """Id of the run."""
    pid: int
    """Process id."""
    progress: Progress
    """Its counts."""
    alive: bool
    """False once its heartbeat is stale or its process is gone."""
    stopping: bool
    """Whether it was asked to stop."""
    host: str
    """Name of the machine on which ``pid`` counts."""
    is_here: bool
    """Whether ``pid`` is a process id of this machine, PID namespace and boot."""
    free_in_s: float
    """Seconds without a heartbeat from now after which another process may take the run; 0 where it
    may now."""


class LiveState:
    """Rows of live runs, written by the run's process, read by pages and commands."""

    def __init__(self, path: Path) -> None:
        self._connection = open_log(path)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def beat(self, run: str, progress: Progress, silent_s: float = SILENT_S) -> bool:
        """Write ``progress`` and return whether the run is asked to stop.

        Where this process cannot be tested it counts as gone after ``silent_s`` without a
        heartbeat.
        """
        self._connection.execute(
            "INSERT INTO live (run, pid, machine, state, heartbeat, silent_s) VALUES (?, ?, ?, ?,"
            " ?, ?) ON CONFLICT (run) DO UPDATE SET pid = excluded.pid, machine = excluded.machine,"
            " state = excluded.state, heartbeat = excluded.heartbeat, silent_s = excluded.silent_s",
            (
                run,
                os.getpid(),
                this_machine(),
                json.dumps(asdict(progress)),
                clock(self._connection),
                silent_s,
            ),
        )
        row = self._connection.execute("SELECT stop FROM live WHERE run = ?", (run,)).fetchone()
        return bool(row and row[0])

    def begin(self, run: str, progress: Progress, silent_s: float = SILENT_S) -> None:
        """Claim a run for this process and clear an earlier request to stop."""
        self.beat(run, progress, silent_s)
        self._connection.execute("UPDATE live SET stop = 0 WHERE run = ?", (run,))

    def claim(self, run: str) -> LiveRun | None:
        """Claim a run before its first heartbeat; return another process's claim, if any.

        One transaction: of several processes that try at once, one succeeds.
        """
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            live = self.get(run)
            if (
                live is not None
                and live.free_in_s
                and not (live.is_here and live.pid == os.getpid())
            ):
                return live
            self.begin(run, Progress(started_at=time.time()), LOADING_S)
            return None
        finally:
            self._connection.execute("COMMIT")

    def release(self, run: str) -> None:
        """Release a claimed run that this process does not continue."""
        with transaction(self._connection, "The state of a run") as connection:
            connection.execute(
                "UPDATE live SET silent_s = 0 WHERE run = ? AND pid = ? AND machine = ?",
                (run, os.getpid(), this_machine()),
            )

    def ask_stop(self, run: str) -> bool:
        """Ask a live run to stop at its next heartbeat; return whether it is alive."""
        self._connection.execute("UPDATE live SET stop = 1 WHERE run = ?", (run,))
        live = self.get(run)
        return live is not None and live.alive

    def get(self, run: str) -> LiveRun | None:
        """Return the state of a run; None where it has none."""
        live_runs = self.all(run)
        return live_runs[0] if live_runs else None

    def all(self, run: str | None = None) -> list[LiveRun]:
        """Return the runs that ever wrote a heartbeat, or one of them, newest first."""
        rows = self._connection.execute(
            "SELECT run, pid, machine, state, stop, ? - heartbeat, silent_s FROM live "
            "WHERE ? IS NULL OR run = ? ORDER BY heartbeat DESC",
            (clock(self._connection), run, run),
        ).fetchall()
        return [_live_run(*row) for row in rows]


def _live_run(
    run: str, pid: int, machine: str | None, state: str, stop: int, age_s: float, silent_s: float
) -> LiveRun:
    progress, is_here = _progress(state), machine == this_machine()
    running, lasts_s = progress.status == "running", LOADING_S if is_here and silent_s else silent_s
    return LiveRun(
        run,
        pid,
        progress,
        running and may_run(machine, pid, age_s, min(STALE_S, lasts_s)),
        bool(stop),
        host_of(machine),
        is_here,
        lasts_s - age_s if running and may_run(machine, pid, age_s, lasts_s) else 0.0,
    )


def _progress(state: str) -> Progress:
    """Parse the progress of a run of any version, ignoring unknown fields."""
    stored, known = json.loads(state), {f.name for f in fields(Progress)}
    return Progress(**{name: value for name, value in stored.items() if name in known})


LEASE_S = 120.0
"""Seconds that an item is kept for a rater who looks at it."""
ItemKey = tuple[str, str]
"""Run and item."""
_NO_ITEM: ItemKey = ("", "")
"""Leased by a rater for whom nothing is left, so that others see that somebody waits."""


class Lease(NamedTuple):
    """An item that is kept for a rater."""

    run: str
    """Id of the run."""
    item_id: str
    """Id of the item."""
    until: float
    """End, in seconds since 1970."""


class Leases:
    """Leases and skips of all queues, safe between processes: one of several gets an item.

    A context manager: it closes its connection.
    """

    def __init__(self, path: Path) -> None:
        self._connection = open_log(path)

    def __enter__(self) -> Leases:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def claim(
        self,
        queue: str,
        rater: str,
        candidates: Sequence[tuple[ItemKey, int]],
        limit: int = 1,
        *,
        first: ItemKey | None = None,
        lease_s: float = LEASE_S,
    ) -> list[Lease]:
        """Lease items that need labels to this rater, who then holds no others of this queue.

        What the rater holds already comes first, in the order in which it was claimed, so that the
        displayed item stays. Of the rest nobody holds more than an equal share: where others work
        on
        the queue too, or wait for an item, the last ones are released.

        Parameters
        ----------
        queue, rater : str
        candidates : sequence of ((run, item), room)
            In the order of the queue; room counts the raters that the item still needs, this one
            included.
        limit : int, at least 1
            Most items to lease.
        first : (run, item), optional
            Comes before all others, whoever else holds it, if it is among ``candidates``.
        lease_s : float, seconds

        Returns
        -------
        list of Lease
            Empty where others hold whatever is left; the rater then counts as waiting.
        """
        now = time.time()
        with transaction(self._connection, "The leases of labels") as connection:
            _drop_future_leases(connection, now, lease_s)
            rows = connection.execute(
                "SELECT run, item, rater FROM leases WHERE queue = ? AND until > ? ORDER BY rowid",
                (queue, now),
            ).fetchall()
            others: dict[ItemKey, int] = {}
            for run, item, who in rows:
                if who != rater:
                    others[run, item] = others.get((run, item), 0) + 1
            room = dict(candidates)
            mine = [(run, item) for run, item, who in rows if who == rater]
            free = [key for key, count in candidates if others.get(key, 0) < count]
            selected = [
                key
                for key in dict.fromkeys([*([first] if first else []), *mine, *free])
                if key in room
            ]
            share = -(-len(selected) // len({rater, *(who for _, _, who in rows)}))
            until = now + lease_s
            connection.execute(
                "DELETE FROM leases WHERE queue = ? AND (rater = ? OR until <= ?)",
                (queue, rater, now),
            )
            connection.executemany(
                "INSERT INTO leases VALUES (?, ?, ?, ?, ?)",
                [
                    (queue, *key, rater, until)
                    for key in selected[: min(limit, share)] or [_NO_ITEM] * bool(candidates)
                ],
            )
            return [Lease(*key, until) for key in selected[: min(limit, share)]]

    def release(self, queue: str, run: str, item: str, rater: str) -> None:
        """Release an item."""
        with transaction(self._connection, "The leases of labels") as connection:
            connection.execute(
                "DELETE FROM leases WHERE queue = ? AND run = ? AND item = ? AND rater = ?",
                (queue, run, item, rater),
            )

    def skip(self, queue: str, run: str, item: str, rater: str) -> None:
        """Leave an item for later: release it and put it behind those skipped before."""
        with transaction(self._connection, "The leases of labels") as connection:
            connection.execute(
                "INSERT OR REPLACE INTO skips VALUES (?, ?, ?, ?, ?)",
                (queue, run, item, rater, time.time()),
            )
            connection.execute(
                "DELETE FROM leases WHERE queue = ? AND run = ? AND item = ? AND rater = ?",
                (queue, run, item, rater),
            )

    def has_lease(self, rater: str) -> bool:
        """Return whether a rater of this name holds an item now, in any queue."""
        row = self._connection.execute(
            "SELECT 1 FROM leases WHERE rater = ? AND until > ? AND item <> ''",
            (rater, time.time()),
        ).fetchone()
        return row is not None

    def skipped(self, queue: str, rater: str) -> list[ItemKey]:
        """Return what a rater skipped in a queue, longest ago first."""
        rows = self._connection.execute(
            "SELECT run, item FROM skips WHERE queue = ? AND rater = ? ORDER BY at, run, item",
            (queue, rater),
        ).fetchall()
        return [(run, item) for run, item in rows]


def _drop_future_leases(connection: Connection, now: float, lease_s: float) -> None:
    """Delete leases that end later than any made now.

    They were made before the clock was set back, and their raters may be long gone.
    """
    connection.execute("DELETE FROM leases WHERE until > ?", (now + max(lease_s, LEASE_S) + 1,))
