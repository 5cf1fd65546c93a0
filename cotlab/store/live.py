"""Live state beside the response log: progress of runs, and leases of items that raters look at."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import NamedTuple

from cotlab.store.log import (
    decode_object,
    host_name,
    log_clock,
    machine_id,
    may_be_running,
    open_log,
    transaction,
)

STALE_AFTER_S = 10.0
"""Seconds without a heartbeat after which a run counts as interrupted."""
REMOTE_STALE_AFTER_S = 60.0
"""Seconds without a heartbeat after which a run of another machine or PID namespace may be resumed,
as its process cannot be tested."""
LOADING_TIMEOUT_S = 600.0
"""Seconds that a process which claimed a run may take to load its model before its first heartbeat.
"""


@dataclass(slots=True)
class RunProgress:
    """Counts of a running run; amounts are micro-dollars, times seconds."""

    status: str = "running"
    """Status of the run."""
    items_done: int = 0
    """Items that ended, counted for each scorer."""
    items_total: int = 0
    """Items of the run times its scorers."""
    n_scorers: int = 1
    """Scorers of the run."""
    replies: int = 0
    """Requests that are settled: answered, found in the log, refused or given up."""
    answered: int | None = None
    """Replies that models gave; None in runs of earlier versions. What a solver computes is no
    reply, and neither is a refused request."""
    expected: int = 0
    """Requests expected in all."""
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
    """Replies with the status 429 (too many requests)."""
    spent_micro: int = 0
    """Cost of the replies."""
    reserved_micro: int = 0
    """Most that the calls in flight may cost."""
    cap_micro: int | None = None
    """Cap on the spend; None without one."""
    rate: float = 0.0
    """Settled requests a second."""
    eta_s: float | None = None
    """Estimated time left; None where unknown."""
    started_at: float = 0.0
    """Start, in seconds since 1970."""
    waiting_for: str = ""
    """What the run waits for; "" for nothing."""
    paused_until: float = 0.0
    """End of a pause, in seconds since 1970."""
    retried_error: str = ""
    """Message of the last error after which a request is tried again; "" once one is answered."""
    asked_again: int = 0
    """Requests sent again after a failure."""
    last_errors: list[str] = field(default_factory=list)
    """Messages of the last errors."""

    def estimate_time_left(self, n_replies: int, elapsed_s: float) -> None:
        """Set the rate, of ``n_replies`` in ``elapsed_s``, and the time left.

        The time is unknown where no reply came, and where more came than were expected: what an
        item asks may depend on its replies.
        """
        self.rate = n_replies / elapsed_s
        n_left = self.expected - self.replies
        self.eta_s = n_left / self.rate if self.rate > 0 and n_left > 0 else None


@dataclass(frozen=True, slots=True)
class LiveRun:
    """The last state that a run's process wrote."""

    run: str
    """Id of the run."""
    pid: int
    """Process id."""
    progress: RunProgress
    """Its counts."""
    is_running: bool
    """False once its heartbeat is stale or its process is gone."""
    is_stopping: bool
    """Whether a stop was requested."""
    host: str
    """Name of the machine on which ``pid`` counts."""
    is_local: bool
    """Whether ``pid`` is a process id of this machine, PID namespace and boot."""
    free_in_s: float
    """Seconds without a heartbeat from now after which another process may take the run; 0 where it
    may now."""


