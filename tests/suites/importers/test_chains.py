"""Recorded chains of any tool: arrays and JSONL, one chain or several a question."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cotlab.core.errors import SuiteErrors
from cotlab.suites import load_suite, write_suite
from cotlab.suites.importers.door import ROWS, Form
from cotlab.suites.importers.formats import import_suite_file
from cotlab.suites.importers.rows import Columns
from cotlab.text.steps import split_steps
from tests.support.command import cotlab

SAMPLES = {
    "uid": 7,
    "question": "What is 2 + 3 + 4?",
    "gold": 9,
    "responses": ["2 + 3 = 5.\n5 + 4 = 9.", ["2 + 3 = 6.", "6 + 4 = 10."]],
    "parsed": ["9", "10"],
    "ok": [True, False],
    "model": "m",
}
SEVERAL = Columns(
    question="question",
    chains="responses",
    answer="gold",
    model_answer="parsed",
    correct="ok",
    id="uid",
)


def saved(path: Path, value: Any, **options: Any) -> Path:
    path.write_text(json.dumps(value, **options), "utf-8")
    return path


@pytest.mark.parametrize("indent", [None, 1])
def test_several_chains_of_a_question_in_an_array(indent: int | None, tmp_path: Path) -> None:
    file = saved(tmp_path / "log.json", [SAMPLES], indent=indent)
    first, second = import_suite_file(Form(ROWS, SEVERAL), file, split=split_steps).items
    assert [step.text for step in first.steps] == ["2 + 3 = 5.", "5 + 4 = 9."]
    assert [step.text for step in second.steps] == ["2 + 3 = 6.", "6 + 4 = 10."]
    assert (first.id, second.id, first.answer) == ("7-0", "7-1", "9")
    assert first.meta == {
        "model_answer": "9",
        "answer_correct": True,
        "model": "m",
        "cluster": "7-0",
        "draw": 0,
    }
    assert (second.meta["model_answer"], second.meta["answer_correct"]) == ("10", False)
    assert (second.meta["cluster"], second.meta["draw"]) == ("7-0", 1)


def test_fields_of_fields_and_chains_that_are_objects(tmp_path: Path) -> None:
    record = {"input": {"question": "Q"}, "runs": [{"cot": "One.\nTwo.", "ok": 1, "t": 0.7}]}
    fields = Columns("input.question", chain="cot", chains="runs", correct="ok")
    (item,) = import_suite_file(
        Form(ROWS, fields), saved(tmp_path / "a.json", [record]), split=split_steps
    ).items
    assert (item.id, item.question, item.answer) == ("a-0000", "Q", None)
    assert (item.meta["answer_correct"], item.meta["t"]) == (True, 0.7)


def test_reasoning_is_the_chain_and_what_follows_it_the_answer(tmp_path: Path) -> None:
    texts = [
        "<think>\n17 + 26 = 43.\n\nSo 43.\n</think>\n\n**Step 1.** Add.\n\n\\boxed{43}",
        "17 + 26 = 43.\n</think>\n\nThe sum is 43.",
        "<think>\n17 + 26",
        "17 + 26 = 43.\n\nSo 43.",
    ]
    record = {"question": "Q", "chains": texts, "parsed": [43, 43, None, 43]}
    path = saved(tmp_path / "a.json", [record])
    items = import_suite_file(
        Form(ROWS, Columns("question", chains="chains")), path, split=split_steps
    ).items
    assert [[step.text for step in item.steps] for item in items] == [
        ["17 + 26 = 43.", "So 43."],
        ["17 + 26 = 43."],
        ["17 + 26"],
        ["17 + 26 = 43.", "So 43."],
    ]
    assert [item.meta.get("model_answer") for item in items] == [
        "**Step 1.** Add.\n\n\\boxed{43}",
        "The sum is 43.",
        None,
        None,
    ]
    fields = Columns("question", chains="chains", model_answer="parsed")
    logged = import_suite_file(Form(ROWS, fields), path, split=split_steps).items
    assert [item.meta["model_answer"] for item in logged] == [43, 43, None, 43]


def test_a_defect_says_its_line_and_place(tmp_path: Path) -> None:
    bad = {**SAMPLES, "uid": 8, "ok": [True, "perhaps"]}
    file = saved(tmp_path / "log.json", [SAMPLES, bad, SAMPLES, {"uid": 1}, 5], indent=1)
    with pytest.raises(SuiteErrors) as caught:
        import_suite_file(Form(ROWS, SEVERAL), file, split=split_steps)
    lines = file.read_text().splitlines()
    found = [(error.line, error.field) for error in caught.value.errors]
    starts = [number for number, line in enumerate(lines, 1) if line == " {"]
    assert found == [
        (starts[1], "[1].ok"),
        (starts[2], "[2].item_id"),
        (starts[2], "[2].item_id"),
        (starts[3], "[3].responses"),
        (len(lines) - 1, "[4]"),
    ]
    kept = import_suite_file(Form(ROWS, SEVERAL), file, split=split_steps, good_lines=True)
    assert [item.id for item in kept.items] == ["7-0", "7-1", "8-0"]


@pytest.mark.parametrize(
    ("text", "line"), [("[\n{},\n{", 3), ("[{}\n{}]", 2), ("[]", None), ('[{"a": 1}] x', 1)]
)
def test_a_broken_array_is_named(text: str, line: int | None, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(text)
    with pytest.raises(SuiteErrors) as caught:
        import_suite_file(Form(ROWS, Columns("question")), file, split=split_steps)
    assert caught.value.errors[0].line == line


def test_the_command_imports_good_lines_and_names_the_others(tmp_path: Path) -> None:
    rows = [{"question": "Q", "chain": "One.\nTwo.", "answer": "1"}, {"question": "Q"}]
    file, output = tmp_path / "qa.jsonl", tmp_path / "suite.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("suites", "import", file, "--output", output)
    assert "2" in cotlab(*words, store=tmp_path, code=2).stderr and not output.exists()
    done = cotlab(*words, "--good-lines", store=tmp_path)
    assert f"{output}: 1 items, 1 left out, digest" in done.stdout
    assert "Left out: answer: is missing; the fields are question (line 2)" in done.stderr
    suite = load_suite(output)
    write_suite(suite, tmp_path / "again.jsonl")
    assert load_suite(tmp_path / "again.jsonl").items == suite.items
