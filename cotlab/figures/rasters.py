"""What a page would hold as an image, drawn as vectors: heatmaps, dense scatters, colour bars and hatches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from cotlab.figures import style

BAR_CELLS = 32
"""Of so many rectangles a colour bar is made."""
HATCHES = 4
"""Lines from one side of a hatched cell to the other."""
CLEAR = "rgba(0, 0, 0, 0)"
RASTERS = (
    "heatmap",
    "histogram2d",
    "scattergl",
    "image",
    "splom",
    "surface",
    "scatter3d",
    "densitymap",
    "contour",
)
"""Kinds of traces that become images in a page; those without a vector form here are refused."""


def as_vectors(fig: Any) -> Any:
    """A figure without any part that a page would hold as an image.

    Parameters
    ----------
    fig : plotly.graph_objects.Figure
        It is changed: heatmaps become cells, Scattergl becomes Scatter, a colour bar rectangles
        with numbers, and the pattern of a bar lines that lie on it, also where bars stack.

    Raises
    ------
    ValueError
        If a trace of a kind without a vector form is there.
    """
    data: list[Any] = []
    shapes: list[dict[str, Any]] = []
    hatches: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    layout = fig.layout
    tops: dict[tuple[Any, ...], float] | None = (
        {} if layout.barmode in ("stack", "relative") else None
    )
    for trace in fig.data:
        if trace.type == "heatmap":
            cells, bar, labels = _heatmap(trace)
            data.append(cells)
            layout = _named(layout, trace)
            shapes += bar
            notes += labels
        elif trace.type == "scattergl":
            spec = trace.to_plotly_json()
            spec["type"] = "scatter"
            data.append(go.Scatter(**{key: value for key, value in spec.items() if key != "type"}))
        elif trace.type in RASTERS:
            raise ValueError(
                f"a trace of the kind {trace.type!r} has no vector form: draw it with marks"
            )
        else:
            if trace.type == "bar":
                hatches += _hatches(trace, _bases(trace, tops))
            if _has_bar(trace):
                bar, labels = _colour_bar(trace.marker)
                shapes += bar
                notes += labels
                trace.marker.showscale = False
            data.append(trace)
    new = go.Figure(data=data, layout=layout)
    new.layout.images = ()
    new.layout.shapes = (*hatches, *new.layout.shapes)  # lines of the figure itself stay above them
    for shape in shapes:
        new.add_shape(shape)
    for note in notes:
        new.add_annotation(note)
    return new


def _has_bar(trace: Any) -> bool:
    marker = getattr(trace, "marker", None) if trace.type in ("scatter", "bar") else None
    return bool(marker is not None and marker.showscale)


def _heatmap(trace: Any) -> tuple[Any, list[dict[str, Any]], list[dict[str, Any]]]:
    """Cells as bars of one trace, with what a heatmap says of them, and its colour bar."""
    rows = [list(row) for row in trace.z]
    columns = list(trace.x) if trace.x is not None else list(range(len(rows[0]) if rows else 0))
    names = list(trace.y) if trace.y is not None else list(range(len(rows)))
    known = [float(v) for row in rows for v in row if v is not None and not math.isnan(float(v))]
    lo = float(trace.zmin) if trace.zmin is not None else min(known, default=0.0)
    hi = float(trace.zmax) if trace.zmax is not None else max(known, default=1.0)
    scale = _colours(trace.colorscale)
    where = [(i, j, row[j]) for i, row in enumerate(rows) for j in range(len(columns))]
    gone = [v is None or math.isnan(float(v)) for _, _, v in where]
    fills = [
        style.NOT_AVAILABLE if missing else _colour(float(v), lo, hi, scale)
        for missing, (_, _, v) in zip(gone, where, strict=True)
    ]
    texts = [str(trace.text[i][j]) if trace.text is not None else "" for i, j, _ in where]
    across, up = _places(columns), _places(names)
    bars = go.Bar(
        x=[across[j] for _, j, _ in where],
        base=[up[i] - 0.5 for i, _, _ in where],
        y=[1.0] * len(where),
        width=1.0,
        marker={"color": fills, "line": {"width": 0.5, "color": style.PAPER}},
        text=texts,
        textposition="inside",
        insidetextanchor="middle",
        constraintext="none",
        showlegend=False,
        hoverinfo="text",
        insidetextfont={"size": style.SMALL_SIZE, "color": [style.ink_on(fill) for fill in fills]},
        hovertext=[
            style.escape(
                f"{columns[j]}, {names[i]}: {style.format_number(None if v is None else float(v))}"
            )
            for i, j, v in where
        ],
        xaxis=trace.xaxis or "x",
        yaxis=trace.yaxis or "y",
    )
    if trace.showscale is False:
        return bars, [], []
    return bars, *_ramp(lo, hi, scale, _title(trace.colorbar))


def _places(names: Sequence[Any]) -> list[Any]:
    """Numbers keep their place; names are counted."""
    return [float(n) if isinstance(n, int | float) else float(i) for i, n in enumerate(names)]


def _named(layout: Any, trace: Any) -> Any:
    """The layout with the names of a heatmap's columns and rows as ticks where they are words."""
    updates: dict[str, Any] = {"barmode": "overlay"}
    for letter, names in (("x", trace.x), ("y", trace.y)):
        axis = f"{letter}axis{(getattr(trace, f'{letter}axis') or letter)[1:]}"
        if names is not None and not all(isinstance(n, int | float) for n in names):
            updates[axis] = {"tickvals": _places(names), "ticktext": [str(n) for n in names]}
    return go.Figure(layout=layout).update_layout(updates).layout


