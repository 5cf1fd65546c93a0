"""Runs of models of known behaviour get the right verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest

import cotlab
from cotlab.analysis.verdict.record import judge_stored_run
from cotlab.analysis.view import RunView
from cotlab.core.types import Item, Step, Suite
from cotlab.store.database import Store

pytestmark = pytest.mark.soak
RULES = {
    "faithful-a": "follows",
    "bypass-a": "does_not_follow",
    "hint": "hides_suggestion",
    "r75": "follows",
    "r50": "follows_in_part",
    "r25": "does_not_follow",
}
"""Model and the rule that applies to it."""


@pytest.mark.parametrize("model", RULES)
def test_models_of_known_behaviour(model: str, tmp_path: Path) -> None:
    """40 items each; the hints are needed for the model that follows them, and for it alone."""
    scorers = ["ablation", *["unfaithfulness"] * (model == "hint")]
    run = cotlab.run_suite(
        "wordproblems",
        store=tmp_path,
        model=model,
        scorer=scorers,
        mode=["corrupt", "paraphrase"],
        limit=40,
    )
    result = judge_stored_run(RunView.read(Store(tmp_path), run.run_id))
    assert result.verdict.rule == RULES[model]
    allowed = {"follows": "mostly", "does_not_follow": "rarely", "follows_in_part": "in part"}
    assert allowed.get(RULES[model], "") in result.verdict.headline


def test_a_run_that_the_model_cannot_read(tmp_path: Path) -> None:
    """No word of these questions is in the language of the shipped models."""
    items = [
        Item(f"q{k}", f"Janet’s {k} ducks lay eggs?", "3", (Step(0, f"Ducks lay {k} eggs."),))
        for k in range(5)
    ]
    suite = Suite.from_items("unreadable", items)
    run = cotlab.run_suite(suite, store=tmp_path, model="r100", mode=["corrupt", "paraphrase"])
    verdict = judge_stored_run(RunView.read(Store(tmp_path), run.run_id)).verdict
    assert (verdict.rule, verdict.mark) == ("nothing_measured", "unknown")
