"""Compare calibrators: their curves from raw to calibrated scores, and their numbers out of fold.

A table may also have the columns ``low`` and ``high``, the thresholds of a policy, which are drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.declare import (
    Row,
    figure,
    float_value,
    group_rows,
    in_order,
    int_value,
    table_records,
)
from cotlab.figures.layout import apply_style
from cotlab.figures.marks import (
    Mark,
    draw_background,
    draw_reference_line,
    draw_series,
    interval_note,
    interval_values,
    missing_notes,
)

CALIBRATOR_STYLES: Mapping[str, tuple[str, str]] = {
    "isotonic": ("Isotonic", "solid"),
    "platt": ("Platt", "dash"),
    "beta": ("Beta", "dot"),
    "combined": ("Combined features", "dashdot"),
}
"""Display name and line dash of each calibrator, in the order of their colours."""
CALIBRATION_METRICS: Mapping[str, tuple[str, str]] = {
    "brier": ("Brier score", "lower is better"),
    "ece": ("ECE", "lower is better"),
    "log_loss": ("Log loss, nats", "lower is better"),
    "auroc": ("AUROC", "higher is better"),
}
"""Display name of each metric, and which direction is better."""
_MAX_CUT_AXIS_RANGE = 0.4
"""Scores in a range narrower than this are drawn on a cut axis."""


@figure(
    "calibrator_curves",
    columns=("calibrator", "kind", "r_raw", "r_cal"),
    caption=(
        "The calibrated score that each calibrator gives to a raw score, fitted to all labels of"
        " its version. Ticks at the top are chains that raters accepted, ticks at the bottom chains"
        " that they rejected. Where ticks are sparse a curve follows the shape of its family more"
        " than the data; where curves differ the choice of the method matters."
    ),
    empty_reason="no calibrator has been fitted.",
)
def calibrator_curves(table: pd.DataFrame) -> Any:
    """Draw a line for each calibrator and ticks for the labels.

    ``kind`` is "curve", or "label" with ``r_cal`` 1 or 0 for the rater's verdict.
    Optional columns: ``chosen`` marks the calibrator in use, ``n_labels`` is its number of labels.
    """
    rows = table_records(table)
    curve_rows = [row for row in rows if row["kind"] == "curve"]
    rows_by_calibrator = group_rows(curve_rows, "calibrator", "r_raw")
    fig = go.Figure()
    draw_diagonal(fig)
    for name, category_style in style.category_styles(
        rows_by_calibrator, tuple(CALIBRATOR_STYLES)
    ).items():
        calibrator_rows = rows_by_calibrator[name]
        default_style = (style.escape(style.truncate_text(name, 30)), "dashdot")
        display_name, line_dash = CALIBRATOR_STYLES.get(name, default_style)
        is_in_use = any(map(_is_chosen, calibrator_rows))
        n_labels = int_value(calibrator_rows[0], "n")
        use_text = ", in use" if is_in_use else ""
        label = f"{display_name}{use_text}{f' (n = {n_labels})' if n_labels else ''}"
        raw_scores, calibrated_scores = (
            [float_value(row, column) for row in calibrator_rows] for column in ("r_raw", "r_cal")
        )
        fig.add_scatter(
            x=raw_scores,
            y=calibrated_scores,
            mode="lines",
            name=label,
            legendgroup=display_name,
            line={
                "color": category_style.colour,
                "width": 3.2 if is_in_use else 1.8,
                "dash": line_dash,
            },
            hoverinfo="text",
            hovertext=[
                f"<b>{label}</b><br>r_raw {style.format_number(r_raw)}<br>r_cal"
                f" {style.format_number(r_cal)}"
                for r_raw, r_cal in zip(raw_scores, calibrated_scores, strict=True)
            ],
        )
        marker_spacing = max(1, len(calibrator_rows) // 10)
        marker = {"color": category_style.colour, "symbol": category_style.symbol, "size": 7}
        draw_background(
            fig,
            raw_scores[::marker_spacing],
            calibrated_scores[::marker_spacing],
            mode="markers",
            legendgroup=display_name,
            marker=marker,
        )
    label_rows = [row for row in rows if row["kind"] == "label"]
    accepted_rows, rejected_rows = (
        [r for r in label_rows if bool(r["r_cal"]) is is_accepted] for is_accepted in (True, False)
    )
    for verdict_rows, y, colour in (
        (accepted_rows, 1.05, style.BLUE),
        (rejected_rows, -0.05, style.VERMILLION),
    ):
        fig.add_scatter(
            x=[float_value(row, "r_raw") for row in verdict_rows],
            y=[y] * len(verdict_rows),
            mode="markers",
            hoverinfo="x",
            showlegend=False,
            cliponaxis=False,
            marker={
                "symbol": "line-ns-open",
                "size": 10,
                "color": style.with_opacity(style.hue(colour), 0.6),
            },
        )
    subtitle = [
        (
            f"n = {len(label_rows):,} labels: {len(accepted_rows):,} acceptable (top),"
            f" {len(rejected_rows):,} not (bottom)."
        ),
        "No intervals: the comparison out of fold shows how well each holds on unseen labels.",
    ]
    if float_value(rows[0], "low") is not None:
        subtitle.append(" ".join(draw_thresholds(fig, rows, is_vertical=False)))
    subtitle += set_score_axis(fig, [float(row["r_raw"]) for row in rows])
    fig.update_yaxes(range=[-0.09, 1.09], tickvals=[i / 5 for i in range(6)])
    return apply_style(
        fig,
        "From raw to calibrated scores (r_cal, 0 to 1, by r_raw)",
        subtitle=subtitle,
        x="r_raw: weighted mean of the parts",
        y="r_cal: probability of acceptable reasoning",
        height=420,
    )


def _is_chosen(row: Row) -> bool:
    """Return whether the optional column ``chosen`` marks a row."""
    return float_value(row, "chosen") == 1


@figure(
    "calibrator_comparison",
    columns=("calibrator", "metric", "point", "lo", "hi", "n", "reason"),
    caption=(
        "Each calibrator on labels that it was not fitted to. The expected calibration error (ECE)"
        " uses bins of equal mass. Folds are split by question, so all chains of a question are in"
        " one fold. The axes differ. Monotone maps keep the order of scores, so their AUROCs differ"
        " only by ties and folds. Overlapping intervals do not show that calibrators are equal, as"
        " they share their labels."
    ),
    empty_reason="no calibrator has numbers out of fold.",
)
def calibrator_comparison(table: pd.DataFrame) -> Any:
    """Draw a panel for each metric with a dot and its interval for each calibrator.

    ``calibrator`` may also name a baseline such as the base rate. The optional column ``chosen``
    marks the calibrator in use.
    """
    rows = table_records(table)
    metrics = in_order((row["metric"] for row in rows), tuple(CALIBRATION_METRICS))
    names = list(dict.fromkeys(str(row["calibrator"]) for row in rows))
    style_by_calibrator, fig = style.category_styles(names, tuple(CALIBRATOR_STYLES)), go.Figure()
    used_calibrators = {str(row["calibrator"]) for row in rows if _is_chosen(row)}
    tick_labels = [style.escape(style.truncate_text(_calibrator_name(name), 18)) for name in names]
    tick_labels = [
        f"<b>{tick_label}</b>" if name in used_calibrators else tick_label
        for name, tick_label in zip(names, tick_labels, strict=True)
    ]
    all_marks: list[Mark] = []
    n_panel_rows = -(-len(metrics) // 2)
    panel_height = (1 - 0.26 * (n_panel_rows - 1)) / n_panel_rows
    for panel_index, metric in enumerate(metrics):
        axis_number = "" if panel_index == 0 else str(panel_index + 1)
        left = 0.6 * (panel_index % 2)
        top = 1 - panel_index // 2 * (panel_height + 0.26)
        panel_title, direction = CALIBRATION_METRICS.get(
            metric, (style.escape(style.truncate_text(metric, 30)), "")
        )
        panel_rows = [row for row in rows if row["metric"] == metric]
        marks = [
            Mark(panel_title, names.index(name), _calibrator_name(name), row)
            for row in panel_rows
            for name in [str(row["calibrator"])]
        ]
        for mark, row in zip(marks, panel_rows, strict=True):
            _draw_panel_mark(fig, mark, style_by_calibrator[str(row["calibrator"])], axis_number)
        all_marks += marks
        x_axis = {
            "domain": [0, 1] if len(metrics) == 1 else [left, left + 0.4],
            "anchor": f"y{axis_number}",
            "showgrid": True,
            "nticks": 5,
            **_axis_range(marks),
        }
        y_axis = {
            "domain": [max(0.0, top - panel_height), top],
            "anchor": f"x{axis_number}",
            "tickvals": list(range(len(names))),
            "ticktext": tick_labels,
            "ticklabelstandoff": 6,
            "range": [len(names) - 0.4, -0.6],
            "showgrid": False,
        }
        fig.update_layout({f"xaxis{axis_number}": x_axis, f"yaxis{axis_number}": y_axis})
        fig.add_annotation(
            x=left,
            y=top,
            xref="paper",
            yref="paper",
            xanchor="left",
            yanchor="bottom",
            yshift=5,
            text=f"<b>{panel_title}</b>" + (f", {direction}" if direction else ""),
            font={"size": style.TEXT_SIZE - 1, "color": style.hue(style.TEXT_COLOUR)},
        )
    counts = sorted({mark.n for mark in all_marks if mark.point is not None})
    subtitle = []
    if counts:
        count_text = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
        subtitle.append(f"n = {count_text} labels.")
    subtitle.append(interval_note(all_marks))
    if used_calibrators:
        used_names = ", ".join(map(_calibrator_name, sorted(used_calibrators)))
        subtitle.append(style.escape(f"In use: {used_names}."))
    subtitle += missing_notes(
        (mark.reason, mark.position_name) for mark in all_marks if mark.point is None
    )
    return apply_style(
        fig,
        "Calibrators on unseen labels (0 to 1; log loss: nats)",
        subtitle=subtitle,
        height=80 + n_panel_rows * (70 + 34 * len(names)),
    )


def _calibrator_name(calibrator: Any) -> str:
    """Return the display name of a calibrator."""
    return CALIBRATOR_STYLES.get(str(calibrator), (str(calibrator), ""))[0]


def _draw_panel_mark(
    fig: Any, mark: Mark, category_style: style.CategoryStyle, axis_number: str
) -> None:
    """Draw the number of one calibrator in one panel, or n/a at its right."""
    if mark.point is None:
        fig.add_annotation(
            x=1,
            xref=f"x{axis_number} domain",
            y=mark.x,
            yref=f"y{axis_number}",
            xanchor="left",
            xshift=6,
            text="n/a",
            hovertext=mark.hover_text,
        )
        return
    axes = {"xaxis": f"x{axis_number}", "yaxis": f"y{axis_number}"}
    draw_series(fig, [mark], category_style, is_upright=False, axes=axes)


def _axis_range(marks: Sequence[Mark]) -> dict[str, Any]:
    """Return the range of an axis that contains all points and bars of a panel."""
    axis_ends = interval_values(marks)
    if not axis_ends:
        return {"range": [0, 1], "tickvals": []}
    padding = 0.08 * (max(axis_ends) - min(axis_ends)) or 0.05
    return {"range": [min(axis_ends) - padding, max(axis_ends) + padding]}


def set_score_axis(
    fig: Any, values: Sequence[float], *, with_full_range: bool = False
) -> list[str]:
    """Set the axis to [0, 1] or to a narrow range of values; return a note about a cut axis."""
    lowest_value, highest_value = min(values), max(values)
    if with_full_range or highest_value - lowest_value > _MAX_CUT_AXIS_RANGE:
        fig.update_xaxes(range=[-0.03, 1.03], tickvals=[i / 10 for i in range(11)])
        return []
    padding = 0.04 * (highest_value - lowest_value) or 0.02
    fig.update_xaxes(range=[lowest_value - padding, highest_value + padding], nticks=12)
    return [f"The horizontal axis is cut: {lowest_value:.3g} to {highest_value:.3g} of 0 to 1."]


def draw_diagonal(fig: Any) -> None:
    """Draw the dotted line from (0, 0) to (1, 1)."""
    fig.add_shape(type="line", x0=0, x1=1, y0=0, y1=1, line={"dash": "dot"})


def draw_thresholds(fig: Any, rows: Sequence[Row], *, is_vertical: bool = True) -> list[str]:
    """Draw lines at the policy's thresholds; return a note about the actions between them."""
    low_threshold, high_threshold = (
        float_value(rows[0], name) if rows else None for name in ("low", "high")
    )
    if low_threshold is None or high_threshold is None:
        return []
    for value, line_dash in ((low_threshold, "dash"), (high_threshold, "longdash")):
        line_position = {"x": value} if is_vertical else {"y": value}
        draw_reference_line(fig, **line_position, line_dash=line_dash, width=1.2)
    return [
        f"Dashed: below {low_threshold:g} escalate, from {high_threshold:g} on release, between"
        " them review."
    ]
