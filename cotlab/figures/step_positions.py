"""What a change of the step at each position does to the answer.

Few estimates are rows with their numbers; many stand side by side at their position, and are not
joined. Optional columns: ``method``, ``confidence``, ``reason`` and ``values``, as in `steps`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.core.types import ABLATION_MODES, MODE_ORDER
from cotlab.figures import style
from cotlab.figures.declare import Row, count_range, figure, table_records, text_value
from cotlab.figures.marks import Mark, default_reason, hover_text, interval_values, subtitle_notes
from cotlab.figures.rows import add_row_text, name_rows, set_value_axis
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

MAX_ROWS = 30
"""Most estimates that are drawn as rows with their numbers."""
_ROW_HEIGHT_PX, _ROW_SPACING_PX = (
    18,
    14,
)  # px for each estimate of a position, and between positions
_TICK_LABELS_WIDTH_PX = 560  # px for tick labels in a figure of 700 px
_TITLES = {
    "answer_change": "How often the answer changes, by the step's position",
    "accuracy_delta": "How often the answer becomes right or wrong, by the step's position",
    "token_delta": "How far the reply's words change, by the step's position",
    "kl_divergence": "How far the first token moves, by the step's position: KL divergence",
    "total_variation": "How far the first token moves, by the step's position: total variation",
}


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
    metrics = column_names(rows, "metric", METRIC_ORDER)
    title = style.escape(
        f"{_title(metrics)} (effect, {unit_text(metrics)}), n = {count_range(rows)} items a step"
    )
    draw = _draw_rows if len(rows) <= MAX_ROWS else _draw_upright
    return draw(rows, metrics, title)


def _title(metrics: Sequence[str]) -> str:
    """Return what is drawn, in plain words where there is one known metric."""
    if len(metrics) == 1 and metrics[0] in _TITLES:
        return _TITLES[metrics[0]]
    return f"{_effect_name(metrics)} by step: mean {' and '.join(map(step_metric_label, metrics))}"


def _effect_name(metrics: Sequence[str]) -> str:
    return "CCS" if set(metrics) <= set(METRIC_ORDER) else "Effect"


def _series_marks(
    rows: Sequence[Row], metrics: Sequence[str], first: int, spacing: float | None
) -> list[Mark]:
    """Return the marks of each mode, and metric if there are several, beside each other."""
    steps = sorted({int(row["step"]) for row in rows})

    def series_name(row: Row) -> str:
        mode = str(row["mode"])
        return f"{mode}, {step_metric_label(row['metric'])}" if len(metrics) > 1 else mode

    def position(row: Row) -> tuple[int, str]:
        step = int(row["step"])
        return (steps.index(step) if first == 0 else step + 1), f"position {step + 1}"

    return position_marks(rows, series_name, MODE_ORDER, position, spacing)


def _mode_notes(marks: Sequence[Mark]) -> list[str]:
    """Return a line that names the mode where there is one only, and so no legend."""
    names = list({mark.series for mark in marks})
    return [f"Mode: {style.escape(style.truncate_text(names[0]))}."] if len(names) == 1 else []


def _draw_rows(rows: Sequence[Row], metrics: Sequence[str], title: str) -> Any:
    """Draw a row for each estimate, with its value and interval at the right."""
    steps = sorted({int(row["step"]) for row in rows})
    n_series = len({(str(row["mode"]), str(row["metric"])) for row in rows})
    position_height = _ROW_HEIGHT_PX * n_series + _ROW_SPACING_PX
    marks = _series_marks(rows, metrics, 0, _ROW_HEIGHT_PX / position_height)
    fig = go.Figure()
    draw_all_series(fig, marks, ABLATION_MODES, is_upright=False)
    for mark in marks:
        text = style.interval_text(mark.point, mark.lo, mark.hi)
        if mark.point is None:
            reason = text_value(mark.row, "reason") or default_reason(mark)
            text = style.escape(style.truncate_text(f"n/a: {reason}", 62))
        add_row_text(fig, mark.x, text, mark.point is None, hovertext=hover_text(mark))
    names = [f"Step {step + 1} (n = {count_text_at(rows, 'step', step)})" for step in steps]
    name_rows(fig, names, 24)
    if set(metrics) <= set(METRIC_ORDER):
        fig.update_xaxes(range=[-0.04, 1.04], tickvals=[0, 0.2, 0.4, 0.6, 0.8, 1], showgrid=True)
    else:
        set_value_axis(fig, interval_values(marks), (0, 0))
    return style.apply_style(
        fig,
        title,
        subtitle=[*_mode_notes(marks), *subtitle_notes(marks, with_missing_points=False)],
        x=f"Mean {_effect_name(metrics)}",
        height=140 + position_height * len(steps),
        margin={"r": 158},
    )


def _draw_upright(rows: Sequence[Row], metrics: Sequence[str], title: str) -> Any:
    """Draw the estimates above their positions."""
    marks = _series_marks(rows, metrics, 1, None)
    steps = sorted({int(row["step"]) for row in rows})
    fig = go.Figure()
    draw_all_series(fig, marks, ABLATION_MODES)
    label_width_px = 6 * max(len(count_text_at(rows, "step", step)) for step in steps) + 8
    tick_interval = max(1, -(-len(steps) * label_width_px // _TICK_LABELS_WIDTH_PX))
    fig.update_xaxes(
        tickvals=[step + 1 for step in steps[::tick_interval]],
        range=[steps[0] + 0.4, steps[-1] + 1.6],
        ticktext=[
            f"{step + 1}<br>{count_text_at(rows, 'step', step)}" for step in steps[::tick_interval]
        ],
    )
    style.apply_style(
        fig,
        title,
        subtitle=[*_mode_notes(marks), *subtitle_notes(marks, with_series_names=True)],
        x="Step position (below: number of items)",
        y=f"Mean {_effect_name(metrics)}",
    )
    return set_effect_axis(fig, metrics)
