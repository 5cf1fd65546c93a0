"""Draw estimates: points with error bars, raw values, and the notes of the subtitle.

A point without an interval is an open marker; an undefined value is written "n/a", never drawn at
0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from cotlab.figures import style

RAW_ROWS = 20
"""Largest number of units whose single values are drawn behind the point."""
Row = Mapping[str, Any]
"""One row of a table by column."""
Unit = Literal["items", "draws"]
"""Unit of a row's interval, counted in its column ``n`` or ``draws``."""


class Mark(NamedTuple):
    """A row of the table with its position in the figure."""

    series: str
    """Name of its series; "" if there is only one."""
    x: float
    """Position on the axis of categories."""
    at: str
    """Name of that position."""
    row: Row
    """Row of the table."""

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
    def bounded(self) -> bool:
        """Whether it has an interval."""
        return None not in (self.point, self.lo, self.hi)


def table_records(table: pd.DataFrame) -> list[Row]:
    """Return the rows of a table."""
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def float_value(row: Row, column: str) -> float | None:
    """Return the number in a column, or None."""
    value = row.get(column)
    return None if value is None or pd.isna(value) else float(value)


def text_value(row: Row, column: str) -> str:
    """Return the text in a column, or ""."""
    value = row.get(column)
    return value if isinstance(value, str) else ""


def int_value(row: Row, column: str) -> int:
    """Return the integer in a column, or 0."""
    return int(float_value(row, column) or 0)


def count_range(rows: Iterable[Row]) -> str:
    """Return the numbers of items of rows as text: "48", or "45–48" if they differ."""
    sizes = [int_value(row, "n") for row in rows]
    return f"{min(sizes)}" if min(sizes) == max(sizes) else f"{min(sizes)}–{max(sizes)}"


def jitter(i: int) -> float:
    """Return a fixed offset of the i-th raw value in [−0.05, 0.05), evenly spread."""
    return ((i * 0.618034) % 1 - 0.5) * 0.1


def draw_series(
    fig: Any,
    marks: Sequence[Mark],
    code: style.Code,
    *,
    unit: Unit = "items",
    legend: bool = False,
    joined: bool = False,
    upright: bool = True,
) -> None:
    """Draw the marks of one series with raw values, intervals, and "n/a" for missing points.

    Parameters
    ----------
    fig : plotly.graph_objects.Figure
        Changed in place.
    marks : sequence of Mark
        In the order of their positions.
    code : style.Code
    unit : "items" or "draws"
    legend : bool
        Whether the legend names the series.
    joined : bool
        Whether a faint line joins the points, with a gap at undefined ones.
    upright : bool
        Whether values are on y; else they are on x, and undefined marks are left to the caller.
    """
    name = marks[0].series if marks else ""
    group = style.escape(style.truncate_text(name, 40))

    def add(places: Sequence[float], values: Sequence[float | None], **more: Any) -> None:
        across, along = (places, values) if upright else (values, places)
        fig.add_scatter(
            x=list(across), y=list(along), legendgroup=style.escape(name), cliponaxis=False, **more
        )

    raw = [
        (mark.x + jitter(i), value)
        for mark in marks
        for i, value in enumerate(raw_values(mark.row, unit))
    ]
    if raw:
        add(
            [at for at, _ in raw],
            [value for _, value in raw],
            mode="markers",
            hoverinfo="skip",
            showlegend=False,
            marker={"color": style.faded(code.colour, 0.3), "size": 5},
        )
    if joined:
        add(
            [mark.x for mark in marks],
            [mark.point for mark in marks],
            mode="lines",
            hoverinfo="skip",
            showlegend=False,
            line={"color": style.faded(code.colour, 0.45), "width": 1.2},
        )
    key = legend
    for bounded in (True, False):
        chosen = [mark for mark in marks if mark.point is not None and mark.bounded is bounded]
        if not chosen and (bounded or not key):
            continue
        bars = (
            {"error_y" if upright else "error_x": error_bars(chosen, code.colour)}
            if bounded
            else {}
        )
        add(
            [mark.x for mark in chosen],
            [mark.point for mark in chosen],
            mode="markers",
            name=group,
            showlegend=key,
            hoverinfo="text",
            hovertext=[hover_text(mark, unit) for mark in chosen],
            marker={
                "color": code.colour,
                "size": 9,
                "symbol": code.symbol if bounded else f"{code.symbol}-open",
                "line": {"width": 0 if bounded else 2, "color": code.colour},
            },
            **bars,
        )
        key = False
    for mark in marks if upright else ():
        if mark.point is None:
            fig.add_annotation(
                x=mark.x,
                y=0,
                yref="paper",
                yanchor="bottom",
                text="n/a",
                textangle=-90,
                bgcolor=style.PAPER,
                hovertext=hover_text(mark, unit),
            )


def draw_rows(fig: Any, marks: Sequence[Mark]) -> None:
    """Draw marks as rows, with value, interval and n at the right, or n/a with its reason."""
    draw_series(fig, marks, style.Code(style.ACCENT, "circle"), upright=False)
    for mark in marks:
        known = mark.point is not None
        label = f"{style.interval_text(mark.point, mark.lo, mark.hi)}<br>{count_text(mark.row)}"
        if not known:
            label = style.in_lines(
                f"n/a: {text_value(mark.row, 'reason') or default_reason(mark)}", 62
            )
        fig.add_annotation(
            y=mark.x,
            x=1 if known else 0,
            xref="paper",
            xshift=14,
            xanchor="left",
            align="left",
            text=label,
            hovertext=hover_text(mark),
            bgcolor=style.PAPER,
            font={"size": style.TEXT_SIZE - 1, "color": style.INK if known else style.SOFT_INK},
        )


