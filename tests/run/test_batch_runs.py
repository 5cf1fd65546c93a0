"""``--batch`` through the real command: one batch for what can be asked at once, picked up again
after a kill −9."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pytest

from tests.run.test_attack import small_suite
from tests.run.test_storm import ANSWERS, words_for
from tests.support.forked import Forking, printed
from tests.support.loopback import Loopback
from tests.support.params import soak
from tests.support.running import assert_same_scores, planned, report, scores

ITEMS, ONE_ROUND = 6, 6 * 7
"""Three steps in two modes and the whole chain: seven requests an item, all of them in the first
round."""


def batches(folder: Path) -> list[int]:
    """How many requests each batch held that was handed in."""
    lines = [
        json.loads(line) for line in (folder / "reports" / "r" / "run.log").read_text().splitlines()
    ]
    return [line["requests"] for line in lines if line["event"] == "batch submitted"]


@pytest.mark.parametrize("provider", ["openai", soak("anthropic")])
def test_a_round_is_one_batch_and_only_what_failed_is_asked_again(
    provider: str, tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    words = words_for(provider, server, small_suite(tmp_path, ITEMS))
    server.script(answers=ANSWERS)
    assert runs.run(tmp_path / "plain", *words) == 0, printed(tmp_path / "plain")
    server.script(answers=ANSWERS, batch_s=0.1, batch_errors=0.3)
    assert runs.run(tmp_path / "batch", *words, "--batch") == 0, printed(tmp_path / "batch")
    held = batches(tmp_path / "batch")
    assert held[0] == ONE_ROUND and all(
        later <= before for before, later in zip(held, held[1:], strict=False)
    )
    assert sum(held) == server.count() == report(tmp_path / "batch", "r")["requests"]["asked"]
    assert_same_scores(scores(tmp_path / "batch", "r"), scores(tmp_path / "plain", "r"))


def test_what_follows_from_replies_is_the_next_batch(
    tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    """The model's own chain of two steps, then three requests an item."""
    chain = "Step 1: 3 + 4 = 7.\nStep 2: 7 + 0 = 7.\nSo the answer is 7."
    server.script(answers={"one numbered step": chain, "": "So the answer is 7."}, batch_s=0.1)
    words = words_for("openai", server, small_suite(tmp_path, ITEMS))
    words = tuple(word for word in words if word not in ("--mode", "filler", "remove"))
    assert runs.run(tmp_path / "s", *words, "--batch", "--chain", "own") == 0, printed(
        tmp_path / "s"
    )
    assert batches(tmp_path / "s") == [ITEMS, 3 * ITEMS]


def kill_and_resume(
    provider: str, kills: int, folder: Path, runs: Forking, server: Loopback
) -> None:
    chance, store = random.Random(), folder / "killed"
    words = (*words_for(provider, server, small_suite(folder, ITEMS)), "--batch")
    server.script(answers=ANSWERS, batch_s=1.0, latency_s=0.02)
    for _ in range(kills):
        pid = runs.start(store, *(("--resume", "r") if planned(store) else words))
        time.sleep(chance.uniform(0.2, 1.0))
        runs.kill(pid)
    assert runs.run(store, *(("--resume", "r") if planned(store) else words)) == 0, printed(store)
    events = [
        json.loads(line) for line in (store / "reports" / "r" / "run.log").read_text().splitlines()
    ]
    lost = sum(
        e["requests"] for e in events if e["event"] == "batch found again" and "vendor_id" not in e
    )
    assert server.count() <= ONE_ROUND + lost
    assert (
        provider == "anthropic" or server.count() == ONE_ROUND
    )  # found by name, whenever the kill came
    assert scores(store, "r")["status"].eq("ok").all()


@pytest.mark.soak
def test_batches_outlive_their_process(tmp_path: Path, runs: Forking, server: Loopback) -> None:
    kill_and_resume("openai", 2, tmp_path, runs, server)


@pytest.mark.soak
@pytest.mark.parametrize("attempt", range(15))
def test_batches_outlive_many_kills(
    attempt: int, tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    kill_and_resume(("openai", "anthropic")[attempt % 2], 4, tmp_path, runs, server)


def test_a_provider_without_batches_says_so(
    tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    assert (
        runs.run(tmp_path / "s", *words_for("google", server, small_suite(tmp_path)), "--batch")
        == 2
    )
    assert "google/gemini-2.0-flash has no batch interface" in printed(tmp_path / "s")
