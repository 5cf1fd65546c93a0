"""Effects of steps: by position, by mode, ranked in one chain, and the redundancy ratio.

A point without an interval is an open marker; an undefined value is written "n/a" outside the plot,
never drawn at 0. Optional columns of tables: ``method`` and ``confidence`` (in the subtitle),
``reason`` (of a missing point or interval) and ``values`` (raw values, drawn up to n = 20).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.core.types import ABLATION_MODES, MODE_ORDER
from cotlab.figures import style
from cotlab.figures.declare import (
    Row,
    count_range,
    figure,
    float_value,
    group_rows,
    in_order,
    table_records,
)
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
from cotlab.figures.rows import add_row_text, draw_estimate_rows, name_rows

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
    rows.sort(key=lambda row: int(row["step"]))
    metrics = in_order((row["metric"] for row in rows), METRIC_ORDER)
    is_share = set(metrics) <= set(_SHARE_METRICS)

    def series_name(row: Row) -> str:
        mode = str(row["mode"])
        return f"{mode}, {step_metric_label(row['metric'])}" if len(metrics) > 1 else mode

    marks = [
        Mark(series_name(row), step, f"Step {step}", row, is_share=is_share)
        for row in rows
        for step in [int(row["step"]) + 1]
    ]
    styles = _series_styles(marks, ABLATION_MODES, MODE_ORDER)
    quantity = _QUANTITIES.get(metrics[0]) if len(metrics) == 1 else None
    quantity = quantity or f"mean {' and '.join(map(step_metric_label, metrics))}"
    title = f"Step effect (CCS) by position: {quantity} ({_unit_text(metrics)})"
    if len(rows) <= MAX_ROWS:
        return _draw_rows(marks, styles, metrics, title)
    fig, spacing = go.Figure(), min(0.14, 0.75 / len(styles))
    for i, (series, category_style) in enumerate(styles.items()):
        offset = (i - (len(styles) - 1) / 2) * spacing
        series_marks = [m._replace(x=m.x + offset) for m in marks if m.series == series]
        draw_series(fig, series_marks, category_style, in_legend=len(styles) > 1)
    rows_by_step = group_rows(rows, "step")
    counts = {int(step) + 1: count_range(rows) for step, rows in rows_by_step.items()}
    steps = list(counts)
    label_width_px = 6 * max(map(len, counts.values())) + 8
    interval = max(1, -(-len(steps) * label_width_px // _TICK_LABELS_WIDTH_PX))
    fig.update_xaxes(
        tickvals=steps[::interval],
        range=[steps[0] - 0.6, steps[-1] + 0.6],
        ticktext=[f"{step}<br>{counts[step]}" for step in steps[::interval]],
    )
    if set(metrics) <= set(METRIC_ORDER):
        fig.update_yaxes(range=[-0.05, 1.05], tickvals=[0, 0.2, 0.4, 0.6, 0.8, 1])
    if is_share:
        fig.update_yaxes(tickformat=".0%")
    return apply_style(
        fig,
        style.escape(title),
        subtitle=[*_single_series_note(styles), *subtitle_notes(marks)],
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
    metrics = in_order((row["metric"] for row in rows), METRIC_ORDER)
    _sort_by_mode(rows)
    is_share = set(metrics) <= set(_SHARE_METRICS)
    marks = [
        Mark(step_metric_label(row["metric"]), 0, str(row["mode"]), row, is_share=is_share)
        for row in rows
    ]
    styles = _series_styles(marks, tuple(map(step_metric_label, METRIC_ORDER)))
    title = f"Step effect (CCS) by mode and metric (mean, {_unit_text(metrics)})"
    return _draw_rows(marks, styles, metrics, title)


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
    _sort_by_mode(rows)
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


def _sort_by_mode(rows: list[Row]) -> None:
    modes = in_order((row["mode"] for row in rows), MODE_ORDER)
    rows.sort(key=lambda row: modes.index(str(row["mode"])))


def _series_styles(
    marks: Sequence[Mark], coded_names: Sequence[str], order: Sequence[str] = ()
) -> dict[str, style.CategoryStyle]:
    """Return the colour and symbol of each series, in the order in which they stand."""
    names = in_order((mark.series for mark in marks), order or coded_names)
    styles = style.category_styles(names, coded_names)
    return {name: styles[name] for name in names}


def _single_series_note(styles: Mapping[str, Any]) -> list[str]:
    """Return a line that names the series where there is one only, and so no legend."""
    return [f"Shown: {style.escape(style.truncate_text(n))}." for n in styles if len(styles) == 1]


def _draw_rows(
    marks: Sequence[Mark],
    styles: Mapping[str, style.CategoryStyle],
    metrics: Sequence[str],
    title: str,
) -> Any:
    """Draw a row for each estimate of each position."""
    return draw_estimate_rows(
        marks,
        style.escape(title),
        x=f"Mean CCS{' (%)' if marks[0].is_share else ''}",
        min_range=(0, 1) if set(metrics) <= set(METRIC_ORDER) else (0, 0),
        styles=styles,
        notes=_single_series_note(styles),
    )
