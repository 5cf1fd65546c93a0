"""Rows of a figure: a name at the left, an estimate, and its numbers at the right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from statistics import fmean
from typing import Any

import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.layout import apply_style
from cotlab.figures.marks import Mark, draw_series, interval_values, subtitle_notes

_ROW_PX, _GROUP_GAP = 18, 0.8
"""Height of a row among several of one name, and the space between names, in rows."""


def draw_estimate_rows(
    marks: Sequence[Mark],
    title: str,
    *,
    x: str,
    min_range: tuple[float, float] = (0, 1),
    styles: Mapping[str, style.CategoryStyle] | None = None,
    max_name_chars: int = 24,
    row_height_px: int = 40,
    notes: Sequence[str] = (),
) -> Any:
    """Return a figure with a row for each mark, with value, interval and n at the right.

    Parameters
    ----------
    marks : sequence of Mark
        Rows in their order; those with the same position name stand together, in the order of
        ``styles``.
    title, x : str
        Titles of the figure and of its axis of values.
    min_range : (float, float)
        Part of the axis that is always drawn.
    styles : mapping of str to CategoryStyle, optional
        Colour and symbol of each series; by default there is one series.
    max_name_chars : int
        Characters after which a name is broken.
    row_height_px : int, pixels
        Of a row with a name of its own.
    notes : sequence of str
        Lines of the subtitle before those on intervals.
    """
    fig = go.Figure()
    styles = styles or {"": style.CategoryStyle(style.hue(style.ACCENT_COLOUR), "circle")}
    names, series_order = list(dict.fromkeys(m.position_name for m in marks)), list(styles)
    is_grouped = len(names) < len(marks)
    gap = _GROUP_GAP if is_grouped else 0.0
    rows = sorted(marks, key=lambda m: (names.index(m.position_name), series_order.index(m.series)))
    rows = [
        mark._replace(x=i + gap * names.index(mark.position_name)) for i, mark in enumerate(rows)
    ]
    for series, category_style in styles.items():
        series_marks = [mark for mark in rows if mark.series == series]
        draw_series(fig, series_marks, category_style, in_legend=len(styles) > 1, is_upright=False)
    for mark in rows:
        count_text = f", n = {mark.n}" if is_grouped else f"<br>{mark.count_text}"
        text = "n/a" if mark.point is None else f"{mark.text}{count_text}"
        add_row_text(fig, mark.x, text, hovertext=mark.hover_text)
    positions = [
        fmean(mark.x for mark in group)
        for _, group in groupby(rows, key=lambda mark: mark.position_name)
    ]
    n_rows = len(rows) + gap * (len(names) - 1)
    name_rows(fig, names, max_name_chars, positions, n_rows)
    set_value_axis(fig, rows, min_range)
    return apply_style(
        fig,
        title,
        subtitle=[*notes, *subtitle_notes(rows)],
        x=x,
        height=100 + round((_ROW_PX if is_grouped else row_height_px) * n_rows),
    )


def add_row_text(fig: Any, y: float, text: str, **options: Any) -> None:
    """Write a row's numbers, or n/a, right of the plot."""
    annotation: dict[str, Any] = {
        "x": 1,
        "xref": "paper",
        "xshift": 14,
        "xanchor": "left",
        "align": "left",
        "font": {"size": style.TEXT_SIZE - 1, "color": style.hue(style.TEXT_COLOUR)},
    }
    fig.add_annotation(y=y, text=text, **annotation | options)


def add_mean_line(fig: Any, mean: float, row_position: float) -> None:
    """Draw a short upright line at the mean of a row."""
    line = {"color": style.hue(style.TEXT_COLOUR), "width": 2}
    ends = {"x0": mean, "x1": mean, "y0": row_position - 0.4, "y1": row_position + 0.4}
    fig.add_shape(type="line", layer="above", line=line, **ends)


def name_rows(
    fig: Any,
    names: Sequence[str],
    max_name_chars: int,
    positions: Sequence[float] | None = None,
    n_rows: float | None = None,
) -> None:
    """Name the rows, the first on top; by default each row has a name."""
    fig.update_yaxes(
        tickvals=list(range(len(names)) if positions is None else positions),
        ticktext=[style.wrap_text(name, max_name_chars) for name in names],
        ticks="",
        ticklabelstandoff=6,
        showgrid=False,
        range=[(len(names) if n_rows is None else n_rows) - 0.4, -0.6],
    )


def set_value_axis(
    fig: Any, marks: Sequence[Mark], min_range: tuple[float, float] = (0, 1)
) -> None:
    """Set an axis that contains ``min_range`` and all values of marks."""
    values = [value for mark in marks for value in mark.raw_values] + interval_values(marks)
    set_axis_range(fig, values, min_range)
    if any(mark.is_share for mark in marks):
        fig.update_xaxes(tickformat=".0%")


def set_axis_range(
    fig: Any, values: Sequence[float], min_range: tuple[float, float] = (0, 1)
) -> None:
    """Set an axis of numbers that contains ``min_range`` and all values."""
    lowest, highest = min([min_range[0], *values]), max([min_range[1], *values])
    padding = 0.04 * (highest - lowest) or 1.0
    fig.update_xaxes(range=[lowest - padding, highest + padding], showgrid=True, nticks=6)
