"""10,000 requests at 50 in flight through each vendor's SDK, against a loopback server that speaks
its protocol.

The whole way of a run is on: programs, response log, limits, budget, journal, scores, store. Two
clocks are told: the whole run, and the asking (first reservation to last reply, as the log dates
them). Ideal is requests × latency / concurrency. CPU is this process's, imports and reports
included; memory is its resident size when a fifth and when all was answered. Usage: ``python
benchmarks/load.py [latency_s] [items]``: 0.5 and 1,667 items of five steps by default.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from contextlib import closing
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1]))
from cotlab.core.types import Item, Step, Suite
from cotlab.run.config import read_config
from cotlab.run.launch import start_run
from cotlab.store.database import Store
from cotlab.store.live import RunProgress
from tests.support.loopback import Loopback, serving

STEPS, CONCURRENCY = 5, 50
MODELS = {
    "openai": "gpt-4o-mini",
    "anthropic": "claude-sonnet-4-5",
    "google": "gemini-2.0-flash",
    "openai_compat": "m",
}


def make_suite(n: int) -> Suite:
    return Suite.from_items(
        "load",
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


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def measure(provider: str, server: Loopback, latency_s: float, items: int) -> str:
    base = server.root if provider in ("anthropic", "google") else server.base_url
    server.script(then={"text": "So the answer is 1."}, latency_s=latency_s, remember=False)
    config = read_config(
        {
            "provider": provider,
            "model": MODELS[provider],
            "base_url": base,
            "max_concurrent": CONCURRENCY,
            "max_requests_per_minute": 1_000_000,
            "max_tokens_per_minute": 10**9,
            "max_cost": 1000.0,
        }
    )
    total, sizes = items * (STEPS + 1), list[float]()

    def tell(progress: RunProgress) -> None:
        if len(sizes) < 5 and progress.replies >= total * (len(sizes) + 1) / 5:
            sizes.append(resident_mb())

    with TemporaryDirectory() as folder:
        store = Store(Path(folder))
        began, cpu = time.perf_counter(), time.process_time()
        done = start_run(config, store, suite=make_suite(items), on_progress=tell)
        whole_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu
        with closing(sqlite3.connect(store.log_path)) as log:
            first, last, n = log.execute(
                "SELECT (SELECT min(at) FROM calls), max(json_extract(response, '$.received_at')),"
                " count(*) FROM replies"
            ).fetchone()
    assert done.status == "done" and n == total == server.count(), (done, n, server.count())
    asking_s = (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()
    ideal_s = total * latency_s / CONCURRENCY
    return (
        f"{provider:14s} {total:8d} {ideal_s:8.1f} {asking_s:8.1f} {ideal_s / asking_s:13.3f}"
        f" {whole_s:8.1f} {ideal_s / whole_s:12.3f} {1000 * cpu_s / total:10.2f} {sizes[0]:10.0f}"
        f" {sizes[-1]:10.0f}"
    )


def main() -> None:
    latency_s = float(sys.argv[1]) if len(sys.argv) > 1 else 0.5
    items = int(sys.argv[2]) if len(sys.argv) > 2 else 1667
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"):
        os.environ[name] = "none"
    print(f"{latency_s} s latency, {CONCURRENCY} in flight, {STEPS} steps an item")
    print(
        "provider       requests  ideal s asking s  ideal/asking  whole s  ideal/whole  CPU ms a r."
        "  MB at 1/5   MB at end"
    )
    with serving() as server:
        for provider in MODELS:
            print(measure(provider, server, latency_s, items), flush=True)


if __name__ == "__main__":
    main()
