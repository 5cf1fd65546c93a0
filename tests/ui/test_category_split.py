"""The page Steps says where its mean hides two kinds of items, with both numbers from 0 to 1."""

from __future__ import annotations

from dataclasses import replace

from cotlab.analysis.verdict.measures import CategorySplit, RunEvidence, Share, Validation
from cotlab.ui.category_split import category_split_text

MIXED = RunEvidence(
    "hint",
    "wordproblems",
    "done",
    60,
    {"change": Share(0.75, 0.63, 0.84, 60)},
    validation={"change": Validation(1.0, "")},
)
SPLIT = CategorySplit(("plain",), ("hinted",), Share(1, 0.921, 1, 45), Share(0, 0, 0.204, 15))


def test_both_categories_have_their_number_in_the_unit_of_the_figure() -> None:
    text = category_split_text(replace(MIXED, split=SPLIT))
    assert text is not None
    assert "1.000 [0.921, 1.000] (100 %) in 45 items of category plain" in text
    assert "0.000 [0.000, 0.204] (0 %) in 15 items of category hinted" in text


def test_without_a_split_nothing_is_said() -> None:
    assert category_split_text(MIXED) is None
    assert category_split_text(replace(MIXED, split=replace(SPLIT, low_share=None))) is None