def draw_reference(
    fig: Any,
    *,
    x: float | None = None,
    y: float | None = None,
    dash: str = "dot",
    width: float = 1,
) -> None:
    """Draw a line across the plot at ``x`` or at ``y``, below the data."""
    ends = {"x0": 0, "x1": 1, "xref": "paper", "y0": y, "y1": y}
    if x is not None:
        ends = {"x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper"}
    line = {"color": style.SOFT_INK, "width": width, "dash": dash}
    fig.add_shape(type="line", layer="below", line=line, **ends)


def error_bars(marks: Sequence[Mark], colour: str) -> dict[str, Any]:
    """Return asymmetric error bars that end at lo and hi of the table."""
    spans = [
        (float(mark.row["point"]), float(mark.row["lo"]), float(mark.row["hi"])) for mark in marks
    ]
    return {
        "type": "data",
        "symmetric": False,
        "color": colour,
        "thickness": 1.5,
        "width": 4,
        "array": [hi - point for point, _, hi in spans],
        "arrayminus": [point - lo for point, lo, _ in spans],
    }


def raw_values(row: Row, unit: Unit = "items") -> list[float]:
    """Return the values in the column ``values``; none if there are too many to draw."""
    values = row.get("values")
    few = int_value(row, "n" if unit == "items" else "draws") <= RAW_ROWS
    return (
        [float(v) for v in values if not pd.isna(v)]
        if few and isinstance(values, (list, tuple, np.ndarray))
        else []
    )


def hover_text(mark: Mark, unit: Unit = "items") -> str:
    """Return the hover text of a mark: position, interval, counts, method or reason."""
    named = mark.at if mark.series in (mark.at, "") else f"{mark.series}, {mark.at}"
    lines = [
        f"<b>{style.escape(named)}</b>",
        style.interval_text(mark.point, mark.lo, mark.hi),
        count_text(mark.row, unit),
    ]
    reason = text_value(mark.row, "reason") or ("" if mark.bounded else default_reason(mark, unit))
    lines += [
        style.in_lines(text, 60, most=4)
        for text in (reason, text_value(mark.row, "method"))
        if text and text != "none"
    ]
    if text_value(mark.row, "text"):
        lines.append(style.in_lines(mark.row["text"], 60, most=6))
    return "<br>".join(lines)


def count_text(row: Row, unit: Unit = "items") -> str:
    """Return the counts of a row: "n = 98 items, 2 undefined", or "draws: 8"."""
    if unit == "draws":
        return f"draws: {int_value(row, 'draws')}"
    return f"n = {int_value(row, 'n')} items, {int_value(row, 'n_undefined')} undefined"


def default_reason(mark: Mark, unit: Unit = "items") -> str:
    """Return the reason of a missing point or interval if the table gives none."""
    if mark.point is None:
        return "no score is defined here"
    single = int_value(mark.row, "n" if unit == "items" else "draws") == 1
    return (
        f"one {unit[:-1]} has no spread, so there is no interval"
        if single
        else "the table gives no interval"
    )


def interval_note(marks: Sequence[Mark], unit: Unit = "items") -> str:
    """Describe error bars, their methods and open markers in a sentence; escaped."""
    bounded = [mark.row for mark in marks if mark.bounded]
    sentences = []
    if bounded:
        level = " and ".join(
            f"{100 * v:g} %"
            for v in sorted({float_value(row, "confidence") or 0.95 for row in bounded})
        )
        methods = list(
            dict.fromkeys(text for row in bounded if (text := text_value(row, "method")))
        )
        sentences.append(
            f"Bars: {level} intervals over {unit}{', ' if methods else ''}{'; '.join(methods[:3])}."
        )
    bare = [mark.row for mark in marks if mark.point is not None and not mark.bounded]
    if bare:
        reasons = list(
            dict.fromkeys(text_value(row, "reason") or f"too few {unit}" for row in bare)
        )
        sentences.append(
            f"Open marker: no interval, {style.truncate_text('; '.join(reasons[:2]), 120)}."
        )
    return style.escape(" ".join(sentences))


def subtitle_notes(
    marks: Sequence[Mark], *, unit: Unit = "items", gaps: bool = True, by_series: bool = False
) -> list[str]:
    """Return the lines of the subtitle: error bars and, with ``gaps``, missing points."""
    first = interval_note(marks, unit)
    if any(raw_values(mark.row, unit) for mark in marks):
        first = f"{first} Faint: single {unit}.".lstrip()
    reasons: dict[str, dict[str, None]] = {}
    for mark in marks if gaps else ():
        if mark.point is None:
            location = (
                f"{style.truncate_text(mark.series, 40)} at {mark.at}"
                if by_series and mark.series != mark.at
                else mark.at
            )
            reasons.setdefault(text_value(mark.row, "reason") or default_reason(mark), {})[
                style.truncate_text(location)
            ] = None
    lines = [
        style.escape(style.truncate_text(f"n/a ({text}): {', '.join(at)}", 200))
        for text, at in reasons.items()
    ]
    return [line for line in (first, *lines) if line]
