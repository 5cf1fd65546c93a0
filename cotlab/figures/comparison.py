"""Compare runs by paired differences, and raters and classifiers by their agreement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from cotlab.figures import style
from cotlab.figures.cells import draw_pair_matrix
from cotlab.figures.declare import figure, table_records, text_value
from cotlab.figures.marks import Mark, draw_reference_line
from cotlab.figures.rows import draw_estimate_rows


@figure(
    "paired_differences",
    columns=("label", "unit", "point", "lo", "hi", "n", "n_undefined", "reason"),
    caption=(
        "Mean difference between a run and the base run over matched items. n counts items with a"
        " value in both runs; the others are undefined. An interval that includes 0 leaves the sign"
        " open; it does not show that nothing changed, and a difference does not show which of the"
        " two runs is faithful."
    ),
    empty_reason="the runs have no metric in common.",
)
def paired_differences(table: pd.DataFrame) -> Any:
    """Draw a row for each difference with its interval, written at the right, and a line at 0.

    The optional column ``setting`` is added to the title.
    """
    rows = table_records(table)
    marks = [Mark("", i, str(row["label"]), row) for i, row in enumerate(rows)]
    unit = style.escape(text_value(rows[0], "unit") or "no unit")
    setting = style.escape(style.truncate_text(text_value(rows[0], "of"), 60))
    title = f"Difference to the base{setting and f', {setting}'} (mean over items, {unit})"
    return _draw_rows_around_zero(marks, title, "Difference, other − base", (0, 0))


def _draw_rows_around_zero(
    marks: Sequence[Mark], title: str, x: str, min_range: tuple[float, float]
) -> Any:
    """Draw a row for each mark, and a line at 0."""
    fig = draw_estimate_rows(
        marks,
        title,
        x=x,
        min_range=min_range,
        max_name_chars=30,
        row_height_px=44,
    )
    draw_reference_line(fig, x=0)
    return fig


@figure(
    "label_agreement",
    columns=("label", "point", "lo", "hi", "n", "reason"),
    caption=(
        "Krippendorff's alpha (nominal) of all raters, with a bootstrap interval over items, and"
        " Cohen's kappa of each two raters on the items that both labelled. 1 is agreement on every"
        " item, 0 the agreement expected by chance. Raters who agree may all be wrong; gold items"
        " show that."
    ),
    empty_reason="no item has labels of two raters.",
)
def label_agreement(table: pd.DataFrame) -> Any:
    """Draw a row for alpha and one for each pair of raters, with intervals, and a line at 0.

    The optional column ``labelled_part`` adds to the title what was labelled.
    """
    rows = table_records(table)
    marks = [Mark("", i, str(row["label"]), row) for i, row in enumerate(rows)]
    labelled_part = style.escape(style.truncate_text(text_value(rows[0], "of"), 40))
    title = f"Agreement{labelled_part and f' on {labelled_part}'} (coefficient, −1 to 1)"
    return _draw_rows_around_zero(marks, title, "Alpha of all, kappa of pairs", (-0.1, 1))


@figure(
    "classifier_agreement",
    columns=("one", "other", "point", "lo", "hi", "n", "reason"),
    caption=(
        "Cohen's kappa of each two classifiers on the same responses: 1 is full agreement, 0 the"
        " agreement expected by chance. Two classifiers may agree and both be wrong."
    ),
    empty_reason="fewer than two classifiers scored the same responses.",
)
def classifier_agreement(table: pd.DataFrame) -> Any:
    """Draw cells from orange (−1) to blue (1) with kappa and n."""
    return draw_pair_matrix(
        table_records(table),
        "Agreement of classifiers (Cohen's kappa, −1 to 1)",
        ["Each cell: kappa and n; intervals and McNemar's test in the data."],
        "responses",
    )
