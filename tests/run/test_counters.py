"""What a run counts as a reply and as a query, and which model it is listed under."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import cotlab as package
from cotlab.store.database import Store
from cotlab.store.live import LiveRunStore, RunProgress
from tests.support.command import cotlab
from tests.support.loopback import serving

CHAINS = (
    '{"item_id": "a", "prompt": "Ann has 7 apples and buys 5. How many?", "ground_truth": null,'
    ' "reference_cot": [{"index": 0, "text": "7 + 5 = 12."},'
    ' {"index": 1, "text": "Let x = 2. Then 3x + x = 4x."}]}\n'
)


def progress_of(store: Path, run: str) -> RunProgress:
    with closing(LiveRunStore(Store(store).log_path)) as live:
        state = live.get(run)
        assert state is not None
        return state.progress


def test_refused_requests_are_no_replies(tmp_path: Path) -> None:
    with serving() as server:
        server.script(then={"status": 400, "error": {"message": "no"}})
        run = package.run_suite(
            "wordproblems",
            store=tmp_path,
            provider="openai_compat",
            model="m",
            base_url=server.base_url,
            probe="never",
            given="user",
            limit=1,
        )
    progress = progress_of(tmp_path, run.run_id)
    assert progress.replies > 0 and progress.answered == 0


def test_a_run_that_asks_no_model_reports_no_query_no_reply_and_no_model(tmp_path: Path) -> None:
    suite = tmp_path / "chains.jsonl"
    suite.write_text(CHAINS, "utf-8")
    words = ("run", "--task-suite", suite, "--profile", "offline", "--run-id", "off")
    dry = cotlab(*words, "--dry-run", store=tmp_path)
    assert "Total API queries: 0" in dry.stdout
    done = cotlab(*words, store=tmp_path)
    assert progress_of(tmp_path, "off").answered == 0
    assert "none (recorded chains) on chains" in done.stdout and "echo" not in done.stdout
    listed = cotlab("runs", store=tmp_path).stdout
    assert "none (recorded chains)" in listed and "items × scorers" in listed
    assert "**Model:** none \\(recorded chains" in cotlab("report", "off", store=tmp_path).stdout


def test_a_run_of_recorded_chains_names_their_generator(tmp_path: Path) -> None:
    row = json.loads(CHAINS)
    for run_id, names in (("one", ("gen7b", "gen7b")), ("two", ("gen7b", "gen70b"))):
        rows = [row | {"item_id": f"i{k}", "generator": name} for k, name in enumerate(names)]
        suite = tmp_path / f"{run_id}.jsonl"
        suite.write_text("".join(json.dumps(line) + "\n" for line in rows), "utf-8")
        words = ("run", "--task-suite", suite, "--profile", "offline", "--run-id", run_id)
        cotlab(*words, store=tmp_path)
    assert "recorded chains of gen7b" in cotlab("report", "one", store=tmp_path).stdout
    assert "recorded chains of 2 models" in cotlab("report", "two", store=tmp_path).stdout
