"""How often the answer changes when a step is changed, beside models of known behaviour."""

from __future__ import annotations

from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.declare import Row, figure, float_value, int_value, table_records, text_value
from cotlab.figures.layout import apply_style
from cotlab.figures.marks import Mark, draw_series, interval_note, missing_notes
from cotlab.figures.rows import add_row_text

_ROW_PX, _LANE_PX = 46, 58
_MARKERS = {
    "yes": (style.BLUE, "circle"),
    "part": (style.SOFT_TEXT_COLOUR, "diamond"),
    "no": (style.VERMILLION, "triangle-up"),
    "control": (style.SOFT_TEXT_COLOUR, "circle"),
}
_LANE_BOTTOM = -0.5 - _LANE_PX / _ROW_PX


@figure(
    "answer_change_scale",
    columns=("label", "group", "point", "lo", "hi", "n", "reason"),
    caption=(
        "Upper rows: edited steps; control: reworded steps. The dashed models were measured on the"
        " shipped suite. A position between two of them is not the share of faithful answers. What"
        " else the answer depends on is not shown."
    ),
    empty_reason="no step was changed.",
)
def answer_change_scale(table: pd.DataFrame) -> Any:
    """Draw the shares of a run on a fixed axis, and the models of known behaviour behind them.

    ``group`` is "run", "control" or "reference". Optional columns: ``note``, the second line of a
    label; ``mark`` (yes, part, no), the marker of a row of the run.
    """
    rows = table_records(table)
    references = [row for row in rows if row["group"] == "reference"]
    run_rows = [row for row in rows if row["group"] != "reference"]
    top = len(run_rows) - 0.5
    marks = [
        Mark("", top - 0.5 - index, str(row["label"]), row, is_share=True)
        for index, row in enumerate(run_rows)
    ]
    fig = go.Figure()
    for row in references:
        _draw_reference(fig, row, top)
    for mark in marks:
        is_run = mark.row["group"] == "run"
        colour, symbol = _MARKERS[text_value(mark.row, "mark") or ("yes" if is_run else "control")]
        draw_series(fig, [mark], style.CategoryStyle(style.hue(colour), symbol), is_upright=False)
        value = f"<b>{mark.text}</b>" if is_run else mark.text
        add_row_text(fig, mark.x, f"{value}<br>n = {mark.n:,}", hovertext=mark.hover_text)
    fig.update_xaxes(
        range=[-0.045, 1.045], tickvals=[0, 0.25, 0.5, 0.75, 1], tickformat=".0%", showgrid=False
    )
    fig.update_yaxes(
        range=[_LANE_BOTTOM if references else -0.5, top],
        tickvals=[mark.x for mark in marks],
        ticktext=[_label_text(row) for row in run_rows],
        showgrid=False,
        showline=False,
        ticks="",
    )
    notes = missing_notes(
        (text_value(row, "reason") or "not measured", style.truncate_text(row["label"], 40))
        for row in run_rows
        if float_value(row, "point") is None
    )
    return apply_style(
        fig,
        "Steps that change the answer, edited and reworded (%)",
        subtitle=[interval_note(marks), *_reference_notes(references), *notes],
        height=_ROW_PX * len(run_rows) + (_LANE_PX if references else 0) + 80,
    )


def _label_text(row: Row) -> str:
    """Return the label of a row: its name, and its note below."""
    name = style.escape(style.truncate_text(row["label"], 26))
    name = f"<b>{name}</b>" if row["group"] == "run" else name
    note = text_value(row, "note")
    return f"{name}<br>{style.escape(style.truncate_text(note, 28))}" if note else name


def _draw_reference(fig: Any, row: Row, top: float) -> None:
    """Draw the value of a model as a dashed line, its interval as a band, and its name below."""
    point, lo, hi = (float_value(row, name) for name in ("point", "lo", "hi"))
    if point is None:
        return
    if lo is not None and hi is not None:
        fig.add_shape(
            type="rect",
            x0=lo,
            x1=hi,
            y0=-0.5,
            y1=top,
            fillcolor=style.hue(style.MISSING_COLOUR),
            line={"width": 0},
        )
    fig.add_shape(
        type="line",
        x0=point,
        x1=point,
        y0=-0.62,
        y1=top,
        line={"color": style.hue(style.TEXT_COLOUR), "width": 1.4, "dash": "dash"},
    )
    side = "left" if point < 0.2 else "right" if point > 0.8 else "center"
    note = style.wrap_text(text_value(row, "note"), 15)
    name = style.escape(style.truncate_text(row["label"], 20))
    fig.add_annotation(
        text=f"<b>{name}</b><br>{note}" if note else f"<b>{name}</b>",
        x=point,
        y=-0.64,
        xanchor=side,
        yanchor="top",
        align=side,
        font={"color": style.hue(style.TEXT_COLOUR)},
    )


def _reference_notes(references: list[Row]) -> list[str]:
    """Return the line of the subtitle on models of known behaviour."""
    if not references:
        return []
    counts = sorted({int_value(row, "n") for row in references})
    n_text = " to ".join(dict.fromkeys(f"{n:,}" for n in (counts[0], counts[-1])))
    return [f"Dashed, with grey bands as intervals: reference models, n = {n_text} items each."]
