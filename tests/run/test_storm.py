"""Servers that fail: a storm of errors, and kills −9, end with the scores of a quiet run."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from tests.run.test_attack import PROVIDERS, small_suite
from tests.support.command import override
from tests.support.forked import Forking, printed
from tests.support.loopback import Loopback
from tests.support.running import assert_same_scores, planned, report, scores, step_scores

TRIES, MOST_429 = 10, 50
STORM = {
    "share": 0.3,
    # The fifth unreadable reply to one request rightly fails its item: without a bound it is chance
    # whether some request of a long run meets five.
    "most": 4,
    "slow_s": 0.8,
    "retry_after_s": 0.05,
    "kinds": ["429", "500", "529", "cut", "reset", "malformed", "shape", "slow"],
}
ANSWERS = {
    "Part 1 is 2.": "So the answer is 7.",
    "number 2": "So the answer is 7.",
    "": "So the answer is 8.",
}


def words_for(
    provider: str, server: Loopback, suite: str, concurrent: int = 10, timeout_s: str = "0.5"
) -> tuple[str, ...]:
    base = server.root if provider in ("anthropic", "google") else server.base_url
    return (
        "--task-suite",
        suite,
        "--provider",
        provider,
        "--model",
        PROVIDERS[provider],
        "--base-url",
        base,
        "--run-id",
        "r",
        "--max-requests-per-minute",
        "100000",
        "--max-cost",
        "1000",
        "--max-concurrent",
        str(concurrent),
        "--timeout-s",
        timeout_s,
        "--mode",
        "remove",
        "--mode",
        "filler",
    )


def weather(
    provider: str, items: int, folder: Path, runs: Forking, server: Loopback, *more: str
) -> None:
    """The same run in quiet and in a storm."""
    suite = small_suite(folder, items)
    server.script(answers=ANSWERS)
    assert runs.run(folder / "quiet", *words_for(provider, server, suite)) == 0, printed(
        folder / "quiet"
    )
    needed = server.count()
    server.script(answers=ANSWERS, storm={**STORM, "seed": items}, remember=False)
    words = override(words_for(provider, server, suite), *more)
    assert runs.run(folder / "storm", *words) == 0, printed(folder / "storm")
    assert server.count() > needed
    assert server.asked_most() <= TRIES + MOST_429
    told = report(folder / "storm", "r")
    assert told["status"] == "done" and told["items_done"] == items and told["error_scores"] == 0
    assert_same_scores(scores(folder / "storm", "r"), scores(folder / "quiet", "r"))


@pytest.mark.soak
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_long_storm_changes_no_score(
    provider: str, tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    weather(provider, 120, tmp_path, runs, server, "--timeout-s", "0.7")


def priced_storm(
    provider: str, folder: Path, runs: Forking, server: Loopback, kinds: list[str], timeout_s: str
) -> dict[str, Any]:
    """Return the cost that a run in a storm reports."""
    (folder / "prices.yaml").write_text(f"{PROVIDERS[provider]}: {{input: 0.137, output: 0.611}}")
    server.script(
        answers=ANSWERS,
        prices={"in": "0.137", "out": "0.611"},
        bill_errors=True,
        storm={**STORM, "seed": 5, "kinds": kinds},
        remember=False,
    )
    words = words_for(provider, server, small_suite(folder, 60), timeout_s=timeout_s)
    assert runs.run(folder, *words, "--prices", str(folder / "prices.yaml")) == 0, printed(folder)
    return dict(report(folder, "r")["cost"])


@pytest.mark.soak
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_long_storm_of_error_answers_costs_the_bill(
    provider: str, tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    kinds = ["429", "409", "500", "501", "503", "529"]
    cost = priced_storm(provider, tmp_path, runs, server, kinds, "30")
    assert cost["held_usd"] == 0, cost
    assert 0 <= round(cost["spent_usd"] * 1e6) - server.spend() < 1


@pytest.mark.soak
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_long_storm_of_lost_replies_costs_between_the_bill_and_the_cap(
    provider: str, tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    kinds = ["429", "500", "502", "524", "cut", "malformed", "shape", "reset", "slow"]
    cost = priced_storm(provider, tmp_path, runs, server, kinds, "0.5")
    assert 0 < cost["held_usd"] < cost["spent_usd"], cost
    assert server.spend() <= round(cost["spent_usd"] * 1e6) <= 1e9


def kill_and_resume(kills: int, items: int, folder: Path, runs: Forking, server: Loopback) -> None:
    """Kill −9 at random moments, resume each time: nothing paid for is asked again, and the report
    is that of a quiet run."""
    chance, concurrent, suite = random.Random(), 8, small_suite(folder, items)
    # a request that timed out is asked again: on a busy machine that would count as a kill's loss
    patient = "60"
    words = words_for("openai_compat", server, suite, concurrent, patient)
    server.script(answers=ANSWERS)
    assert runs.run(folder / "quiet", *words) == 0, printed(folder / "quiet")
    needed = server.count()
    server.script(answers=ANSWERS, latency_s=0.05)
    store = folder / "killed"

    def go_on() -> int:
        return runs.start(store, *(("--resume", "r") if planned(store) else words))

    for _ in range(kills):
        pid, seen = go_on(), server.count()
        more = chance.randint(0, max(1, 2 * needed // kills))
        until = time.monotonic() + 2
        while server.count() < seen + more and time.monotonic() < until:
            time.sleep(0.002)
        time.sleep(chance.uniform(0, 0.1))
        runs.kill(pid)
    assert runs.wait(go_on()) == 0, printed(store)
    assert needed <= server.count() <= needed + kills * concurrent
    assert_same_scores(scores(store, "r"), scores(folder / "quiet", "r"))
    assert step_scores(store, "r") == step_scores(folder / "quiet", "r")
    assert without_times(report(store, "r")) == without_times(report(folder / "quiet", "r"))
    assert report(store, "r")["requests"]["asked"] <= needed + kills * concurrent


def without_times(told: dict[str, Any]) -> str:
    """A report without what a second run must have otherwise: its time, its folder's counts and
    money."""
    gone = ("run_timestamp", "requests", "cost", "spent_usd", "note", "items")
    return json.dumps({k: v for k, v in told.items() if k not in gone}, sort_keys=True)


@pytest.mark.soak
def test_a_run_that_is_killed_three_times(tmp_path: Path, runs: Forking, server: Loopback) -> None:
    kill_and_resume(3, 8, tmp_path, runs, server)


@pytest.mark.soak
def test_a_run_that_is_killed_fifty_times(tmp_path: Path, runs: Forking, server: Loopback) -> None:
    kill_and_resume(50, 80, tmp_path, runs, server)
