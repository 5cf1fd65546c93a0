"""Step ablation through the runner against a loop that asks one request after the other.

The model is ``echo`` with 100 ms latency, so the ideal time is requests × latency / concurrency.
Two clocks are told: the whole run (suite, plan, scores, summary, reports) and the asking (first
reservation to last reply, as the response log dates them). Usage: ``python
benchmarks/ablation_vs_sequential.py``.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from contextlib import closing
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from cotlab.core.requests import Complete
from cotlab.core.types import Item, ModelRef, Step, Suite
from cotlab.providers.offline import Echo
from cotlab.run.config import read_config
from cotlab.run.launch import start_run
from cotlab.store.database import Store
from cotlab.text.prompts.chain import answer_prompt

LATENCY_S, STEPS = 0.1, 5
ITEMS = {1: 4, 10: 160, 50: 800}
"""Concurrency → items: some seconds of asking each. The loop is extrapolated from the requests of
the first."""


class Measured(NamedTuple):
    requests: int
    whole_s: float
    asking_s: float


def make_suite(n: int) -> Suite:
    return Suite.from_items(
        "bench",
        [
            Item(
                f"i{k}",
                f"What is {k}?",
                "1",
                tuple(Step(s, f"Step {s} of {k}.") for s in range(STEPS)),
            )
            for k in range(n)
        ],
    )


def measure(concurrency: int) -> Measured:
    """Run the ablation in a store of its own."""
    config = read_config(
        {"provider": "echo", "model": f"latency_s={LATENCY_S}", "max_concurrent": concurrency}
    )
    suite = make_suite(ITEMS[concurrency])
    with TemporaryDirectory() as folder:
        store = Store(Path(folder))
        began = time.perf_counter()
        done = start_run(config, store, suite=suite)
        whole_s = time.perf_counter() - began
        with closing(sqlite3.connect(store.log_path)) as log:
            first, last, n = log.execute(
                "SELECT (SELECT min(at) FROM calls), max(json_extract(response, '$.received_at')),"
                " count(*) FROM replies"
            ).fetchone()
    assert done.status == "done" and n == len(suite.items) * (STEPS + 1)
    return Measured(
        n, whole_s, (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()
    )


async def loop_s(items: int) -> float:
    """Seconds a request of a plain loop over one provider, one await after the other."""
    echo = Echo(ModelRef("echo", f"latency_s={LATENCY_S}"))
    began, n = time.perf_counter(), 0
    for item in make_suite(items).items:
        steps = [step.text for step in item.steps]
        for left_out in (None, *range(STEPS)):
            prompt = answer_prompt(
                item.question, [s for i, s in enumerate(steps) if i != left_out], "chat"
            )
            await echo.send(Complete(echo.ref, prompt.messages))
            n += 1
    return (time.perf_counter() - began) / n


def main() -> None:
    a_request_s = asyncio.run(loop_s(ITEMS[1]))
    print(
        f"echo, {LATENCY_S:.1f} s latency, {STEPS} steps an item; the loop takes {a_request_s:.4f}"
        " s a request"
    )
    print(
        "concurrency  requests  ideal s  whole s  ideal/whole  asking s  ideal/asking  loop s"
        " (extrapolated)  loop/whole"
    )
    for concurrency in ITEMS:
        requests, whole_s, asking_s = measure(concurrency)
        ideal_s, sequential_s = requests * LATENCY_S / concurrency, requests * a_request_s
        print(
            f"{concurrency:11d}  {requests:8d}  {ideal_s:7.2f}  {whole_s:7.2f} "
            f" {ideal_s / whole_s:11.3f}  {asking_s:8.2f}  {ideal_s / asking_s:12.3f} "
            f" {sequential_s:21.1f}  {sequential_s / whole_s:10.1f}"
        )


if __name__ == "__main__":
    main()
