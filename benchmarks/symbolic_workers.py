"""Symbolic checks by one worker and by a worker per core, in the same run.

Usage: python benchmarks/symbolic_workers.py [SUITE.jsonl]

Without a suite, systems of equations that are drawn at random, and a few expressions that do not
end. Prints elapsed seconds of both, their ratio, and how many verdicts differ (0 is expected; a
check near its limit of CPU time may).
"""

from __future__ import annotations

import os
import random
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from cotlab.core.errors import ProviderError
from cotlab.core.program import Params, Peers
from cotlab.core.requests import Entail, Response
from cotlab.core.types import ModelRef
from cotlab.metrics.verification.scorer import verification
from cotlab.providers.symbolic import Symbolic
from cotlab.suites.jsonl import load_suite

REF = ModelRef("symbolic", "arithmetic-and-units")
N_SYSTEMS, N_ENDLESS = 300, 4


def draw_checks(seed: int = 0) -> list[Entail]:
    """Return checks of linear and quadratic systems, and some that do not end."""
    rng = random.Random(seed)
    checks = []
    for _ in range(N_SYSTEMS):
        x, y, a, b = (rng.randint(2, 40) for _ in range(4))
        premise = f"{a}x + {b}y = {a * x + b * y}; x - y = {x - y}; z^2 = {x}^2 + {b}x"
        checks.append(Entail(REF, premise, f"x = {x + rng.randint(0, 1)}; y = {y}"))
    for k in range(N_ENDLESS):
        endless = Entail(REF, "", f"(a + b + c + d + f)^{{9{k}}} = (a + b + c + d)^{{9{k}}}")
        checks.insert(k * N_SYSTEMS // N_ENDLESS, endless)
    return checks


def suite_checks(path: Path) -> list[Entail]:
    """Return the symbolic checks that the scorer verification requests on the chains of a suite."""
    suite = load_suite(path)
    params = Params(
        {"subject": ModelRef("echo", "echo"), "symbolic": REF}, options=verification.options
    )
    checks: dict[str, Entail] = {}
    for item in suite.items:
        requests = next(verification(item, params, Peers((item,))), ())
        checks |= {r.key: r for r in requests if isinstance(r, Entail)}
    return list(checks.values())


def time_checks(checks: Sequence[Entail], n_workers: int) -> tuple[float, float, list[str]]:
    """Return elapsed seconds after the start of the workers, all CPU seconds, and verdicts."""
    cpu_s_before = _children_cpu_s()
    provider = Symbolic(REF, n_workers=n_workers)
    provider.send_batch([Entail(REF, "", "1 + 1 = 2")])
    began = time.perf_counter()
    replies = provider.send_batch(checks)
    elapsed_s = time.perf_counter() - began
    provider._stop_pool()
    return elapsed_s, _children_cpu_s() - cpu_s_before, [_verdict_text(reply) for reply in replies]


def _children_cpu_s() -> float:
    """Return the CPU seconds of the processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _verdict_text(reply: Response | ProviderError) -> str:
    return str(reply.numbers) if isinstance(reply, Response) else str(reply)


def print_comparison(arguments: Sequence[str]) -> None:
    checks = suite_checks(Path(arguments[0])) if arguments else draw_checks()
    n_cores = len(os.sched_getaffinity(0))
    several_s, several_cpu_s, several = time_checks(checks, n_cores)
    one_s, one_cpu_s, one = time_checks(checks, 1)
    n_different = sum(a != b for a, b in zip(one, several, strict=True))
    n_late = sum("longer than" in verdict for verdict in several)
    print(f"{len(checks)} checks, {n_late} of them over their limit of CPU time")
    print(f"one worker: {one_s:.1f} s, {one_cpu_s:.1f} s of CPU time with the start")
    print(f"{n_cores} workers: {several_s:.1f} s, {several_cpu_s:.1f} s of CPU time with the start")
    print(f"ratio {one_s / several_s:.2f}; verdicts that differ: {n_different}")


if __name__ == "__main__":
    print_comparison(sys.argv[1:])