def _colours(scale: Any) -> list[tuple[float, str]]:
    if scale is None:
        return [(i / (len(style.VIRIDIS) - 1), stop) for i, stop in enumerate(style.VIRIDIS)]
    return [(float(at), str(colour)) for at, colour in scale]


def _colour(value: float, lo: float, hi: float, scale: Sequence[tuple[float, str]]) -> str:
    part = 0.0 if hi <= lo else min(1.0, max(0.0, (value - lo) / (hi - lo)))
    rgb: str = sample_colorscale([list(stop) for stop in scale], [part])[0]
    red, green, blue = (round(float(v)) for v in rgb[rgb.index("(") + 1 : -1].split(",")[:3])
    return f"#{red:02x}{green:02x}{blue:02x}"


def _colour_bar(marker: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    numbers = (
        [float(v) for v in marker.color if v is not None]
        if not isinstance(marker.color, str)
        else [0.0, 1.0]
    )
    lo = float(marker.cmin) if marker.cmin is not None else min(numbers, default=0.0)
    hi = float(marker.cmax) if marker.cmax is not None else max(numbers, default=1.0)
    return _ramp(lo, hi, _colours(marker.colorscale), _title(marker.colorbar))


def _title(bar: Any) -> str:
    return str(bar.title.text or "") if bar is not None else ""


def _ramp(
    lo: float, hi: float, scale: Sequence[tuple[float, str]], title: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A colour bar at the right of the plot: rectangles in the paper's own coordinates, its ends and title as text."""
    ends = [i / BAR_CELLS for i in range(BAR_CELLS + 1)]
    shapes = [
        {
            "type": "rect",
            "xref": "paper",
            "yref": "paper",
            "x0": 1.02,
            "x1": 1.05,
            "y0": low,
            "y1": min(1.0, high + 0.004),
            "line": {"width": 0},
            "fillcolor": _colour((low + high) / 2, 0, 1, scale),
        }
        for low, high in pairwise(ends)
    ]
    label_style = {
        "xref": "paper",
        "yref": "paper",
        "x": 1.055,
        "xanchor": "left",
        "showarrow": False,
        "font": {"size": style.SMALL_SIZE, "color": style.INK},
    }
    notes: list[dict[str, Any]] = [
        {
            **label_style,
            "y": at,
            "yanchor": "middle",
            "text": style.format_number(lo + at * (hi - lo)),
        }
        for at in (0.0, 0.5, 1.0)
    ]
    if title:
        notes.append(
            {
                **label_style,
                "x": 1.05,
                "y": 1.0,
                "yanchor": "bottom",
                "xanchor": "right",
                "yshift": 8,
                "text": title,
            }
        )
    return shapes, notes


def _bases(trace: Any, tops: dict[tuple[Any, ...], float] | None) -> list[float]:
    """Where each bar of a trace begins; where bars stack, ``tops`` is how high they reach so far and grows with these."""
    if trace.base is not None or tops is None:
        return [float(base or 0) for base in _list(trace.base, len(trace.y))]
    found = []
    for x, y in zip(trace.x, trace.y, strict=True):
        at = trace.xaxis or "x", trace.yaxis or "y", x
        found.append(tops.get(at, 0.0))
        tops[at] = found[-1] + float(y or 0)
    return found


def _hatches(trace: Any, bases: Sequence[float]) -> list[dict[str, Any]]:
    """Lines for the bars that had a pattern, from where each begins.

    They are drawn on bars without text, which keep their colour; below bars with text, on grey, and
    those bars are left clear, so that the text stands above the lines.
    """
    pattern = trace.marker.pattern
    shape = pattern.shape if pattern is not None else None
    if not any(_list(shape, 1)):
        return []
    patterns, below = _list(shape, len(trace.y)), trace.text is not None
    widths = _list(trace.width if trace.width is not None else 0.8, len(patterns))
    colour = "#d6d6d6" if below else pattern.fgcolor or style.PAPER
    shapes = []
    for x, y, base, width, kind in zip(trace.x, trace.y, bases, widths, patterns, strict=True):
        if kind and y:
            left, wide, high = float(x) - float(width) / 2, float(width), float(y)
            axes = {
                "layer": "between" if below else "above",
                "xref": trace.xaxis or "x",
                "yref": trace.yaxis or "y",
            }
            if below:
                shapes.append(
                    {
                        **axes,
                        "type": "rect",
                        "x0": left,
                        "x1": left + wide,
                        "y0": base,
                        "y1": base + high,
                        "fillcolor": style.NOT_AVAILABLE,
                        "line": {"width": 0},
                    }
                )
            line = {"width": 0.8, "color": colour, "dash": "dot" if kind == "." else "solid"}
            shapes.append(
                {**axes, "type": "path", "path": _lines(left, base, wide, high), "line": line}
            )
    if shapes and below:
        fills = _list(trace.marker.color, len(patterns))
        trace.marker.color = [
            CLEAR if kind else fill for fill, kind in zip(fills, patterns, strict=True)
        ]
    trace.marker.pattern = None
    return shapes


def _lines(left: float, low: float, wide: float, high: float) -> str:
    """Diagonals through a rectangle, clipped to it."""
    segments = []
    for k in range(1, 2 * HATCHES):
        t = k / HATCHES
        (x0, y0), (x1, y1) = ((0.0, t), (t, 0.0)) if t <= 1 else ((t - 1, 1.0), (1.0, t - 1))
        segments.append(
            f"M{left + x0 * wide:.4f},{low + y0 * high:.4f}L{left + x1 * wide:.4f},{low + y1 * high:.4f}"
        )
    return "".join(segments)


def _list(value: Any, n: int) -> list[Any]:
    """A value for each of ``n`` bars."""
    return [value] * n if value is None or isinstance(value, str | int | float) else list(value)
