"""What the real command ends with: 0 done, 1 gate failed, 2 usage, 3 not finished, 4 budget, 5 gate
inconclusive, 7 nothing measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cotlab.run.config import RunConfig
from cotlab.run.exit_status import exit_status
from cotlab.run.runner import Outcome
from cotlab.store.live import RunProgress
from tests.support.command import cotlab as command
from tests.support.command import override
from tests.support.forked import Forking
from tests.support.loopback import Loopback
from tests.support.running import REQUESTS, own_suite, report, row, run

ECHO = ("--provider", "echo", "--model", "echo")
PRICED = '''
"""A provider from outside the project, whose model has a price."""
from dataclasses import replace
from cotlab.core.requests import Complete, Response, Usage
from cotlab.core.types import ModelRef

class Priced:
    answers = frozenset({Complete.kind})
    def __init__(self, ref):
        self.ref = replace(ref, revision="1")
    async def send(self, request):
        return Response(request.key, "So the answer is 1.", usage=Usage(100, 10))
    async def close(self):
        return None
'''


def test_0_a_dry_run_and_a_gate_that_holds(runs: Forking, tmp_path: Path) -> None:
    code, out, _ = runs.outcome(tmp_path, *own_suite(tmp_path), *ECHO, "--dry-run")
    assert (
        code == 0
        and f"Items: 6 | Total API queries: {REQUESTS}" in out
        and "Estimated cost: ~$0.0000" in out
    )
    assert not tmp_path.joinpath("cotlab.duckdb").exists()
    code, out, _ = runs.outcome(
        tmp_path, *own_suite(tmp_path), *ECHO, "--rr-threshold", "1.0", "--run-id", "r"
    )
    assert code == 0 and "Done. RRR: 100.0%" in out
    assert row(tmp_path, "r")["asked"] == REQUESTS


def test_1_a_gate_that_fails(runs: Forking, tmp_path: Path) -> None:
    code, out, err = runs.outcome(tmp_path, *own_suite(tmp_path), *ECHO, "--rr-threshold", "0.5")
    assert (
        code == 1
        and err.rstrip().endswith("FAIL: RRR 100.0% exceeds threshold 50.0%")
        and "Done. RRR: 100.0%" in out
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--provider", "ecko", "--model", "echo"), "Did you mean 'echo'"),
        (("--nonsense",), "--nonsense"),
        (("--resume", "nobody"), "Unknown run 'nobody'"),
    ],
    ids=["provider", "flag", "run"],
)
def test_2_what_cannot_be_run(
    runs: Forking, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    before = () if "--resume" in words else (*own_suite(tmp_path), *ECHO)
    code, out, err = runs.outcome(tmp_path, *override(before, *words))
    assert code == 2 and said in err and "Traceback" not in err and not out


def test_3_requests_that_all_fail(runs: Forking, tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps({"contains": "", "error": "it burns"}) + "\n")
    words = (
        *own_suite(tmp_path),
        "--provider",
        "scripted",
        "--model",
        str(script),
        "--run-id",
        "r",
    )
    code, _, err = runs.outcome(tmp_path, *words)
    assert code == 3 and "The model answered no request at all; the last error: it burns" in err
    assert report(tmp_path, "r")["items_with_errors"] == 6


@pytest.mark.parametrize("note", ["It broke.", "It broke"])
def test_3_a_run_that_broke_says_so_in_one_sentence(note: str) -> None:
    told = exit_status(
        Outcome("failed", note, RunProgress()),
        {"run_id": "r"},
        RunConfig(task_suite="math", model="m"),
    )
    assert told == (3, "It broke. What was done is kept; go on with: cotlab run --resume r")


def test_3_the_command_that_goes_on_names_the_hosts_of_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COTLAB_SEND_KEY_TO", ",proxy.example.com")
    config = RunConfig(task_suite="math", model="m")
    _, told = exit_status(Outcome("stopped", "Stopped", RunProgress()), {"run_id": "r"}, config)
    assert told.endswith("cotlab run --resume r --send-key-to proxy.example.com")


@pytest.mark.soak
def test_4_a_budget_that_is_reached_and_raised(tmp_path: Path) -> None:
    (tmp_path / "priced.py").write_text(PRICED)
    (tmp_path / "priced-1.dist-info").mkdir()
    (tmp_path / "priced-1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: priced\nVersion: 1\n"
    )
    (tmp_path / "priced-1.dist-info" / "entry_points.txt").write_text(
        "[cotlab.providers]\nmistral = priced:Priced\n"
    )
    store = tmp_path / "store"
    words = (
        *own_suite(tmp_path),
        "--provider",
        "mistral",
        "--model",
        "mistral-large-latest",
        "--run-id",
        "r",
    )
    code, _, err = run(store, *words, "--max-cost", "0.004", PYTHONPATH=str(tmp_path))
    assert code == 4 and "The budget of $0.0040 is reached" in err
    told = report(store, "r")
    assert told["status"] == "budget" and 0 < told["spent_usd"] <= 0.004
    asked = row(store, "r")["asked"]
    assert 0 < asked < REQUESTS
    code, out, _ = run(store, "--resume", "r", "--max-cost", "5", PYTHONPATH=str(tmp_path))
    assert code == 0 and "Done. RRR" in out
    assert row(store, "r")["asked"] == REQUESTS
    # every reply cost the same, whichever process paid for it
    assert report(store, "r")["spent_usd"] == pytest.approx(REQUESTS * told["spent_usd"] / asked)


def test_5_a_gate_without_a_number(runs: Forking, tmp_path: Path) -> None:
    code, out, err = runs.outcome(
        tmp_path, *own_suite(tmp_path, answer=None), *ECHO, "--rr-threshold", "0.5"
    )
    assert code == 5 and "Gate inconclusive" in err and "Done. RRR: n/a" in out


def test_7_a_run_that_measured_nothing(runs: Forking, tmp_path: Path) -> None:
    """Of 7 the gate hears too; 0 only where it is asked for."""
    words = (*own_suite(tmp_path), "--model", "r100", "--mode", "corrupt")
    code, out, err = runs.outcome(tmp_path, *words, "--rr-threshold", "0.5")
    assert code == 7 and "Done. RRR: n/a" in out
    assert "Nothing was measured: 'What' is not in the model's vocabulary: " in err
    assert runs.outcome(tmp_path, *words, "--allow-empty")[0] == 0
    listed = command("runs", "--status", "nothing measured", store=tmp_path).stdout
    assert listed.count("nothing measured") == 2
    assert "nothing" not in command("runs", "--status", "done", store=tmp_path).stdout


@pytest.mark.parametrize("metric", ["answer_change", "kl_divergence"])
def test_7_replies_that_are_empty(
    runs: Forking, tmp_path: Path, server: Loopback, metric: str
) -> None:
    server.script(
        then={"text": "", "reasoning": "3 + 4 = 7.", "logprobs": [["7", -0.1, [["7", -0.1]]]]}
    )
    words = (
        *(*own_suite(tmp_path), "--provider", "openai_compat", "--model", "m"),
        *("--base-url", server.base_url, "--mode", "truncate", "--metric", metric),
        *("--probe", "never", "--allow-unpriced", "--run-id", "r"),
    )
    assert runs.outcome(tmp_path, *words)[0] == 7
    told = report(tmp_path, "r")
    estimates = [e for e in told["estimates"] if e["metric"] in ("token_delta", "rrr")]
    assert {e["point"] for e in estimates} == {None}
    assert "empty" in told["verdict"]["text"]  # the reason of 2 in 3 scores of an item


def test_a_run_against_a_server(runs: Forking, tmp_path: Path, server: Loopback) -> None:
    server.script(
        {"status": 429, "headers": {"Retry-After": "0.1"}}, then={"text": "So the answer is 4."}
    )
    words = (
        "--provider",
        "openai_compat",
        "--model",
        "m",
        "--base-url",
        server.base_url,
        "--run-id",
        "r",
    )
    key = "sk-never-written-down-0123"
    words = (*own_suite(tmp_path), *words, "--max-requests-per-minute", "1000")
    code, out, err = runs.outcome(tmp_path, *words, OPENAI_COMPAT_API_KEY=key)
    assert code == 0 and "Done. RRR: 100.0%" in out
    assert server.count() == REQUESTS + 1  # one of them twice
    assert {call["headers"]["authorization"] for call in server.seen()} == {f"Bearer {key}"}
    assert key not in out + err
    assert all(
        key.encode() not in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()
    )
    assert report(tmp_path, "r")["spent_usd"] == 0


@pytest.mark.parametrize("status", [401, 500])
def test_control_characters_of_a_server_never_reach_the_terminal(
    runs: Forking, tmp_path: Path, server: Loopback, status: int
) -> None:
    title_and_clear = "\x1b]0;owned\x07\x1b[2J\u202eno"
    server.script(then={"status": status, "error": {"message": title_and_clear}})
    words = ("--provider", "openai_compat", "--model", "m", "--base-url", server.base_url)
    code, out, err = runs.outcome(tmp_path, *own_suite(tmp_path), *words, "--run-id", "r")
    assert code == 3 and "owned" in err
    assert not {"\x1b", "\x07", "\u202e"} & {*(out + err)}


def test_a_disk_that_takes_no_file_is_one_message(runs: Forking, tmp_path: Path) -> None:
    (tmp_path / "reports" / "r" / "run.yaml").mkdir(parents=True)
    code, _, err = runs.outcome(tmp_path, *own_suite(tmp_path), *ECHO, "--run-id", "r")
    assert code == 3 and "reports cannot be written: Is a directory" in err
    assert "Traceback" not in err
