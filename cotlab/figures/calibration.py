"""Whether a calibrated score means what it says: observed against predicted rates, where the scores lie, and the calibrators.

Beside the columns that a figure needs a table may have ``low`` and ``high``, the thresholds of a
policy: they are drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.declare import figure
from cotlab.figures.marks import (
    Mark,
    Row,
    error_bars,
    float_value,
    hover_text,
    int_value,
    interval_note,
    table_records,
    text_value,
)

CALIBRATORS: Mapping[str, tuple[str, str]] = {
    "isotonic": ("Isotonic", "solid"),
    "platt": ("Platt", "dash"),
    "beta": ("Beta", "dot"),
    "combined": ("Combined features", "dashdot"),
}
"""Names on the screen and dashes of lines; in the order of their colours."""
METRICS: Mapping[str, tuple[str, str]] = {
    "brier": ("Brier score", "lower is better"),
    "ece": ("ECE", "lower is better"),
    "log_loss": ("Log loss, nats", "lower is better"),
    "auroc": ("AUROC", "higher is better"),
}
_NARROW = 0.4
"""Scores that cover less than this are drawn on an axis that is cut."""


@figure(
    "calibrator_curves",
    columns=("calibrator", "kind", "r_raw", "r_cal"),
    caption=(
        "What each calibrator makes of a raw score, fitted to all labels of its version; ticks at"
        " the top are chains that people accepted, at the bottom those they did not. Where there"
        " are few ticks a curve is its family's shape more than a finding; where curves part the"
        " choice of the method matters."
    ),
    empty="no calibrator has been fitted.",
)
def calibrator_curves(table: pd.DataFrame) -> Any:
    """A line for each calibrator and ticks for the labels.

    ``kind`` is "curve" or, with ``r_cal`` 1 or 0 for what people said, "label"; ``chosen`` marks
    the one that is in use, ``n`` is how many labels it saw.
    """
    rows = table_records(table)
    curves = [row for row in rows if row["kind"] == "curve"]
    names = list(dict.fromkeys(str(row["calibrator"]) for row in curves))
    fig = go.Figure()
    fig.add_shape(
        type="line",
        x0=0,
        x1=1,
        y0=0,
        y1=1,
        layer="below",
        line={"color": style.SOFT_INK, "width": 1, "dash": "dot"},
    )
    for name, code in style.category_codes(names, tuple(CALIBRATORS)).items():
        group_rows = sorted(
            (row for row in curves if str(row["calibrator"]) == name),
            key=lambda row: float(row["r_raw"]),
        )
        title, dash = CALIBRATORS.get(
            name, (style.escape(style.truncate_text(name, 30)), "dashdot")
        )
        chosen = any(
            bool(row.get("chosen")) and not pd.isna(row.get("chosen")) for row in group_rows
        )
        few = group_rows[:: max(1, len(group_rows) // 10)]
        label = f"{title}, in use" if chosen else title
        label += f" (n = {int_value(group_rows[0], 'n')})" if int_value(group_rows[0], "n") else ""
        fig.add_scatter(
            x=[float_value(row, "r_raw") for row in group_rows],
            y=[float_value(row, "r_cal") for row in group_rows],
            mode="lines",
            name=label,
            legendgroup=title,
            line={"color": code.colour, "width": 3.2 if chosen else 1.8, "dash": dash},
            hoverinfo="text",
            hovertext=[
                f"<b>{label}</b><br>r_raw {style.format_number(float_value(row, 'r_raw'))}<br>r_cal"
                f" {style.format_number(float_value(row, 'r_cal'))}"
                for row in group_rows
            ],
        )
        fig.add_scatter(
            x=[float_value(row, "r_raw") for row in few],
            y=[float_value(row, "r_cal") for row in few],
            mode="markers",
            hoverinfo="skip",
            showlegend=False,
            legendgroup=title,
            marker={"color": code.colour, "symbol": code.symbol, "size": 7},
        )
    labels = [row for row in rows if row["kind"] == "label"]
    both = [[row for row in labels if bool(row["r_cal"]) is accepted] for accepted in (True, False)]
    for group_rows, y, colour in zip(
        both, (1.05, -0.05), (style.BLUE, style.VERMILLION), strict=True
    ):
        fig.add_scatter(
            x=[float_value(row, "r_raw") for row in group_rows],
            y=[y] * len(group_rows),
            mode="markers",
            hoverinfo="x",
            showlegend=False,
            cliponaxis=False,
            marker={"symbol": "line-ns-open", "size": 10, "color": style.faded(colour, 0.6)},
        )
    small = [
        f"n = {len(labels):,} labels: {len(both[0]):,} acceptable (top), {len(both[1]):,} not"
        " (bottom)."
    ]
    small += [
        "No intervals: how far each holds on labels that it did not see is in the table of its"
        " numbers."
    ]
    small += (
        [" ".join(draw_thresholds(fig, rows, across=False))]
        if float_value(rows[0], "low") is not None
        else []
    )
    small += set_score_axis(fig, [float(row["r_raw"]) for row in rows])
    fig.update_yaxes(range=[-0.09, 1.09], tickvals=[i / 5 for i in range(6)])
    style.apply_style(
        fig,
        "From raw to calibrated scores (r_cal, 0 to 1, by r_raw)",
        subtitle=small,
        x="r_raw: weighed mean of the parts",
        y="r_cal: probability of acceptable reasoning",
        height=460,
    )
    return fig.update_layout(margin={"b": 84})


@figure(
    "calibrator_comparison",
    columns=("calibrator", "metric", "point", "lo", "hi", "n", "reason"),
    caption=(
        "Each calibrator on labels that it was not fitted on; the calibration error (ECE) is over"
        " bins of equal mass. Folds are split by question, so that a question's chains never stand"
        " on both sides. The axes differ. Monotone maps keep the order of scores, so their AUROCs"
        " differ by ties and folds only; intervals that overlap are no finding, for the calibrators"
        " share their labels."
    ),
    empty="no calibrator has numbers out of fold.",
)
def calibrator_comparison(table: pd.DataFrame) -> Any:
    """A panel for each number with a dot and its interval for each calibrator; the one in use is named.

    Beside isotonic, Platt and beta ``calibrator`` may name a yardstick, as the base rate.
    ``chosen`` marks the one in use.
    """
    rows = table_records(table)
    metrics = [
        *(m for m in METRICS if any(row["metric"] == m for row in rows)),
        *dict.fromkeys(str(row["metric"]) for row in rows if row["metric"] not in METRICS),
    ]
    names = list(dict.fromkeys(str(row["calibrator"]) for row in rows))
    codes, fig, every = style.category_codes(names, tuple(CALIBRATORS)), go.Figure(), list[Mark]()
    used = {
        str(row["calibrator"])
        for row in rows
        if row.get("chosen") is True or float_value(row, "chosen") == 1
    }
    ticks = [style.escape(style.truncate_text(_named(name), 18)) for name in names]
    ticks = [
        f"<b>{tick}</b>" if name in used else tick for name, tick in zip(names, ticks, strict=True)
    ]
    lines = -(-len(metrics) // 2)
    for k, metric in enumerate(metrics):
        axis = "" if k == 0 else str(k + 1)
        column, line = k % 2, k // 2
        spacing, tall = 0.2, (1 - 0.26 * (lines - 1)) / lines
        top = 1 - line * (tall + 0.26)
        wide = (
            (0.0, 1.0)
            if len(metrics) == 1
            else (column * (0.5 + spacing / 2), 0.5 - spacing / 2 + column * (0.5 + spacing / 2))
        )
        head, better = METRICS.get(metric, (style.escape(style.truncate_text(metric, 30)), ""))
        metric_rows = [row for row in rows if row["metric"] == metric]
        marks = [
            Mark(head, names.index(str(row["calibrator"])), _named(row["calibrator"]), row)
            for row in metric_rows
        ]
        for mark in marks:
            _panel_mark(fig, mark, codes[str(mark.row["calibrator"])], axis)
        every += marks
        axis_layout = {
            "domain": list(wide),
            "anchor": f"y{axis}",
            "showgrid": True,
            "nticks": 5,
            **_room(marks),
        }
        fig.update_layout(
            {
                f"xaxis{axis}": axis_layout,
                f"yaxis{axis}": {
                    "domain": [max(0.0, top - tall), top],
                    "anchor": f"x{axis}",
                    "tickvals": list(range(len(names))),
                    "ticktext": ticks,
                    "range": [len(names) - 0.4, -0.6],
                    "showgrid": False,
                },
            }
        )
        fig.add_annotation(
            x=wide[0],
            y=top,
            xref="paper",
            yref="paper",
            xanchor="left",
            yanchor="bottom",
            yshift=5,
            text=f"<b>{head}</b>" + (f", {better}" if better else ""),
            font={"size": style.TEXT_SIZE - 1, "color": style.INK},
        )
    sizes = sorted({int_value(mark.row, "n") for mark in every if mark.point is not None})
    small = (
        [f"n = {' to '.join(str(n) for n in dict.fromkeys((sizes[0], sizes[-1])))} labels."]
        if sizes
        else []
    )
    small += [text for text in (interval_note(every),) if text]
    small += [style.escape(f"In use: {', '.join(map(_named, sorted(used)))}.")] if used else []
    gone = dict.fromkeys(
        f"{mark.at}: {text_value(mark.row, 'reason')}" for mark in every if mark.point is None
    )
    small += [style.escape(style.truncate_text(f"n/a: {text}", 200)) for text in gone]
    return style.apply_style(
        fig,
        "Calibrators on unseen labels (0 to 1; log loss: nats)",
        subtitle=small,
        height=120 + lines * (70 + 34 * len(names)),
    )


def _named(calibrator: Any) -> str:
    return CALIBRATORS.get(str(calibrator), (str(calibrator), ""))[0]


def _panel_mark(fig: Any, mark: Mark, code: style.Code, axis: str) -> None:
    """One calibrator's number in one panel; n/a at the left where it has none."""
    if mark.point is None:
        fig.add_annotation(
            x=0.02,
            xref=f"x{axis} domain",
            y=mark.x,
            yref=f"y{axis}",
            xanchor="left",
            text="n/a",
            hovertext=hover_text(mark),
        )
        return
    bars = {"error_x": error_bars([mark], code.colour)} if mark.bounded else {}
    fig.add_scatter(
        x=[mark.point],
        y=[mark.x],
        xaxis=f"x{axis}",
        yaxis=f"y{axis}",
        mode="markers",
        showlegend=False,
        hoverinfo="text",
        hovertext=[hover_text(mark)],
        cliponaxis=False,
        **bars,
        marker={
            "color": code.colour,
            "size": 9,
            "symbol": code.symbol if mark.bounded else f"{code.symbol}-open",
            "line": {"width": 0 if mark.bounded else 2, "color": code.colour},
        },
    )


