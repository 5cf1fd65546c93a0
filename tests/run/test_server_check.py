"""A server is checked before the first request of a run: what it cannot give is refused, nothing of
the suite is asked, and what was found stands with the run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from cotlab.analysis.verdict.collect import failed_checks
from cotlab.analysis.view import RunView
from cotlab.cli.doctor import doctor_command
from cotlab.providers.probe import MAX_REQUESTS
from cotlab.run.server_check import check_records, server_limits
from cotlab.store import server_checks
from cotlab.store.database import Store
from tests.run.test_attack import small_suite
from tests.support.command import override
from tests.support.forked import Forking, printed
from tests.support.loopback import Loopback
from tests.support.misbehaving import Misbehaving, misbehaving
from tests.support.running import report, scores

ITEMS, STEPS = 2, 3
NEEDED = ITEMS * (STEPS + 1)
CHAIN = "Step 1: 3 + 1 = 4.\nStep 2: 4 + 3 = 7.\nSo the answer is 7."
TOP = [[" 7", -0.1], [" 8", -3.0], [" 9", -5.0]]
LOGPROBS = [[" 7", -0.1, TOP]]


def upstream(server: Loopback, **more: Any) -> str:
    """A server that continues prefixes and gives log-probabilities."""
    writer = {"text": CHAIN, "prefix": "continue", "answer": " 7."}
    server.script(writer=writer, then={"logprobs": LOGPROBS}, **more)
    return server.root


def command(seen: Misbehaving, folder: Path, *more: str) -> tuple[str, ...]:
    words = ("--task-suite", small_suite(folder, ITEMS, STEPS), "--provider", "openai_compat")
    words += ("--model", "m", "--base-url", seen.base_url, "--max-requests-per-minute", "100000")
    return override((*words, "--run-id", "r", "--probe", "auto"), *more)


def n_suite_requests(seen: Misbehaving) -> int:
    """Requests that are as long as a scorer's, and no check's."""
    return sum(body["max_tokens"] > 24 for body in seen.bodies)


@pytest.mark.parametrize(
    ("fault", "options", "code", "message"),
    [
        ("new turn", ("--given", "prefix"), "prefix_not_continued", "wrote the same"),
        ("422", ("--given", "prefix"), "prefix_not_continued", "no continue_final_message .*here"),
        ("no logprobs", ("--metric", "kl_divergence"), "no_logprobs", "kl_divergence"),
        ("no logprobs", ("--metric", "total_variation"), "no_logprobs", "total_variation"),
        ("no logprobs", ("--scorer", "entropy", "--chain", "own"), "no_logprobs", "entropy"),
        ("cuts prompts", (), "prompts_cut", "num_ctx"),
    ],
)
def test_what_a_server_cannot_give_is_refused_before_it_is_asked(
    fault: str,
    options: tuple[str, ...],
    code: str,
    message: str,
    tmp_path: Path,
    runs: Forking,
    server: Loopback,
) -> None:
    with misbehaving(upstream(server), fault) as seen:
        assert runs.run(tmp_path / "s", *command(seen, tmp_path, *options)) == 3
        assert n_suite_requests(seen) == 0 and 0 < len(seen.bodies) <= MAX_REQUESTS
    said = " ".join(printed(tmp_path / "s").split())
    assert re.search(message, said) and "Traceback" not in said
    assert not set("\x1b\x07") & set(printed(tmp_path / "s"))
    assert scores(tmp_path / "s", "r").empty
    view = RunView.read(Store(tmp_path / "s"), "r")
    (check,) = server_checks.list_server_checks(view.store, "r")
    assert [limit.code for limit in server_limits(view.plan, check)] == [code]
    assert [failed.code for failed in failed_checks(view)] == [code]


def test_the_message_has_the_command_for_raw_text(
    tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    """Which is refused too here, as no chat template is applied: with another message."""
    with misbehaving(upstream(server), "new turn") as seen:
        assert runs.run(tmp_path / "s", *command(seen, tmp_path, "--given", "prefix")) == 3
        (text,) = re.findall("`cotlab run (.*?)`", " ".join(printed(tmp_path / "s").split()))
        words = shlex.split(text)
        assert {"--role", "subject.form=completions", "--base-url", seen.base_url} <= {*words}
        assert runs.run(tmp_path / "s", *words, "--run-id", "raw") == 3
    plan = RunView.read(Store(tmp_path / "s"), "raw").plan
    assert (plan.subject.endpoint, plan.subject.form) == ("completions", "prefill")
    assert "subject.chat_template=none" in printed(tmp_path / "s")


def test_a_run_of_one_item_sends_two_requests_more(
    tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    with misbehaving(upstream(server)) as seen:
        words = command(seen, tmp_path, "--limit", "1")
        small_suite(tmp_path, 1, 2)  # in the place of the file with more items
        assert runs.run(tmp_path / "s", *words) == 0
        assert len(seen.bodies) == 3 + 2
    (check,) = report(tmp_path / "s", "r")["server_checks"]
    assert check["findings"].keys() == {"reasoning", "long_prompt"} and check["requests"] == 2


def test_an_echo_is_stripped_and_what_was_found_is_shown(
    tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    options = ("--given", "prefix", "--metric", "kl_divergence")
    with misbehaving(upstream(server), "echo") as seen:
        assert runs.run(tmp_path / "s", *command(seen, tmp_path, *options)) == 0
        n_checks = len(seen.bodies) - NEEDED
    table = scores(tmp_path / "s", "r")
    assert table.query("metric == 'baseline_correct'")["value"].eq(1).all()
    told = report(tmp_path / "s", "r")
    (check,) = told["server_checks"]
    assert {name: found["verdict"] for name, found in check["findings"].items()} == {
        "prefix": "echoed",
        "logprobs": "given",
        "reasoning": "none",
        "long_prompt": "whole",
    }
    assert check["findings"]["logprobs"]["count"] == len(TOP)
    assert (told["requests"]["asked"], told["requests"]["server_checks"]) == (NEEDED, n_checks)
    text = (tmp_path / "s" / "reports" / "r" / "report.md").read_text()
    assert "**Server check:**" in text and "Assistant prefix: echoed" in text


def test_the_check_is_paid_from_the_budget_and_told_apart(
    tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("m: {input: 1000, output: 1000}\n")
    root = upstream(server, prices={"in": "1000", "out": "1000"})
    words = ("--prices", str(prices), "--max-cost", "1000")
    with misbehaving(root) as seen:
        assert runs.run(tmp_path / "s", *command(seen, tmp_path, *words)) == 0
        told = report(tmp_path / "s", "r")
        assert told["spent_usd"] == pytest.approx(float(server.spend()) / 1e6, abs=1e-9)
        assert told["requests"]["asked"] == NEEDED == told["requests"]["estimated"]
        assert told["requests"]["server_checks"] == server.count() - NEEDED
        words = ("--prices", str(prices), "--max-cost", "0.01")
        assert runs.run(tmp_path / "t", *command(seen, tmp_path, *words)) == 4
        assert n_suite_requests(seen) == NEEDED  # those of the first run


def test_never_asks_nothing_and_measures_no_prefix(
    tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    with misbehaving(upstream(server)) as seen:
        words = command(seen, tmp_path, "--probe", "never")
        assert runs.run(tmp_path / "s", *words) == 0 and len(seen.bodies) == NEEDED
        assert report(tmp_path / "s", "r")["server_checks"] == []
        assert runs.run(tmp_path / "t", *words, "--given", "prefix") == 2
        assert "leave out --probe never" in printed(tmp_path / "t")
        assert len(seen.bodies) == NEEDED


def test_a_redacted_run_keeps_verdicts_and_no_message(
    tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    with misbehaving(upstream(server), "422") as seen:
        words = command(seen, tmp_path, "--given", "prefix", "--redact-prompts")
        assert runs.run(tmp_path / "s", *words) == 3
    (check,) = server_checks.list_server_checks(Store(tmp_path / "s"), "r")
    assert check.findings["prefix"].verdict == "refused"
    assert check.findings["prefix"].detail == ""


def test_doctor_asks_all_questions(server: Loopback, capsys: pytest.CaptureFixture[str]) -> None:
    with misbehaving(upstream(server), "cuts prompts") as seen:
        doctor_command("openai_compat/m", seen.base_url)
        assert len(seen.bodies) <= MAX_REQUESTS
    said = capsys.readouterr().out
    for line in ("prefix: continued", "given (3 alternatives)", "prompt: cut", "reply: none"):
        assert line in said


@pytest.mark.parametrize("fail", [(), ("--fail-on-error", "0")])
def test_where_a_prefix_may_not_be_continued_the_numbers_are_doubted(
    fail: tuple[str, ...], tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    server.script(then={"text": "7"})
    with misbehaving(server.root) as seen:
        ended = runs.run(tmp_path, *command(seen, tmp_path, "--given", "prefix", *fail))
    assert ended == (3 if fail else 5), printed(tmp_path)
    (told,) = report(tmp_path, "r")["server_checks"]
    assert told["findings"]["prefix"]["verdict"] == "unknown" and told["requests"] <= MAX_REQUESTS
    assert len(told["doubts"]) == 1 and told["doubts"] == told["cautions"]
    assert told["doubts"][0] in " ".join(printed(tmp_path).split()).rpartition("Report:")[2]


def test_markup_that_is_not_read_is_a_caution(
    tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    server.script(then={"text": "<|ponder|>Hm.<|reply|>7"})
    with misbehaving(server.root) as seen:
        assert runs.run(tmp_path, *command(seen, tmp_path)) == 7, printed(tmp_path)
    view = RunView.read(Store(tmp_path), "r")
    (check,) = server_checks.list_server_checks(view.store, "r")
    (limit,) = server_limits(view.plan, check)
    assert (limit.code, limit.kind) == ("reasoning_not_read", "caution")
    assert check_records(view.store, "r", view.plan)[0]["cautions"] == [limit.text]
