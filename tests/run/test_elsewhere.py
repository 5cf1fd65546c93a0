"""A run in another PID namespace, as in another container: seen from here it is alive, is not
resumed, and can be stopped."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from cotlab.core.errors import ConfigError
from cotlab.core.requests import Complete, Message
from cotlab.core.types import ModelRef
from cotlab.run import launch
from cotlab.store.database import Store
from cotlab.store.live import LiveRun, LiveRunStore
from cotlab.store.responses import CallReservation, ResponseLog
from tests.support.running import own_suite, row

INSIDE = 'echo "$0" > /proc/sys/kernel/ns_last_pid; "$@" & wait $!'
"""A shell's script: run a command under the process number after ``$0``."""
UNSHARE = ("unshare", "--fork", "--kill-child", "--pid", "--mount-proc")


@pytest.fixture(scope="module", autouse=True)
def namespaces() -> None:
    try:
        tried = subprocess.run(
            [*UNSHARE, "sh", "-c", INSIDE, "4000", "true"], capture_output=True, timeout=30
        )
    except FileNotFoundError:
        pytest.skip("there is no unshare(1) here")
    if tried.returncode != 0:
        pytest.skip(f"a PID namespace cannot be made here: {tried.stderr.decode().strip()}")


@contextmanager
def elsewhere(folder: Path, number: int, latency_s: float) -> Iterator[subprocess.Popen[str]]:
    """Run ``cotlab run --run-id r`` under a process number in a PID namespace of its own."""
    words = (
        *own_suite(folder),
        "--provider",
        "echo",
        "--model",
        f"latency_s={latency_s}",
        "--mode",
        "remove",
    )
    command = [
        sys.executable,
        "-m",
        "cotlab",
        "run",
        *words,
        "--max-concurrent",
        "2",
        "--run-id",
        "r",
    ]
    with subprocess.Popen(
        [*UNSHARE, "sh", "-c", INSIDE, str(number - 1), *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "COTLAB_STORE": str(folder)},
    ) as process:
        try:
            yield process
        finally:
            process.kill()  # and with it everything in the namespace


def call_in_flight(process: subprocess.Popen[str], folder: Path) -> str:
    """The key of a request that the run has sent and that has no reply so far."""
    for _ in range(1200):
        assert process.poll() is None, process.communicate()[0]
        if (folder / "log.sqlite").exists():
            with closing(sqlite3.connect(folder / "log.sqlite", timeout=30)) as log:
                try:
                    found = log.execute("SELECT key FROM calls WHERE outcome IS NULL").fetchone()
                except sqlite3.OperationalError:  # made this moment, without its tables so far
                    found = None
            if found:
                return str(found[0])
        time.sleep(0.05)
    raise AssertionError("the run sent nothing within a minute")


def live(folder: Path) -> LiveRun:
    state = LiveRunStore(folder / "log.sqlite")
    try:
        found = state.get("r")
    finally:
        state.close()
    assert found is not None
    return found


def silent_for(folder: Path, seconds: float) -> None:
    """Set the run's last heartbeat back."""
    with closing(sqlite3.connect(folder / "log.sqlite", timeout=30, isolation_level=None)) as log:
        log.execute("UPDATE live SET heartbeat = heartbeat - ?", (seconds,))


@pytest.fixture
def nobody() -> int:
    """A process number that nothing has here."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    return ended.pid


def test_a_run_in_another_namespace_is_alive_and_is_not_resumed_beside_it(
    tmp_path: Path, nobody: int
) -> None:
    with elsewhere(tmp_path, nobody, latency_s=5) as process:
        key = call_in_flight(process, tmp_path)
        assert live(tmp_path).pid == nobody and live(tmp_path).is_running
        with pytest.raises(
            ConfigError,
            match=rf"going, in process {nobody} on {os.uname().nodename}: .* resumed in (59|60) s",
        ):
            launch.resume_run("r", {}, Store(tmp_path))
        log = ResponseLog(tmp_path / "log.sqlite")
        asked = Complete(ModelRef("echo", "m"), (Message("user", "?"),))
        object.__setattr__(asked, "_key", key)
        assert log.reserve(asked, "another", 1, 9) == CallReservation(
            is_in_flight=True
        )  # the request is not sent a second time
        log.close()


@pytest.mark.soak
def test_a_run_that_was_killed_elsewhere_is_resumed_once_it_has_been_silent(
    tmp_path: Path, nobody: int
) -> None:
    with elsewhere(tmp_path, nobody, latency_s=0.2) as process:
        call_in_flight(process, tmp_path)
        process.kill()
        process.communicate()
    with pytest.raises(
        ConfigError, match="still going"
    ):  # nobody can know from here that it is not
        launch.resume_run("r", {}, Store(tmp_path))
    silent_for(tmp_path, 61)
    assert not live(tmp_path).is_running
    assert launch.resume_run("r", {}, Store(tmp_path)).status == "done"


def test_a_stop_reaches_the_run_elsewhere_and_no_process_of_that_number_here(
    tmp_path: Path,
) -> None:
    bystander = subprocess.Popen(["sleep", "60"])
    try:
        with elsewhere(tmp_path, bystander.pid, latency_s=0.5) as process:
            call_in_flight(process, tmp_path)
            assert live(tmp_path).pid == bystander.pid
            state = LiveRunStore(tmp_path / "log.sqlite")
            assert state.request_stop("r") is True
            state.close()
            out, _ = process.communicate(timeout=600)
            assert row(tmp_path, "r")["status"] == "stopped", out
        assert bystander.poll() is None
    finally:
        bystander.send_signal(signal.SIGKILL)
        bystander.wait()
