"""Signals against labels: the AUROC of each with its interval, beside the baselines and chance."""

from __future__ import annotations

from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.declare import figure, float_value, table_records, text_value
from cotlab.figures.marks import (
    Mark,
    draw_markers,
    draw_reference_line,
    error_bars,
    hover_text,
    interval_note,
    missing_notes,
    point_marker,
)

BASELINE_STYLE = style.CategoryStyle(style.ORANGE, "square")
SIGNAL_STYLE = style.CategoryStyle(style.BLUE, "circle")
_ROW_HEIGHT_PX, _MAX_NAME_CHARS = 30, 34


@figure(
    "signal_aurocs",
    columns=("signal", "is_baseline", "point", "lo", "hi", "n", "n_undefined", "text", "reason"),
    caption=(
        "The probability that a signal ranks a chain with the fault below one without it. At the"
        " dotted line it is chance. A signal tells where its bar lies right of that line, and is"
        " worth something beside the baselines (squares) where it lies right of theirs too. It does"
        " not show what a signal adds to the baselines, nor whether it holds on other questions."
    ),
    empty_reason="no signal is defined on labelled chains.",
)
def signal_aurocs(table: pd.DataFrame) -> Any:
    """Draw a row for each signal, in the order of the table; click a mark for its name."""
    rows, fig = table_records(table), go.Figure()
    defined_rows = [row for row in rows if float_value(row, "point") is not None]
    marks = [Mark("", index, str(row["signal"]), row) for index, row in enumerate(defined_rows)]
    for is_baseline, category_style, name in (
        (True, BASELINE_STYLE, "baseline"),
        (False, SIGNAL_STYLE, "signal"),
    ):
        is_named = False
        for has_interval in (True, False):
            chosen = [
                mark
                for mark in marks
                if bool(mark.row["is_baseline"]) is is_baseline
                and mark.has_interval is has_interval
            ]
            if not chosen:
                continue
            options: dict[str, Any] = {} if is_named else {"name": name}
            if has_interval:
                options["error_x"] = error_bars([m.row for m in chosen], category_style.colour)
            draw_markers(
                fig,
                [mark.point for mark in chosen],
                [mark.x for mark in chosen],
                [hover_text(mark) for mark in chosen],
                point_marker(category_style, has_interval),
                customdata=[[mark.position_name] for mark in chosen],
                selected={"marker": {"opacity": 1}},
                unselected={"marker": {"opacity": 1}},
                **options,
            )
            is_named = True
    draw_reference_line(fig, x=0.5)
    fig.update_xaxes(range=[-0.02, 1.02], showgrid=True, nticks=6)
    fig.update_yaxes(
        tickvals=[mark.x for mark in marks],
        ticktext=[style.wrap_text(mark.position_name, _MAX_NAME_CHARS) for mark in marks],
        tickfont={"size": style.SMALL_TEXT_SIZE},
        range=[len(marks) - 0.4, -0.6],
        showgrid=False,
    )
    notes = missing_notes(
        (text_value(row, "reason"), str(row["signal"]))
        for row in rows
        if float_value(row, "point") is None
    )
    return style.apply_style(
        fig,
        "How well each signal ranks chains (AUROC, 0 to 1)",
        subtitle=[text for text in (interval_note(marks), *notes) if text],
        x="AUROC",
        height=150 + _ROW_HEIGHT_PX * len(marks),
        margin={"b": 90},
    )
