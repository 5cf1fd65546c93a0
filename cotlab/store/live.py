"""What a running process says of itself: progress, heartbeat, and the wish that it stops (same file as the log)."""

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
"""Without a heartbeat for so long a run counts as interrupted."""
SILENT_S = 60.0
"""Without a heartbeat for so long a run of another machine or PID namespace may be resumed: its
process cannot be tested."""
LOADING_S = 600.0
"""A process that claimed a run may take so long to load its model before its first heartbeat."""


@dataclass(slots=True)
class Progress:
    """Counts of a run while it goes; amounts are micro-dollars, times seconds."""

    status: str = "running"
    items_done: int = 0
    items_total: int = 0
    replies: int = 0
    expected: int = 0
    hits: int = 0
    failed: int = 0
    in_flight: int = 0
    concurrency: int | None = None
    per_minute: int | None = None
    limited: int = 0
    spent_micro: int = 0
    reserved_micro: int = 0
    cap_micro: int | None = None
    rate: float = 0.0
    eta_s: float | None = None
    started_at: float = 0.0
    waiting_for: str = ""
    paused_until: float = 0.0
    asked_again: int = 0
    last_errors: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LiveRun:
    """The last word of a run's process. ``alive`` is False once its heartbeat is stale or its process is gone."""

    run: str
    pid: int
    progress: Progress
    alive: bool
    stopping: bool
    host: str
    """Name of the machine on which ``pid`` counts."""
    is_here: bool
    """Whether ``pid`` is a number of this machine and PID namespace, and of its present boot."""
    free_in_s: float
    """Seconds without a heartbeat from now after which another process may take the run; 0 where it
    may now."""


class LiveState:
    """Rows of live runs; written by the run's own process, read by pages and commands."""

    def __init__(self, path: Path) -> None:
        self._connection = open_log(path)

    def close(self) -> None:
        self._connection.close()

    def beat(self, run: str, progress: Progress, silent_s: float = SILENT_S) -> bool:
        """Write ``progress``; returns whether somebody asked the run to stop.

        Where this process cannot be tested it counts as gone ``silent_s`` later, if nothing
        follows.
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
        """Claim a run for this process and forget an earlier wish that it stops."""
        self.beat(run, progress, silent_s)
        self._connection.execute("UPDATE live SET stop = 0 WHERE run = ?", (run,))

    def claim(self, run: str) -> LiveRun | None:
        """Take a run for this process before its first heartbeat; the run as another process has it, where one does.

        One transaction: of several processes that try at once, one gets it.
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
        """Give up a run that this process claimed and does not carry on: another one may take it at once."""
        with transaction(self._connection, "The state of a run") as connection:
            connection.execute(
                "UPDATE live SET silent_s = 0 WHERE run = ? AND pid = ? AND machine = ?",
                (run, os.getpid(), this_machine()),
            )

    def ask_stop(self, run: str) -> bool:
        """Ask a living run to stop: a flag for its next heartbeat, wherever it runs. False if it is not alive."""
        self._connection.execute("UPDATE live SET stop = 1 WHERE run = ?", (run,))
        live = self.get(run)
        return live is not None and live.alive

    def get(self, run: str) -> LiveRun | None:
        live_runs = self.all(run)
        return live_runs[0] if live_runs else None

    def all(self, run: str | None = None) -> list[LiveRun]:
        """Every run that ever beat, or one of them, the newest heartbeat first."""
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
    """What a run of any version told, as far as this one knows its fields."""
    stored, known = json.loads(state), {f.name for f in fields(Progress)}
    return Progress(**{name: value for name, value in stored.items() if name in known})


LEASE_S = 120.0
"""How long an item is kept for a rater who looks at it."""
ItemKey = tuple[str, str]
"""Run and item."""
_NO_ITEM: ItemKey = ("", "")
"""Held by a rater for whom nothing is left, so that others see that somebody waits."""


class Lease(NamedTuple):
    """An item that is kept for a rater ``until`` a time in seconds since 1970."""

    run: str
    item_id: str
    until: float


class Leases:
    """Leases and skips of all queues; safe between processes: of several that want an item at once, one gets it.

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
        """Keep items that have room for this rater, who then holds no others of this queue.

        What the rater holds already comes first, in the order in which it was claimed, so that the
        item before their eyes stays there. Of what is left nobody holds more than an equal share:
        where others look at the queue too, or wait for something in it, the last ones are given
        back.

        Parameters
        ----------
        wanted : sequence of ((run, item), room)
            In the order to be asked in; room counts the raters whom the item can still take, this
            one among them.
        most : int >= 1
            So many are kept at most.
        first : (run, item), optional
            Comes before all others, whoever else holds it, if it is among ``wanted``.
        lease_s : float, seconds

        Returns
        -------
        list of Lease
            Empty where others hold whatever is left; the rater then counts as one who waits.
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
        """Give an item back."""
        with transaction(self._connection, "The leases of labels") as connection:
            connection.execute(
                "DELETE FROM leases WHERE queue = ? AND run = ? AND item = ? AND rater = ?",
                (queue, run, item, rater),
            )

    def skip(self, queue: str, run: str, item: str, rater: str) -> None:
        """Leave an item for later: it is given back, and goes behind those that this rater skipped before."""
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
        """Whether something is kept for a rater of this name right now, in any queue."""
        row = self._connection.execute(
            "SELECT 1 FROM leases WHERE rater = ? AND until > ? AND item <> ''",
            (rater, time.time()),
        ).fetchone()
        return row is not None

    def skipped(self, queue: str, rater: str) -> list[ItemKey]:
        """What a rater skipped in a queue, the longest ago first."""
        rows = self._connection.execute(
            "SELECT run, item FROM skips WHERE queue = ? AND rater = ? ORDER BY at, run, item",
            (queue, rater),
        ).fetchall()
        return [(run, item) for run, item in rows]


def _drop_future_leases(connection: Connection, now: float, lease_s: float) -> None:
    """A lease that ends later than any that is made now was made before the clock was set back: its rater may be long gone."""
    connection.execute("DELETE FROM leases WHERE until > ?", (now + max(lease_s, LEASE_S) + 1,))
