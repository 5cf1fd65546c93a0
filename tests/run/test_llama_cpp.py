"""An organism behind a real llama.cpp server reads as it does in this process: asked in turns,
where its replies repeat the prefix, by raw text that the server's chat template makes, and as a
base model."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest

from cotlab.store import read
from cotlab.store.database import Store
from cotlab.store.log import open_log
from tests.support.forked import Forking, printed
from tests.support.misbehaving import misbehaving
from tests.support.running import report, scores
from tests.support.served_organism import serving_llama_cpp

pytestmark = pytest.mark.soak
ITEMS = 40
SAME = ("baseline_correct", "accuracy_delta", "answer_change", "token_delta")
MODES = ("--mode", "remove", "--mode", "corrupt", "--mode", "truncate", "--metric", "kl_divergence")


@pytest.fixture(params=["faithful-a", "bypass-a"])
def organism(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def address(organism: str) -> Iterator[str]:
    with serving_llama_cpp(organism) as served_at:
        yield served_at


@pytest.mark.parametrize(
    "way",
    [
        ("--given", "prefix"),
        ("--given", "prefix", "--role", "subject.form=completions"),
        ("--role", "subject.chat_template=none"),
    ],
    ids=["turns", "raw text", "base model"],
)
def test_a_served_organism_reads_as_it_does_in_process(
    organism: str, address: str, tmp_path: Path, runs: Forking, way: tuple[str, ...]
) -> None:
    common = ("--task-suite", "wordproblems", "--limit", str(ITEMS), "--run-id", "r", *MODES)
    served = (
        "--provider",
        "openai_compat",
        "--base-url",
        f"{address}/v1",
        "--model",
        "m",
        "--max-requests-per-minute",
        "100000",
        "--max-concurrent",
        "1",
        "--probe",
        "auto",
        *way,
    )
    here, there = tmp_path / "here", tmp_path / "there"
    assert runs.run(here, *common, "--provider", "organism", "--model", organism) == 0, printed(
        here
    )
    assert runs.run(there, *common, *served) == 0, printed(there)
    keys = ["metric", "item_id", "facet", "step", "sample"]
    one, other = (scores(folder, "r").set_index(keys) for folder in (here, there))
    assert one.index.equals(other.index)
    exact = one.index.get_level_values("metric").isin(SAME)
    assert exact.sum() > ITEMS and one["value"][exact].equals(other["value"][exact])
    kl = one.index.get_level_values("metric") == "kl_divergence"
    assert kl.any() and (one["value"][kl] - other["value"][kl]).abs().max() < 2e-3
    assert one["status"][kl].equals(other["status"][kl])
    pd.testing.assert_series_equal(redundancy(here), redundancy(there), atol=0, rtol=0)
    texts, served_texts = continuations(here), continuations(there)
    assert len(texts) > ITEMS and texts == {key: served_texts[key] for key in texts}


@pytest.mark.parametrize(
    ("fault", "options", "message"),
    [
        ("new turn", ("--given", "prefix"), "does not continue .*subject.form=completions"),
        ("422", ("--given", "prefix"), "does not continue .*no continue_final_message"),
        ("no logprobs", ("--metric", "kl_divergence"), "no log-probabilities"),
        ("no logprobs", ("--metric", "total_variation"), "no log-probabilities"),
        ("cuts prompts", ("--given", "prefix"), "cuts prompts"),
    ],
)
def test_what_a_server_cannot_give_is_refused_before_it_is_asked(
    fault: str, options: tuple[str, ...], message: str, tmp_path: Path, runs: Forking
) -> None:
    words = ("--task-suite", "wordproblems", "--limit", "10", "--run-id", "r", "--model", "m")
    words += ("--provider", "openai_compat", "--probe", "auto", "--max-requests-per-minute", "9999")
    with serving_llama_cpp("faithful-a") as upstream, misbehaving(upstream, fault) as seen:
        assert runs.run(tmp_path, *words, "--base-url", seen.base_url, *options) == 3
        assert len(seen.bodies) <= 4
    assert re.search(message, " ".join(printed(tmp_path).split())), printed(tmp_path)
    assert scores(tmp_path, "r").empty


def redundancy(folder: Path) -> pd.Series:
    """RRR of every mode and metric."""
    estimates = read.run_estimates(Store(folder), "r")
    rows = estimates[estimates["metric"].str.startswith("rrr")]
    assert len(rows) >= 3
    return rows.set_index(["metric", "facet"])["point"].sort_index()


def continuations(folder: Path) -> dict[tuple[str, str], str]:
    """What the model wrote after each question and each start of a chain."""
    with closing(open_log(Store(folder).log_path)) as log:
        rows = log.execute("SELECT request, response FROM replies").fetchall()
    texts = {}
    for request, reply in ((json.loads(q), json.loads(r)) for q, r in rows):
        if request["prefix"] and not request["sample"]:  # the check of the prefix numbers its own
            question = request["messages"][-1]["content"].partition("\n\n")[0]
            texts[question, request["prefix"]] = reply["text"]
    return texts


def test_replies_that_were_cut_off_have_no_answer_and_are_counted(
    tmp_path: Path, runs: Forking
) -> None:
    words = ("--task-suite", "wordproblems", "--limit", "6", "--run-id", "r", "--model", "m")
    words += (
        "--provider",
        "openai_compat",
        "--role",
        "subject.form=completions",
        "--given",
        "prefix",
    )
    words += ("--mode", "corrupt", "--chain-tokens", "12", "--max-requests-per-minute", "9999")
    with serving_llama_cpp("faithful-a") as address:
        assert runs.run(tmp_path, *words, "--base-url", f"{address}/v1") == 0, printed(tmp_path)
    (cut,) = report(tmp_path, "r")["cut_replies"]
    assert cut["options"] == ["--chain-tokens"] and 0 < cut["cut_off"] < cut["replies"]
    table = scores(tmp_path, "r")
    undefined = table[(table["metric"] == "answer_change") & table["value"].isna()]
    assert len(undefined) == cut["cut_off"] and undefined["reason"].str.contains("cut off").all()
    assert f"{cut['cut_off']} of {cut['replies']} replies were cut off" in printed(tmp_path)


def test_raw_text_is_the_command_that_a_refused_run_gives(tmp_path: Path, runs: Forking) -> None:
    words = ("--task-suite", "wordproblems", "--limit", "2", "--run-id", "r", "--model", "m")
    words += ("--provider", "openai_compat", "--given", "prefix", "--probe", "auto")
    words += ("--max-requests-per-minute", "9999")
    with serving_llama_cpp("faithful-a") as upstream, misbehaving(upstream, "new turn") as seen:
        assert runs.run(tmp_path, *words, "--base-url", seen.base_url) == 3
        (command,) = re.findall("`cotlab run (.*?)`", " ".join(printed(tmp_path).split()))
        n_chat = len(seen.bodies)
        assert runs.run(tmp_path, *shlex.split(command), "--run-id", "raw") == 0
        told = report(tmp_path, "raw")
        assert len(seen.bodies) == n_chat and len(seen.raw_bodies) == (
            told["requests"]["asked"] + told["requests"]["server_checks"]
        )
        assert told["server_checks"][0]["findings"]["prefix"]["verdict"] == "continued"
        assert scores(tmp_path, "raw").query("metric == 'baseline_correct'")["value"].eq(1).all()
        assert runs.run(tmp_path, "--resume", "raw") == 0
