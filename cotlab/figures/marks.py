"""Draw estimates: points with error bars, raw values, and the notes of the subtitle.

A point without an interval is an open marker; an undefined value is written "n/a" outside the plot,
never drawn at 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from cotlab.figures import style
from cotlab.figures.declare import Row, float_value, int_value, text_value

MAX_RAW_VALUES = 20
"""Largest number of units whose single values are drawn behind the point."""
SELECTED_AS_DRAWN = {
    "selected": {"marker": {"opacity": 1}},
    "unselected": {"marker": {"opacity": 1}},
}
"""Options of a trace whose marks stay as they are when one is clicked."""
IntervalUnit = Literal["items", "draws"]
"""Unit of a row's interval, counted in its column ``n`` or ``draws``."""


class Mark(NamedTuple):
    """A row of the table with its position in the figure."""

    series: str
    """Name of its series; "" if there is only one."""
    x: float
    """Position on the axis of categories."""
    position_name: str
    """Name of that position."""
    row: Row
    """Row of the table."""
    unit: IntervalUnit = "items"
    """What its interval is over."""
    is_share: bool = False
    """Whether its numbers are shares, shown in percent."""

    @property
    def point(self) -> float | None:
        """The estimate."""
        return float_value(self.row, "point")

    @property
    def lo(self) -> float | None:
        """Lower bound of its interval."""
        return float_value(self.row, "lo")

    @property
    def hi(self) -> float | None:
        """Upper bound of its interval."""
        return float_value(self.row, "hi")

    @property
    def has_interval(self) -> bool:
        """Whether it has an interval."""
        return None not in (self.point, self.lo, self.hi)

    @property
    def n(self) -> int:
        """Number of units of its interval."""
        return int_value(self.row, "n" if self.unit == "items" else self.unit)

    @property
    def count_text(self) -> str:
        """Its counts: "n = 98 items, 2 undefined", or "draws: 8"."""
        if self.unit == "draws":
            return f"draws: {self.n}"
        if "n_undefined" not in self.row:
            return f"n = {self.n} items"
        return f"n = {self.n} items, {int_value(self.row, 'n_undefined')} undefined"

    @property
    def text(self) -> str:
        """Its numbers: "0.361 [0.340, 0.382]"; escaped."""
        return style.escape(
            style.interval_text(self.point, self.lo, self.hi, is_share=self.is_share)
        )

    @property
    def reason(self) -> str:
        """Why its point or interval is missing; "" if both are there."""
        if self.has_interval:
            return text_value(self.row, "reason")
        default = "the table gives no interval"
        if self.point is None:
            default = "no score is defined here"
        elif self.n == 1:
            default = f"one {self.unit[:-1]} has no spread, so there is no interval"
        return text_value(self.row, "reason") or default

    @property
    def raw_values(self) -> list[float]:
        """Its single values; none if there are too many to draw."""
        values = self.row.get("values")
        if self.n > MAX_RAW_VALUES or not isinstance(values, (list, tuple, np.ndarray)):
            return []
        return [float(value) for value in values if not pd.isna(value)]

    @property
    def hover_text(self) -> str:
        """Its position, numbers, counts, method or reason."""
        name = self.position_name
        if self.series not in (name, ""):
            name = f"{self.series}, {name}"
        lines = [f"<b>{style.escape(name)}</b>", self.text, self.count_text]
        lines += [
            style.wrap_text(text, 60, max_lines=4)
            for text in (self.reason, text_value(self.row, "method"))
            if text and text != "none"
        ]
        if text_value(self.row, "text"):
            lines.append(style.wrap_text(self.row["text"], 60, max_lines=6))
        return "<br>".join(lines)


def jitter_offset(index: int) -> float:
    """Return a fixed offset of the i-th raw value in [−0.05, 0.05), evenly spread."""
    return ((index * 0.618034) % 1 - 0.5) * 0.1


def threshold_marks(rows: Iterable[Row], label: str, x_offset: float) -> list[Mark]:
    """Return a mark for each share at its threshold, moved sideways by ``x_offset``."""
    return [
        Mark(
            label,
            threshold + x_offset,
            f"threshold {style.format_number(threshold)}",
            row,
            is_share=True,
        )
        for row in rows
        if (threshold := float_value(row, "threshold")) is not None
    ]


