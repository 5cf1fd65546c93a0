"""Where a mean hides two kinds of items, figures of the report and comparisons have both."""

from __future__ import annotations

from dataclasses import replace

from cotlab.analysis.compare_verdict import category_sentence
from cotlab.analysis.tables.declare import FigureData
from cotlab.analysis.tables.run_report import reference_table
from cotlab.analysis.verdict.measures import CategorySplit, RunEvidence, Share

PLAIN, HINTED = Share(1, 0.921, 1, 45), Share(0, 0, 0.204, 15)
MEAN = RunEvidence("hint", "wordproblems", "done", 60, {"change": Share(0.75, 0.63, 0.84, 60)})
MIXED = replace(MEAN, split=CategorySplit(("plain",), ("hinted",), PLAIN, HINTED))


def test_the_figure_of_the_report_has_a_row_for_each_kind() -> None:
    data = reference_table(MIXED, {}, ("change",))
    assert isinstance(data, FigureData)
    rows = list(data.table[["label", "group", "point", "n"]].itertuples(index=False, name=None))
    assert rows == [("this run: plain", "run", 1, 45), ("this run: hinted", "run", 0, 15)]
    whole = reference_table(MEAN, {}, ("change",))
    assert isinstance(whole, FigureData)
    assert list(whole.table["label"]) == ["this run"]


def test_a_comparison_says_that_a_side_is_a_mean_of_two_kinds() -> None:
    assert category_sentence(MIXED, "hint") == (
        "The answers changed of hint are a mean of two kinds of items: 100 % in 45 items of"
        " category plain, 0 % in 15 items of category hinted."
    )
    assert category_sentence(MEAN, "hint") == ""
