"""Drift of features from one reference over successive checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plotly.subplots import make_subplots

from cotlab.figures import style
from cotlab.figures.declare import (
    Row,
    figure,
    float_value,
    group_rows,
    int_value,
    table_records,
    text_value,
)
from cotlab.figures.drift import (
    AXIS_END,
    CHECK_COLUMNS,
    MEASURE_PANELS,
    draw_set_point,
    drift_hover_text,
    measure_columns,
)
from cotlab.figures.marks import draw_background, draw_markers, missing_notes, point_marker

_MAX_TICKS = 12


@figure(
    "drift_over_time",
    columns=("place", "at", "feature", *measure_columns("", "_hi", "_limit"), *CHECK_COLUMNS),
    caption=(
        "Checks of later items against the same reference, in order. A rising line shows that items"
        " move away from those that the calibrator was fitted to, not why. Checks of fewer items"
        " move more by chance: the grey bars are shuffled samples."
    ),
    empty_reason="no drift check has been stored.",
)
def drift_over_time(table: Any) -> Any:
    """Draw PSI (top) and KS (bottom) with a line for each feature, filled at alerts.

    Behind the lines are the shuffled samples and the set point.
    """
    rows = table_records(table)
    tested_rows = [row for row in rows if not text_value(row, "reason")]
    time_by_check_index = {int_value(row, "place"): str(row["at"]) for row in rows}
    rows_by_feature = group_rows(tested_rows, "feature")
    style_by_feature = style.category_styles(rows_by_feature)
    fig = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.1)
    for panel_number, (name, title) in enumerate(MEASURE_PANELS, start=1):
        _draw_shuffled_samples(fig, tested_rows, name, panel_number)
        for feature, category_style in style_by_feature.items():
            _draw_feature_line(fig, rows_by_feature[feature], name, panel_number, category_style)
        fig.update_yaxes(
            title={"text": title},
            range=[-0.04, 1.12 * AXIS_END],
            tickvals=[0, 0.5, 1],
            row=panel_number,
        )
    last_index = max(time_by_check_index, default=0)
    fig.update_xaxes(range=[-0.6, last_index + 0.6], showgrid=False)
    tick_indices = list(time_by_check_index)[:: max(1, -(-len(time_by_check_index) // _MAX_TICKS))]
    fig.update_xaxes(
        tickvals=tick_indices,
        ticktext=[
            _tick_label(index, time_by_check_index[index], tested_rows) for index in tick_indices
        ],
        row=2,
    )
    subtitle = [
        (
            "Filled: alert, by PSI or KS. Grey: shuffled samples (no drift), up to the largest 95 %"
            " quantile of all features; the points have no intervals. Dashed: the set point."
        ),
        *_missing_notes(rows),
    ]
    return style.apply_style(
        fig,
        "Drift, check by check (PSI in nats, KS 0 to 1)",
        subtitle=subtitle,
        height=460,
        margin={"b": 104},
    )


def _draw_shuffled_samples(
    fig: Any, tested_rows: Sequence[Row], name: str, panel_number: int
) -> None:
    """Draw the bar of shuffled samples and the set point of each check."""
    quantile_by_check: dict[int, float] = {}
    set_point_by_check: dict[int, float] = {}
    for row in tested_rows:
        check_index = int_value(row, "place")
        quantile, set_point = float_value(row, f"{name}_hi"), float_value(row, f"{name}_limit")
        if quantile is not None:
            quantile_by_check[check_index] = max(quantile_by_check.get(check_index, 0.0), quantile)
        if set_point is not None:
            set_point_by_check[check_index] = set_point
    fig.add_bar(
        x=list(quantile_by_check),
        y=[min(quantile, AXIS_END) for quantile in quantile_by_check.values()],
        width=0.5,
        marker={"color": "#c9c9c9"},
        showlegend=False,
        hoverinfo="text",
        hovertext=[
            f"95 % of shuffles: up to {style.format_number(quantile)}"
            for quantile in quantile_by_check.values()
        ],
        row=panel_number,
        col=1,
    )
    for check_index, set_point in set_point_by_check.items():
        line_y = min(set_point, AXIS_END)
        draw_set_point(
            fig, (check_index - 0.5, check_index + 0.5), (line_y, line_y), panel_number, 1
        )


def _draw_feature_line(
    fig: Any, rows: Sequence[Row], name: str, panel_number: int, category_style: style.CategoryStyle
) -> None:
    """Draw one measure of one feature over the checks."""
    defined_checks = [
        (int_value(row, "place"), row, value)
        for row in rows
        if (value := float_value(row, name)) is not None
    ]
    if not defined_checks:
        return
    feature = style.escape(style.truncate_text(defined_checks[0][1]["feature"], 22))
    value_by_check_index = {
        check_index: min(value, AXIS_END) for check_index, _, value in defined_checks
    }
    check_indices = range(min(value_by_check_index), max(value_by_check_index) + 1)
    draw_background(
        fig,
        list(check_indices),
        [value_by_check_index.get(check_index) for check_index in check_indices],
        mode="lines",
        line={"color": style.with_opacity(category_style.colour, 0.55), "width": 1.5},
        legendgroup=feature,
        row=panel_number,
        col=1,
    )
    symbols = [
        category_style.symbol + ("" if row.get("alert") else "-open")
        for _, row, _ in defined_checks
    ]
    draw_markers(
        fig,
        [check_index for check_index, _, _ in defined_checks],
        [min(value, AXIS_END) for _, _, value in defined_checks],
        [_hover_text(row, name, value) for _, row, value in defined_checks],
        point_marker(category_style, has_interval=False) | {"symbol": symbols},
        name=feature,
        legendgroup=feature,
        showlegend=panel_number == 1,
        row=panel_number,
        col=1,
    )
    for check_index, _, value in defined_checks:
        if value > AXIS_END:
            fig.add_annotation(
                x=check_index,
                y=AXIS_END,
                yanchor="bottom",
                yshift=6,
                text=f"↑ {style.format_number(value)}",
                font={"color": style.TEXT_COLOUR},
                row=panel_number,
                col=1,
            )


def _hover_text(row: Row, name: str, value: float) -> str:
    """Return the hover text of a check with its set point."""
    set_point_text = style.format_number(float_value(row, f"{name}_limit"))
    test_line = f"set point {set_point_text}{', alert' if row.get('alert') else ''}"
    return drift_hover_text(row, name, value, test_line, f", {style.escape(row['at'])}")


def _tick_label(check_index: int, time_text: str, tested_rows: Sequence[Row]) -> str:
    """Return the time of a check and its largest number of items over features."""
    n = max(
        (
            int_value(row, "n_current")
            for row in tested_rows
            if int_value(row, "place") == check_index
        ),
        default=0,
    )
    return f"{style.wrap_text(time_text, 12)}<br>n = {n}"


def _missing_notes(rows: Sequence[Row]) -> list[str]:
    """Return notes about checks without numbers, by reason."""
    missing_rows = [row for row in rows if text_value(row, "reason")]
    return missing_notes(
        (
            (text_value(row, "reason"), f"{feature}, {style.truncate_text(row['at'], 20)}")
            for row in missing_rows
            for feature in [style.truncate_text(row["feature"], 24)]
        ),
        separator="; ",
    )
