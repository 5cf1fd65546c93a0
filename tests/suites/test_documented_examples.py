"""The examples of the documentation are read by a shipped organism, from the upload to a value."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cotlab.core.types import Suite
from cotlab.run.config import read_config
from cotlab.run.dryrun import plan_cautions
from cotlab.run.launch import dry_run
from cotlab.run.unreadable_items import find_unreadable_items
from cotlab.store.database import Store
from cotlab.store.read import get_suite, list_suites
from tests.support.pages import app_at

DOCS = Path(__file__).parents[2] / "docs"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def documented_items() -> list[tuple[str, dict[str, Any]]]:
    """Return the examples of the documents as lines of a suite, each with a model for it."""
    examples = []
    for path in sorted(DOCS.rglob("*.md")):
        for kind, code in FENCE.findall(path.read_text("utf-8")):
            lines = code.splitlines()
            if kind == "json" and '"reference_cot"' in code:
                examples += [("r100", json.loads(line)) for line in lines]
            elif kind == "text" and code.startswith("Q: ") and "\nSo the answer is " in code:
                steps = [{"index": k, "text": text} for k, text in enumerate(lines[1:-1])]
                model = "s100-a" if "plus" in code else "r100"
                answer = lines[-1].removeprefix("So the answer is ").removesuffix(".")
                item = {"item_id": "q", "prompt": lines[0][3:], "reference_cot": steps}
                examples.append((model, {**item, "ground_truth": answer}))
    return examples


EXAMPLES = documented_items()


def upload(item: dict[str, Any], folder: Path) -> Suite:
    """Store a suite of one item by the page Suites, and return it."""
    page = app_at("upload").run()
    page.file_uploader(key="upload-file").set_value(
        ("mine.jsonl", json.dumps(item).encode(), "application/json")
    ).run()
    page.button(key="upload-add").click().run()
    assert not page.exception and not page.error
    return get_suite(Store(folder), list_suites(Store(folder))["digest"].iloc[0])


def test_there_are_examples_of_both_languages() -> None:
    assert {model for model, _ in EXAMPLES} == {"r100", "s100-a"} and len(EXAMPLES) >= 3


@pytest.mark.parametrize(("model", "item"), EXAMPLES)
def test_an_example_can_be_uploaded_and_read(
    model: str, item: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path))
    suite = upload(item, tmp_path)
    options = {"provider": "organism", "model": model, "task_suite": suite.name}
    options |= {"chain": "reference", "mode": ["corrupt", "paraphrase"]}
    plan, _ = dry_run(read_config(options), suite)
    assert find_unreadable_items(plan, suite) is None
    assert not [text for text in plan_cautions(plan, suite) if "cannot read" in text]