def _room(marks: Sequence[Mark]) -> dict[str, Any]:
    """The part of an axis that holds all points and bars of a panel."""
    ends = [
        value for mark in marks for value in (mark.point, mark.lo, mark.hi) if value is not None
    ]
    if not ends:
        return {"range": [0, 1], "tickvals": []}
    pad = 0.08 * (max(ends) - min(ends)) or 0.05
    return {"range": [min(ends) - pad, max(ends) + pad]}


def set_score_axis(fig: Any, values: Sequence[float], *, full_range: bool = False) -> list[str]:
    """The axis from 0 to 1, or the part of it that the values cover where that is small; then in words which."""
    lo, hi = min(values), max(values)
    if full_range or hi - lo > _NARROW:
        fig.update_xaxes(range=[-0.03, 1.03], tickvals=[i / 10 for i in range(11)])
        return []
    pad = 0.04 * (hi - lo) or 0.02
    fig.update_xaxes(range=[lo - pad, hi + pad], nticks=12)
    return [f"The horizontal axis is cut: {lo:.3g} to {hi:.3g} of 0 to 1."]


def draw_thresholds(fig: Any, rows: Sequence[Row], *, across: bool = True) -> list[str]:
    """Lines at the policy's thresholds, with the actions between them, and what the subtitle says of them."""
    low, high = (float_value(rows[0], name) if rows else None for name in ("low", "high"))
    if low is None or high is None:
        return []
    for value, dash in ((low, "dash"), (high, "longdash")):
        ends = (
            {"x0": value, "x1": value, "y0": 0, "y1": 1, "yref": "paper"}
            if across
            else ({"y0": value, "y1": value, "x0": 0, "x1": 1, "xref": "paper"})
        )
        fig.add_shape(
            type="line",
            layer="below",
            line={"color": style.SOFT_INK, "width": 1.2, "dash": dash},
            **ends,
        )
    return [f"Dashed: below {low:g} escalate, from {high:g} on release, between them review."]