class _LogTables:
    """Tables of the response log's file that are not replies, with a connection of their own."""

    def __init__(self, path: Path) -> None:
        self._connection = open_log(path)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class LiveRunStore(_LogTables):
    """Rows of live runs, written by the run's process, read by pages and commands."""

    def write_heartbeat(
        self, run: str, progress: RunProgress, timeout_s: float = REMOTE_STALE_AFTER_S
    ) -> bool:
        """Write ``progress`` and return whether a stop of the run was requested.

        Where this process cannot be tested it counts as gone after ``timeout_s`` without a
        heartbeat.
        """
        self._connection.execute(
            "INSERT INTO live (run, pid, machine, state, heartbeat, silent_s) VALUES (?, ?, ?, ?,"
            " ?, ?) ON CONFLICT (run) DO UPDATE SET pid = excluded.pid, machine = excluded.machine,"
            " state = excluded.state, heartbeat = excluded.heartbeat, silent_s = excluded.silent_s",
            (
                run,
                os.getpid(),
                machine_id(),
                json.dumps(asdict(progress)),
                log_clock(self._connection),
                timeout_s,
            ),
        )
        row = self._connection.execute("SELECT stop FROM live WHERE run = ?", (run,)).fetchone()
        return bool(row and row[0])

    def begin_run(
        self, run: str, progress: RunProgress, timeout_s: float = REMOTE_STALE_AFTER_S
    ) -> None:
        """Claim a run for this process and clear an earlier request to stop."""
        self.write_heartbeat(run, progress, timeout_s)
        self._connection.execute("UPDATE live SET stop = 0 WHERE run = ?", (run,))

    def claim(self, run: str) -> LiveRun | None:
        """Claim a run before its first heartbeat; return another process's claim, if any.

        One transaction: of several processes that try at once, one succeeds.
        """
        with transaction(self._connection, "The state of a run"):
            live_run = self.get(run)
            is_this_process = (
                live_run is not None and live_run.is_local and live_run.pid == os.getpid()
            )
            if live_run is not None and live_run.free_in_s and not is_this_process:
                return live_run
            self.begin_run(run, RunProgress(started_at=time.time()), LOADING_TIMEOUT_S)
            return None

    def release(self, run: str) -> None:
        """Release a claimed run that this process does not continue."""
        with transaction(self._connection, "The state of a run") as connection:
            connection.execute(
                "UPDATE live SET silent_s = 0 WHERE run = ? AND pid = ? AND machine = ?",
                (run, os.getpid(), machine_id()),
            )

    def request_stop(self, run: str) -> bool:
        """Ask a live run to stop at its next heartbeat; return whether it is alive."""
        self._connection.execute("UPDATE live SET stop = 1 WHERE run = ?", (run,))
        live_run = self.get(run)
        return live_run is not None and live_run.is_running

    def get(self, run: str) -> LiveRun | None:
        """Return the state of a run; None where it has none."""
        live_runs = self.list_live_runs(run)
        return live_runs[0] if live_runs else None

    def list_live_runs(self, run: str | None = None) -> list[LiveRun]:
        """Return the runs that ever wrote a heartbeat, or one of them, newest first."""
        rows = self._connection.execute(
            "SELECT run, pid, machine, state, stop, ? - heartbeat, silent_s FROM live "
            "WHERE ? IS NULL OR run = ? ORDER BY heartbeat DESC",
            (log_clock(self._connection), run, run),
        ).fetchall()
        return [_live_run_from_row(*row) for row in rows]


def _live_run_from_row(
    run: str,
    pid: int,
    machine: str | None,
    state_json: str,
    stop_flag: int,
    age_s: float,
    timeout_s: float,
) -> LiveRun:
    progress, is_local = _parse_progress(state_json), machine == machine_id()
    is_active = progress.status == "running"
    heartbeat_ttl_s = LOADING_TIMEOUT_S if is_local and timeout_s else timeout_s
    return LiveRun(
        run,
        pid,
        progress,
        is_active and may_be_running(machine, pid, age_s, min(STALE_AFTER_S, heartbeat_ttl_s)),
        bool(stop_flag),
        host_name(machine),
        is_local,
        heartbeat_ttl_s - age_s
        if is_active and may_be_running(machine, pid, age_s, heartbeat_ttl_s)
        else 0.0,
    )


def _parse_progress(state_json: str) -> RunProgress:
    """Parse the progress of a run of any version, ignoring unknown fields."""
    stored_values = decode_object(state_json) or {"status": "unknown"}
    field_names = {progress_field.name for progress_field in fields(RunProgress)}
    return RunProgress(
        **{name: value for name, value in stored_values.items() if name in field_names}
    )


LEASE_DURATION_S = 120.0
"""Seconds for which an item is reserved for a rater who looks at it."""
ItemKey = tuple[str, str]
"""Run and item."""
_WAITING_ITEM: ItemKey = ("", "")
"""Leased by a rater for whom nothing is left, so that others see that somebody waits."""
_DELETE_LEASE_SQL = "DELETE FROM leases WHERE queue = ? AND run = ? AND item = ? AND rater = ?"


class Lease(NamedTuple):
    """An item that is reserved for a rater."""

    run: str
    """Id of the run."""
    item_id: str
    """Id of the item."""
    expires_at: float
    """End, in seconds since 1970."""


