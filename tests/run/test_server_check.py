"""A server is checked before the first request of a run: what it cannot give is refused, nothing of
the suite is asked, and what was found stands with the run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from cotlab.cli.doctor import doctor_command
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
    return sum(
        body["max_tokens"] > 24 and "ticket" not in str(body["messages"]) for body in seen.bodies
    )


@pytest.mark.parametrize(
    ("fault", "options", "message"),
    [
        ("new turn", ("--given", "prefix"), "starts a new turn.*--form completions"),
        (
            "422",
            ("--given", "prefix"),
            "no assistant prefix.*no continue_final_message .*here",
        ),
        ("no logprobs", ("--metric", "kl_divergence"), "no log-probabilities.*kl_divergence"),
        ("no logprobs", ("--metric", "total_variation"), "no log-probabilities.*total_variation"),
        ("no logprobs", ("--scorer", "entropy", "--chain", "own"), "no log-prob.*entropy"),
        ("cuts prompts", (), "cuts long prompts.*num_ctx"),
    ],
)
def test_what_a_server_cannot_give_is_refused_before_it_is_asked(
    fault: str,
    options: tuple[str, ...],
    message: str,
    tmp_path: Path,
    runs: Forking,
    server: Loopback,
) -> None:
    with misbehaving(upstream(server), fault) as seen:
        assert runs.run(tmp_path / "s", *command(seen, tmp_path, *options)) == 3
        assert n_suite_requests(seen) == 0 and 0 < len(seen.bodies) <= 10
    said = " ".join(printed(tmp_path / "s").split())
    assert re.search(message, said) and "Traceback" not in said
    assert not set("\x1b\x07") & set(printed(tmp_path / "s"))
    assert scores(tmp_path / "s", "r").empty


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
        "greedy": "same reply",
    }
    assert check["findings"]["logprobs"]["count"] == len(TOP)
    assert (told["requests"]["asked"], told["requests"]["server_checks"]) == (NEEDED, n_checks)
    text = (tmp_path / "s" / "reports" / "r" / "report.md").read_text()
    assert "**Server check:**" in text and "Assistant prefix: echoed" in text


@pytest.mark.soak
def test_draws_in_one_call_are_found_and_stored(
    tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    options = ("--repeats", "3")
    for faults, found in (((), ("given", 2)), (("one reply",), ("one reply", 1))):
        folder = tmp_path / "-".join(("s", *faults))
        with misbehaving(upstream(server), *faults) as seen:
            # the server's one reply does not read the chain
            assert runs.run(folder, *command(seen, tmp_path, *options)) == 5
            assert sum(body.get("n") == 2 for body in seen.bodies) == 1
        (check,) = report(folder, "r")["server_checks"]
        finding = check["findings"]["choices"]
        assert (finding["verdict"], finding["count"]) == found
        assert f"Two draws in one call: {found[0]} ({found[1]} replies)" in check["lines"]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("varies", "two different replies at temperature 0.*--repeats 3"),
        ("reasons", "reasons before it answers"),
    ],
)
def test_what_limits_the_numbers_is_said(
    fault: str, message: str, tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    with misbehaving(upstream(server), fault) as seen:
        assert runs.run(tmp_path / "s", *command(seen, tmp_path)) == 5  # the chain is not read
    assert re.search(message, " ".join(printed(tmp_path / "s").split()))
    assert re.search(message, (tmp_path / "s" / "reports" / "r" / "report.md").read_text())


@pytest.mark.soak
def test_findings_are_kept_for_a_day_of_the_same_server(
    tmp_path: Path, runs: Forking, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    def checks_of(run_id: str, *more: str) -> int:
        """Requests of the check of a run with a seed of its own, so that none is in the log."""
        own = ("--run-id", run_id, "--seed", str(ord(run_id)))
        words = command(seen, tmp_path, "--given", "prefix", *own, *more)
        assert runs.run(tmp_path / "s", *words) == 0
        told = report(tmp_path / "s", run_id)
        assert told["server_checks"][0]["findings"]["prefix"]["verdict"] == "echoed"
        assert told["requests"]["server_checks"] == told["server_checks"][0]["requests"]
        return int(told["requests"]["server_checks"])

    with misbehaving(upstream(server), "echo", version="1.0") as seen:
        first = checks_of("a")
        assert first > 0 and checks_of("b") == 0  # and the echo is stripped: the run succeeds
        assert checks_of("c", "--probe", "always") == first
        assert 0 < checks_of("d", "--metric", "kl_divergence") < first  # only what is new
        seen.version = "2.0"
        assert checks_of("e") == first
        seen.version = ""
        assert checks_of("f") == first and checks_of("g") == first  # any server may be there now
    store = Store(tmp_path / "s")
    (check,) = server_checks.list_server_checks(store, "e")
    assert server_checks.find_recent_check(store, check.model, check.server_version) is not None
    monkeypatch.setattr(server_checks, "KEEP_TIME", server_checks.KEEP_TIME * 0)
    assert server_checks.find_recent_check(store, check.model, check.server_version) is None


def test_the_check_is_paid_from_the_budget_and_told_apart(
    tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("m: {input: 1000, output: 1000}\n")
    root = upstream(server, prices={"in": "1000", "out": "1000"})
    words = ("--prices", str(prices), "--max-cost", "1000")
    with misbehaving(root) as seen:
        assert runs.run(tmp_path / "s", *command(seen, tmp_path, *words)) == 5
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


def test_doctor_checks_a_models_server(
    server: Loopback, capsys: pytest.CaptureFixture[str]
) -> None:
    with misbehaving(upstream(server), "drops system", "cuts prompts") as seen:
        doctor_command("openai_compat/m", seen.base_url)
        assert len(seen.bodies) <= 10
    said = capsys.readouterr().out
    for line in (
        "prefix: continued",
        "given (3 alternatives)",
        "Longest prompt: cut",
        "temperature 0: same reply",
        "System prompt: dropped",
        "Seed: unknown",
        "Two draws in one call: given (2 replies)",
    ):
        assert line in said


@pytest.mark.parametrize("fail", [(), ("--fail-on-error", "0")])
@pytest.mark.parametrize(
    ("reply", "given", "check", "verdict", "message"),
    [
        ("So the answer is 7.", "user", "user_chain", "not read", "does not seem to read a chain"),
        ("So the answer is 7319.", "user", "user_chain", "read", ""),
        ("7", "prefix", "prefix", "unknown", "could not be established"),
    ],
)
def test_where_a_chain_may_not_be_read_the_numbers_are_doubted(
    reply: str,
    given: str,
    check: str,
    verdict: str,
    message: str,
    fail: tuple[str, ...],
    tmp_path: Path,
    runs: Forking,
    server: Loopback,
) -> None:
    server.script(then={"text": reply})
    with misbehaving(server.root) as seen:
        ended = runs.run(tmp_path, *command(seen, tmp_path, "--given", given, *fail))
    assert ended == (0 if not message else 3 if fail else 5), printed(tmp_path)
    (told,) = report(tmp_path, "r")["server_checks"]
    assert told["findings"][check]["verdict"] == verdict and told["requests"] <= 10
    assert bool(told["doubts"]) is bool(message)
    last = " ".join(printed(tmp_path).split()).rpartition("Report:")[2]
    assert not message or message in last
