"""How often the answer changes when a step is changed, beside models of known behaviour."""

from __future__ import annotations

from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.declare import Row, figure, float_value, int_value, table_records, text_value

_ROW_PX, _LANE_PX = 46, 58
_RIGHT_MARGIN_PX = 150
_BAND_COLOUR = "#ececec"
_MARKERS = {
    "yes": style.CategoryStyle(style.BLUE, "circle"),
    "part": style.CategoryStyle(style.SOFT_TEXT_COLOUR, "diamond"),
    "no": style.CategoryStyle(style.VERMILLION, "triangle-up"),
    "control": style.CategoryStyle(style.SOFT_TEXT_COLOUR, "circle-open"),
}
_LANE_BOTTOM = -0.5 - _LANE_PX / _ROW_PX


@figure(
    "answer_change_scale",
    columns=("label", "group", "point", "lo", "hi", "n", "reason"),
    caption=(
        "Upper rows: changed steps; control: a step says the same in other words. The dashed"
        " models were measured on the shipped suite. A position between"
        " them is no share of faithful answers, and where the answer comes from otherwise is not"
        " shown."
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
    fig = go.Figure()
    top = len(run_rows) - 0.5
    for row in references:
        _draw_reference(fig, row, top)
    for index, row in enumerate(run_rows):
        _draw_row(fig, row, float(len(run_rows) - 1 - index))
    fig.update_xaxes(
        range=[-0.045, 1.045],
        tickvals=[0, 0.25, 0.5, 0.75, 1],
        ticktext=["0 %", "25 %", "50 %", "75 %", "100 %"],
        showgrid=False,
    )
    fig.update_yaxes(
        range=[_LANE_BOTTOM if references else -0.5, top],
        tickvals=[len(run_rows) - 1 - index for index in range(len(run_rows))],
        ticktext=[_label_text(row) for row in run_rows],
        showgrid=False,
        showline=False,
        ticks="",
    )
    height = _ROW_PX * len(run_rows) + (_LANE_PX if references else 0) + 96
    return style.apply_style(
        fig,
        "How often the answer changes when a step is changed (share of steps)",
        subtitle=[*_subtitle_lines(references), *_missing_lines(run_rows)],
        height=height,
        margin={"r": _RIGHT_MARGIN_PX, "b": 32},
    )


def _label_text(row: Row) -> str:
    """Return the label of a row: its name, and its note below."""
    name = style.escape(style.truncate_text(row["label"], 26))
    name = f"<b>{name}</b>" if row["group"] == "run" else name
    note = text_value(row, "note")
    return f"{name}<br>{style.escape(style.truncate_text(note, 28))}" if note else name


def _percent_text(share: float) -> str:
    """Return a share in percent: "50.5", and whole at 0 and 100."""
    return f"{share * 100:.1f}" if 0 < share < 1 else f"{share * 100:.0f}"


def _value_text(row: Row) -> str:
    """Return the value of a row with its interval: "100 % [98.7, 100]"."""
    point, lo, hi = (float_value(row, name) for name in ("point", "lo", "hi"))
    if point is None:
        return "n/a"
    bounds = (
        "[no interval]"
        if lo is None or hi is None
        else f"[{_percent_text(lo)}, {_percent_text(hi)}]"
    )
    return f"{_percent_text(point)} % {bounds}"


def _draw_row(fig: Any, row: Row, height: float) -> None:
    """Draw a share with its interval, and its value at the right."""
    point, lo, hi = (float_value(row, name) for name in ("point", "lo", "hi"))
    n_text = f"n = {int_value(row, 'n'):,}"
    is_run = row["group"] == "run"
    value_text = style.escape(_value_text(row))
    fig.add_annotation(
        text=f"{f'<b>{value_text}</b>' if is_run else value_text}<br>{n_text}",
        x=1.01,
        xref="paper",
        xanchor="left",
        y=height,
        align="left",
        font={"color": style.TEXT_COLOUR},
    )
    if point is None:
        return
    marker = _MARKERS.get(text_value(row, "mark") or ("yes" if is_run else "control"))
    assert marker is not None
    has_interval = lo is not None and hi is not None
    fig.add_scatter(
        x=[point],
        y=[height],
        mode="markers",
        cliponaxis=False,
        showlegend=False,
        marker={
            "color": marker.colour,
            "symbol": marker.symbol,
            "size": 13,
            "line": {"width": 2, "color": marker.colour},
        },
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [hi - point],
            "arrayminus": [point - lo],
            "color": marker.colour,
            "thickness": 2,
            "width": 5,
        }
        if has_interval and lo is not None and hi is not None
        else None,
        hoverinfo="text",
        hovertext=[style.escape(f"{row['label']}: {_value_text(row)}, {n_text}")],
    )


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
            fillcolor=_BAND_COLOUR,
            line={"width": 0},
            layer="below",
        )
    fig.add_shape(
        type="line",
        x0=point,
        x1=point,
        y0=-0.62,
        y1=top,
        line={"color": style.TEXT_COLOUR, "width": 1.4, "dash": "dash"},
        layer="below",
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
        font={"color": style.TEXT_COLOUR},
    )


def _missing_lines(rows: list[Row]) -> list[str]:
    """Return why rows have no value: above the figure, as its bands leave no room for texts."""
    lines = []
    for row in rows:
        if float_value(row, "point") is None:
            reason = text_value(row, "reason") or "not measured"
            name = style.truncate_text(row["label"], 40)
            lines.append(style.escape(f"{name}: n/a, {reason}."))
    return lines


def _subtitle_lines(references: list[Row]) -> list[str]:
    """Return the lines of the subtitle."""
    lines = ["Mean over items. Bars: 95 % intervals."]
    if references:
        counts = sorted({int_value(row, "n") for row in references})
        n_text = " to ".join(dict.fromkeys(f"{n:,}" for n in (counts[0], counts[-1])))
        lines[0] += (
            " Dashed, with their intervals as grey bands: models of known behaviour,"
            f" n = {n_text} items each."
        )
    return lines
