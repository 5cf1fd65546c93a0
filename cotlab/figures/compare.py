"""Paired differences of runs with their intervals."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.declare import figure
from cotlab.figures.marks import (
    Mark,
    draw_rows,
    raw_values,
    subtitle_notes,
    table_records,
    text_value,
)

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
