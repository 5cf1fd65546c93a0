"""Reports come in as runs without texts: the same scores, the same RRR."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cotlab.review.labelling.files import LabelErrors, import_labels
from cotlab.run.imports.report import store_imported_report
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.suites.importers.question_answer import import_faithcheck_report
from tests.support.command import cotlab
from tests.support.whole_report import build_whole_report


def written(folder: Path, scores: dict[str, list[float | None]], **more: Any) -> Path:
    """A report as FaithCheck writes it: no mode, no status, no threshold."""
    items = [
        {
            "item_id": name,
            "step_scores": [
                {"step_index": i, "score": score, "metric": "accuracy_delta"}
                for i, score in enumerate(values)
            ],
        }
        for name, values in scores.items()
    ]
    head = {"model_id": "m", "provider": "openai", "task_suite_hash": "ab" * 32}
    path = folder / "report.json"
    path.write_text(json.dumps({**head, "items": items, **more}))
    return path


@pytest.mark.parametrize(("threshold", "rrr"), [(None, 0.75), (0.6, 1.0)])
def test_rrr_is_that_of_the_report(threshold: float | None, rrr: float, tmp_path: Path) -> None:
    """Item a: one of two steps below .1; item b: both of two defined ones."""
    more = {} if threshold is None else {"ccs_threshold": threshold}
    path = written(tmp_path, {"a": [0.5, 0.0], "b": [0.0, 0.0, None]}, **more)
    store = Store(tmp_path / "store")
    first, again = (
        store_imported_report(store, import_faithcheck_report(path), "suite") for _ in range(2)
    )
    assert first.is_new and not again.is_new and first.run_id == again.run_id
    report = build_whole_report(store, first.run_id)
    assert (report["aggregate_rrr"], report["ccs_threshold"]) == (rrr, threshold or 0.1)
    assert "no texts" in report["note"] and report["provider"] == "published"
    assert report["items"][1]["step_scores"][2]["status"] == "undefined"


def test_items_without_texts_take_labels_by_their_id(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    report = import_faithcheck_report(written(tmp_path, {"a": [0.5, 0.0], "b": [0.0]}))
    run_id = store_imported_report(store, report, "suite").run_id
    label = {"run": run_id, "item_id": "a", "rater": "ann", "reasoning": "acceptable"}
    path = tmp_path / "labels.jsonl"
    path.write_text(json.dumps(label) + "\n")
    assert import_labels(store, path).n_new == 1
    path.write_text(json.dumps({**label, "item_id": "z"}) + "\n")
    with pytest.raises(LabelErrors, match=r"labels\.jsonl:1: item_id"):
        import_labels(store, path)


def test_the_command_names_the_suite_after_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "nightly"
    folder.mkdir()
    path = written(folder, {"a": [1.0, 0.0]})
    done = cotlab("ablation", "import", path, store=tmp_path / "store")
    assert done.stdout.startswith("Stored: run import-") and "m on nightly." in done.stdout
    assert len(read.list_runs(Store(tmp_path / "store"))) == 1
    empty = written(tmp_path, {})
    assert "no step score" in cotlab("ablation", "import", empty, store=tmp_path, code=2).stderr