class Leases(_LogTables):
    """Leases and skips of all queues, safe between processes: one of several gets an item.

    A context manager: it closes its connection.
    """

    def __enter__(self) -> Leases:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def claim(
        self,
        queue: str,
        rater: str,
        candidates: Sequence[tuple[ItemKey, int]],
        max_items: int = 1,
        *,
        first_item: ItemKey | None = None,
        lease_s: float = LEASE_DURATION_S,
    ) -> list[Lease]:
        """Lease items that need labels to this rater, who then holds no others of this queue.

        What the rater holds already comes first, in the order in which it was claimed, so that the
        displayed item stays. Of the rest nobody holds more than an equal share: where others work
        on the queue too, or wait for an item, the last ones are released.

        Parameters
        ----------
        queue, rater : str
        candidates : sequence of ((run, item), room)
            In the order of the queue; room counts the raters that the item still needs, this one
            included.
        max_items : int, at least 1
            Most items to lease.
        first_item : (run, item), optional
            Comes before all others, whoever else holds it, if it is among ``candidates``.
        lease_s : float, seconds

        Returns
        -------
        list of Lease
            Empty where others hold whatever is left; the rater then counts as waiting.
        """
        now = time.time()
        with transaction(self._connection, "The leases of labels") as connection:
            # one that ends later than any made now was made before the clock was set back
            latest = now + max(lease_s, LEASE_DURATION_S) + 1
            connection.execute("DELETE FROM leases WHERE NOT until BETWEEN ? AND ?", (now, latest))
            rows = connection.execute(
                "SELECT run, item, rater FROM leases WHERE queue = ? ORDER BY rowid", (queue,)
            ).fetchall()
            n_holders_by_item = Counter(
                (run, item) for run, item, holder in rows if holder != rater
            )
            rater_items = [(run, item) for run, item, holder in rows if holder == rater]
            free_items = [key for key, n_needed in candidates if n_holders_by_item[key] < n_needed]
            n_needed_by_item = dict(candidates)
            ordered_items = dict.fromkeys(
                [*([first_item] if first_item else []), *rater_items, *free_items]
            )
            selected_items = [key for key in ordered_items if key in n_needed_by_item]
            max_items_per_rater = -(
                -len(selected_items) // len({rater, *(holder for _, _, holder in rows)})
            )
            granted_items = selected_items[: min(max_items, max_items_per_rater)]
            expires_at = now + lease_s
            connection.execute("DELETE FROM leases WHERE queue = ? AND rater = ?", (queue, rater))
            connection.executemany(
                "INSERT INTO leases VALUES (?, ?, ?, ?, ?)",
                [
                    (queue, *key, rater, expires_at)
                    for key in granted_items or [_WAITING_ITEM] * bool(candidates)
                ],
            )
            return [Lease(*key, expires_at) for key in granted_items]

    def release(self, queue: str, run: str, item: str, rater: str) -> None:
        """Release an item."""
        with transaction(self._connection, "The leases of labels") as connection:
            connection.execute(_DELETE_LEASE_SQL, (queue, run, item, rater))

    def skip(self, queue: str, run: str, item: str, rater: str) -> None:
        """Leave an item for later: release it and put it behind those skipped before."""
        key = (queue, run, item, rater)
        with transaction(self._connection, "The leases of labels") as connection:
            connection.execute(
                "INSERT OR REPLACE INTO skips VALUES (?, ?, ?, ?, ?)", (*key, time.time())
            )
            connection.execute(_DELETE_LEASE_SQL, key)

    def has_lease(self, rater: str) -> bool:
        """Return whether a rater of this name holds an item now, in any queue."""
        row = self._connection.execute(
            "SELECT 1 FROM leases WHERE rater = ? AND until > ? AND item <> ''",
            (rater, time.time()),
        ).fetchone()
        return row is not None

    def skipped_items(self, queue: str, rater: str) -> list[ItemKey]:
        """Return what a rater skipped in a queue, longest ago first."""
        rows = self._connection.execute(
            "SELECT run, item FROM skips WHERE queue = ? AND rater = ? ORDER BY at, run, item",
            (queue, rater),
        ).fetchall()
        return [(run, item) for run, item in rows]
