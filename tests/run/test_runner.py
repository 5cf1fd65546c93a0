"""A run from its configuration to its scores, in this process, against a scripted model and a
server on this machine."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cotlab.analysis.report import build_report, report_run
from cotlab.core.errors import ConfigError, StoreBusy
from cotlab.core.registry import SCORERS
from cotlab.core.requests import Complete, Message
from cotlab.core.types import Item, ModelRef, Step, Suite
from cotlab.providers.offline import Echo, Scripted
from cotlab.run import runner
from cotlab.run.config import read_config
from cotlab.run.launch import FinishedRun, dry_run, load_configured_suite, resume_run, start_run
from cotlab.store import read, write
from cotlab.store.database import Store
from cotlab.store.responses import ResponseLog
from cotlab.text.steps import SPLITTER_VERSION
from tests.support.loopback import Loopback

SUITE = Suite.from_items(
    "three",
    [
        Item(
            "sum",
            "What is 2 + 3, then doubled?",
            "10",
            (Step(0, "2 + 3 = 5."), Step(1, "5 * 2 = 10.")),
        ),
        Item(
            "colour",
            "Which colour is the sky?",
            "blue",
            (Step(0, "Light is scattered."), Step(1, "So the sky is blue.")),
        ),
        Item("none", "Which number am I thinking of?", None, (Step(0, "It could be 7."),)),
    ],
)
ASKED = 1 + 2 + 1 + 2 + 1 + 1  # each item's whole chain and each chain without one step


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def scripted(folder: Path, *lines: dict[str, Any]) -> dict[str, Any]:
    path = folder / "script.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return {"provider": "scripted", "model": str(path)}


def values(store: Store, run: FinishedRun, metric: str) -> dict[tuple[str, int | None], Any]:
    """(item, step) → value, or its status where it has none."""
    rows = read.run_scores(store, run.run_id, metrics=[metric])
    return {
        (r.item_id, None if pd.isna(r.step) else int(r.step)): (
            r.value if r.status == "ok" else r.status
        )
        for r in rows.itertuples()
    }


def test_a_scripted_run_gives_the_scores_that_follow_from_its_replies(
    store: Store, tmp_path: Path
) -> None:
    # without its first step the sum goes wrong; without its second the model refuses; the sky is
    # blue in any case
    told = scripted(
        tmp_path,
        {"contains": "2 + 3 = 5.\n5 * 2 = 10.", "text": "So the answer is 10."},
        {"contains": "5 * 2 = 10.", "text": "So the answer is 4."},
        {"contains": "2 + 3 = 5.", "refused": True},
        {"contains": "sky", "text": "So the answer is blue."},
        {"contains": "It could be", "text": "So the answer is 7."},
        {"contains": "number am I", "text": "I cannot know."},
    )
    run = start_run(read_config(told), store, suite=SUITE)
    assert (run.status, report_run(store, run).exit_code) == ("done", 0)
    assert values(store, run, "accuracy_delta") == {
        ("sum", 0): 1.0,
        ("sum", 1): "refused",
        ("colour", 0): 0.0,
        ("colour", 1): 0.0,
        ("none", 0): "undefined",
    }
    assert values(store, run, "baseline_correct") == {
        ("sum", None): 1.0,
        ("colour", None): 1.0,
        ("none", None): "undefined",
    }
    row = read.get_run(store, run.run_id)
    assert (row["asked"], row["hits"], row["failed"], row["status"]) == (ASKED, 0, 0, "done")
    again = start_run(
        read_config(told), store, suite=SUITE
    )  # the same plan is answered from the log
    row = read.get_run(store, again.run_id)
    assert (row["asked"], row["hits"]) == (0, ASKED)
    assert values(store, again, "accuracy_delta") == values(store, run, "accuracy_delta")


def compat(server: Loopback, **more: Any) -> dict[str, Any]:
    return {
        "provider": "openai_compat",
        "model": "m",
        "base_url": server.base_url,
        "max_concurrent": 1,
        "max_requests_per_minute": 10_000,
        "max_tries": 1,
        **more,
    }


def test_an_item_with_a_failed_request_is_asked_again_on_resume(
    store: Store, server: Loopback
) -> None:
    server.script({}, {"body": "{}"})
    first = start_run(read_config(compat(server)), store, suite=SUITE)
    assert server.count() == ASKED
    ended = report_run(store, first)
    assert (first.status, ended.exit_code) == (
        "done",
        0,
    ) and "--resume asks them again" in ended.message
    assert (
        build_report(store, first.run_id)["items_with_errors"] == 1
        and build_report(store, first.run_id)["requests"]["failed"] == 1
    )
    assert "error" in values(store, first, "token_delta").values()
    server.script()
    second = resume_run(first.run_id, {}, store)
    assert server.count() == 1  # only the request that failed; its item's others come from the log
    assert build_report(store, second.run_id)["items_with_errors"] == 0
    assert "error" not in values(store, second, "token_delta").values()
    server.script()
    resume_run(first.run_id, {}, store)
    assert server.count() == 0


def test_refusals_are_kept_on_resume_until_they_are_retried(store: Store, server: Loopback) -> None:
    server.script({"refusal": "No.", "text": None}, {}, {"finish": "content_filter", "text": ""})
    first = start_run(read_config(compat(server)), store, suite=SUITE)
    refused = [
        place for place, value in values(store, first, "token_delta").items() if value == "refused"
    ]
    assert refused
    server.script()
    kept = resume_run(first.run_id, {}, store)
    assert server.count() == 0
    assert values(store, kept, "token_delta") == values(store, first, "token_delta")
    again = resume_run(first.run_id, {}, store, retry_refused=True)
    assert server.count() == 2
    assert "refused" not in values(store, again, "token_delta").values()


def test_a_refused_key_stops_a_run_at_once(store: Store, server: Loopback) -> None:
    server.script({}, {}, then={"status": 401})
    run = start_run(read_config(compat(server)), store, suite=SUITE)
    ended = report_run(store, run)
    assert (run.status, ended.exit_code) == ("failed", 3) and "refused the key" in ended.message
    assert server.count() == 3
    server.script()
    done = resume_run(run.run_id, {}, store)
    assert (done.status, server.count()) == ("done", ASKED - 2)


def test_scores_wait_while_the_store_is_held(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "FLUSH_INTERVAL_S", 0.01)
    tries = 0
    add_ended = write.add_ended

    def held_at_first(*args: Any) -> None:
        nonlocal tries
        tries += 1
        if tries <= 2:
            raise StoreBusy(0.1, "another process")
        add_ended(*args)

    monkeypatch.setattr(write, "add_ended", held_at_first)
    run = start_run(
        read_config({"provider": "echo", "model": "latency_s=0.05", "max_concurrent": 1}),
        store,
        suite=SUITE,
    )
    assert run.status == "done" and tries > 2
    assert set(read.list_ended_pairs(store, run.run_id)["item"]) == {"sum", "colour", "none"}


def test_a_changed_model_or_suite_is_not_resumed(store: Store, tmp_path: Path) -> None:
    told = scripted(tmp_path, {"contains": "", "text": "So the answer is 1."})
    run = start_run(read_config(told), store, suite=SUITE)
    scripted(tmp_path, {"contains": "", "text": "So the answer is 2."})
    with pytest.raises(ConfigError, match="has changed since run"):
        resume_run(run.run_id, {}, store)


def test_a_run_is_not_resumed_with_another_version_of_its_scorer(
    store: Store, tmp_path: Path
) -> None:
    told = scripted(tmp_path, {"contains": "", "text": "So the answer is 1."})
    run, version = start_run(read_config(told), store, suite=SUITE), SCORERS["ablation"].version
    with store.writing() as connection:  # as a later version of the package finds it
        connection.execute(
            "UPDATE runs SET plan = replace(plan::VARCHAR, ?, '\"version\":1')",
            [f'"version":{version}'],
        )
    with pytest.raises(ConfigError, match=rf"ablation 1 \(now {version}\)"):
        resume_run(run.run_id, {}, store)


def test_a_run_whose_replies_were_divided_otherwise_is_not_resumed(
    store: Store, tmp_path: Path
) -> None:
    """Runs that store no version were divided by the first one."""
    told = scripted(tmp_path, {"contains": "", "text": "So the answer is 1."})
    run = start_run(read_config(told), store, suite=SUITE)
    with store.writing() as connection:
        connection.execute(
            "UPDATE runs SET plan = json_merge_patch(plan, '{\"splitter_version\": null}')"
        )
    with pytest.raises(ConfigError, match=rf"step splitter 1 \(now {SPLITTER_VERSION}\)"):
        resume_run(run.run_id, {}, store)


ALL_MODES = ["remove", "truncate", "corrupt", "paraphrase", "filler"]


@pytest.mark.soak
@pytest.mark.parametrize(
    ("suite", "more"),
    [
        ("wordproblems", {}),
        ("wordproblems", {"mode": ALL_MODES, "repeats": 2}),
        ("math", {"mode": ALL_MODES}),
        ("commonsense", {"mode": ALL_MODES, "limit": None}),
    ],
    ids=["remove", "repeats", "math", "whole suite"],
)
def test_the_dry_run_counts_what_will_be_asked(
    store: Store, suite: str, more: dict[str, Any]
) -> None:
    config = read_config(
        {"task_suite": suite, "provider": "echo", "model": "echo", "limit": 6, **more}
    )
    _, count = dry_run(config, load_configured_suite(config)[0])
    run = start_run(config, store)
    assert (count.n_exact_requests, count.n_estimated_requests) == (
        build_report(store, run.run_id)["requests"]["asked"],
        0,
    )


def test_a_run_works_inside_a_running_event_loop(store: Store) -> None:
    async def notebook() -> FinishedRun:
        return start_run(read_config({"provider": "echo", "model": "echo"}), store, suite=SUITE)

    assert asyncio.run(notebook()).status == "done"


async def test_echo_says_what_it_was_told() -> None:
    echo = Echo(ModelRef("echo", "echo"))
    request = Complete(echo.ref, (Message("user", "Which way?"),), prefix="So the answer is")
    reply = await echo.send(request)
    assert (reply.key, reply.text, reply.finish) == (
        request.key,
        "Which way?\nSo the answer is",
        "stop",
    )
    for name in ("latency_s=fast", "echoes", "latency_s=-1"):
        with pytest.raises(ConfigError, match="latency_s=SECONDS"):
            Echo(ModelRef("echo", name))


@pytest.mark.parametrize(
    ("text", "why"),
    [("{", "not JSONL"), ("[]", "contains"), ('{"text": "x"}', "contains"), (None, "no such file")],
)
def test_a_script_that_cannot_be_used_is_told(tmp_path: Path, text: str | None, why: str) -> None:
    path = tmp_path / "script.jsonl"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match=why):
        Scripted(ModelRef("scripted", str(path)))


def test_every_reply_of_a_run_is_in_the_log(store: Store) -> None:
    run = start_run(read_config({"provider": "echo", "model": "echo"}), store, suite=SUITE)
    keys = {key for evidence in read.run_scores(store, run.run_id)["evidence"] for key in evidence}
    log = ResponseLog(store.log_path)
    assert len(keys) == ASKED and all(log.get(key) is not None for key in keys)
    log.close()