def draw_series(
    fig: Any,
    marks: Sequence[Mark],
    category_style: style.CategoryStyle,
    *,
    in_legend: bool = False,
    is_joined: bool = False,
    has_band: bool = False,
    is_upright: bool = True,
    axes: Mapping[str, str] | None = None,
) -> None:
    """Draw the marks of one series with raw values, intervals, and "n/a" for missing points.

    A click on a mark has the name of its position.

    Parameters
    ----------
    fig : plotly.graph_objects.Figure
        Changed in place.
    marks : sequence of Mark
        In the order of their positions.
    category_style : style.CategoryStyle
    in_legend : bool
        Whether the legend names the series.
    is_joined : bool
        Whether a faint line joins the points, with a gap at undefined ones: only where they are a
        curve over an axis of numbers, such as a threshold. At categories, steps and layers series
        stand side by side, so a line would have a slope that nothing has.
    has_band : bool
        Whether the intervals are a band along the line.
    is_upright : bool
        Whether values are on y; else they are on x, and undefined marks are left to the caller.
    axes : mapping, optional
        ``xaxis`` and ``yaxis`` of a panel.
    """
    name = marks[0].series if marks else ""
    legend_name = style.escape(style.truncate_text(name, 40))

    def add_trace(
        positions: Sequence[float], values: Sequence[float | None], **trace_options: Any
    ) -> None:
        x_values, y_values = (positions, values) if is_upright else (values, positions)
        fig.add_scatter(
            x=list(x_values),
            y=list(y_values),
            legendgroup=style.escape(name),
            cliponaxis=False,
            **(axes or {}),
            **trace_options,
        )

    raw_points = [
        (mark.x + jitter_offset(i), value)
        for mark in marks
        for i, value in enumerate(mark.raw_values)
    ]
    if raw_points:
        add_trace(
            [position for position, _ in raw_points],
            [value for _, value in raw_points],
            mode="markers",
            hoverinfo="skip",
            showlegend=False,
            marker={"color": style.with_opacity(category_style.colour, 0.3), "size": 5},
        )
    if is_joined:
        add_trace(
            [mark.x for mark in marks],
            [mark.point for mark in marks],
            mode="lines",
            hoverinfo="skip",
            showlegend=False,
            line={"color": style.with_opacity(category_style.colour, 0.45), "width": 1.2},
        )
    if has_band:
        # a band for each stretch of marks with intervals
        stretches = [
            list(stretch)
            for has_interval, stretch in groupby(marks, key=lambda mark: mark.has_interval)
            if has_interval
        ]
        edges: list[tuple[Any, float | None]] = []
        for stretch in stretches:
            edges += [(mark.x, mark.hi) for mark in stretch]
            edges += [*((mark.x, mark.lo) for mark in reversed(stretch)), (None, None)]
        add_trace(
            [x for x, _ in edges],
            [y for _, y in edges],
            mode="lines",
            fill="toself",
            fillcolor=style.with_opacity(category_style.colour, 0.15),
            line={"width": 0},
            hoverinfo="skip",
            showlegend=False,
        )
    show_in_legend, error_axis = in_legend, "error_y" if is_upright else "error_x"
    for has_interval in (True, False):
        plotted_marks = [
            mark for mark in marks if mark.point is not None and mark.has_interval is has_interval
        ]
        if not plotted_marks and (has_interval or not show_in_legend):
            continue
        options: dict[str, Any] = {}
        if has_interval:
            rows = [mark.row for mark in plotted_marks]
            options[error_axis] = error_bars(rows, category_style.colour)
        add_trace(
            [mark.x for mark in plotted_marks],
            [mark.point for mark in plotted_marks],
            mode="markers",
            name=legend_name,
            showlegend=show_in_legend,
            hoverinfo="text",
            hovertext=[mark.hover_text for mark in plotted_marks],
            customdata=[[mark.position_name] for mark in plotted_marks],
            marker=point_marker(category_style, has_interval),
            **SELECTED_AS_DRAWN,
            **options,
        )
        show_in_legend = False
    for mark in marks if is_upright else ():
        if mark.point is None:
            draw_missing(
                fig, mark.x, mark.hover_text, textangle=-90, xref=(axes or {}).get("xaxis")
            )


def draw_missing(fig: Any, x: float, hover_label: str, **options: Any) -> None:
    """Write n/a above the plot, where a value is missing."""
    fig.add_annotation(
        x=x, y=1, yref="paper", yanchor="bottom", text="n/a", hovertext=hover_label, **options
    )


def draw_background(fig: Any, x: Sequence[Any], y: Sequence[Any], **trace_options: Any) -> None:
    """Draw lines or markers without hover text and legend entry."""
    fig.add_scatter(x=x, y=y, hoverinfo="skip", showlegend=False, **trace_options)


