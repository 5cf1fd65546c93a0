"""Numbers that open a line: what a shipped model cannot read of a suite is said alike before the
run, on the page and in the run's reasons."""

from __future__ import annotations

from pathlib import Path

import pytest

import cotlab
from cotlab.analysis.verdict.collect import collect_evidence
from cotlab.analysis.view import RunView
from cotlab.core.types import Item, Step, Suite
from cotlab.core.vocabulary import UnknownWord, unknown_word
from cotlab.run.config import read_config
from cotlab.run.dryrun import plan_cautions
from cotlab.run.launch import dry_run
from cotlab.store.database import Store
from cotlab.suites.jsonl import write_suite
from tests.support.command import cotlab as command
from tests.ui.test_pages import open_page

EXPLANATION = (
    "not in the model's vocabulary without a space before, as at the start of a line: steps of"
    ' these models begin with "Step 1: "'
)
QUESTION = "Ann has {} apples. She buys {} more. How many apples now?"


def problem(number: int, first: int, label: str = "Step 1: ") -> Item:
    """Return an item with one step, which adds 1 to ``first``."""
    step = Step(0, f"{label}{first} + 1 = {first + 1}.")
    return Item(f"q{number}", QUESTION.format(first, 1), str(first + 1), (step,))


def cautions_on(items: list[Item], folder: Path) -> str:
    """Return the cautions of a run of r100 on these items."""
    suite = Suite.from_items("mine", items)
    options = {"provider": "organism", "model": "r100", "task_suite": "mine"}
    options |= {"chain": "reference", "mode": ["corrupt", "paraphrase"]}
    plan, _ = dry_run(read_config(options), suite)
    return " ".join(plan_cautions(plan, suite))


def test_steps_without_their_label_are_named_alike_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = [problem(k, k + 2, label="") for k in range(3)]
    text = cautions_on(items, tmp_path)
    assert f"r100 cannot read 3 of 3 items: words such as '2', '3', '4' are {EXPLANATION}." in text
    assert "--chain own" in text and "wordproblems" not in text, "no other suite is needed"
    path = tmp_path / "mine.jsonl"
    write_suite(Suite.from_items("mine", items), path)
    words = ("run", "--task-suite", str(path), "--model", "r100", "--mode", "corrupt", "--dry-run")
    assert EXPLANATION in command(*words, store=tmp_path).stderr
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path))
    store = Store(tmp_path)
    run = cotlab.run_suite(path, store=tmp_path, model="r100", mode=["corrupt"]).run_id
    reasons = {missing.reason for missing in collect_evidence(RunView.read(store, run)).missing}
    assert reasons and all(EXPLANATION in reason for reason in reasons)
    page = open_page("new_run", **{"from": run})
    assert any(EXPLANATION in warning.value.replace("\\", "") for warning in page.warning)


def test_the_reason_says_where_a_word_would_be_read() -> None:
    pieces = {"Step", ":", " 7"}
    assert (
        unknown_word("zebras", 0, 6, pieces).reason == "'zebras' is not in the model's vocabulary"
    )
    for text, start in (("7 apples", 0), ("Q: a\n7", 5)):
        assert unknown_word(text, start, start + 1, pieces) == UnknownWord("7", EXPLANATION)
    within = unknown_word("x7", 1, 2, pieces)
    assert within.is_known_after_space and "Step" not in within.reason, "it opens no line"
    assert "Step" not in unknown_word("7", 0, 1, {" 7"}).reason, "its steps have no labels"
