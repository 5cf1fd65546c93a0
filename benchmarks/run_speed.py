"""Seconds from a configuration to a stored report, after imports: 300 items × (steps + 1) requests
on the organism r100.

Prints the run's time, and as the alternative in the same process the time to send the same requests
to the model one by one (a sample of them, scaled up).
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import scipy.stats  # noqa: F401 - imported here so that the run below does not pay for it
import statsmodels.stats.proportion  # noqa: F401
import transformers.models.llama.modeling_llama  # noqa: F401

from cotlab.analysis.report import report_run
from cotlab.core.program import Peers
from cotlab.core.types import ModelRef
from cotlab.metrics.ablation.scorer import step_ablation
from cotlab.providers.local.provider import open_organism
from cotlab.run.config import read_config
from cotlab.run.launch import load_configured_suite, start_run
from cotlab.run.plan import make_plan, params_of
from cotlab.store.database import Store

SAMPLE = 100


def main() -> None:
    config = read_config({"task_suite": "wordproblems"})
    model = open_organism(ModelRef("organism", "r100", form="continuation"))
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        store = Store(Path(folder))
        done = report_run(store, start_run(config, store))
        took = time.perf_counter() - began
    suite, _ = load_configured_suite(config)
    plan = make_plan(config, suite, {"subject": model.ref})
    params, peers = params_of(plan, plan.scorers[0]), Peers.from_suite(suite, plan.seed)
    requests = [
        request for item in suite.items for request in next(step_ablation(item, params, peers))
    ]
    began = time.perf_counter()
    for request in requests[:: len(requests) // SAMPLE]:
        model.send_batch([request])
    one_by_one = (
        (time.perf_counter() - began) / len(requests[:: len(requests) // SAMPLE]) * len(requests)
    )
    print(
        f"{done.report['requests']['asked']} requests generated, scored, stored and reported in"
        f" {took:.2f} s"
    )
    print(
        f"the same requests one by one, generation only: {one_by_one:.2f} s; ratio"
        f" {one_by_one / took:.1f}"
    )


if __name__ == "__main__":
    main()
