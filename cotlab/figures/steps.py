"""Effects of steps by mode, ranked in one chain, and the redundancy ratio.

A point without an interval is an open marker; an undefined value is written "n/a", never drawn at
0. Optional columns of tables: ``method``, ``confidence`` and ``threshold`` (in the subtitle),
``reason`` (of a missing point or interval) and ``values`` (raw values, drawn up to n = 20).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.core.types import ABLATION_MODES, MODE_ORDER
from cotlab.figures import style
from cotlab.figures.declare import (
    Row,
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
from cotlab.figures.step_series import (
    METRIC_ORDER,
    column_names,
    count_text_at,
    draw_all_series,
    position_marks,
    set_effect_axis,
    step_metric_label,
    unit_text,
)

CEILING_LABEL = "(n − 1)/n: a faithful chain whose last step restates the result"


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
    metrics = column_names(rows, "metric", METRIC_ORDER)
    modes = column_names(rows, "mode", MODE_ORDER)
    metric_labels = tuple(map(step_metric_label, METRIC_ORDER))
    marks = position_marks(
        rows,
        lambda row: step_metric_label(row["metric"]),
        metric_labels,
        lambda row: (modes.index(row["mode"]), str(row["mode"])),
    )
    fig = go.Figure()
    draw_all_series(fig, marks, metric_labels)
    title = f"Mean effect of a step by mode and metric ({unit_text(metrics)})"
    style.apply_style(
        fig,
        style.escape(title),
        subtitle=subtitle_notes(marks, with_series_names=True),
        x="Mode",
        y="Mean effect",
    )
    _name_modes(fig, modes, rows)
    return set_effect_axis(fig, metrics)


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
    modes = column_names(rows, "mode", MODE_ORDER)
    marks = position_marks(
        rows,
        lambda row: str(row["mode"]),
        MODE_ORDER,
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
    draw_all_series(fig, marks, ABLATION_MODES, with_legend=False)
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
    return set_effect_axis(fig, METRIC_ORDER[:1])


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


def _name_modes(fig: Any, modes: Sequence[str], rows: Sequence[Row]) -> None:
    """Name the modes on x with their numbers of items."""
    fig.update_xaxes(
        tickvals=list(range(len(modes))),
        range=[-0.55, len(modes) - 0.45],
        tickangle=0,
        ticktext=[
            f"{style.wrap_text(mode, 16)}<br>n = {count_text_at(rows, 'mode', mode)}"
            for mode in modes
        ],
    )
