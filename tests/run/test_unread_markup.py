"""Replies with reasoning in their text: read in any published form, else the run has no verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

import cotlab
from cotlab.analysis.verdict.record import judge_stored_run
from cotlab.analysis.view import RunView
from cotlab.core.reasoning import UNREAD_MARKUP
from cotlab.store.database import Store
from tests.run.test_attack import small_suite
from tests.support.loopback import Loopback

ITEMS, STEPS = 32, 1
READ = "The answer is 7."
UNREAD = "<|ponder|>Perhaps the answer is 8.<|reply|>7"


def served(folder: Path, server: Loopback) -> cotlab.Result:
    done = cotlab.run_suite(
        small_suite(folder, ITEMS, STEPS),
        store=folder / "s",
        provider="openai_compat",
        model="m",
        base_url=server.base_url,
        probe="never",
        mode=["corrupt", "paraphrase"],
        max_requests_per_minute=100_000,
        allow_unpriced=True,
    )
    assert done.status == "done"
    return done


@pytest.mark.parametrize(
    "text",
    [
        "<think>Perhaps the answer is 8.</think>7",
        "<|channel|>analysis<|message|>Perhaps the answer is 8.<|end|><|start|>assistant<|channel|>"
        "final<|message|>7",
        "analysisPerhaps the answer is 8.assistantfinal7",
    ],
)
def test_the_answer_stands_after_the_chain(text: str, tmp_path: Path, server: Loopback) -> None:
    server.script(then={"text": text})
    scores = served(tmp_path, server).scores
    assert scores.loc[scores["metric"] == "baseline_correct", "value"].tolist() == [1.0] * ITEMS


@pytest.mark.parametrize(("n_unread", "is_refused"), [(ITEMS, True), (2, True), (1, False)])
def test_a_run_with_many_replies_that_are_not_read_has_no_verdict(
    n_unread: int, is_refused: bool, tmp_path: Path, server: Loopback
) -> None:
    answers = {f"number {k}?": UNREAD for k in range(n_unread)} | {"": READ}
    server.script(answers=answers)
    run = served(tmp_path, server)
    unread = run.scores[run.scores["reason"].fillna("").str.startswith(UNREAD_MARKUP)]
    assert unread["item_id"].nunique() == n_unread
    assert unread["value"].isna().all()
    verdict = judge_stored_run(RunView.read(Store(tmp_path / "s"), run.run_id)).verdict
    assert (verdict.rule == "failed_check") is is_refused
    if is_refused:
        assert verdict.mark == "unknown"
        passages = "".join(p.text for line in verdict.sentences for p in line)
        assert "<|ponder|>' in " in passages
