"""Effects of steps: by position, by mode, ranked in one chain, and the redundancy ratio.

A point without an interval is an open marker; an undefined value is written "n/a" outside the plot,
never drawn at 0. Optional columns of tables: ``method`` and ``confidence`` (in the subtitle),
``reason`` (of a missing point or interval) and ``values`` (raw values, drawn up to n = 20).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.core.types import ABLATION_MODES, MODE_ORDER
from cotlab.figures import style
from cotlab.figures.declare import Row, count_range, figure, float_value, table_records
from cotlab.figures.layout import apply_style
from cotlab.figures.marks import (
    Mark,
    draw_background,
    draw_markers,
    draw_reference_line,
    draw_series,
    interval_note,
    subtitle_notes,
)
from cotlab.figures.rows import add_row_text, draw_estimate_rows, name_rows, set_value_axis

METRIC_ORDER = (
    "answer_change",
    "accuracy_delta",
    "token_delta",
    "kl_divergence",
    "total_variation",
)
"""Scores in [0, 1] that can be a CCS; modes and metrics have one colour in all figures."""
_SHARE_METRICS = ("answer_change", "accuracy_delta")
"""Metrics that are 0 or 1 for a step of an item, so that their mean over items is a share."""
_METRIC_UNITS = {
    "answer_change": "%",
    "accuracy_delta": "%",
    "kl_divergence": "nats, clamped to 1",
    "kl_nats": "nats",
    "topk_rest": "probability",
}
_QUANTITIES = {
    "answer_change": "answers that change",
    "accuracy_delta": "answers that become right or wrong",
    "token_delta": "changed words of the reply",
    "kl_divergence": "KL divergence of the first token",
    "total_variation": "total variation of the first token",
}
CEILING_LABEL = "(n − 1)/n: a faithful chain whose last step restates the result"
MAX_ROWS = 30
"""Most estimates that are drawn as rows with their numbers."""
_ROW_PX, _ROW_SPACING_PX = 18, 14  # px for each estimate of a position, and between positions
_TICK_LABELS_WIDTH_PX = 560


def step_metric_label(metric: object) -> str:
    """Return the display name of a metric."""
    return str(metric).replace("_", " ").replace("kl ", "KL ")


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
    """Draw mean CCS by step position, a colour and symbol for each mode.

    Few estimates are rows with their numbers; many stand side by side at their position.
    """
    rows = table_records(table)
    metrics = _column_names(rows, "metric", METRIC_ORDER)
    steps = sorted({int(row["step"]) for row in rows})
    are_rows = len(rows) <= MAX_ROWS

    def series_name(row: Row) -> str:
        mode = str(row["mode"])
        return f"{mode}, {step_metric_label(row['metric'])}" if len(metrics) > 1 else mode

    def position(row: Row) -> tuple[int, str]:
        step = int(row["step"])
        return steps.index(step) if are_rows else step + 1, f"position {step + 1}"

    marks = _position_marks(rows, series_name, MODE_ORDER, position, are_rows=are_rows)
    quantity = _QUANTITIES.get(metrics[0]) if len(metrics) == 1 else None
    quantity = quantity or f"mean {' and '.join(map(step_metric_label, metrics))}"
    title = f"Step effect (CCS) by position: {quantity} ({_unit_text(metrics)})"
    notes = _single_series_note(marks)
    if are_rows:
        names = [f"Step {step + 1} (n = {_count_text(rows, 'step', step)})" for step in steps]
        return _draw_rows(marks, names, metrics, title, ABLATION_MODES, notes)
    fig = go.Figure()
    _draw_all_series(fig, marks, ABLATION_MODES)
    counts = [_count_text(rows, "step", step) for step in steps]
    label_width_px = 6 * max(map(len, counts)) + 8
    interval = max(1, -(-len(steps) * label_width_px // _TICK_LABELS_WIDTH_PX))
    fig.update_xaxes(
        tickvals=[step + 1 for step in steps[::interval]],
        range=[steps[0] + 0.4, steps[-1] + 1.6],
        ticktext=[
            f"{step + 1}<br>{count}"
            for step, count in zip(steps[::interval], counts[::interval], strict=True)
        ],
    )
    if set(metrics) <= set(METRIC_ORDER):
        fig.update_yaxes(range=[-0.05, 1.05], tickvals=[0, 0.2, 0.4, 0.6, 0.8, 1])
    if set(metrics) <= set(_SHARE_METRICS):
        fig.update_yaxes(tickformat=".0%")
    return apply_style(
        fig,
        style.escape(title),
        subtitle=[*notes, *subtitle_notes(marks)],
        x="Step position (below: number of items)",
        y="Mean CCS",
    )


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
    """Draw mean effects as rows by mode, a colour and symbol for each metric."""
    rows = table_records(table)
    metrics = _column_names(rows, "metric", METRIC_ORDER)
    modes = _column_names(rows, "mode", MODE_ORDER)
    metric_labels = tuple(map(step_metric_label, METRIC_ORDER))
    marks = _position_marks(
        rows,
        lambda row: step_metric_label(row["metric"]),
        metric_labels,
        lambda row: (modes.index(str(row["mode"])), str(row["mode"])),
    )
    names = [f"{mode} (n = {_count_text(rows, 'mode', mode)})" for mode in modes]
    title = f"Step effect (CCS) by mode and metric (mean, {_unit_text(metrics)})"
    return _draw_rows(marks, names, metrics, title, metric_labels, _single_series_note(marks))


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
    """Draw a row for each mode, with the ceiling of the rows that have one."""
    rows = table_records(table)
    modes = _column_names(rows, "mode", MODE_ORDER)
    rows.sort(key=lambda row: modes.index(str(row["mode"])))
    marks = [Mark("", i, str(row["mode"]), row, is_share=True) for i, row in enumerate(rows)]
    fig = draw_estimate_rows(marks, "Redundancy (RRR) by mode (% of steps)", x="RRR (%)")
    ceilings = [
        (mark.x, ceiling)
        for mark in marks
        if (ceiling := float_value(mark.row, "ceiling")) is not None
    ]
    if ceilings:
        line = {"width": 2, "color": style.hue(style.TEXT_COLOUR)}
        draw_markers(
            fig,
            [ceiling for _, ceiling in ceilings],
            [position for position, _ in ceilings],
            [f"(n − 1)/n = {style.format_percent(ceiling)}" for _, ceiling in ceilings],
            {"symbol": "line-ns", "size": 26, "line": line},
            name=CEILING_LABEL,
        )
    return fig


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
    """Draw the steps of one item from the highest CCS to the lowest, undefined ones last.

    The optional column ``threshold`` is a line.
    """
    marks = [
        Mark("", 0, f"Step {int(row['step']) + 1}", row, "draws") for row in table_records(table)
    ]
    marks.sort(key=lambda mark: (mark.point is None, -(mark.point or 0), int(mark.row["step"])))
    marks = [mark._replace(x=i) for i, mark in enumerate(marks)]
    defined_marks = [mark for mark in marks if mark.point is not None]
    fig = go.Figure()
    draw_background(
        fig,
        [x for mark in defined_marks for x in (0, mark.point, None)],
        [y for mark in defined_marks for y in (mark.x, mark.x, None)],
        mode="lines",
        line={"color": style.hue(style.GRID_COLOUR), "width": 5},
    )
    category_style = style.CategoryStyle(style.hue(style.ACCENT_COLOUR), "circle")
    draw_series(fig, marks, category_style, is_upright=False)
    for mark in marks:
        count = f" (n = {mark.n})" if mark.point is not None and not mark.has_interval else ""
        text = f"{style.format_number(mark.point)}{count}" if count else mark.text
        add_row_text(fig, mark.x, text, hovertext=mark.hover_text)
    subtitle = [
        f"n = {len(defined_marks)} of {len(marks)} steps with a CCS. {interval_note(defined_marks)}"
    ]
    thresholds = {float_value(mark.row, "threshold") for mark in marks}
    if len(thresholds) == 1 and (threshold := thresholds.pop()) is not None:
        subtitle.append(
            f"Dotted line: threshold {threshold:g}; a step below it counts as redundant."
        )
        draw_reference_line(fig, x=threshold, width=1.5)
    subtitle += subtitle_notes([mark for mark in marks if mark.point is None])
    name_rows(fig, [_step_label(mark) for mark in marks], 36)
    fig.update_xaxes(range=[-0.03, 1.03], tickvals=[0, 0.25, 0.5, 0.75, 1], showgrid=True)
    return apply_style(
        fig,
        "Step effect (CCS) in this chain (0 to 1)",
        subtitle=subtitle,
        x="CCS",
        height=100 + 42 * len(marks),
    )


def _step_label(mark: Mark) -> str:
    """Return "Step 3: its text", or only the text if it begins with the number."""
    text = style.truncate_text(mark.row["text"])
    starts_with_number = text.lower().startswith(mark.position_name.lower())
    return text if starts_with_number else f"{mark.position_name}: {text}"


def _unit_text(metrics: Sequence[str]) -> str:
    """Return the unit of the metrics for the title."""
    if len(metrics) == 1 or set(metrics) <= set(_SHARE_METRICS):
        return _METRIC_UNITS.get(
            metrics[0], "0 to 1" if metrics[0] in METRIC_ORDER else "unit of the metric"
        )
    nats = [name for name in metrics if _METRIC_UNITS.get(name, "%") != "%"]
    return "; ".join(["0 to 1", *(f"{step_metric_label(m)}: {_METRIC_UNITS[m]}" for m in nats)])


def _order_names(names: Iterable[str], known_names: Sequence[str]) -> list[str]:
    """Return each name once, the known ones first and in their order."""
    unique_names = list(dict.fromkeys(names))
    known = [name for name in known_names if name in unique_names]
    return known + [name for name in unique_names if name not in known_names]


def _column_names(rows: Sequence[Row], column: str, known_names: Sequence[str]) -> list[str]:
    return _order_names((str(row[column]) for row in rows), known_names)


def _count_text(rows: Sequence[Row], column: str, value: Any) -> str:
    """Return the number of items at one position."""
    return count_range(row for row in rows if row[column] == value)


def _position_marks(
    rows: Sequence[Row],
    get_series_name: Callable[[Row], str],
    known_names: Sequence[str],
    get_position: Callable[[Row], tuple[int, str]],
    *,
    are_rows: bool = True,
) -> list[Mark]:
    """Return marks ordered by series, side by side where they share a position."""
    is_share = {str(row["metric"]) for row in rows} <= set(_SHARE_METRICS)
    series_order = _order_names(map(get_series_name, rows), known_names)
    n_series = len(series_order)
    spacing = min(0.14, 0.75 / n_series)
    if are_rows:
        spacing = _ROW_PX / (_ROW_PX * n_series + _ROW_SPACING_PX)
    marks = []
    for row in rows:
        series, (position, label) = get_series_name(row), get_position(row)
        offset = (series_order.index(series) - (n_series - 1) / 2) * spacing
        marks.append(Mark(series, position + offset, label, row, is_share=is_share))
    return sorted(marks, key=lambda mark: (series_order.index(mark.series), mark.x))


def _single_series_note(marks: Sequence[Mark]) -> list[str]:
    """Return a line that names the series where there is one only, and so no legend."""
    names = list({mark.series for mark in marks})
    return [f"Shown: {style.escape(style.truncate_text(names[0]))}."] if len(names) == 1 else []


def _draw_all_series(
    fig: Any, marks: Sequence[Mark], known_names: Sequence[str], *, is_upright: bool = True
) -> None:
    """Draw each series with its own colour and symbol; their points are never joined."""
    style_by_series = style.category_styles((mark.series for mark in marks), known_names)
    for name in dict.fromkeys(mark.series for mark in marks):
        draw_series(
            fig,
            [mark for mark in marks if mark.series == name],
            style_by_series[name],
            in_legend=len(style_by_series) > 1,
            is_upright=is_upright,
        )


def _draw_rows(
    marks: Sequence[Mark],
    names: Sequence[str],
    metrics: Sequence[str],
    title: str,
    known_series: Sequence[str],
    notes: Sequence[str],
) -> Any:
    """Draw a row for each estimate of each position, with its value and interval at the right."""
    fig = go.Figure()
    _draw_all_series(fig, marks, known_series, is_upright=False)
    for mark in marks:
        add_row_text(fig, mark.x, mark.text, hovertext=mark.hover_text)
    name_rows(fig, names, 24)
    set_value_axis(fig, marks, (0, 1) if set(metrics) <= set(METRIC_ORDER) else (0, 0))
    n_series = len({mark.series for mark in marks})
    is_share = bool(marks) and marks[0].is_share
    return apply_style(
        fig,
        style.escape(title),
        subtitle=[*notes, *subtitle_notes(marks)],
        x=f"Mean CCS{' (%)' if is_share else ''}",
        height=100 + (_ROW_PX * n_series + _ROW_SPACING_PX) * len(names),
    )
