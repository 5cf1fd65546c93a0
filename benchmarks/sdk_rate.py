"""Requests a second of a run over those of the bare openai client, in the same process and minute.

``python benchmarks/sdk_rate.py [--concurrency 50 100] [--items N] [--rounds N] [--latency S]`` asks
the loopback server, which answers after so many seconds (vendors take .5 and more), in turn by the
client alone and by a run of ablation: its asking, from the first reservation to the last reply, as
the response log dates them. Beside the rates it prints the processor time of this process a
request, of a run the imports, scores and reports included, and the ratio of the rates: the target
is .75. A run has at most 256 in flight.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sqlite3
import statistics
import time
from contextlib import closing
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from load import STEPS, make_suite  # beside this script; it puts the root in the path

from cotlab.core.types import Suite
from cotlab.run.config import read_config
from cotlab.run.launch import start_run
from cotlab.store.database import Store
from tests.support.loopback import Loopback, serving

TARGET = 0.75
REPLY = {"text": "So the answer is 1."}


async def ask_bare(base_url: str, n_requests: int, concurrency: int) -> None:
    """Send requests by the client alone, so many at a time."""
    import openai

    async with openai.AsyncOpenAI(
        base_url=base_url,
        api_key="none",
        max_retries=0,
        http_client=openai.DefaultAioHttpClient(),
    ) as client:
        numbers = iter(range(n_requests))

        async def ask() -> None:
            for k in numbers:
                await client.chat.completions.create(
                    model="m",
                    max_tokens=256,
                    messages=[{"role": "user", "content": f"What is {k}? Step 1 of it."}],
                )

        await asyncio.gather(*(ask() for _ in range(concurrency)))


def bare_rate(
    server: Loopback, n_requests: int, concurrency: int, latency_s: float
) -> tuple[float, float]:
    """Return requests a second and processor milliseconds a request of the client alone."""
    server.script(then=REPLY, latency_s=latency_s, remember=False)
    began, cpu = time.perf_counter(), time.process_time()
    asyncio.run(ask_bare(server.base_url, n_requests, concurrency))
    seconds, cpu_s = time.perf_counter() - began, time.process_time() - cpu
    return n_requests / seconds, 1000 * cpu_s / n_requests


def run_rate(
    server: Loopback, suite: Suite, concurrency: int, latency_s: float
) -> tuple[float, float]:
    """Return the same of a run."""
    server.script(then=REPLY, latency_s=latency_s, remember=False)
    config = read_config(
        {
            "provider": "openai_compat",
            "model": "m",
            "base_url": server.base_url,
            "max_concurrent": concurrency,
            "max_requests_per_minute": 10_000_000,
            "max_tokens_per_minute": 10**9,
            "max_cost": 1000.0,
        }
    )
    with TemporaryDirectory() as folder:
        store = Store(Path(folder))
        cpu = time.process_time()
        done = start_run(config, store, suite=suite)
        cpu_s = time.process_time() - cpu
        with closing(sqlite3.connect(store.log_path)) as log:
            first, last, n = log.execute(
                "SELECT (SELECT min(at) FROM calls), max(json_extract(response, '$.received_at')),"
                " count(*) FROM replies"
            ).fetchone()
    assert done.status == "done", done
    seconds = (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()
    return n / seconds, 1000 * cpu_s / n


def main() -> None:
    """Print a row a concurrency."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[50, 100])
    parser.add_argument("--items", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--latency", type=float, default=0.02)
    options = parser.parse_args()
    os.environ["OPENAI_API_KEY"] = "none"
    suite = make_suite(options.items)
    n_requests = options.items * (STEPS + 1)
    print(
        "| in flight | client alone | its CPU | run | its CPU | run / client | of CPU |\n"
        "|---|---|---|---|---|---|---|"
    )
    with serving() as server:
        bare_rate(server, 50, 10, 0.02)  # imports and connections
        for concurrency in options.concurrency:
            pairs = [
                (
                    bare_rate(server, n_requests, concurrency, options.latency),
                    run_rate(server, suite, concurrency, options.latency),
                )
                for _ in range(options.rounds)
            ]
            bare_s, bare_ms, run_s, run_ms = (
                statistics.median(pair[side][part] for pair in pairs)
                for side, part in ((0, 0), (0, 1), (1, 0), (1, 1))
            )
            ratio = statistics.median(run[0] / bare[0] for bare, run in pairs)
            print(
                f"| {concurrency} | {bare_s:.0f}/s | {bare_ms:.2f} ms | {run_s:.0f}/s |"
                f" {run_ms:.2f} ms | {ratio:.2f} | {bare_ms / run_ms:.2f} |",
                flush=True,
            )
    print(f"target: {TARGET}")


if __name__ == "__main__":
    main()
