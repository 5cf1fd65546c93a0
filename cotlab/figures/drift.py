"""Drift between two samples of features: distributions, and distances against shuffled samples."""

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
from cotlab.figures.marks import MAX_RAW_VALUES, draw_background, draw_markers, missing_notes
from cotlab.figures.rows import name_rows

SAMPLE_NAMES = ("reference", "current")
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
    sample_colours = {"reference": style.BLUE, "current": style.VERMILLION}
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
    fig.update_yaxes(range=[-0.02, 1.02], tickvals=[0, 0.5, 1])
    fig.update_xaxes(nticks=4, showgrid=False)
    subtitle = _missing_notes(rows)
    if valued_rows:
        subtitle.insert(
            0,
            "Bands: 95 % for the whole line (Dvoretzky–Kiefer–Wolfowitz), as for independent items."
            " Solid: reference; dashed: current.",
        )
    style.apply_style(
        fig,
        "Each feature's distribution (cumulative share, 0 to 1)",
        subtitle=subtitle,
        height=150 + 150 * n_panel_rows,
    )
    fig.update_annotations(font={"size": style.SMALL_TEXT_SIZE + 1, "color": style.TEXT_COLOUR})
    return fig.update_layout(margin={"b": 74, "t": fig.layout.margin.t + 22})


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
            tickvals=[0, 0.2, 0.4, 0.6, 0.8, 1],
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
            "Grey: shuffled samples (no drift), up to their 95 % quantile; the points have no"
            " intervals. Dashed: the set point. Diamond: alert, by PSI or KS.",
        )
    return style.apply_style(
        fig,
        "How far each feature moved (PSI in nats, KS 0 to 1)",
        subtitle=subtitle,
        height=150 + 28 * len(tested_rows),
        margin={"r": 118, "b": 60},
    )


def draw_set_point(
    fig: Any,
    x: tuple[float, float],
    y: tuple[float, float],
    panel_row: int,
    panel_column: int,
    **shape_options: Any,
) -> None:
    """Draw a dashed line at the set point of one panel."""
    line_ends = {"x0": x[0], "x1": x[1], "y0": y[0], "y1": y[1]}
    line = {"color": style.SOFT_TEXT_COLOUR, "width": 1, "dash": "dash"}
    fig.add_shape(
        type="line", line=line, row=panel_row, col=panel_column, **line_ends, **shape_options
    )


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
        marker={"color": "#c9c9c9"},
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
            {"color": colour, "symbol": symbol, "size": 9},
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
                bgcolor=style.with_opacity(style.BACKGROUND_COLOUR, 0.8),
                font={"size": style.SMALL_TEXT_SIZE, "color": style.TEXT_COLOUR},
                row=1,
                col=panel_number,
            )


def _hover_text(row: Row, name: str, value: float) -> str:
    """Return the hover text of a feature with its adjusted p-value."""
    return drift_hover_text(
        row, name, value, f"adjusted p {style.format_number(float_value(row, f'{name}_p'))}"
    )


def drift_hover_text(
    row: Row, measure_name: str, value: float, test_line: str, time_text: str = ""
) -> str:
    """Return the hover text of one feature's measure ``measure_name`` (psi or ks).

    ``test_line`` is the line about the test, ``time_text`` the time of the check.
    """
    lines = [
        f"<b>{style.escape(row['feature'])}</b>{time_text}",
        f"{measure_name.upper()} {style.format_number(value)}",
        f"95 % of shuffles: up to {style.format_number(float_value(row, f'{measure_name}_hi'))}",
        test_line,
        f"n = {int_value(row, 'n_reference')} and {int_value(row, 'n_current')} items",
    ]
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
    """Return notes about features without numbers, by reason."""
    missing_rows = [row for row in rows if text_value(row, "reason")]
    return missing_notes(
        (text_value(row, "reason"), style.truncate_text(row["feature"], 24)) for row in missing_rows
    )


def band_half_width(n: int) -> float | None:
    """Return half the width of the 95 % band of an empirical distribution function; None for 0.

    References
    ----------
    Massart (1990), Ann. Probab. 18:1269: sqrt(ln(2 / 0.05) / (2 n)).
    """
    return math.sqrt(math.log(2 / 0.05) / (2 * n)) if n > 0 else None
