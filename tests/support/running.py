"""The real command in its own process, and what a run left in its store."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd

from cotlab.store import read
from cotlab.store.database import Store

LOGPROB_METRICS = ("kl_divergence", "kl_nats", "total_variation", "topk_rest")
STEPS, REQUESTS = 3, 24
"""Of each item of ``own_suite``, and of a run that removes each step of its six items in turn."""


def own_suite(folder: Path, answer: str | None = "7") -> tuple[str, str]:
    """Six items of three steps in a file, as the flag that names it."""
    path = folder / "own.jsonl"
    steps = [{"index": i, "text": f"Part {i} is {i + 1}."} for i in range(STEPS)]
    items = [
        {
            "item_id": f"i{k}",
            "prompt": f"What is number {k}?",
            "reference_cot": steps,
            "ground_truth": answer,
        }
        for k in range(6)
    ]
    path.write_text("".join(json.dumps(item) + "\n" for item in items), "utf-8")
    return "--task-suite", str(path)


def start(folder: Path, *words: str, **environment: str) -> subprocess.Popen[str]:
    """``cotlab run`` with the store in ``folder``."""
    return subprocess.Popen(
        [sys.executable, "-m", "cotlab", "run", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COTLAB_STORE": str(folder), **environment},
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Exit code, stdout and stderr."""
    out, err = process.communicate(timeout=600)
    return process.returncode, out, err


def run(folder: Path, *words: str, **environment: str) -> tuple[int, str, str]:
    return finish(start(folder, *words, **environment))


def replies(folder: Path) -> int:
    """How many replies the response log holds; 0 before there is one."""
    path = folder / "log.sqlite"
    if not path.exists():
        return 0
    with closing(sqlite3.connect(path, timeout=30)) as log:
        try:
            return int(log.execute("SELECT count(*) FROM replies").fetchone()[0])
        except sqlite3.OperationalError:  # made this moment, without its tables so far
            return 0


def wait_for_replies(process: subprocess.Popen[str], folder: Path, at_least: int) -> None:
    while process.poll() is None and replies(folder) < at_least:
        time.sleep(0.005)


def kill_at_random(
    process: subprocess.Popen[str], folder: Path, chance: random.Random, replies_to_come: int
) -> None:
    """Kill −9 at any moment: before the first reply, between two, after the last."""
    if chance.random() < 0.3:
        time.sleep(chance.uniform(0, 2))
    else:
        wait_for_replies(
            process, folder, replies(folder) + chance.randint(1, max(1, replies_to_come))
        )
    process.kill()
    process.communicate()


def planned(folder: Path, run_id: str = "r") -> bool:
    """Whether the store knows the run, so that it is resumed and not started anew."""
    return (folder / "cotlab.duckdb").exists() and run_id in set(
        read.list_runs(Store(folder))["id"]
    )


def row(folder: Path, run_id: str) -> dict[str, Any]:
    return read.get_run(Store(folder), run_id)


def scores(folder: Path, run_id: str) -> pd.DataFrame:
    keys = ["metric", "item_id", "facet", "step", "sample"]
    frame = read.run_scores(Store(folder), run_id)
    assert not frame.duplicated(keys).any()
    return frame.sort_values(keys).reset_index(drop=True)


def assert_same_scores(
    one: pd.DataFrame, other: pd.DataFrame, logprobs_within: float = 0.0
) -> None:
    """Every column equal; the values of log-probability metrics within a tolerance."""
    numeric = one["metric"].isin(LOGPROB_METRICS)
    pd.testing.assert_frame_equal(one.drop(columns="value"), other.drop(columns="value"))
    pd.testing.assert_series_equal(one[~numeric]["value"], other[~numeric]["value"], rtol=0, atol=0)
    pd.testing.assert_series_equal(
        one[numeric]["value"], other[numeric]["value"], rtol=0, atol=logprobs_within
    )


def report(folder: Path, run_id: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(
        (folder / "reports" / run_id / "report.json").read_text("utf-8")
    )
    return told


def step_scores(folder: Path, run_id: str) -> dict[str, Any]:
    """What a reader of the report sees of each item, and the aggregate."""
    told = report(folder, run_id)
    return {
        "rrr": told["aggregate_rrr"],
        "items": sorted(told["items"], key=lambda item: item["item_id"]),
    }
