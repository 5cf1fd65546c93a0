"""How far raters agree: alpha of all of them, and kappa of each two, with intervals."""

from __future__ import annotations

from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.declare import figure
from cotlab.figures.marks import Mark, draw_rows, subtitle_notes, table_records, text_value


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
