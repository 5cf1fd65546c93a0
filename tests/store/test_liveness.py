"""Who may still run, as far as the log tells: by process number where it counts, else by the
heartbeat."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cotlab.store import log as log_file
from cotlab.store.live import LOADING_TIMEOUT_S, REMOTE_STALE_AFTER_S, LiveRunStore, RunProgress
from cotlab.store.log import machine_id
from cotlab.store.responses import CallReservation, ResponseLog
from tests.support.store_worker import request

HOST, BOOT, NAMESPACE = machine_id().split("/", 2)
ELSEWHERE = {
    "another host": f"other/{BOOT}/{NAMESPACE}",
    "another boot": f"{HOST}/00000000-0000/{NAMESPACE}",
    "another namespace": f"{HOST}/{BOOT}/pid:[1]",
    "an older version": None,
}
RUNNING, DONE = '{"status": "running", "of_tomorrow": 1}', '{"status": "done"}'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.sqlite"


@pytest.fixture
def live(path: Path) -> Iterator[LiveRunStore]:
    state = LiveRunStore(path)
    yield state
    state.close()


@pytest.fixture
def rows(path: Path, live: LiveRunStore) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path, isolation_level=None)
    yield connection
    connection.close()


@pytest.fixture
def nobody() -> int:
    """A process number that nothing has here."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    return ended.pid


def write(
    rows: sqlite3.Connection,
    machine: str | None,
    pid: int,
    age_s: float,
    state: str = RUNNING,
    **more: float,
) -> None:
    silent_s = more.get("silent_s", REMOTE_STALE_AFTER_S)
    rows.execute(
        "INSERT OR REPLACE INTO live (run, pid, machine, state, heartbeat, silent_s) VALUES ('r',"
        " ?, ?, ?, ?, ?)",
        (pid, machine, state, time.time() - age_s, silent_s),
    )


def seen(live: LiveRunStore) -> tuple[bool, bool]:
    """Whether the run is alive, and whether it is free for this process."""
    told = live.get("r")
    assert told is not None
    return told.is_running, live.claim("r") is None


@pytest.mark.parametrize("machine", ELSEWHERE.values(), ids=ELSEWHERE)
@pytest.mark.parametrize(
    "own_number", [True, False]
)  # a number says nothing of a process elsewhere, nor does this one's own
def test_elsewhere_the_heartbeat_decides(
    live: LiveRunStore, rows: sqlite3.Connection, nobody: int, machine: str | None, own_number: bool
) -> None:
    pid = os.getpid() if own_number else nobody
    moments = {
        0: (True, False),
        8: (True, False),
        12: (False, False),
        58: (False, False),
        62: (False, True),
    }
    for age_s, expected in moments.items():
        write(rows, machine, pid, age_s)
        assert seen(live) == expected, age_s
    write(rows, machine, pid, 0, DONE)
    assert seen(live) == (False, True)


def test_elsewhere_a_model_may_load_for_minutes_and_a_clock_that_was_set_back_holds_nothing(
    live: LiveRunStore, rows: sqlite3.Connection, nobody: int
) -> None:
    for age_s, free in {300: False, LOADING_TIMEOUT_S + 2: True, -3600: True}.items():
        write(rows, ELSEWHERE["another host"], nobody, age_s, silent_s=LOADING_TIMEOUT_S)
        assert seen(live) == (False, free)


def test_here_the_number_decides(live: LiveRunStore, rows: sqlite3.Connection, nobody: int) -> None:
    write(rows, machine_id(), nobody, 0)
    assert seen(live) == (False, True)  # at once, without a wait for its heartbeat to grow old
    write(rows, machine_id(), os.getppid(), 0)
    assert seen(live) == (True, False)
    write(rows, machine_id(), os.getppid(), REMOTE_STALE_AFTER_S + 1)
    assert seen(live) == (False, False)  # it stands still, but it is there
    write(rows, machine_id(), os.getpid(), 0)
    assert seen(live) == (True, True)  # this process's own


def test_a_claim_that_is_given_up_is_free_everywhere(
    path: Path, live: LiveRunStore, rows: sqlite3.Connection
) -> None:
    assert live.claim("r") is None and live.get("r").free_in_s > REMOTE_STALE_AFTER_S  # type: ignore[union-attr]
    live.release("r")
    told = live.get("r")
    assert told is not None and not told.is_running and told.free_in_s == 0
    rows.execute("UPDATE live SET machine = 'other/b/n'")
    assert seen(live) == (False, True)
    live.begin_run("r", RunProgress())
    rows.execute("UPDATE live SET machine = 'other/b/n'")
    live.release("r")  # of another process: nothing happens
    assert seen(live) == (True, False)


@pytest.mark.parametrize("machine", ELSEWHERE.values(), ids=ELSEWHERE)
def test_a_call_in_flight_elsewhere_is_waited_for_while_its_run_beats(
    path: Path, rows: sqlite3.Connection, nobody: int, machine: str | None
) -> None:
    log = ResponseLog(path)
    call = log.reserve(request("a"), "r", 1, 9).call_id
    rows.execute("UPDATE calls SET pid = ?, machine = ? WHERE id = ?", (nobody, machine, call))
    waited = CallReservation(is_in_flight=True)
    # without any heartbeat: it was just sent
    assert log.reserve(request("a"), "another", 1, 9) == waited
    write(rows, machine, nobody, 5)
    assert log.reserve(request("a"), "another", 1, 9) == waited
    for there, pid, age_s in ((machine, nobody, 40), (machine_id(), os.getpid(), 0)):
        write(rows, there, pid, age_s)  # silent, or moved on to this process
        taken = log.reserve(request("a"), "another", 1, 9).call_id
        assert taken is not None
        log.settle(taken, 0, "x")
    log.close()


def test_an_older_log_is_migrated_and_its_running_run_is_seen(path: Path, nobody: int) -> None:
    old = sqlite3.connect(path, isolation_level=None)
    for step in log_file.SCHEMA_STEPS[:4]:
        for statement in step:
            old.execute(statement)
    beat = (
        "INSERT INTO live (run, pid, state, heartbeat) VALUES ('r', ?, ?, ?) ON CONFLICT (run) DO"
        " UPDATE SET "
    )
    beat += "pid = excluded.pid, state = excluded.state, heartbeat = excluded.heartbeat"
    old.execute(beat, (nobody, RUNNING, time.time() - 1))
    old.execute(
        "INSERT INTO calls (key, run, pid, reserved, at) VALUES (?, 'r', ?, 5, '')",
        (request("a").key, nobody),
    )
    old.execute("INSERT INTO spends (run, paid, reserved) VALUES ('r', 0, 5)")
    old.execute("PRAGMA user_version = 4")
    log, live = ResponseLog(path), LiveRunStore(path)
    assert log.get_spend("r") == (0, 5)
    assert seen(live) == (True, False)  # where its process runs is not known
    assert log.reserve(request("a"), "another", 1, 9) == CallReservation(is_in_flight=True)
    old.execute(
        beat, (nobody, RUNNING, time.time() - REMOTE_STALE_AFTER_S - 1)
    )  # a process of the older version writes as it did
    assert seen(live) == (False, True)
    old.close()
    log.close()
    live.close()


def test_the_time_left_is_unknown_without_replies_and_with_more_than_expected() -> None:
    progress = RunProgress(expected=100)
    for replies, n_replies, told in ((40, 20, (2, 30)), (40, 0, (0, None)), (101, 20, (2, None))):
        progress.replies = replies
        progress.estimate_time_left(n_replies, 10.0)
        assert (progress.rate, progress.eta_s) == told
