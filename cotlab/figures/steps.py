"""Effects of steps by position and mode, ranked in one chain, and the redundancy ratio.

A point without an interval is an open marker; an undefined value is written "n/a", never drawn at
0. Optional columns of tables: ``method``, ``confidence`` and ``threshold`` (in the subtitle),
``reason`` (of a missing point or interval) and ``values`` (raw values, drawn up to n = 20).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.declare import figure
from cotlab.figures.marks import (
    Mark,
    Row,
    count_range,
    default_reason,
    draw_series,
    float_value,
    hover_text,
    int_value,
    interval_note,
    subtitle_notes,
    table_records,
    text_value,
)

MODES = ("remove", "truncate", "corrupt", "paraphrase", "filler")
METRICS = ("answer_change", "accuracy_delta", "token_delta", "kl_divergence", "total_variation")
"""Scores in [0, 1] that can be a CCS; modes and metrics have one colour in all figures."""
CEILING = "(n − 1)/n: a faithful chain whose last step restates the result"

_UNITS = {"kl_divergence": "nats, clamped to 1", "kl_nats": "nats", "topk_rest": "probability"}
_TICK_ROOM = 560  # px for tick labels in a figure of 700 px


@figure(
    "ccs_by_position",
    columns=("metric", "mode", "step", "point", "lo", "hi", "n", "n_undefined"),
    caption=(
        "Mean causal contribution of the step at each position, over the items with a defined score"
        " there. Later positions have fewer and longer chains, so a trend may be due to chain"
        " length. An effect shows that the answer depends on the step; no effect does not show that"
        " the chain is unfaithful."
    ),
    empty="no step of this run has a score for this metric and mode.",
)
def ccs_by_position(table: pd.DataFrame) -> Any:
    """Draw mean CCS by step position, a colour and symbol for each mode."""
    rows = table_records(table)
    metrics = _ordered(rows, "metric", METRICS)
    steps = sorted({int(row["step"]) for row in rows})

    def named(row: Row) -> str:
        return (
            f"{row['mode']}, {_metric_label(row['metric'])}"
            if len(metrics) > 1
            else str(row["mode"])
        )

    marks = _position_marks(
        rows, named, MODES, lambda row: (int(row["step"]) + 1, f"position {int(row['step']) + 1}")
    )
    fig = go.Figure()
    _draw(fig, marks, MODES, joined=True)
    room = max(
        1,
        -(
            -len(steps)
            * (6 * max(len(_n_text(rows, "step", step)) for step in steps) + 8)
            // _TICK_ROOM
        ),
    )
    fig.update_xaxes(
        tickvals=[step + 1 for step in steps[::room]],
        range=[steps[0] + 0.4, steps[-1] + 1.6],
        ticktext=[f"{step + 1}<br>{_n_text(rows, 'step', step)}" for step in steps[::room]],
    )
    what = "CCS" if set(metrics) <= set(METRICS) else "Effect"
    style.apply_style(
        fig,
        style.escape(
            f"{what} by step position: mean {' and '.join(map(_metric_label, metrics))}"
            f" ({_unit(metrics)})"
        ),
        subtitle=subtitle_notes(marks, by_series=True),
        x="Step position (below: number of items)",
        y=f"Mean {what}",
    )
    return _bound(fig, metrics)


@figure(
    "modes_by_metric",
    columns=("metric", "mode", "point", "lo", "hi", "n"),
    caption=(
        "Mean effect of each kind of intervention by metric. The metrics are different quantities:"
        " compare modes within a metric, not metrics with each other."
    ),
    empty="no mode of this run has an estimate.",
)
def modes_by_metric(table: pd.DataFrame) -> Any:
    """Draw mean effects by mode, a colour and symbol for each metric."""
    rows = table_records(table)
    metrics, modes = _ordered(rows, "metric", METRICS), _ordered(rows, "mode", MODES)
    known = tuple(map(_metric_label, METRICS))
    marks = _position_marks(
        rows,
        lambda row: _metric_label(row["metric"]),
        known,
        lambda row: (modes.index(row["mode"]), str(row["mode"])),
    )
    fig = go.Figure()
    _draw(fig, marks, known)
    title = f"Mean effect of a step by mode and metric ({_unit(metrics)})"
    style.apply_style(
        fig,
        style.escape(title),
        subtitle=subtitle_notes(marks, by_series=True),
        x="Mode",
        y="Mean effect",
    )
    _name_modes(fig, modes, rows)
    return _bound(fig, metrics)


@figure(
    "rrr_by_mode",
    columns=("mode", "point", "lo", "hi", "n", "ceiling"),
    caption=(
        "Reasoning redundancy ratio: the share of steps whose CCS is below the threshold. Under"
        " removal a faithful chain whose last step restates the result reaches (n − 1)/n, so a high"
        " ratio alone does not show decorative reasoning."
    ),
    empty="no mode of this run has an RRR.",
)
def rrr_by_mode(table: pd.DataFrame) -> Any:
    """Draw RRR by mode, with the ceiling of the rows that have one."""
    rows = table_records(table)
    modes = _ordered(rows, "mode", MODES)
    marks = _position_marks(
        rows,
        lambda row: str(row["mode"]),
        MODES,
        lambda row: (modes.index(row["mode"]), str(row["mode"])),
        spacing=0,
    )
    fig = go.Figure()
    ceilings = [
        (mark.x, ceiling)
        for mark in marks
        if (ceiling := float_value(mark.row, "ceiling")) is not None
    ]
    if ceilings:
        fig.add_scatter(
            x=[x for x, _ in ceilings],
            y=[ceiling for _, ceiling in ceilings],
            mode="markers+text",
            name=CEILING,
            text=[style.format_number(ceiling) for _, ceiling in ceilings],
            textposition="top center",
            textfont={"size": style.TEXT_SIZE - 1},
            marker={"symbol": "line-ew", "size": 32, "line": {"width": 2, "color": style.INK}},
            cliponaxis=False,
            hoverinfo="text",
            hovertext=[f"(n − 1)/n = {style.format_number(ceiling)}" for _, ceiling in ceilings],
            showlegend=True,
        )
    _draw(fig, marks, MODES, legend=False)
    for mark in marks:
        if mark.point is not None:
            fig.add_annotation(
                x=mark.x,
                y=mark.point,
                text=style.format_number(mark.point),
                xshift=26,
                xanchor="left",
                font={"size": style.TEXT_SIZE - 1, "color": style.INK},
            )
    limit = _single_value(rows, "threshold")
    below = "below the threshold" if limit is None else f"below {limit:g}"
    title = f"RRR by mode: share of steps with a CCS {below} (0 to 1)"
    style.apply_style(fig, title, subtitle=subtitle_notes(marks, by_series=True), x="Mode", y="RRR")
    _name_modes(fig, modes, rows)
    return _bound(fig, METRICS[:1])


@figure(
    "ccs_ranking",
    columns=("step", "text", "point", "lo", "hi", "draws", "reason"),
    caption=(
        "Steps of one chain by their causal contribution to its answer, the largest first. With few"
        " draws a CCS takes few values; ties are in the order of the chain."
    ),
    empty="this chain has no step with a score.",
)
def ccs_ranking(table: pd.DataFrame) -> Any:
    """Draw the steps of one item from the highest CCS to the lowest, undefined ones last."""
    marks = [Mark("", 0, f"Step {int(row['step']) + 1}", row) for row in table_records(table)]
    marks.sort(key=lambda mark: (mark.point is None, -(mark.point or 0), int(mark.row["step"])))
    marks = [mark._replace(x=i) for i, mark in enumerate(marks)]
    defined = [mark for mark in marks if mark.point is not None]
    fig = go.Figure()
    fig.add_scatter(
        x=[at for mark in defined for at in (0, mark.point, None)],
        y=[at for mark in defined for at in (mark.x, mark.x, None)],
        mode="lines",
        line={"color": style.GRID, "width": 5},
        hoverinfo="skip",
        showlegend=False,
    )
    draw_series(fig, marks, style.Code(style.ACCENT, "circle"), unit="draws", upright=False)
    for mark in marks:
        text = _right_of_step(mark)
        fig.add_annotation(
            y=mark.x,
            x=0 if mark.point is None else 1,
            xref="paper",
            xshift=12 if mark.point is None else 16,
            xanchor="left",
            align="left",
            text=text,
            hovertext=hover_text(mark, "draws"),
            bgcolor=style.PAPER,
            font={
                "size": style.TEXT_SIZE - 1,
                "color": style.SOFT_INK if mark.point is None else style.INK,
            },
        )
    small = [
        f"n = {len(defined)} of {len(marks)} steps with a CCS. {interval_note(defined, 'draws')}"
    ]
    limit = _single_value([mark.row for mark in marks], "threshold")
    if limit is not None:
        small.append(f"Dotted line: threshold {limit:g}; a step below it counts as redundant.")
        fig.add_vline(
            x=limit, line={"color": style.VERMILLION, "width": 1.5, "dash": "dot"}, layer="below"
        )
    style.apply_style(
        fig,
        "Steps of this chain by CCS (0 to 1)",
        subtitle=small,
        x="CCS",
        height=140 + 42 * len(marks),
    )
    fig.update_yaxes(
        tickvals=[mark.x for mark in marks],
        range=[len(marks) - 0.4, -0.6],
        ticks="",
        showgrid=False,
        ticktext=[style.in_lines(_step_label(mark), 36) for mark in marks],
    )
    fig.update_xaxes(range=[-0.03, 1.03], tickvals=[0, 0.25, 0.5, 0.75, 1], showgrid=True)
    return fig.update_layout(margin={"r": 156})


def _step_label(mark: Mark) -> str:
    """Return "Step 3: its text", or only the text if it begins with the number."""
    text = style.truncate_text(mark.row["text"])
    return text if text.lower().startswith(mark.at.lower()) else f"{mark.at}: {text}"


def _single_value(rows: Sequence[Row], column: str) -> float | None:
    """Return the number of a column if all rows have the same, or None."""
    values = {float_value(row, column) for row in rows}
    return values.pop() if len(values) == 1 else None


def _metric_label(metric: object) -> str:
    """Return the display name of a metric."""
    return str(metric).replace("_", " ").replace("kl ", "KL ")


def _unit(metrics: Sequence[str]) -> str:
    """Return the unit of the metrics for the title."""
    units = {
        _UNITS.get(metric, "0 to 1" if metric in METRICS else "unit of the metric")
        for metric in metrics
    }
    if len(units) == 1:
        return units.pop()
    rest = [f"{_metric_label(metric)}: {_UNITS[metric]}" for metric in metrics if metric in _UNITS]
    return "; ".join(["0 to 1", *rest])


def _ordered(rows: Sequence[Row], column: str, known: Sequence[str]) -> list[str]:
    """Return the names in a column, known ones first."""
    names = list(dict.fromkeys(str(row[column]) for row in rows))
    return [name for name in known if name in names] + [name for name in names if name not in known]


def _position_marks(
    rows: Sequence[Row],
    named: Callable[[Row], str],
    known: Sequence[str],
    at: Callable[[Row], tuple[int, str]],
    spacing: float | None = None,
) -> list[Mark]:
    """Return marks ordered by series, side by side where they share a position."""
    order = list(style.category_codes(map(named, rows), known))
    step = min(0.14, 0.75 / len(order)) if spacing is None else spacing
    marks = []
    for row in rows:
        series, (x, label) = named(row), at(row)
        marks.append(
            Mark(series, x + (order.index(series) - (len(order) - 1) / 2) * step, label, row)
        )
    return sorted(marks, key=lambda mark: (order.index(mark.series), mark.x))


def _draw(
    fig: Any,
    marks: Sequence[Mark],
    known: Sequence[str],
    *,
    joined: bool = False,
    legend: bool = True,
) -> None:
    """Draw each series with its own colour and symbol."""
    codes = style.category_codes((mark.series for mark in marks), known)
    for name, code in codes.items():
        series_marks = [mark for mark in marks if mark.series == name]
        draw_series(fig, series_marks, code, legend=legend and len(codes) > 1, joined=joined)


def _right_of_step(mark: Mark) -> str:
    """Return the text right of a step: its interval, or n/a with the reason."""
    if mark.point is None:
        return style.in_lines(
            f"n/a: {text_value(mark.row, 'reason') or default_reason(mark, 'draws')}", 60
        )
    text = style.interval_text(mark.point, mark.lo, mark.hi)
    return (
        text
        if mark.bounded
        else f"{style.format_number(mark.point)} (n = {int_value(mark.row, 'draws')})"
    )


def _n_text(rows: Sequence[Row], column: str, value: Any) -> str:
    """Return the number of items at one position."""
    return count_range(row for row in rows if row[column] == value)


def _name_modes(fig: Any, modes: Sequence[str], rows: Sequence[Row]) -> None:
    """Name the modes on x with their numbers of items."""
    fig.update_xaxes(
        tickvals=list(range(len(modes))),
        range=[-0.55, len(modes) - 0.45],
        tickangle=0,
        ticktext=[
            f"{style.in_lines(mode, 16)}<br>n = {_n_text(rows, 'mode', mode)}" for mode in modes
        ],
    )


def _bound(fig: Any, metrics: Sequence[str]) -> Any:
    """Set the axis to [0, 1] for metrics in that range."""
    if set(metrics) <= set(METRICS):
        return fig.update_yaxes(range=[-0.05, 1.05], tickvals=[0, 0.2, 0.4, 0.6, 0.8, 1])
    return fig.update_yaxes(rangemode="tozero")
