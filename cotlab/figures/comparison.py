"""Compare runs by paired differences, and raters and classifiers by their agreement."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from cotlab.figures import style
from cotlab.figures.cells import draw_pair_matrix
from cotlab.figures.declare import figure, table_records, text_value
from cotlab.figures.marks import Mark, draw_reference_line, interval_values, plotted_raw_values
from cotlab.figures.rows import draw_estimate_rows

_AXIS_PADDING = 0.06
_RUN_SUFFIX_RE = re.compile(r"\([^()]{1,26}\)$")  # "(run 2)" at the end of a label


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
    fig = draw_estimate_rows(
        marks,
        f"Difference to the base{setting and f', {setting}'} (mean over items, {unit})",
        x="Difference, other − base",
        names=[_join_run_name(mark.position_name) for mark in marks],
        max_name_chars=30,
        row_height_px=44,
        right_margin_px=214,
    )
    draw_reference_line(fig, x=0)
    axis_values = [
        0.0,
        *interval_values(marks),
        *(value for mark in marks for value in plotted_raw_values(mark.row)),
    ]
    padding = _AXIS_PADDING * (max(axis_values) - min(axis_values) or 1.0)
    return fig.update_xaxes(
        range=[min(axis_values) - padding, max(axis_values) + padding], showgrid=True, nticks=6
    )


def _join_run_name(label: str) -> str:
    """Keep the name of the run in a label on one line."""
    return _RUN_SUFFIX_RE.sub(lambda match_: match_[0].replace(" ", "\u00a0"), label)


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
    fig = draw_estimate_rows(
        marks,
        f"Agreement{labelled_part and f' on {labelled_part}'} (coefficient, −1 to 1)",
        x="Alpha of all, kappa of pairs",
        max_name_chars=30,
        row_height_px=44,
        right_margin_px=214,
    )
    draw_reference_line(fig, x=0)
    lowest_value = min(
        [0.0, *(value for mark in marks for value in (mark.point, mark.lo) if value is not None)]
    )
    return fig.update_xaxes(range=[min(-0.1, lowest_value - 0.05), 1.05], showgrid=True, nticks=6)


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
    """Draw cells from orange (−1) to blue (1) with kappa and n; a hatched cell is n/a."""
    return draw_pair_matrix(
        table_records(table),
        "Agreement of classifiers (Cohen's kappa, −1 to 1)",
        ["Each cell: kappa and n; intervals and McNemar's test on hover."],
        "responses",
    )
