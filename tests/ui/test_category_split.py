"""The page Steps says where its mean hides two kinds of items, with both numbers from 0 to 1."""

from __future__ import annotations

from dataclasses import replace

from cotlab.ui.run_notes import category_split_text
from tests.analysis.test_verdict import MEAN, MIXED, SPLIT


def test_both_categories_have_their_number_in_the_unit_of_the_figure() -> None:
    text = category_split_text(MIXED)
    assert text is not None
    assert "1.000 [0.921, 1.000] (100 %) in 45 items of category plain" in text
    assert "0.000 [0.000, 0.204] (0 %) in 15 items of category hinted" in text


def test_without_a_split_nothing_is_said() -> None:
    assert category_split_text(MEAN) is None
    assert category_split_text(replace(MIXED, split=replace(SPLIT, low_share=None))) is None
