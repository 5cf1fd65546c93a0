"""Where a mean hides two kinds of items, figures of the report and comparisons have both."""

from __future__ import annotations

from dataclasses import replace

from cotlab.analysis.compare_verdict import category_sentence
from cotlab.analysis.tables.answer_change import answer_change_points
from cotlab.analysis.tables.declare import FigureData
from cotlab.analysis.tables.run_report import reference_table
from cotlab.analysis.verdict.category_split import category_shares
from cotlab.analysis.verdict.measures import CategorySplit, RunEvidence, Share, Validation

SPLIT = CategorySplit(("plain",), ("hinted",), Share(1, 0.921, 1, 45), Share(0, 0, 0.204, 15))
MEAN = RunEvidence(
    "hint",
    "wordproblems",
    "done",
    60,
    {"change": Share(0.75, 0.63, 0.84, 60)},
    validation={name: Validation(1.0, "") for name in ("change", "numeric_change")},
)
MIXED = replace(MEAN, split=SPLIT)


def test_the_figure_of_the_report_has_a_row_for_each_kind() -> None:
    data = reference_table(MIXED, {}, ("change",))
    assert isinstance(data, FigureData)
    rows = list(data.table[["label", "group", "point", "n"]].itertuples(index=False, name=None))
    assert rows == [("plain", "run", 1, 45), ("hinted", "run", 0, 15)]
    whole = reference_table(MEAN, {}, ("change",))
    assert isinstance(whole, FigureData)
    assert list(whole.table["label"]) == ["this run"]


def test_items_of_neither_kind_keep_the_row_of_the_mean() -> None:
    some = replace(MIXED, shares={"change": Share(0.6, 0.5, 0.7, 100)})
    data = reference_table(some, {}, ("change",))
    assert isinstance(data, FigureData)
    assert list(data.table["label"]) == ["plain", "all items", "hinted"]
    points = answer_change_points(some, None)
    assert [note for note in points["note"] if "items" in note] == [
        "plain items",
        "hinted items",
        "all items",
    ]


def test_a_measure_that_is_not_of_stated_changes_has_no_kinds() -> None:
    numbers = replace(MIXED, shares={"numeric_change": MEAN.shares["change"]})
    assert category_shares(numbers) == () and category_sentence(numbers, "hint", 60) == ""


def test_a_comparison_says_how_a_side_differs_by_kind() -> None:
    assert category_sentence(MIXED, "hint", 60) == (
        "The answers changed of hint differ by kind of item: 100 % in 45 items of category plain,"
        " 0 % in 15 items of category hinted."
    )
    assert "by kind of item over all its 60 items:" in category_sentence(MIXED, "hint", 9)
    assert category_sentence(MEAN, "hint", 60) == ""
