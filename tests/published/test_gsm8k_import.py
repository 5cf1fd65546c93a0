"""GSM8K as published: every line imports, and what is read agrees with the notes that its authors
left."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cotlab.suites import import_suite_file

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "gsm8k"
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="GSM8K is not beside the repository (../shared/data/gsm8k)"
)


@pytest.mark.parametrize(("name", "count"), [("test", 1319), ("train_first1500", 1500)])
def test_every_line_imports(name: str, count: int) -> None:
    suite = import_suite_file("gsm8k", FOLDER / f"{name}.jsonl", split=str.splitlines)
    raw = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8")
    assert len(suite.items) == len(raw.splitlines()) == count
    assert all(item.answer and re.fullmatch(r"-?\d+(\.\d+)?", item.answer) for item in suite.items)
    assert not any(
        mark in step.text
        for item in suite.items
        for step in item.steps
        for mark in ("<<", ">>", "####")
    )
    # a step is a line with something in it, so it is followed by one run of line breaks ("\n" in
    # the file)
    assert sum(len(item.steps) for item in suite.items) == len(re.findall(r"(?:\\n)+", raw))


def test_the_first_item_reads_as_printed() -> None:
    item = import_suite_file("gsm8k", FOLDER / "test.jsonl", split=str.splitlines).items[0]
    assert [step.text for step in item.steps] == [
        "Janet sells 16 - 3 - 4 = 9 duck eggs a day.",
        "She makes 9 * 2 = $18 every day at the farmer\u2019s market.",
    ]
    assert item.answer == "18"


def test_commas_leave_the_answer() -> None:
    answers = {
        item.answer
        for item in import_suite_file("gsm8k", FOLDER / "test.jsonl", split=str.splitlines).items
    }
    assert {"2125", "114200", "1450000"} <= answers
