"""Money under attack: whatever the prices, latencies, time-outs, kills and concurrency, the bill
never passes the cap."""

from __future__ import annotations

import json
import random
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.support.forked import Forking, printed
from tests.support.loopback import Loopback
from tests.support.params import soak
from tests.support.running import planned

PROVIDERS = {
    "openai": "gpt-4o-mini",
    "anthropic": "claude-sonnet-4-5",
    "google": "gemini-2.0-flash",
    "openai_compat": "m",
}


def quick(*providers: str) -> list[Any]:
    """All providers as parameters: these for every test run, the others for the long one."""
    return [p if p in providers else soak(p) for p in PROVIDERS]


def small_suite(folder: Path, items: int = 4, steps: int = 3) -> str:
    path = folder / "suite.jsonl"
    chain = [{"index": i, "text": f"Part {i} is {i + 1}."} for i in range(steps)]
    common = {"reference_cot": chain, "ground_truth": "7"}
    rows = [{"item_id": f"i{k}", "prompt": f"What is number {k}?", **common} for k in range(items)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return str(path)


def attack(seed: int, folder: Path, runs: Forking, server: Loopback) -> None:
    chance = random.Random(seed)
    price_in, price_out = (
        round(chance.choice((0, chance.uniform(0.01, 200))), 3) for _ in range(2)
    )
    provider = chance.choice(list(PROVIDERS))
    server.script(
        then={"text": "So the answer is 7."},
        latency_s=chance.uniform(0, 0.05),
        jitter_s=chance.choice((0, 0.1)),
        usage="random",
        prices={"in": str(price_in), "out": str(price_out)},
        bill_errors=True,
        storm={
            "seed": seed,
            "share": chance.choice((0, 0.2, 0.6)),
            "slow_s": 0.4,
            "retry_after_s": 0.02,
            "kinds": ["429", "500", "529", "502", "cut", "reset", "malformed", "shape", "slow"],
        },
    )
    prices = folder / "prices.yaml"
    prices.write_text(
        f"{PROVIDERS[provider]}: {{input: {price_in}, output: {price_out}, cached: {price_in}}}\n"
    )
    cap = chance.uniform(0, 1) ** 3 * 16 * (700 * price_in + 80 * price_out) / 1e6
    words = (
        "--task-suite",
        small_suite(folder),
        "--provider",
        provider,
        "--model",
        PROVIDERS[provider],
        "--base-url",
        server.root if provider in ("anthropic", "google") else server.base_url,
        "--prices",
        str(prices),
        "--max-cost",
        f"{cap:.9f}",
        "--max-concurrent",
        str(chance.choice((1, 3, 20))),
        "--timeout-s",
        str(chance.choice((0.15, 5))),
        "--max-requests-per-minute",
        "100000",
        "--max-tries",
        str(chance.choice((2, 8))),
        "--run-id",
        "r",
    )
    store = folder / "store"
    for _ in range(chance.choice((0, 1, 2))):
        pid = runs.start(store, *(("--resume", "r") if planned(store) else words))
        time.sleep(chance.uniform(0.05, 0.8))
        runs.kill(pid)
        assert server.spend() <= Fraction(round(cap * 1e6)), "after a kill"
    code = runs.run(store, *(("--resume", "r") if planned(store) else words))
    assert code in (0, 3, 4), printed(store)
    assert "Traceback" not in printed(store), printed(store)
    assert server.spend() <= Fraction(round(cap * 1e6)), (seed, float(server.spend()), cap * 1e6)
    report = json.loads((store / "reports" / "r" / "report.json").read_text())
    assert server.spend() <= Fraction(str(report["spent_usd"])) * 10**6 + Fraction(1, 1000), (
        "more was billed than we count"
    )


@pytest.mark.parametrize("seed", range(1))
def test_the_bill_never_passes_the_cap(
    seed: int, tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    attack(seed, tmp_path, runs, server)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1, 203))
def test_the_bill_never_passes_the_cap_in_200_attacks(
    seed: int, tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    attack(seed, tmp_path, runs, server)
