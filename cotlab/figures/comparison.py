"""Compare runs by paired differences, and raters and classifiers by their agreement."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.cells import Cell, draw_cells
from cotlab.figures.declare import figure
from cotlab.figures.marks import (
    Mark,
    Row,
    draw_reference,
    draw_rows,
    float_value,
    int_value,
    raw_values,
    subtitle_notes,
    table_records,
    text_value,
)
from cotlab.figures.span_heatmap import signed_shade

_PAD = 0.06
_RUN = re.compile(r"\([^()]{1,26}\)$")  # "(run 2)" at the end of a label


@figure(
    "paired_differences",
    columns=("label", "unit", "point", "lo", "hi", "n", "n_undefined", "reason"),
    caption=(
        "Mean difference between a run and the base run over matched items. n counts items with a"
        " value in both runs; the others are undefined. An interval that includes 0 leaves the sign"
        " open; it does not show that nothing changed, and a difference does not show which of the"
        " two runs is faithful."
    ),
    empty="the runs have no metric in common.",
)
def paired_differences(table: pd.DataFrame) -> Any:
    """Draw a row for each difference with its interval, written at the right, and a line at 0.

    The optional column ``of`` is added to the title.
    """
    rows = table_records(table)
    marks = [Mark("", i, str(row["label"]), row) for i, row in enumerate(rows)]
    fig = go.Figure()
    draw_rows(fig, marks)
    draw_reference(fig, x=0)
    ends = [v for mark in marks for v in (mark.point, mark.lo, mark.hi) if v is not None]
    ends += [v for mark in marks for v in raw_values(mark.row)]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    pad = _PAD * (high - low or 1.0)
    fig.update_xaxes(range=[low - pad, high + pad], showgrid=True, nticks=6)
    fig.update_yaxes(
        tickvals=list(range(len(marks))),
        ticktext=[style.in_lines(_join_run_name(mark.at), 30) for mark in marks],
        ticks="",
        showgrid=False,
        range=[len(marks) - 0.4, -0.6],
    )
    unit = style.escape(text_value(rows[0], "unit") or "no unit")
    of = style.escape(style.truncate_text(text_value(rows[0], "of"), 60))
    title = f"Difference to the base{of and f', {of}'} (mean over items, {unit})"
    style.apply_style(
        fig,
        title,
        subtitle=subtitle_notes(marks, gaps=False),
        x="Difference, other − base",
        height=140 + 44 * len(marks),
    )
    return fig.update_layout(margin={"r": 214})


def _join_run_name(label: str) -> str:
    """Keep the name of the run in a label on one line."""
    return _RUN.sub(lambda match_: match_[0].replace(" ", "\u00a0"), label)


@figure(
    "label_agreement",
    columns=("label", "point", "lo", "hi", "n", "reason"),
    caption=(
        "Krippendorff's alpha (nominal) of all raters, with a bootstrap interval over items, and"
        " Cohen's kappa of each two raters on the items that both labelled. 1 is agreement on every"
        " item, 0 the agreement expected by chance. Raters who agree may all be wrong; gold items"
        " show that."
    ),
    empty="no item has labels of two raters.",
)
def label_agreement(table: pd.DataFrame) -> Any:
    """Draw a row for alpha and one for each pair of raters, with intervals, and a line at 0.

    The optional column ``of`` adds to the title what was labelled.
    """
    rows = table_records(table)
    marks = [Mark("", i, str(row["label"]), row) for i, row in enumerate(rows)]
    fig = go.Figure()
    draw_rows(fig, marks)
    draw_reference(fig, x=0)
    lowest = min([0.0, *(v for mark in marks for v in (mark.point, mark.lo) if v is not None)])
    fig.update_xaxes(range=[min(-0.1, lowest - 0.05), 1.05], showgrid=True, nticks=6)
    fig.update_yaxes(
        tickvals=list(range(len(marks))),
        ticktext=[style.in_lines(mark.at, 30) for mark in marks],
        ticks="",
        showgrid=False,
        range=[len(marks) - 0.4, -0.6],
    )
    of = style.escape(style.truncate_text(text_value(rows[0], "of"), 40))
    style.apply_style(
        fig,
        f"Agreement{of and f' on {of}'} (coefficient, −1 to 1)",
        subtitle=subtitle_notes(marks, gaps=False),
        x="Alpha of all, kappa of pairs",
        height=140 + 44 * len(marks),
    )
    return fig.update_layout(margin={"r": 214})


@figure(
    "classifier_agreement",
    columns=("one", "other", "point", "lo", "hi", "n", "reason"),
    caption=(
        "Cohen's kappa of each two classifiers on the same responses: 1 is full agreement, 0 the"
        " agreement expected by chance. Two classifiers may agree and both be wrong."
    ),
    empty="fewer than two classifiers scored the same responses.",
)
def classifier_agreement(table: pd.DataFrame) -> Any:
    """Draw cells from orange (−1) to blue (1) with kappa and n; a hatched cell is n/a."""
    rows = table_records(table)
    names = list(dict.fromkeys(str(row[side]) for side in ("one", "other") for row in rows))
    at = {name: i for i, name in enumerate(names)}
    cells, reasons = [], dict[str, list[str]]()
    for row in rows:
        i, j = sorted((at[str(row["one"])], at[str(row["other"])]))
        kappa = float_value(row, "point")
        kappa_text = "n/a" if kappa is None else f"{kappa:.2f}".replace("-", "−")
        text = f"{kappa_text}<br>n = {int_value(row, 'n')}"
        cells.append(
            Cell(i, j - 1, signed_shade(kappa), text, _kappa_hover(row), kappa is not None)
        )
        if kappa is None:
            reasons.setdefault(text_value(row, "reason") or "not measured", []).append(
                f"{row['one']}–{row['other']}"
            )
    small = ["Each cell: kappa and n; intervals and McNemar's test on hover."]
    small += [
        style.escape(style.truncate_text(f"n/a ({text}): {', '.join(pairs)}", 200))
        for text, pairs in reasons.items()
    ]
    fig = draw_cells(go.Figure(), cells, names[:-1], names[1:])
    return style.apply_style(
        fig,
        "Agreement of classifiers (Cohen's kappa, −1 to 1)",
        subtitle=small,
        height=130 + 46 * max(1, len(names) - 1),
    )


def _kappa_hover(row: Row) -> str:
    """Return the hover text of a pair of classifiers."""
    lines = [f"<b>{style.escape(row['one'])} and {style.escape(row['other'])}</b>"]
    if float_value(row, "point") is not None:
        lines += [
            style.interval_text(
                float_value(row, "point"), float_value(row, "lo"), float_value(row, "hi")
            ),
            f"n = {int_value(row, 'n')} responses",
        ]
    lines += [
        style.in_lines(text_value(row, name), 60, most=4)
        for name in ("reason", "mcnemar")
        if text_value(row, name)
    ]
    return "<br>".join(lines)
