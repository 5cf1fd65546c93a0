"""Runs that are killed, stopped, resumed or run side by side end with the scores of an unbroken
run, and ask nothing twice."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cotlab.analysis.report import report_run
from cotlab.core.errors import ConfigError
from cotlab.run import launch
from cotlab.run.config import read_config
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.store.live import LiveRunStore
from tests.support.params import soak
from tests.support.running import (
    assert_same_scores,
    finish,
    kill_at_random,
    planned,
    replies,
    report,
    row,
    scores,
    start,
    step_scores,
    wait_for_replies,
)

SIX = {"task_suite": "wordproblems", "limit": 6}
SLOW_ECHO = {
    **SIX,
    "provider": "echo",
    "model": "latency_s=0.05",
    "max_concurrent": 4,
    "mode": ["remove", "filler"],
}
ORGANISM = {**SIX, "provider": "organism", "model": "faithful-a", "mode": ["remove"]}


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both runs without a break, made in this process."""
    folder = tmp_path_factory.mktemp("unbroken")
    for name, words in (("echo", SLOW_ECHO), ("organism", ORGANISM)):
        store = Store(folder)
        report_run(store, launch.start_run(read_config(words), store, run_id=name))
    return folder


def flags(settings: dict[str, Any]) -> Iterator[str]:
    for name, value in settings.items():
        for one in value if isinstance(value, list) else [value]:
            yield f"--{name.replace('_', '-')}={one}"


def needed(unbroken: Path, name: str) -> int:
    return int(row(unbroken, name)["asked"])


def go_on(folder: Path, words: dict[str, Any]) -> subprocess.Popen[str]:
    """Resume the run; start it anew where it was killed before it had written down what it was to
    do."""
    return start(
        folder, *(("--resume", "r") if planned(folder) else (*flags(words), "--run-id", "r"))
    )


def break_and_resume(folder: Path, unbroken: Path, name: str, kills: int) -> None:
    """Kill a run ``kills`` times at random moments, let it come to its end, and compare it with the
    unbroken one."""
    words = SLOW_ECHO if name == "echo" else ORGANISM
    chance = random.Random()
    all_of_them = needed(unbroken, name)
    for kill in range(kills):
        kill_at_random(
            go_on(folder, words), folder, chance, (all_of_them - replies(folder)) // (kills - kill)
        )
    code, _, err = finish(go_on(folder, words))
    assert code == 0, err
    assert (
        all_of_them
        <= row(folder, "r")["asked"]
        <= all_of_them + kills * words.get("max_concurrent", 0)
    )
    assert replies(folder) == all_of_them
    assert_same_scores(scores(folder, "r"), scores(unbroken, name), 1e-4)
    if name == "echo":
        assert step_scores(folder, "r") == step_scores(unbroken, name)


@pytest.mark.soak
@pytest.mark.parametrize(("name", "kills"), [("echo", 2), soak("organism", 1)])
def test_a_killed_run_ends_as_if_it_had_not_been(
    tmp_path: Path, unbroken: Path, name: str, kills: int
) -> None:
    break_and_resume(tmp_path, unbroken, name, kills)


@pytest.mark.soak
@pytest.mark.parametrize("name", ["echo", "organism"])
@pytest.mark.parametrize("kills", [1, 2, 3, 7, 12])
def test_a_run_that_is_killed_again_and_again(
    tmp_path: Path, unbroken: Path, name: str, kills: int
) -> None:
    break_and_resume(tmp_path, unbroken, name, kills)


@pytest.mark.soak
def test_ctrl_c_ends_a_run_cleanly(tmp_path: Path, unbroken: Path) -> None:
    process = start(tmp_path, *flags(SLOW_ECHO), "--run-id", "r")
    wait_for_replies(process, tmp_path, 5)
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert code == 3
    assert "go on with: cotlab run --resume r" in err
    told = row(tmp_path, "r")
    assert told["status"] == report(tmp_path, "r")["status"] == "stopped"
    assert (
        told["asked"] == replies(tmp_path) < needed(unbroken, "echo")
    )  # what was sent came in, the rest was not sent
    for _ in range(2):  # the second time nothing is left to do
        store = Store(tmp_path)
        assert report_run(store, launch.resume_run("r", {}, store)).exit_code == 0
        assert row(tmp_path, "r")["asked"] == needed(unbroken, "echo")  # over all processes
        assert step_scores(tmp_path, "r") == step_scores(unbroken, "echo")


def alive(folder: Path, name: str) -> bool:
    live = LiveRunStore(folder / "log.sqlite")
    told = live.get(name)
    live.close()
    return told is not None and told.is_running


@pytest.mark.soak
def test_a_run_that_is_going_on_cannot_be_resumed(tmp_path: Path) -> None:
    process = start(tmp_path, *flags({**SLOW_ECHO, "model": "latency_s=2"}), "--run-id", "r")
    while process.poll() is None and not alive(tmp_path, "r"):
        time.sleep(0.01)
    with pytest.raises(ConfigError, match="still going"):
        launch.resume_run("r", {}, Store(tmp_path))
    process.kill()
    process.communicate()


@pytest.mark.soak
def test_two_runs_and_a_reader_share_a_store_and_ask_nothing_twice(
    tmp_path: Path, unbroken: Path
) -> None:
    both = {name: start(tmp_path, *flags(SLOW_ECHO), "--run-id", name) for name in ("one", "two")}
    store, seen = Store(tmp_path), set[int]()
    while any(process.poll() is None for process in both.values()):
        if (tmp_path / "cotlab.duckdb").exists():
            seen.add(len(read.run_scores(store, "one")))
        time.sleep(0.05)
    assert len(seen) > 1 and max(seen) == len(scores(unbroken, "echo"))
    for name, process in both.items():
        code, _, err = finish(process)
        assert code == 0, err
        assert_same_scores(scores(tmp_path, name), scores(unbroken, "echo"))
    assert (
        sum(row(tmp_path, name)["asked"] for name in both)
        == replies(tmp_path)
        == needed(unbroken, "echo")
    )
