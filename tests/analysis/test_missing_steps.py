"""Steps without a value are said where their items have one: else each step seems measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cotlab.analysis.verdict.collect import collect_evidence
from cotlab.analysis.verdict.result import missing_scores_text
from cotlab.analysis.verdict.verdicts import judge_run
from cotlab.analysis.view import RunView
from cotlab.core.types import Item, Score, Step, Suite
from cotlab.store import write
from cotlab.store.database import Store
from tests.analysis.test_verdict import FOLLOWS
from tests.support.stores import add_run
from tests.support.stores.judged import FACETS, PARAMS

STEPS = (Step(0, "1."), Step(1, "1."))
SUITE = Suite.from_items("two steps", [Item(f"i{k}", f"{k}?", "1", STEPS) for k in range(3)])
VALUES: dict[str, tuple[float | None, ...]] = {
    "i0": (1.0, 1.0),
    "i1": (1.0, None),
    "i2": (None, None),
}
"""One item lacks one of its two steps, and one both."""


def test_a_step_without_a_value_is_counted_where_its_item_has_one(tmp_path: Path) -> None:
    store, (metric, facet) = Store(tmp_path), FACETS["change"]
    ended = [
        write.EndedItem(
            "ablation",
            1,
            "p",
            item.id,
            tuple(
                Score(metric, item.id, value, step=step, facet=facet)
                if value is not None
                else Score(
                    metric, item.id, None, step=step, facet=facet, status="undefined", reason="no"
                )
                for step, value in enumerate(VALUES[item.id])
            ),
        )
        for item in SUITE.items
    ]
    add_run(store, "run", SUITE, ended, scorers=("ablation",), params=PARAMS)
    evidence = collect_evidence(RunView.read(store, "run"))
    assert (evidence.n_scores, evidence.n_scores_missing) == (6, 1)
    assert [entry.n_items for entry in evidence.missing] == [1]


def test_a_finding_has_it_among_its_limits() -> None:
    partly = replace(FOLLOWS, n_scores=900, n_scores_missing=2)
    assert missing_scores_text(partly) == "2 of 900 scores of changed steps have no value."
    assert missing_scores_text(partly) in judge_run(partly).limits
    assert missing_scores_text(FOLLOWS) == ""
