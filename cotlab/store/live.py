"""What a running process says of itself: progress, heartbeat, and the wish that it stops (same file as the log)."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from cotlab.store.responses import connect, is_alive

STALE_S = 10.0
"""Without a heartbeat for so long a run counts as interrupted."""
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


class LiveState:
    """Rows of live runs; written by the run's own process, read by pages and commands."""

    def __init__(self, path: Path) -> None:
        self._connection = connect(path)

    def close(self) -> None:
        self._connection.close()

    def beat(self, run: str, progress: Progress) -> bool:
        """Write ``progress``; returns whether somebody asked the run to stop."""
        self._connection.execute(
            "INSERT INTO live (run, pid, state, heartbeat) VALUES (?, ?, ?, ?) ON CONFLICT (run) DO UPDATE SET "
            "pid = excluded.pid, state = excluded.state, heartbeat = excluded.heartbeat",
            (run, os.getpid(), json.dumps(asdict(progress)), time.time()),
        )
        row = self._connection.execute("SELECT stop FROM live WHERE run = ?", (run,)).fetchone()
        return bool(row and row[0])

    def begin(self, run: str, progress: Progress) -> None:
        """Claim a run for this process and forget an earlier wish that it stops."""
        self.beat(run, progress)
        self._connection.execute("UPDATE live SET stop = 0 WHERE run = ?", (run,))

    def claim(self, run: str) -> int | None:
        """Take a run for this process before its model is loaded; the process that has it already, where one does.

        One transaction: of several processes that try at once, one gets it.
        """
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            row = self._connection.execute("SELECT pid, state, heartbeat FROM live WHERE run = ?", (run,)).fetchone()
            if row is not None and row[0] != os.getpid():
                pid, state, beat = row
                if _progress(state).status == "running" and time.time() - beat < LOADING_S and is_alive(pid):
                    return int(pid)
            self.begin(run, Progress(started_at=time.time()))
            return None
        finally:
            self._connection.execute("COMMIT")

    def ask_stop(self, run: str) -> bool:
        """Ask a living run to stop: a flag for its next heartbeat and a signal for now. False if it is not alive."""
        self._connection.execute("UPDATE live SET stop = 1 WHERE run = ?", (run,))
        live = self.get(run)
        if live is None or not live.alive:
            return False
        if live.pid != os.getpid():
            with suppress(ProcessLookupError):
                os.kill(live.pid, signal.SIGTERM)
        return True

    def get(self, run: str) -> LiveRun | None:
        found = self.all(run)
        return found[0] if found else None

    def all(self, run: str | None = None) -> list[LiveRun]:
        """Every run that ever beat, or one of them, the newest heartbeat first."""
        rows = self._connection.execute(
            "SELECT run, pid, state, stop, heartbeat FROM live WHERE ? IS NULL OR run = ? ORDER BY heartbeat DESC", (run, run)
        ).fetchall()
        now = time.time()
        return [
            LiveRun(
                name, pid, progress := _progress(state),
                progress.status == "running" and now - beat < STALE_S and is_alive(pid), bool(stop),
            )
            for name, pid, state, stop, beat in rows
        ]  # fmt: skip


def _progress(state: str) -> Progress:
    """What a run of any version told, as far as this one knows its fields."""
    told, known = json.loads(state), {f.name for f in fields(Progress)}
    return Progress(**{name: value for name, value in told.items() if name in known})
