"""A run shows the model the options that a suite holds only in ``choices``."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

from cotlab.store import read
from cotlab.store.database import Store
from cotlab.store.responses import ResponseLog
from tests.support.forked import Forking, printed
from tests.support.loopback import Loopback
from tests.support.running import scores

LINE = {
    "item_id": "i",
    "prompt": "Which of these is warm?",
    "reference_cot": [{"index": 0, "text": "Tea is made of hot water."}],
    "ground_truth": "tea",
    "choices": ["ice", "tea"],
}


def test_the_prompt_lists_the_options(tmp_path: Path, runs: Forking, server: Loopback) -> None:
    path = tmp_path / "suite.jsonl"
    path.write_text(json.dumps(LINE) + "\n", "utf-8")
    server.script(answers={"A) ice\nB) tea": "So the answer is B.", "": "I see no options."})
    words = ("--task-suite", str(path), "--provider", "openai_compat", "--model", "m")
    words += ("--base-url", server.base_url, "--run-id", "r", "--probe", "never")
    assert runs.run(tmp_path, *words, "--max-requests-per-minute", "1000") == 0, printed(tmp_path)
    table = scores(tmp_path, "r")
    assert table[table["metric"] == "baseline_correct"]["value"].tolist() == [1.0]
    store = Store(tmp_path)
    plan = read.plan_from_row(read.get_run(store, "r"))
    (item,) = read.get_suite(store, plan.suite_digest).items
    assert item.question == "Which of these is warm?\n\nA) ice\nB) tea"
    with closing(ResponseLog(store.log_path)) as log:
        keys = tuple(key for evidence in table["evidence"] for key in evidence)
        requests = [request for request, _ in log.load_exchanges(keys).values() if request]
    assert requests and all("B) tea" in request["messages"][0]["content"] for request in requests)