def draw_markers(
    fig: Any,
    x: Sequence[Any],
    y: Sequence[Any],
    hover_texts: Sequence[str],
    marker: Mapping[str, Any],
    **trace_options: Any,
) -> None:
    """Draw markers with hover texts, in the legend if they have a name."""
    defaults = {"mode": "markers", "hoverinfo": "text", "cliponaxis": False}
    defaults["showlegend"] = "name" in trace_options
    fig.add_scatter(x=x, y=y, hovertext=hover_texts, marker=marker, **defaults | trace_options)


def draw_reference_line(
    fig: Any,
    *,
    x: float | None = None,
    y: float | None = None,
    line_dash: str = "dot",
    width: float = 1,
) -> None:
    """Draw a line across the plot at ``x`` or at ``y``, below the data."""
    line_ends = {"x0": 0, "x1": 1, "xref": "paper", "y0": y, "y1": y}
    if x is not None:
        line_ends = {"x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper"}
    fig.add_shape(type="line", line={"width": width, "dash": line_dash}, **line_ends)


def point_marker(category_style: style.CategoryStyle, has_interval: bool) -> dict[str, Any]:
    """Return the marker of an estimate, open if it has no interval."""
    return {
        "color": category_style.colour,
        "size": 9,
        "symbol": category_style.symbol if has_interval else f"{category_style.symbol}-open",
        "line": {"width": 0 if has_interval else 2, "color": category_style.colour},
    }


def interval_values(marks: Iterable[Mark]) -> list[float]:
    """Return the points and bounds of marks that exist."""
    return [
        value for mark in marks for value in (mark.point, mark.lo, mark.hi) if value is not None
    ]


def error_bars(rows: Sequence[Row], colour: str) -> dict[str, Any]:
    """Return asymmetric error bars that end at lo and hi of the rows."""
    return {
        "type": "data",
        "symmetric": False,
        "color": colour,
        "thickness": 1.5,
        "width": 4,
        "array": [float(row["hi"]) - float(row["point"]) for row in rows],
        "arrayminus": [float(row["point"]) - float(row["lo"]) for row in rows],
    }


def interval_note(marks: Sequence[Mark]) -> str:
    """Describe error bars, their methods and open markers in a sentence; escaped."""
    bounded_marks = [mark for mark in marks if mark.has_interval]
    open_marks = [mark for mark in marks if mark.point is not None and not mark.has_interval]
    sentences = []
    if bounded_marks:
        levels_text = " and ".join(
            f"{100 * level:g}%"
            for level in sorted({float_value(m.row, "confidence") or 0.95 for m in bounded_marks})
        )
        methods = list(
            dict.fromkeys(text for m in bounded_marks if (text := text_value(m.row, "method")))
        )
        method_text = "".join(f", {text}" for text in ["; ".join(methods[:3])] if text)
        sentences.append(f"{levels_text} intervals over {bounded_marks[0].unit}{method_text}.")
    if open_marks:
        reasons = list(
            dict.fromkeys(
                text_value(mark.row, "reason") or f"too few {mark.unit}" for mark in open_marks
            )
        )
        reason_text = style.truncate_text("; ".join(reasons[:2]), 120)
        sentences.append(f"Open marker: no interval, {reason_text}.")
    return style.escape(" ".join(sentences))


def subtitle_notes(marks: Sequence[Mark]) -> list[str]:
    """Return the subtitle's lines on intervals and on missing points."""
    interval_line = interval_note(marks)
    if any(mark.raw_values for mark in marks):
        interval_line = f"{interval_line} Faint: single {marks[0].unit}.".lstrip()
    has_series = len({mark.series for mark in marks}) > 1
    notes = missing_notes(
        (mark.reason, style.truncate_text(_position_name(mark, has_series)))
        for mark in marks
        if mark.point is None
    )
    return [line for line in (interval_line, *notes) if line]


def _position_name(mark: Mark, has_series: bool) -> str:
    """Return the name of a mark's position, with that of its series where there are several."""
    if has_series and mark.series != mark.position_name:
        return f"{mark.position_name} ({style.truncate_text(mark.series, 40)})"
    return mark.position_name


def missing_notes(
    reason_positions: Iterable[tuple[str, str]], max_chars: int = 200, separator: str = ", "
) -> list[str]:
    """Return a note for each reason with the names of the positions without a value; escaped."""
    positions_by_reason: dict[str, dict[str, None]] = {}
    for reason, position in reason_positions:
        positions_by_reason.setdefault(reason, {})[position] = None
    return [
        style.escape(style.truncate_text(f"n/a ({reason}): {separator.join(names)}", max_chars))
        for reason, names in positions_by_reason.items()
    ]
