"""Question-answer files, GSM8K and reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cotlab.core.errors import SuiteErrors
from cotlab.core.types import Item, ModelRef, Score, Step
from cotlab.suites import import_faithcheck_report, import_gsm8k, import_qa, load_suite, write_suite


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
    suite = import_gsm8k(path)
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
        import_gsm8k(path)
    assert fields(caught) == [(k, "answer") for k in (2, 3, 4, 5)] + [
        (6, "question"),
        (6, "answer"),
        (7, ""),
    ]
    assert [item.id for item in import_gsm8k(path, good_lines=True).items] == ["t-0000"]


def test_qa_with_named_fields(tmp_path: Path) -> None:
    path = written(
        tmp_path / "qa.jsonl",
        {
            "q": "Q1",
            "why": "One. Two. ",
            "a": "1",
            "nr": 7,
            "kind": "sum",
            "prompt": "P",
            "page": 3,
        },
        {"q": "Q2", "why": ["One", "Two"], "a": None, "nr": "x", "category": "c"},
        {"q": "Q3", "why": "One.", "a": 12, "nr": "y", "kind": None},
    )
    suite = import_qa(
        path,
        split=lambda t: t.split(". "),
        question="q",
        chain="why",
        answer="a",
        id="nr",
        category="kind",
    )
    assert suite.items == (
        Item(
            "7",
            "Q1",
            "1",
            (Step(0, "One"), Step(1, "Two")),
            "sum",
            {"source_prompt": "P", "page": 3},
        ),
        Item("x", "Q2", None, (Step(0, "One"), Step(1, "Two")), "", {"source_category": "c"}),
        Item("y", "Q3", "12", (Step(0, "One."),), "", {"kind": None}),
    )
    write_suite(suite, tmp_path / "back.jsonl")
    assert load_suite(tmp_path / "back.jsonl").items == suite.items


def test_qa_without_chain_and_ids(tmp_path: Path) -> None:
    path = written(tmp_path / "qa.jsonl", {"question": "Q", "answer": "1", "category": "c"})
    (item,) = import_qa(path, split=str.splitlines, chain=None).items
    assert item == Item("qa-0000", "Q", "1", (), "c")


def test_qa_defects(tmp_path: Path) -> None:
    good = {"question": "Q", "chain": "One.", "answer": "1", "id": "a"}
    bad: list[dict[str, Any]] = [
        {**good, "question": ""},
        {**good, "chain": []},
        {**good, "chain": ["One.", " "]},
        {**good, "chain": 5},
        {**good, "answer": 1.5},
        {**good, "answer": True},
        {**good, "id": None},
        {"question": "Q"},
        good,
    ]
    for i, one in enumerate(bad[:7]):
        one["id"] = None if one["id"] is None else f"b{i}"
    path = written(tmp_path / "qa.jsonl", good, *bad)
    with pytest.raises(SuiteErrors) as caught:
        import_qa(path, split=str.splitlines, id="id")
    assert fields(caught) == [
        (2, "question"),
        (3, "chain"),
        (4, "chain[1]"),
        (5, "chain"),
        (6, "answer"),
        (7, "answer"),
        (8, "id"),
        (9, "chain"),
        (9, "answer"),
        (9, "id"),
        (10, "item_id"),
    ]
    with pytest.raises(SuiteErrors, match="is missing; this line has question, chain, answer, id"):
        import_qa(path, split=str.splitlines, question="prompt")


def report(**changes: Any) -> dict[str, Any]:
    steps = [
        {"step_index": 0, "score": 1.0, "metric": "accuracy_delta"},
        {
            "step_index": 1,
            "score": None,
            "metric": "accuracy_delta",
            "status": "refused",
            "reason": "the model refused",
        },
        {"step_index": 2, "score": None, "metric": "accuracy_delta", "status": "ok"},
        {"step_index": 0, "score": 0.25, "metric": "token_delta", "mode": "remove", "sample": 2},
    ]
    return {
        "harness_version": "0.1.0",
        "model_id": "gpt-4o",
        "provider": "openai",
        "task_suite_hash": "ab" * 32,
        "items": [
            {
                "item_id": "m-1",
                "step_scores": steps,
                "baseline_output": "18",
                "ablated_outputs": {"0": "9"},
            }
        ],
        "aggregate_rrr": 0.25,
        "aggregate_rrr_ci_lower": None,
        **changes,
    }


def test_report(tmp_path: Path) -> None:
    path = written(tmp_path / "report.json", report())
    found = import_faithcheck_report(path)
    assert found.model == ModelRef("openai", "gpt-4o")
    assert found.suite_hash == "ab" * 32
    assert found.scores == (
        Score("accuracy_delta", "m-1", 1.0, step=0),
        Score("accuracy_delta", "m-1", None, step=1, status="refused", reason="the model refused"),
        Score(
            "accuracy_delta",
            "m-1",
            None,
            step=2,
            status="undefined",
            reason="the report gives no value",
        ),
        Score("token_delta", "m-1", 0.25, step=0, sample=2, facet=(("mode", "remove"),)),
    )


def test_a_report_with_nan_has_undefined_scores(tmp_path: Path) -> None:
    items = [
        {
            "item_id": "a",
            "step_scores": [{"step_index": 0, "score": float("nan"), "metric": "kl_divergence"}],
        }
    ]
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report(items=items, aggregate_rrr=float("nan")), indent=2))
    (score,) = import_faithcheck_report(path).scores
    assert (score.value, score.status) == (None, "undefined")


@pytest.mark.parametrize(
    ("data", "field", "says"),
    [
        (b"", "", "is not JSON: it breaks off"),
        (b"[1]", "", "must be a JSON object; found a list"),
        (b'{"a": \xff}', "", "byte 6 of the file is not UTF-8"),
        (b"[" * 100_000, "", "nested too deeply"),
        (report(model_id=None), "model_id", "must be a string; found null"),
        (report(provider=""), "provider", "is empty"),
        (report(items={}), "items", "must be a list; found an object"),
        (report(items=[3]), "items[0]", "must be an object"),
        (report(items=[{"item_id": "a"}]), "items[0].step_scores", "must be a list; found null"),
        (report(aggregate_rrr=float("inf")), "aggregate_rrr", "Infinity is not JSON"),
    ],
)
def test_defects_of_a_report(
    data: bytes | dict[str, Any], field: str, says: str, tmp_path: Path
) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
    with pytest.raises(SuiteErrors) as caught:
        import_faithcheck_report(path)
    (error,) = caught.value.errors
    assert error.field == field
    assert says in error.message


@pytest.mark.parametrize(
    ("step", "key", "says"),
    [
        ({"step_index": -1, "score": 0, "metric": "m"}, ".step_index", "whole number from 0"),
        ({"step_index": 5, "score": 0, "metric": None}, ".metric", "must be a string"),
        (
            {"step_index": 5, "score": 1.5, "metric": "m"},
            ".score",
            "must lie in [0, 1]; found the number 1.5",
        ),
        (
            {"step_index": 5, "score": "1", "metric": "m"},
            ".score",
            "must be a number or null; found text",
        ),
        (
            {"step_index": 0, "score": 0, "metric": "accuracy_delta"},
            "",
            "is a second accuracy_delta of step 0 of item 'm-1'",
        ),
        ("x", "", "must be an object"),
    ],
)
def test_defects_of_a_step_score(step: Any, key: str, says: str, tmp_path: Path) -> None:
    whole = report()
    whole["items"][0]["step_scores"].append(step)
    with pytest.raises(SuiteErrors) as caught:
        import_faithcheck_report(written(tmp_path / "report.json", whole))
    (error,) = caught.value.errors
    assert error.field == f"items[0].step_scores[4]{key}"
    assert says in error.message


def test_missing_files(tmp_path: Path) -> None:
    for call in (
        import_gsm8k,
        import_faithcheck_report,
        lambda p: import_qa(p, split=str.splitlines),
    ):
        with pytest.raises(SuiteErrors, match="no such file"):
            call(tmp_path / "absent")
