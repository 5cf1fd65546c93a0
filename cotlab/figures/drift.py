"""Drift between two samples of features: distributions, distances, and successive checks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
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
from cotlab.figures.layout import apply_style
from cotlab.figures.marks import (
    MAX_RAW_VALUES,
    draw_background,
    draw_markers,
    missing_notes,
    point_marker,
)
from cotlab.figures.rows import name_rows

SAMPLE_NAMES = ("reference", "current")
_MAX_TICKS = 12
_MAX_PANELS_PER_ROW, _SAMPLE_SYMBOLS = 3, {"reference": "circle", "current": "square"}
AXIS_END = 1.0
"""End of the axis of PSI; larger values are drawn there with their number."""
MEASURE_PANELS = (("psi", "PSI (nats)"), ("ks", "KS (0 to 1)"))
CHECK_COLUMNS = ("alert", "n_reference", "n_current", "reason")


def measure_columns(*endings: str) -> tuple[str, ...]:
    """Return the columns of both measures that have these endings."""
    return tuple(f"{measure}{ending}" for measure, _ in MEASURE_PANELS for ending in endings)


@figure(
    "feature_distributions",
    columns=("feature", "sample", "value", "share", "band", "n", "reason"),
    caption=(
        "Cumulative share of items by value in both samples. Where the lines differ the feature"
        " moved; the largest vertical gap is KS. A gap within the shaded bands may be chance. The"
        " lines do not show what caused a change: other questions, another model and another"
        " setting look alike."
    ),
    empty_reason="no feature has values on both sides.",
)
def feature_distributions(table: pd.DataFrame) -> Any:
    """Draw a panel for each feature with the step line and 95 % band of each sample."""
    rows = table_records(table)
    valued_rows = [row for row in rows if float_value(row, "value") is not None]
    rows_by_feature = group_rows(valued_rows, "feature", "value")
    names = list(rows_by_feature)
    n_panel_columns = min(_MAX_PANELS_PER_ROW, max(1, len(names)))
    n_panel_rows = max(1, -(-len(names) // n_panel_columns))
    panel_titles = [_panel_title(name, valued_rows) for name in names]
    fig = make_subplots(
        rows=n_panel_rows,
        cols=n_panel_columns,
        subplot_titles=panel_titles,
        shared_yaxes=True,
        horizontal_spacing=0.05,
        vertical_spacing=min(0.3, 64 / (150 * n_panel_rows)),
    )
    sample_colours = {
        "reference": style.hue(style.BLUE),
        "current": style.hue(style.VERMILLION),
    }
    for index, name in enumerate(names):
        panel_position = {"row": index // n_panel_columns + 1, "col": index % n_panel_columns + 1}
        feature_values = [float(row["value"]) for row in rows_by_feature[name]]
        padding = 0.04 * (max(feature_values) - min(feature_values)) or 0.5
        axis_ends = (min(feature_values) - padding, max(feature_values) + padding)
        rows_by_sample = group_rows(rows_by_feature[name], "sample")
        for sample in SAMPLE_NAMES:
            if sample in rows_by_sample:
                _draw_step_line(
                    fig,
                    rows_by_sample[sample],
                    axis_ends,
                    sample_colours[sample],
                    sample,
                    with_legend=index == 0,
                    panel_position=panel_position,
                )
    fig.update_yaxes(range=[-0.02, 1.02], tickvals=[0, 0.5, 1], tickformat=".0%")
    fig.update_xaxes(nticks=4, showgrid=False)
    subtitle = _missing_notes(rows)
    if valued_rows:
        subtitle.insert(
            0,
            "Bands: 95% for the whole line (Dvoretzky–Kiefer–Wolfowitz), as for independent items."
            " Solid: reference; dashed: current.",
        )
    apply_style(
        fig,
        "Each feature's distribution (cumulative, %)",
        subtitle=subtitle,
        height=110 + 150 * n_panel_rows,
    )
    fig.update_annotations(
        font={"size": style.SMALL_TEXT_SIZE + 1, "color": style.hue(style.TEXT_COLOUR)}
    )
    return fig


@figure(
    "drift_scores",
    columns=("feature", *measure_columns("", "_hi", "_limit", "_p"), *CHECK_COLUMNS),
    caption=(
        "PSI is above 0 even without drift, more so for fewer items. A feature raises the alert if"
        " it is beyond the dashed line and its adjusted p-value is small; either alone does not."
    ),
    empty_reason="no feature was compared.",
)
def drift_scores(table: pd.DataFrame) -> Any:
    """Draw PSI (left) and KS (right) of each feature with shuffled samples and the set point."""
    rows = table_records(table)
    tested_rows = [row for row in rows if not text_value(row, "reason")]
    fig = make_subplots(rows=1, cols=2, shared_yaxes=True, horizontal_spacing=0.14)
    for panel_number, (name, title) in enumerate(MEASURE_PANELS, start=1):
        _draw_panel(fig, tested_rows, name, panel_number)
        set_point = next(
            (
                value
                for row in tested_rows
                if (value := float_value(row, f"{name}_limit")) is not None
            ),
            None,
        )
        if set_point is not None:
            line_position = min(set_point, AXIS_END)
            draw_set_point(
                fig,
                (line_position, line_position),
                (-0.6, len(tested_rows) - 0.4),
                1,
                panel_number,
                layer="below",
            )
        fig.update_xaxes(
            title={"text": title},
            range=[-0.04, 1.2 * AXIS_END],
            tickvals=[0, 0.5, 1],
            col=panel_number,
        )
    for row_position, row in enumerate(tested_rows):
        fig.add_annotation(
            x=1,
            xref="paper",
            xanchor="left",
            xshift=8,
            y=row_position,
            yref="y",
            align="left",
            text=f"n = {int_value(row, 'n_reference')} and {int_value(row, 'n_current')}",
        )
    name_rows(fig, [str(row["feature"]) for row in tested_rows], 20)
    fig.update_yaxes(showticklabels=True, col=1)
    subtitle = _missing_notes(rows)
    if tested_rows:
        subtitle.insert(
            0,
            "Grey: shuffled samples (no drift), up to their 95% quantile; the points have no"
            " intervals. Dashed: the set point. Diamond: alert, by PSI or KS.",
        )
    return apply_style(
        fig,
        "How far each feature moved (PSI in nats, KS 0 to 1)",
        subtitle=subtitle,
        height=110 + 28 * len(tested_rows),
    )


def draw_set_point(
    fig: Any,
    x: tuple[float, float],
    y: tuple[float, float],
    panel_row: int,
    panel_column: int,
    layer: str = "above",
) -> None:
    """Draw a dashed line at the set point of one panel."""
    line_ends = {"x0": x[0], "x1": x[1], "y0": y[0], "y1": y[1]}
    line, panel = {"dash": "dash"}, {"row": panel_row, "col": panel_column}
    fig.add_shape(type="line", line=line, layer=layer, **panel, **line_ends)


def _draw_step_line(
    fig: Any,
    rows: Sequence[Row],
    axis_ends: tuple[float, float],
    colour: str,
    sample: str,
    *,
    with_legend: bool,
    panel_position: dict[str, int],
) -> None:
    """Draw the step line of one sample over its band."""
    x, y = [axis_ends[0]], [0.0]
    hover_texts = [f"{sample}, n = {int_value(rows[0], 'n')}"]
    for row in rows:
        value, cumulative_share = float(row["value"]), float_value(row, "share") or 0.0
        x, y = [*x, value, value], [*y, y[-1], cumulative_share]
        hover_texts += [
            f"{sample}, n = {int_value(row, 'n')}<br>{style.format_number(cumulative_share)} of"
            f" items up to {style.format_number(value)}"
        ] * 2
    x, y, hover_texts = [*x, axis_ends[1]], [*y, y[-1]], [*hover_texts, hover_texts[-1]]
    half_width = float_value(rows[0], "band")
    if half_width is not None:
        draw_background(
            fig,
            [*x, *x[::-1]],
            [
                *(min(1.0, y_value + half_width) for y_value in y),
                *(max(0.0, y_value - half_width) for y_value in y[::-1]),
            ],
            fill="toself",
            mode="lines",
            line={"width": 0},
            fillcolor=style.with_opacity(colour, 0.13),
            **panel_position,
        )
    fig.add_scatter(
        x=x,
        y=y,
        mode="lines",
        name=sample,
        legendgroup=sample,
        showlegend=with_legend,
        hoverinfo="text",
        hovertext=hover_texts,
        line={"color": colour, "width": 2, "dash": "solid" if sample == "reference" else "4px,2px"},
        **panel_position,
    )
    if int_value(rows[0], "n") <= MAX_RAW_VALUES:
        values = [float(row["value"]) for row in rows]
        shares = [float_value(row, "share") for row in rows]
        marker = {"color": colour, "size": 6, "symbol": _SAMPLE_SYMBOLS[sample]}
        draw_background(fig, values, shares, mode="markers", marker=marker, **panel_position)


def _draw_panel(fig: Any, tested_rows: Sequence[Row], name: str, panel_number: int) -> None:
    """Draw one measure of all features in one panel."""
    bar_ends = [
        (row_position, float_value(row, f"{name}_hi"))
        for row_position, row in enumerate(tested_rows)
    ]
    fig.add_bar(
        x=[min(hi, AXIS_END) for _, hi in bar_ends if hi is not None],
        y=[row_position for row_position, hi in bar_ends if hi is not None],
        orientation="h",
        width=0.5,
        marker={"color": style.hue(style.SHADE_COLOUR)},
        hoverinfo="skip",
        showlegend=False,
        row=1,
        col=panel_number,
    )
    for is_alert, colour, symbol in (
        (False, style.BLUE, "circle"),
        (True, style.VERMILLION, "diamond"),
    ):
        points = [
            (row_position, row, value)
            for row_position, row in enumerate(tested_rows)
            if bool(row.get("alert")) is is_alert and (value := float_value(row, name)) is not None
        ]
        if not points:
            continue
        draw_markers(
            fig,
            [min(value, AXIS_END) for _, _, value in points],
            [row_position for row_position, _, _ in points],
            [_hover_text(row, name, value) for _, row, value in points],
            {"color": style.hue(colour), "symbol": symbol, "size": 9},
            row=1,
            col=panel_number,
        )
        for row_position, row, value in points:  # right of the marker and of its bar
            fig.add_annotation(
                x=min(max(value, float_value(row, f"{name}_hi") or 0.0), AXIS_END),
                y=row_position,
                xanchor="left",
                xshift=8,
                borderpad=0,
                text=style.format_number(value) + (" →" if value > AXIS_END else ""),
                bgcolor=style.with_opacity(style.hue(style.BACKGROUND_COLOUR), 0.8),
                font={"color": style.hue(style.TEXT_COLOUR)},
                row=1,
                col=panel_number,
            )


def _hover_text(row: Row, name: str, value: float) -> str:
    """Return the hover text of one feature's measure ``name`` (psi or ks), and of its check."""
    numbers = {key: style.format_number(float_value(row, f"{name}_{key}")) for key in ("hi", "p")}
    lines = [
        f"<b>{style.escape(row['feature'])}</b>",
        f"{name.upper()} {style.format_number(value)}",
        f"95% of shuffles: up to {numbers['hi']}",
    ]
    if f"{name}_p" in row:
        lines.append(f"adjusted p {numbers['p']}")
    if "at" in row:
        set_point = style.format_number(float_value(row, f"{name}_limit"))
        lines[0] += f", {style.escape(row['at'])}"
        lines.append(f"set point {set_point}{', alert' if row.get('alert') else ''}")
    lines.append(f"n = {int_value(row, 'n_reference')} and {int_value(row, 'n_current')} items")
    return "<br>".join(lines)


