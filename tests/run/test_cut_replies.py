"""Replies that were cut off: no answer is read from them, and the run says how many there are."""

from __future__ import annotations

from pathlib import Path

from tests.run.test_attack import small_suite
from tests.support.forked import Forking, printed
from tests.support.loopback import Loopback
from tests.support.running import report, scores

CUT = "To find the answer we add: 3 + 1 = 4. Then 4 + 3 = 7. Next"
ITEMS, STEPS = 2, 3


def test_a_run_of_cut_replies_says_so_and_has_no_answers(
    tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    server.script(then={"text": CUT, "finish": "length"})
    words = ("--task-suite", small_suite(tmp_path, ITEMS, STEPS), "--provider", "openai_compat")
    words += ("--model", "m", "--base-url", server.base_url, "--run-id", "r", "--probe", "never")
    words += ("--answer-tokens", "100", "--max-requests-per-minute", "100000")
    assert runs.run(tmp_path, *words) == 7, printed(tmp_path)
    n_replies = ITEMS * (STEPS + 1)
    assert report(tmp_path, "r")["cut_replies"] == [
        {
            "max_tokens": 100,
            "replies": n_replies,
            "cut_off": n_replies,
            "options": ["--answer-tokens"],
        }
    ]
    text = " ".join(printed(tmp_path).split())
    assert f"{n_replies} of {n_replies} replies were cut off at 100 output tokens" in text
    assert "Raise --answer-tokens." in text
    table = scores(tmp_path, "r")
    answers = table[table["metric"].isin(["baseline_correct", "accuracy_delta"])]
    assert len(answers) == n_replies and answers["value"].isna().all()
    assert answers["reason"].eq("the reply was cut off at 100 tokens, before an answer").all()
