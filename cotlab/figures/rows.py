"""Rows of a figure: a name at the left, an estimate, and its numbers at the right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.declare import text_value
from cotlab.figures.marks import (
    Mark,
    count_text,
    default_reason,
    draw_series,
    hover_text,
    subtitle_notes,
)


def draw_estimate_rows(
    marks: Sequence[Mark],
    title: str,
    *,
    x: str,
    names: Sequence[str] | None = None,
    max_name_chars: int = 24,
    row_height_px: int = 40,
    right_margin_px: int = 204,
) -> Any:
    """Return a figure with a row for each mark; the caller sets the axis of values.

    Parameters
    ----------
    marks : sequence of Mark
        Row i is at position i.
    title, x : str
        Titles of the figure and of its axis of values.
    names : sequence of str, optional
        Names of the rows, by default those of the marks' positions.
    max_name_chars : int
        Characters after which a name is broken.
    row_height, right_margin_px : int, pixels
    """
    fig = go.Figure()
    draw_rows(fig, marks)
    name_rows(
        fig, [mark.position_name for mark in marks] if names is None else names, max_name_chars
    )
    return style.apply_style(
        fig,
        title,
        subtitle=subtitle_notes(marks, with_missing_points=False),
        x=x,
        height=140 + row_height_px * len(marks),
        margin={"r": right_margin_px},
    )


def draw_rows(fig: Any, marks: Sequence[Mark]) -> None:
    """Draw marks as rows, with value, interval and n at the right, or n/a with its reason."""
    draw_series(fig, marks, style.CategoryStyle(style.ACCENT_COLOUR, "circle"), is_upright=False)
    for mark in marks:
        label = f"{style.interval_text(mark.point, mark.lo, mark.hi)}<br>{count_text(mark.row)}"
        if mark.point is None:
            label = style.wrap_text(
                f"n/a: {text_value(mark.row, 'reason') or default_reason(mark)}", 62
            )
        add_row_text(fig, mark.x, label, mark.point is None, hovertext=hover_text(mark))


def add_row_text(fig: Any, y: float, text: str, is_missing: bool, **options: Any) -> None:
    """Write a row's numbers right of the plot, or at its left why they are missing."""
    annotation: dict[str, Any] = {
        "x": 0 if is_missing else 1,
        "xref": "paper",
        "xshift": 14,
        "xanchor": "left",
        "align": "left",
        "bgcolor": style.BACKGROUND_COLOUR,
        "font": {
            "size": style.TEXT_SIZE - 1,
            "color": style.SOFT_TEXT_COLOUR if is_missing else style.TEXT_COLOUR,
        },
    }
    fig.add_annotation(y=y, text=text, **annotation | options)


def add_mean_line(fig: Any, mean: float, row_position: float) -> None:
    """Draw a short upright line at the mean of a row."""
    line = {"color": style.TEXT_COLOUR, "width": 2}
    fig.add_shape(
        type="line", x0=mean, x1=mean, y0=row_position - 0.4, y1=row_position + 0.4, line=line
    )


def name_rows(fig: Any, names: Sequence[str], max_name_chars: int) -> None:
    """Name the rows, the first on top."""
    fig.update_yaxes(
        tickvals=list(range(len(names))),
        ticktext=[style.wrap_text(name, max_name_chars) for name in names],
        ticks="",
        showgrid=False,
        range=[len(names) - 0.4, -0.6],
    )


def set_value_axis(
    fig: Any, values: Sequence[float], min_range: tuple[float, float] = (0, 1)
) -> None:
    """Set an axis of values that contains ``min_range`` and all values."""
    lowest_value, highest_value = min([min_range[0], *values]), max([min_range[1], *values])
    padding = 0.04 * (highest_value - lowest_value)
    fig.update_xaxes(
        range=[lowest_value - padding, highest_value + padding], showgrid=True, nticks=6
    )