def _panel_title(feature: str, rows: Sequence[Row]) -> str:
    """Return the name of a feature with n of both samples."""
    sample_sizes = {
        str(row["sample"]): int_value(row, "n") for row in rows if str(row["feature"]) == feature
    }
    return (
        f"<b>{style.escape(style.truncate_text(feature, 22))}</b><br>n ="
        f" {sample_sizes.get('reference', 0)} and {sample_sizes.get('current', 0)}"
    )


def _missing_notes(rows: Sequence[Row]) -> list[str]:
    """Return notes about features without numbers, by reason, with the time of a check."""
    return missing_notes(
        (
            (
                reason,
                ", ".join(style.truncate_text(row[c], 24) for c in ("feature", "at") if c in row),
            )
            for row in rows
            if (reason := text_value(row, "reason"))
        ),
        separator="; ",
    )


def band_half_width(n: int) -> float | None:
    """Return half the width of the 95 % band of an empirical distribution function; None for 0.

    References
    ----------
    Massart (1990), Ann. Probab. 18:1269: sqrt(ln(2 / 0.05) / (2 n)).
    """
    return math.sqrt(math.log(2 / 0.05) / (2 * n)) if n > 0 else None


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
def drift_over_time(table: pd.DataFrame) -> Any:
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
            "Filled: alert, by PSI or KS. Grey: shuffled samples (no drift), up to the largest 95%"
            " quantile of all features; the points have no intervals. Dashed: the set point."
        ),
        *_missing_notes(rows),
    ]
    return apply_style(
        fig,
        "Drift, check by check (PSI in nats, KS 0 to 1)",
        subtitle=subtitle,
        height=420,
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
        marker={"color": style.hue(style.SHADE_COLOUR)},
        showlegend=False,
        hoverinfo="text",
        hovertext=[
            f"95% of shuffles: up to {style.format_number(quantile)}"
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
                font={"color": style.hue(style.TEXT_COLOUR)},
                row=panel_number,
                col=1,
            )


def _tick_label(check_index: int, time_text: str, tested_rows: Sequence[Row]) -> str:
    """Return the time of a check and its largest number of items over features."""
    counts = (
        int_value(r, "n_current") for r in tested_rows if int_value(r, "place") == check_index
    )
    return f"{style.wrap_text(time_text, 12)}<br>n = {max(counts, default=0)}"
