"""Question-answer files, GSM8K and reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cotlab.core.errors import SuiteErrors
from cotlab.core.types import Item, Step
from cotlab.suites import load_suite, write_suite
from cotlab.suites.importers.door import ROWS, Form
from cotlab.suites.importers.formats import IMPORT_FORMATS, import_suite_file
from cotlab.suites.importers.rows import Columns


def written(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    return path


def fields(caught: pytest.ExceptionInfo[SuiteErrors]) -> list[tuple[int | None, str]]:
    return [(error.line, error.field) for error in caught.value.errors]


def test_gsm8k(tmp_path: Path) -> None:
    answer = (
        "He has 2*3=<<2*3=6>>6 bags.\n\nThat is $6*180.5=$<<6*180.5=1083>>1,083.\n#### -1,080.50"
        " dollars"
    )
    path = written(tmp_path / "test.jsonl", {"question": "How much?", "answer": answer, "level": 2})
    steps = (Step(0, "He has 2*3=6 bags."), Step(1, "That is $6*180.5=$1,083."))
    suite = import_suite_file("gsm8k", path, split=str.splitlines)
    assert suite.name == "test"
    assert suite.items == (
        Item("test-0000", "How much?", "-1080.50 dollars", steps, meta={"level": 2}),
    )


def test_gsm8k_defects_are_told_at_once(tmp_path: Path) -> None:
    good = {"question": "Q", "answer": "One.\n#### 1"}
    bad = [
        {"question": "Q"},
        {**good, "answer": "One."},
        {**good, "answer": "#### 1"},
        {**good, "answer": "One.\n####"},
    ]
    path = written(tmp_path / "t.jsonl", good, *bad, {"question": 3, "answer": 4}, [])
    with pytest.raises(SuiteErrors) as caught:
        import_suite_file("gsm8k", path, split=str.splitlines)
    assert fields(caught) == [(k, "answer") for k in (2, 3, 4, 5)] + [
        (6, "question"),
        (6, "answer"),
        (7, ""),
    ]
    assert [
        item.id
        for item in import_suite_file("gsm8k", path, split=str.splitlines, good_lines=True).items
    ] == ["t-0000"]


def test_qa_with_named_fields(tmp_path: Path) -> None:
    path = written(
        tmp_path / "qa.jsonl",
        {
            "q": "Q1",
            "why": "One. Two. ",
            "a": "1",
            "nr": 7,
            "category": "sum",
            "prompt": "P",
            "page": 3,
        },
        {"q": "Q2", "why": ["One", "Two"], "a": None, "nr": "x", "category": 5},
        {"q": "Q3", "why": "One.", "a": 12, "nr": "y", "kind": None},
    )
    fields = Columns("q", "why", answer="a", id="nr", category="category")
    suite = import_suite_file(Form(ROWS, fields), path, split=lambda t: t.split(". "))
    assert suite.items == (
        Item(
            "7",
            "Q1",
            "1",
            (Step(0, "One"), Step(1, "Two")),
            "sum",
            {"source_prompt": "P", "page": 3},
        ),
        Item("x", "Q2", None, (Step(0, "One"), Step(1, "Two")), "", {"category": 5}),
        Item("y", "Q3", "12", (Step(0, "One."),), "", {"kind": None}),
    )
    write_suite(suite, tmp_path / "back.jsonl")
    assert load_suite(tmp_path / "back.jsonl").items == suite.items


def test_qa_defects(tmp_path: Path) -> None:
    good = {"question": "Q", "chain": "One.", "answer": "1", "id": "a"}
    bad: list[dict[str, Any]] = [
        {**good, "question": ""},
        {**good, "chain": []},
        {**good, "chain": ["One.", " "]},
        {**good, "chain": 5},
        {**good, "answer": {"value": 1}},
        {**good, "answer": " "},
        {**good, "id": None},
        {"question": "Q"},
        good,
    ]
    for i, one in enumerate(bad[:7]):
        one["id"] = None if one["id"] is None else f"b{i}"
    path = written(tmp_path / "qa.jsonl", good, *bad)
    with pytest.raises(SuiteErrors) as caught:
        import_suite_file(
            Form(ROWS, Columns("question", "chain", answer="answer", id="id")),
            path,
            split=str.splitlines,
        )
    assert fields(caught) == [
        (2, "question"),
        (3, "chain"),
        (4, "chain[1]"),
        (5, "chain"),
        (6, "answer"),
        (7, "answer"),
        (8, "id"),
        (9, "answer"),
        (9, "id"),
        (10, "item_id"),
    ]
    with pytest.raises(SuiteErrors, match="is missing; the fields are question, chain, answer, id"):
        import_suite_file(
            Form(ROWS, Columns("prompt", "chain", answer="answer")), path, split=str.splitlines
        )


def test_missing_files(tmp_path: Path) -> None:
    for kind in IMPORT_FORMATS:
        form = Form(kind, Columns("question"))
        with pytest.raises(SuiteErrors, match="no such file"):
            import_suite_file(form, tmp_path / "absent", split=str.splitlines)
