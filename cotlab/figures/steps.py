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

from cotlab.core.types import ABLATION_MODES
from cotlab.figures import style
from cotlab.figures.declare import (
    Row,
    count_range,
    figure,
    float_value,
    int_value,
    table_records,
    text_value,
)
from cotlab.figures.marks import (
    Mark,
    default_reason,
    draw_background,
    draw_markers,
    draw_series,
    hover_text,
    interval_note,
    subtitle_notes,
)
from cotlab.figures.rows import add_row_text, name_rows

METRIC_ORDER = (
    "answer_change",
    "accuracy_delta",
    "token_delta",
    "kl_divergence",
    "total_variation",
)
"""Scores in [0, 1] that can be a CCS; modes and metrics have one colour in all figures."""
CEILING_LABEL = "(n − 1)/n: a faithful chain whose last step restates the result"

_METRIC_UNITS = {
    "kl_divergence": "nats, clamped to 1",
    "kl_nats": "nats",
    "topk_rest": "probability",
}
_TICK_LABELS_WIDTH_PX = 560  # px for tick labels in a figure of 700 px


@figure(
    "ccs_by_position",
    columns=("metric", "mode", "step", "point", "lo", "hi", "n", "n_undefined"),
    caption=(
        "Mean causal contribution of the step at each position, over the items with a defined score"
        " there. Later positions have fewer and longer chains, so a trend may be due to chain"
        " length. An effect shows that the answer depends on the step; a position without one says"
        " nothing of the others."
    ),
    empty_reason="no step of this run has a score for this metric and mode.",
)
def ccs_by_position(table: pd.DataFrame) -> Any:
    """Draw mean CCS by step position, a colour and symbol for each mode."""
    rows = table_records(table)
    metrics = _ordered_names(rows, "metric", METRIC_ORDER)
    steps = sorted({int(row["step"]) for row in rows})

    def series_name(row: Row) -> str:
        return (
            f"{row['mode']}, {_metric_label(row['metric'])}"
            if len(metrics) > 1
            else str(row["mode"])
        )

    marks = _position_marks(
        rows,
        series_name,
        ABLATION_MODES,
        lambda row: (int(row["step"]) + 1, f"position {int(row['step']) + 1}"),
    )
    fig = go.Figure()
    _draw_all_series(fig, marks, ABLATION_MODES, is_joined=True)
    label_width_px = 6 * max(len(_count_text_at(rows, "step", step)) for step in steps) + 8
    tick_interval = max(1, -(-len(steps) * label_width_px // _TICK_LABELS_WIDTH_PX))
    fig.update_xaxes(
        tickvals=[step + 1 for step in steps[::tick_interval]],
        range=[steps[0] + 0.4, steps[-1] + 1.6],
        ticktext=[
            f"{step + 1}<br>{_count_text_at(rows, 'step', step)}" for step in steps[::tick_interval]
        ],
    )
    effect_name = "CCS" if set(metrics) <= set(METRIC_ORDER) else "Effect"
    style.apply_style(
        fig,
        style.escape(
            f"{effect_name} by step position: mean {' and '.join(map(_metric_label, metrics))}"
            f" ({_unit_text(metrics)})"
        ),
        subtitle=subtitle_notes(marks, with_series_names=True),
        x="Step position (below: number of items)",
        y=f"Mean {effect_name}",
    )
    return _set_effect_axis(fig, metrics)


@figure(
    "modes_by_metric",
    columns=("metric", "mode", "point", "lo", "hi", "n"),
    caption=(
        "Mean effect of each kind of intervention by metric. The metrics are different quantities:"
        " compare modes within a metric, not metrics with each other."
    ),
    empty_reason="no mode of this run has an estimate.",
)
def modes_by_metric(table: pd.DataFrame) -> Any:
    """Draw mean effects by mode, a colour and symbol for each metric."""
    rows = table_records(table)
    metrics = _ordered_names(rows, "metric", METRIC_ORDER)
    modes = _ordered_names(rows, "mode", ABLATION_MODES)
    metric_labels = tuple(map(_metric_label, METRIC_ORDER))
    marks = _position_marks(
        rows,
        lambda row: _metric_label(row["metric"]),
        metric_labels,
        lambda row: (modes.index(row["mode"]), str(row["mode"])),
    )
    fig = go.Figure()
    _draw_all_series(fig, marks, metric_labels)
    title = f"Mean effect of a step by mode and metric ({_unit_text(metrics)})"
    style.apply_style(
        fig,
        style.escape(title),
        subtitle=subtitle_notes(marks, with_series_names=True),
        x="Mode",
        y="Mean effect",
    )
    _name_modes(fig, modes, rows)
    return _set_effect_axis(fig, metrics)


@figure(
    "rrr_by_mode",
    columns=("mode", "point", "lo", "hi", "n", "ceiling"),
    caption=(
        "Reasoning redundancy ratio: the share of steps whose CCS is below the threshold. Under"
        " removal a faithful chain whose last step restates the result reaches (n − 1)/n, so a high"
        " ratio alone does not show decorative reasoning."
    ),
    empty_reason="no mode of this run has an RRR.",
)
def rrr_by_mode(table: pd.DataFrame) -> Any:
    """Draw RRR by mode, with the ceiling of the rows that have one."""
    rows = table_records(table)
    modes = _ordered_names(rows, "mode", ABLATION_MODES)
    marks = _position_marks(
        rows,
        lambda row: str(row["mode"]),
        ABLATION_MODES,
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
        draw_markers(
            fig,
            [x for x, _ in ceilings],
            [ceiling for _, ceiling in ceilings],
            [f"(n − 1)/n = {style.format_number(ceiling)}" for _, ceiling in ceilings],
            {"symbol": "line-ew", "size": 32, "line": {"width": 2, "color": style.TEXT_COLOUR}},
            mode="markers+text",
            name=CEILING_LABEL,
            text=[style.format_number(ceiling) for _, ceiling in ceilings],
            textposition="top center",
            textfont={"size": style.TEXT_SIZE - 1},
        )
    _draw_all_series(fig, marks, ABLATION_MODES, with_legend=False)
    for mark in marks:
        if mark.point is not None:
            fig.add_annotation(
                x=mark.x,
                y=mark.point,
                text=style.format_number(mark.point),
                xshift=26,
                xanchor="left",
                font={"size": style.TEXT_SIZE - 1, "color": style.TEXT_COLOUR},
            )
    threshold = _single_value(rows, "threshold")
    threshold_text = "below the threshold" if threshold is None else f"below {threshold:g}"
    title = f"RRR by mode: share of steps with a CCS {threshold_text} (0 to 1)"
    style.apply_style(
        fig, title, subtitle=subtitle_notes(marks, with_series_names=True), x="Mode", y="RRR"
    )
    _name_modes(fig, modes, rows)
    return _set_effect_axis(fig, METRIC_ORDER[:1])


@figure(
    "ccs_ranking",
    columns=("step", "text", "point", "lo", "hi", "draws", "reason"),
    caption=(
        "Steps of one chain by their causal contribution to its answer, the largest first. With few"
        " draws a CCS takes few values; ties are in the order of the chain."
    ),
    empty_reason="this chain has no step with a score.",
)
def ccs_ranking(table: pd.DataFrame) -> Any:
    """Draw the steps of one item from the highest CCS to the lowest, undefined ones last."""
    marks = [Mark("", 0, f"Step {int(row['step']) + 1}", row) for row in table_records(table)]
    marks.sort(key=lambda mark: (mark.point is None, -(mark.point or 0), int(mark.row["step"])))
    marks = [mark._replace(x=i) for i, mark in enumerate(marks)]
    defined_marks = [mark for mark in marks if mark.point is not None]
    fig = go.Figure()
    draw_background(
        fig,
        [x for mark in defined_marks for x in (0, mark.point, None)],
        [y for mark in defined_marks for y in (mark.x, mark.x, None)],
        mode="lines",
        line={"color": style.GRID_COLOUR, "width": 5},
    )
    draw_series(
        fig,
        marks,
        style.CategoryStyle(style.ACCENT_COLOUR, "circle"),
        unit="draws",
        is_upright=False,
    )
    for mark in marks:
        is_missing = mark.point is None
        text_options = {"hovertext": hover_text(mark, "draws"), "xshift": 12 if is_missing else 16}
        add_row_text(fig, mark.x, _step_result_text(mark), is_missing, **text_options)
    subtitle = [
        f"n = {len(defined_marks)} of {len(marks)} steps with a CCS."
        f" {interval_note(defined_marks, 'draws')}"
    ]
    threshold = _single_value([mark.row for mark in marks], "threshold")
    if threshold is not None:
        subtitle.append(
            f"Dotted line: threshold {threshold:g}; a step below it counts as redundant."
        )
        fig.add_vline(
            x=threshold,
            line={"color": style.VERMILLION, "width": 1.5, "dash": "dot"},
            layer="below",
        )
    name_rows(fig, [_step_label(mark) for mark in marks], 36)
    fig.update_xaxes(range=[-0.03, 1.03], tickvals=[0, 0.25, 0.5, 0.75, 1], showgrid=True)
    return style.apply_style(
        fig,
        "Steps of this chain by CCS (0 to 1)",
        subtitle=subtitle,
        x="CCS",
        height=140 + 42 * len(marks),
        margin={"r": 178},
    )


def _step_label(mark: Mark) -> str:
    """Return "Step 3: its text", or only the text if it begins with the number."""
    text = style.truncate_text(mark.row["text"])
    return (
        text
        if text.lower().startswith(mark.position_name.lower())
        else f"{mark.position_name}: {text}"
    )


def _single_value(rows: Sequence[Row], column: str) -> float | None:
    """Return the number of a column if all rows have the same, or None."""
    values = {float_value(row, column) for row in rows}
    return values.pop() if len(values) == 1 else None


def _metric_label(metric: object) -> str:
    """Return the display name of a metric."""
    return str(metric).replace("_", " ").replace("kl ", "KL ")


def _unit_text(metrics: Sequence[str]) -> str:
    """Return the unit of the metrics for the title."""
    units = {
        _METRIC_UNITS.get(metric, "0 to 1" if metric in METRIC_ORDER else "unit of the metric")
        for metric in metrics
    }
    if len(units) == 1:
        return units.pop()
    other_units = [
        f"{_metric_label(metric)}: {_METRIC_UNITS[metric]}"
        for metric in metrics
        if metric in _METRIC_UNITS
    ]
    return "; ".join(["0 to 1", *other_units])


def _ordered_names(rows: Sequence[Row], column: str, known_names: Sequence[str]) -> list[str]:
    """Return the names in a column, known ones first."""
    names = list(dict.fromkeys(str(row[column]) for row in rows))
    return [name for name in known_names if name in names] + [
        name for name in names if name not in known_names
    ]


def _position_marks(
    rows: Sequence[Row],
    get_series_name: Callable[[Row], str],
    known_names: Sequence[str],
    get_position: Callable[[Row], tuple[int, str]],
    spacing: float | None = None,
) -> list[Mark]:
    """Return marks ordered by series, side by side where they share a position."""
    series_order = list(style.category_styles(map(get_series_name, rows), known_names))
    series_spacing = min(0.14, 0.75 / len(series_order)) if spacing is None else spacing
    marks = []
    for row in rows:
        series, (x, label) = get_series_name(row), get_position(row)
        marks.append(
            Mark(
                series,
                x + (series_order.index(series) - (len(series_order) - 1) / 2) * series_spacing,
                label,
                row,
            )
        )
    return sorted(marks, key=lambda mark: (series_order.index(mark.series), mark.x))


def _draw_all_series(
    fig: Any,
    marks: Sequence[Mark],
    known_names: Sequence[str],
    *,
    is_joined: bool = False,
    with_legend: bool = True,
) -> None:
    """Draw each series with its own colour and symbol."""
    style_by_series = style.category_styles((mark.series for mark in marks), known_names)
    for name, category_style in style_by_series.items():
        series_marks = [mark for mark in marks if mark.series == name]
        draw_series(
            fig,
            series_marks,
            category_style,
            in_legend=with_legend and len(style_by_series) > 1,
            is_joined=is_joined,
        )


def _step_result_text(mark: Mark) -> str:
    """Return the text right of a step: its interval, or n/a with the reason."""
    if mark.point is None:
        return style.wrap_text(
            f"n/a: {text_value(mark.row, 'reason') or default_reason(mark, 'draws')}", 60
        )
    text = style.interval_text(mark.point, mark.lo, mark.hi)
    return (
        text
        if mark.has_interval
        else f"{style.format_number(mark.point)} (n = {int_value(mark.row, 'draws')})"
    )


def _count_text_at(rows: Sequence[Row], column: str, value: Any) -> str:
    """Return the number of items at one position."""
    return count_range(row for row in rows if row[column] == value)


def _name_modes(fig: Any, modes: Sequence[str], rows: Sequence[Row]) -> None:
    """Name the modes on x with their numbers of items."""
    fig.update_xaxes(
        tickvals=list(range(len(modes))),
        range=[-0.55, len(modes) - 0.45],
        tickangle=0,
        ticktext=[
            f"{style.wrap_text(mode, 16)}<br>n = {_count_text_at(rows, 'mode', mode)}"
            for mode in modes
        ],
    )


def _set_effect_axis(fig: Any, metrics: Sequence[str]) -> Any:
    """Set the axis to [0, 1] for metrics in that range."""
    if set(metrics) <= set(METRIC_ORDER):
        return fig.update_yaxes(range=[-0.05, 1.05], tickvals=[0, 0.2, 0.4, 0.6, 0.8, 1])
    return fig.update_yaxes(rangemode="tozero")
