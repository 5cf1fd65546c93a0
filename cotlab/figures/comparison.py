"""Two of a kind compared: runs by paired differences, raters and classifiers by their agreement."""

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
_RUN = re.compile(r"\([^()]{1,26}\)$")
"""What names a run at the end of a label."""


@figure(
    "paired_differences",
    columns=("label", "unit", "point", "lo", "hi", "n", "n_undefined", "reason"),
    caption=(
        "The mean over matched items of a run's value less the base's. n counts items with a value"
        " in both runs; the others are undefined here. An interval that spans 0 leaves the sign"
        " open; it does not show that nothing changed, and a difference does not say which of the"
        " two runs is faithful."
    ),
    empty="the runs have no metric in common.",
)
def paired_differences(table: pd.DataFrame) -> Any:
    """A row for each label: the difference with its interval, both written out at the right; a line at 0.

    A column ``of`` says in the title what all rows are of.
    """
    rows = table_records(table)
    marks = [Mark("", i, str(row["label"]), row) for i, row in enumerate(rows)]
    fig = go.Figure()
    draw_rows(fig, marks)
    fig.add_shape(
        type="line",
        x0=0,
        x1=0,
        y0=0,
        y1=1,
        yref="paper",
        layer="below",
        line={"color": style.SOFT_INK, "width": 1, "dash": "dot"},
    )
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
    """A label whose run stays on one line."""
    return _RUN.sub(lambda match_: match_[0].replace(" ", "\u00a0"), label)


@figure(
    "label_agreement",
    columns=("label", "point", "lo", "hi", "n", "reason"),
    caption=(
        "Krippendorff's alpha (nominal) of all raters, with a bootstrap interval over items, and"
        " Cohen's kappa of each two raters on the items that both labelled. 1 is agreement on every"
        " item, 0 what the raters' habits alone would give. Raters who agree may all be wrong: gold"
        " items tell that."
    ),
    empty="no item has labels of two raters.",
)
def label_agreement(table: pd.DataFrame) -> Any:
    """A row for alpha and one for each pair: the coefficient with its interval, both written out at the right; a line at 0.

    A column ``of`` says in the title what was agreed on.
    """
    rows = table_records(table)
    marks = [Mark("", i, str(row["label"]), row) for i, row in enumerate(rows)]
    fig = go.Figure()
    draw_rows(fig, marks)
    fig.add_shape(
        type="line",
        x0=0,
        x1=0,
        y0=0,
        y1=1,
        yref="paper",
        layer="below",
        line={"color": style.SOFT_INK, "width": 1, "dash": "dot"},
    )
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
        "Cohen's kappa of each two classifiers' verdicts on the same responses: 1 is agreement, 0"
        " what chance gives. Two classifiers may agree and both be wrong."
    ),
    empty="fewer than two classifiers scored the same responses.",
)
def classifier_agreement(table: pd.DataFrame) -> Any:
    """Cells from orange (−1) over pale (0) to blue (1) with kappa and n; a hatched cell is n/a."""
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
