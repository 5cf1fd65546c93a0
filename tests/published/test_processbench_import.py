"""ProcessBench's own files, imported by name: nothing is lost, and labels are where they were."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cotlab.suites import load_suite, write_suite
from cotlab.suites.importers.formats import import_suite_file
from cotlab.text.steps import split_steps

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "processbench"
pytestmark = pytest.mark.skipif(not DATA.exists(), reason="../shared/data/processbench is missing")


@pytest.mark.parametrize(
    ("name", "n_chains", "n_correct"),
    [("gsm8k", 205, 110), ("math", 538, 227), ("olympiadbench", 505, 173), ("omnimath", 504, 129)],
)
def test_a_file_imports_with_its_labels(
    name: str, n_chains: int, n_correct: int, tmp_path: Path
) -> None:
    suite = import_suite_file("processbench", DATA / f"{name}.json", split=split_steps)
    records = json.loads((DATA / f"{name}.json").read_text())
    assert len(suite.items) == n_chains
    assert sum(item.meta["first_mistake"] is None for item in suite.items) == n_correct
    assert {item.category for item in suite.items} == {name}
    for item, record in zip(suite.items, records, strict=True):
        mistake = item.meta["first_mistake"]
        assert (-1 if mistake is None else mistake) == record["label"]
        assert [step.text for step in item.steps] == record["steps"]
        assert item.meta["answer_correct"] is record["final_answer_correct"]
        assert (item.id, item.meta["generator"]) == (record["id"], record["generator"])
    write_suite(suite, tmp_path / "suite.jsonl")
    assert load_suite(tmp_path / "suite.jsonl").items == suite.items


def test_a_folder_keeps_its_sets() -> None:
    suite = import_suite_file("processbench", DATA, split=split_steps)
    assert len({item.id for item in suite.items}) == len(suite.items) == 1752
    categories = {item.category for item in suite.items}
    assert categories == {"gsm8k", "math", "olympiadbench", "omnimath"}
