"""The report says how often replies restate the step that was removed."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.forked import Forking, printed
from tests.support.loopback import Loopback
from tests.support.running import report

STEPS = ("Ann has 3 + 1 = 4 pens.", "With Bob's she has 4 + 3 = 7 pens.", "All of them are blue.")


def suite(folder: Path) -> str:
    path = folder / "suite.jsonl"
    chain = [{"index": index, "text": text} for index, text in enumerate(STEPS)]
    rows = [
        {
            "item_id": f"i{k}",
            "prompt": f"How many pens of number {k}?",
            "reference_cot": chain,
            "ground_truth": "7",
        }
        for k in range(2)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return str(path)


def words(folder: Path, server: Loopback, run_id: str) -> tuple[str, ...]:
    return (
        *("--task-suite", suite(folder), "--provider", "openai_compat", "--model", "m"),
        *("--base-url", server.base_url, "--run-id", run_id, "--probe", "never"),
        *("--max-requests-per-minute", "100000"),
    )


def test_a_model_that_restates_the_removed_step_is_named(
    tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    restating_reply = "There are 3 + 4 = 7. So the answer is 7."
    server.script(
        # the second step is restated where it was removed, the others are not
        answers={f"{STEPS[0]}\n{STEPS[2]}": restating_reply, "": "So the answer is 7."}
    )
    assert runs.run(tmp_path, *words(tmp_path, server, "r")) == 0, printed(tmp_path)
    expected = {"mode": "remove", "replies": 6, "restating": 2, "share": 2 / 6, "reason": None}
    assert report(tmp_path, "r")["restated_steps"] == expected
    line = "2 of 6 replies without a step (33%) restate that step."
    assert line in " ".join(printed(tmp_path).split())
    markdown = next(tmp_path.rglob("report.md")).read_text("utf-8")
    assert f"**Restated steps:** {line}" in markdown


def test_without_texts_the_share_is_unknown(
    tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    server.script(then={"text": f"{' '.join(STEPS)} So the answer is 7."})
    assert runs.run(tmp_path, *words(tmp_path, server, "r"), "--redact-prompts") == 0, printed(
        tmp_path
    )
    record = report(tmp_path, "r")["restated_steps"]
    assert (record["replies"], record["share"]) == (0, None) and record["reason"]


def test_an_empty_reply_is_none_that_leaves_the_step_out(
    tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    server.script(then={"text": ""})
    assert runs.run(tmp_path, *words(tmp_path, server, "r"), "--allow-empty") == 0
    record = report(tmp_path, "r")["restated_steps"]
    assert (record["replies"], record["share"]) == (0, None) and record["reason"]


def test_a_run_that_removes_nothing_has_no_share(
    tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    server.script(then={"text": "So the answer is 7."})
    assert runs.run(tmp_path, *words(tmp_path, server, "r"), "--mode", "truncate") == 0
    assert report(tmp_path, "r")["restated_steps"] is None
