"""``--form auto`` asks a server by raw text where it continues no prefix in turns: chosen before
the plan is fixed, by a check under the run's id, and never twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cotlab.core.errors import ConfigError
from cotlab.run.config import read_config
from cotlab.run.launch import start_run
from cotlab.run.roles import subject_of
from cotlab.store import read
from cotlab.store.database import Store
from tests.providers.test_folder_template import INSTRUCTED, organism_folder
from tests.run.test_attack import small_suite
from tests.support.command import override
from tests.support.forked import Forking, printed
from tests.support.loopback import Loopback
from tests.support.misbehaving import Misbehaving, misbehaving
from tests.support.running import report, scores
from tests.support.served_organism import serving_llama_cpp

MAX_CHECK_REQUESTS = 10
COLUMNS = ["metric", "item_id", "facet", "step", "value", "status"]


@pytest.fixture(scope="module")
def llama_cpp() -> Iterator[str]:
    with serving_llama_cpp("faithful-a") as address:
        yield address


def options(seen: Misbehaving, **more: Any) -> dict[str, Any]:
    return {
        "task_suite": "wordproblems",
        "limit": 2,
        "provider": "openai_compat",
        "model": "m",
        "base_url": seen.base_url,
        "given": "prefix",
        "mode": ["remove"],
        "max_requests_per_minute": 100_000,
        "probe": "auto",
        **more,
    }


def command(seen: Misbehaving, run_id: str, *more: str) -> tuple[str, ...]:
    words = [
        word
        for name, value in options(seen).items()
        for word in (
            "--" + name.replace("_", "-"),
            ",".join(value) if isinstance(value, list) else str(value),
        )
    ]
    return override((*words, "--run-id", run_id), *more)


def stored_config(folder: Path, run_id: str) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(read.get_run(Store(folder), run_id)["config"])
    return config


def plan_digest(folder: Path, run_id: str) -> str:
    return str(read.get_run(Store(folder), run_id)["plan_digest"])


def n_calls(seen: Misbehaving) -> tuple[int, int]:
    return len(seen.bodies), len(seen.raw_bodies)


@pytest.mark.soak
@pytest.mark.parametrize("fault", ["new turn", "422"])
def test_raw_text_is_chosen_where_turns_are_not_continued(
    fault: str, llama_cpp: str, tmp_path: Path, runs: Forking
) -> None:
    with misbehaving(llama_cpp, fault) as seen:
        assert runs.run(tmp_path, *command(seen, "a")) == 0, printed(tmp_path)
        assert "The server is asked by raw text (--form completions)" in printed(tmp_path)
        n_chat, n_raw = n_calls(seen)
        told = report(tmp_path, "a")
        n_checks = told["requests"]["server_checks"]
        assert n_chat + n_raw == told["requests"]["asked"] + n_checks
        assert n_chat < n_checks <= MAX_CHECK_REQUESTS  # no request of the suite went to chat
        chat, raw = told["server_checks"]
        assert (chat["endpoint"], chat["used"]) == ("chat", False)
        assert (raw["endpoint"], raw["used"]) == ("completions", True)
        assert raw["findings"]["prefix"]["verdict"] == "continued" and not chat["doubts"]
        assert stored_config(tmp_path, "a")["form"] == "completions"
        assert "form: completions" in (tmp_path / "reports" / "a" / "run.yaml").read_text()
        # a resumed run chooses nothing, and one that names the form is the same plan
        assert runs.run(tmp_path, "--resume", "a") == 0 and n_calls(seen) == (n_chat, n_raw)
        assert runs.run(tmp_path, *command(seen, "b", "--form", "completions")) == 0
        assert plan_digest(tmp_path, "a") == plan_digest(tmp_path, "b")
        assert n_calls(seen) == (n_chat, n_raw)  # each reply was in the log
        assert scores(tmp_path, "a")[COLUMNS].equals(scores(tmp_path, "b")[COLUMNS])
        assert scores(tmp_path, "a").query("metric == 'baseline_correct'")["value"].eq(1).all()
    # the server is gone: a run whose replies are all in the log needs none to choose
    assert runs.run(tmp_path, *command(seen, "c")) == 0, printed(tmp_path)
    assert "are in the log in that form" in printed(tmp_path)
    assert plan_digest(tmp_path, "c") == plan_digest(tmp_path, "a")


def test_turns_are_kept_where_they_are_continued(
    llama_cpp: str, tmp_path: Path, runs: Forking
) -> None:
    with misbehaving(llama_cpp) as seen:  # llama.cpp repeats the prefix and goes on
        assert runs.run(tmp_path, *command(seen, "a")) == 0, printed(tmp_path)
        assert not seen.raw_bodies
        told = report(tmp_path, "a")
        (check,) = told["server_checks"]
        assert check["findings"]["prefix"]["verdict"] == "echoed" and check["used"]
        assert len(seen.bodies) == told["requests"]["asked"] + check["requests"]  # checked once
        assert stored_config(tmp_path, "a")["form"] == "chat"
        assert runs.run(tmp_path, *command(seen, "b", "--form", "chat")) == 0
        assert plan_digest(tmp_path, "a") == plan_digest(tmp_path, "b")


@pytest.mark.soak
def test_what_was_found_is_kept_for_a_day_and_the_dry_run_tells_it(
    llama_cpp: str, tmp_path: Path, runs: Forking
) -> None:
    with misbehaving(llama_cpp, "new turn", version="1.0") as seen:
        assert runs.run(tmp_path, *command(seen, "x", "--dry-run")[:-3], "--dry-run") == 0
        assert n_calls(seen) == (0, 0) and "not known before its check" in printed(tmp_path)
        assert runs.run(tmp_path, *command(seen, "a")) == 0
        n_chat, n_raw = n_calls(seen)
        dry_words = (*command(seen, "x", "--seed", "7", "--dry-run")[:-5], "--seed", "7")
        assert runs.run(tmp_path, *dry_words, "--dry-run") == 0
        text = " ".join(printed(tmp_path).split())
        assert "would be asked by raw text" in text and "is not continued (n" in text
        assert n_calls(seen) == (n_chat, n_raw)
        assert runs.run(tmp_path, *command(seen, "b", "--seed", "7")) == 0
        assert len(seen.bodies) == n_chat  # turns are not tried again
        assert report(tmp_path, "b")["requests"]["server_checks"] == 0
        assert stored_config(tmp_path, "b")["form"] == "completions"
        seen.version = "2.0"
        assert runs.run(tmp_path, *command(seen, "c", "--seed", "8")) == 0
        assert len(seen.bodies) > n_chat


def test_where_neither_form_is_continued_the_run_is_refused(
    tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    chain = "Step 1: 3 + 1 = 4.\nStep 2: 4 + 3 = 7.\nSo the answer is 7."
    server.script(writer={"text": chain, "prefix": "new", "answer": " 7."}, prices={"out": "1"})
    seen = Misbehaving(base_url=server.base_url)
    words = command(seen, "a", "--task-suite", small_suite(tmp_path, 2, 3))
    assert runs.run(tmp_path, *words) == 3
    text = " ".join(printed(tmp_path).split())
    assert "starts a new turn" in text and "Raw text (--form completions) was tried as well" in text
    assert "--chat-template FOLDER" in text and "Traceback" not in text
    assert stored_config(tmp_path, "a")["form"] == "auto" and scores(tmp_path, "a").empty
    assert server.count() <= MAX_CHECK_REQUESTS
    server.script(writer={"text": chain, "prefix": "continue", "answer": " 7."})
    assert runs.run(tmp_path, "--resume", "a") == 0, printed(tmp_path)  # in turns, as it began


def test_a_run_that_ended_before_the_choice_chooses_when_it_is_resumed(
    llama_cpp: str, tmp_path: Path, runs: Forking
) -> None:
    def interrupt(run_id: str) -> None:
        raise KeyboardInterrupt

    with misbehaving(llama_cpp, "new turn") as seen:
        with pytest.raises(KeyboardInterrupt):
            start_run(read_config(options(seen)), Store(tmp_path), run_id="a", announce=interrupt)
        assert stored_config(tmp_path, "a")["form"] == "auto" and n_calls(seen) == (0, 0)
        assert runs.run(tmp_path, "--resume", "a") == 0, printed(tmp_path)
        assert stored_config(tmp_path, "a")["form"] == "completions"
        plan = read.plan_from_row(read.get_run(Store(tmp_path), "a"))
        assert plan.subject.endpoint == "completions"


@pytest.mark.soak
def test_the_check_of_both_forms_is_paid_from_the_budget(
    llama_cpp: str, tmp_path: Path, runs: Forking
) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("m: {input: 1000, output: 1000}\n")
    with misbehaving(llama_cpp, "new turn") as seen:
        words = command(seen, "a", "--prices", str(prices), "--max-cost", "0.7")
        assert runs.run(tmp_path, *words) == 4, printed(tmp_path)
        assert sum(n_calls(seen)) <= MAX_CHECK_REQUESTS
        assert 0 < report(tmp_path, "a")["spent_usd"] <= 0.7
        assert scores(tmp_path, "a").empty and stored_config(tmp_path, "a")["form"] == "auto"
        assert runs.run(tmp_path, "--resume", "a", "--max-cost", "100") == 0, printed(tmp_path)
        assert stored_config(tmp_path, "a")["form"] == "completions"
        assert report(tmp_path, "a")["spent_usd"] == pytest.approx(seen.n_tokens / 1000)


@pytest.mark.soak
def test_a_folder_s_template_gives_the_numbers_of_the_server_s(
    llama_cpp: str, tmp_path: Path, runs: Forking
) -> None:
    folder = organism_folder(tmp_path / "tokenizer", INSTRUCTED)
    with misbehaving(llama_cpp, "new turn") as seen:
        assert runs.run(tmp_path, *command(seen, "a", "--chat-template", str(folder))) == 0
        assert not seen.bodies and len(report(tmp_path, "a")["server_checks"]) == 1
        assert runs.run(tmp_path, *command(seen, "b", "--form", "completions")) == 0
        assert scores(tmp_path, "a")[COLUMNS].equals(scores(tmp_path, "b")[COLUMNS])
        assert plan_digest(tmp_path, "a") != plan_digest(tmp_path, "b")
        organism_folder(folder, "Q: {{ messages[0].content }}\n")
        assert runs.run(tmp_path, "--resume", "a") == 2
        assert "has changed since run a began" in printed(tmp_path)


def test_a_folder_s_template_makes_raw_text_and_no_turns() -> None:
    config = read_config(options(Misbehaving("http://127.0.0.1:1/v1"), chat_template="folder"))
    assert subject_of(config).endpoint == "completions"
    with pytest.raises(ConfigError, match="--chat-template folder goes with --form completions"):
        subject_of(config.model_copy(update={"form": "chat"}))
