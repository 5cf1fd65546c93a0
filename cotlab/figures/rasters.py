"""Draw raster parts of a figure as vectors: heatmaps, WebGL scatters, colour bars, hatches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from cotlab.figures import style

N_COLOUR_BAR_CELLS = 32
"""Number of rectangles of a colour bar."""
N_HATCH_LINES = 4
"""Number of lines across a hatched cell."""
TRANSPARENT_COLOUR = "rgba(0, 0, 0, 0)"
RASTER_TRACE_TYPES = (
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
"""Kinds of traces that are rasters; those without a vector form are rejected."""


def convert_to_vectors(fig: Any) -> Any:
    """Return a figure without raster images.

    Parameters
    ----------
    fig : plotly.graph_objects.Figure
        Changed: heatmaps become cells, Scattergl becomes Scatter, a colour bar becomes rectangles
        with numbers, and the pattern of a bar becomes lines.

    Raises
    ------
    ValueError
        If a trace has no vector form.
    """
    traces: list[Any] = []
    shapes: list[dict[str, Any]] = []
    hatch_shapes: list[dict[str, Any]] = []
    layout_annotations: list[dict[str, Any]] = []
    layout = fig.layout
    height_by_stack: dict[tuple[Any, ...], float] | None = (
        {} if layout.barmode in ("stack", "relative") else None
    )
    for trace in fig.data:
        if trace.type == "heatmap":
            bar_trace, colour_bar_shapes, labels = _heatmap_as_bars(trace)
            traces.append(bar_trace)
            layout = _layout_with_ticks(layout, trace)
            shapes += colour_bar_shapes
            layout_annotations += labels
        elif trace.type == "scattergl":
            spec = trace.to_plotly_json()
            spec["type"] = "scatter"
            traces.append(
                go.Scatter(**{key: value for key, value in spec.items() if key != "type"})
            )
        elif trace.type in RASTER_TRACE_TYPES:
            raise ValueError(
                f"a trace of the kind {trace.type!r} has no vector form: draw it with marks"
            )
        else:
            if trace.type == "bar":
                hatch_shapes += _hatch_shapes(trace, _bar_bases(trace, height_by_stack))
            if _has_colour_bar(trace):
                colour_bar_shapes, labels = _marker_colour_bar(trace.marker)
                shapes += colour_bar_shapes
                layout_annotations += labels
                trace.marker.showscale = False
            traces.append(trace)
    vector_figure = go.Figure(data=traces, layout=layout)
    vector_figure.layout.images = ()
    vector_figure.layout.shapes = (
        *hatch_shapes,
        *vector_figure.layout.shapes,
    )  # lines of the figure itself stay above them
    for shape in shapes:
        vector_figure.add_shape(shape)
    for annotation in layout_annotations:
        vector_figure.add_annotation(annotation)
    return vector_figure


def _has_colour_bar(trace: Any) -> bool:
    """Return whether a trace has a colour bar."""
    marker = getattr(trace, "marker", None) if trace.type in ("scatter", "bar") else None
    return bool(marker is not None and marker.showscale)


def _heatmap_as_bars(trace: Any) -> tuple[Any, list[dict[str, Any]], list[dict[str, Any]]]:
    """Return a heatmap as one trace of bars, and the shapes and labels of its colour bar."""
    rows = [list(row) for row in trace.z]
    column_names = (
        list(trace.x) if trace.x is not None else list(range(len(rows[0]) if rows else 0))
    )
    row_names = list(trace.y) if trace.y is not None else list(range(len(rows)))
    defined_values = [
        float(value)
        for row in rows
        for value in row
        if value is not None and not math.isnan(float(value))
    ]
    lowest_value = float(trace.zmin) if trace.zmin is not None else min(defined_values, default=0.0)
    highest_value = (
        float(trace.zmax) if trace.zmax is not None else max(defined_values, default=1.0)
    )
    colour_stops = _colour_stops(trace.colorscale)
    cells = [(i, j, row[j]) for i, row in enumerate(rows) for j in range(len(column_names))]
    missing_flags = [value is None or math.isnan(float(value)) for _, _, value in cells]
    fill_colours = [
        (
            style.MISSING_COLOUR
            if is_missing
            else _colour_of_value(float(value), lowest_value, highest_value, colour_stops)
        )
        for is_missing, (_, _, value) in zip(missing_flags, cells, strict=True)
    ]
    texts = [str(trace.text[i][j]) if trace.text is not None else "" for i, j, _ in cells]
    column_positions, row_positions = _axis_positions(column_names), _axis_positions(row_names)
    bars = go.Bar(
        x=[column_positions[j] for _, j, _ in cells],
        base=[row_positions[i] - 0.5 for i, _, _ in cells],
        y=[1.0] * len(cells),
        width=1.0,
        marker={"color": fill_colours, "line": {"width": 0.5, "color": style.BACKGROUND_COLOUR}},
        text=texts,
        textposition="inside",
        insidetextanchor="middle",
        constraintext="none",
        showlegend=False,
        hoverinfo="text",
        insidetextfont={
            "size": style.SMALL_TEXT_SIZE,
            "color": [style.text_colour_on(fill_colour) for fill_colour in fill_colours],
        },
        hovertext=[
            style.escape(
                f"{column_names[j]}, {row_names[i]}:"
                f" {style.format_number(None if value is None else float(value))}"
            )
            for i, j, value in cells
        ],
        xaxis=trace.xaxis or "x",
        yaxis=trace.yaxis or "y",
    )
    if trace.showscale is False:
        return bars, [], []
    return bars, *_colour_bar_shapes(
        lowest_value, highest_value, colour_stops, _colour_bar_title(trace.colorbar)
    )


def _axis_positions(names: Sequence[Any]) -> list[Any]:
    """Return the positions of columns or rows: their numbers, or the indices of names."""
    return [
        float(name) if isinstance(name, int | float) else float(i) for i, name in enumerate(names)
    ]


def _layout_with_ticks(layout: Any, trace: Any) -> Any:
    """Return a layout with the names of a heatmap's columns and rows as ticks."""
    layout_updates: dict[str, Any] = {"barmode": "overlay"}
    for axis_letter, names in (("x", trace.x), ("y", trace.y)):
        axis = f"{axis_letter}axis{(getattr(trace, f'{axis_letter}axis') or axis_letter)[1:]}"
        if names is not None and not all(isinstance(name, int | float) for name in names):
            layout_updates[axis] = {
                "tickvals": _axis_positions(names),
                "ticktext": [str(name) for name in names],
            }
    return go.Figure(layout=layout).update_layout(layout_updates).layout


def _colour_stops(colour_scale: Any) -> list[tuple[float, str]]:
    """Return the stops of a colour scale, by default viridis."""
    if colour_scale is None:
        return [(i / (len(style.VIRIDIS) - 1), stop) for i, stop in enumerate(style.VIRIDIS)]
    return [(float(position), str(colour)) for position, colour in colour_scale]


def _colour_of_value(
    value: float, lo: float, hi: float, colour_stops: Sequence[tuple[float, str]]
) -> str:
    """Return the colour of a value as ``#rrggbb``."""
    scale_position = 0.0 if hi <= lo else min(1.0, max(0.0, (value - lo) / (hi - lo)))
    rgb: str = sample_colorscale([list(stop) for stop in colour_stops], [scale_position])[0]
    red, green, blue = (
        round(float(channel)) for channel in rgb[rgb.index("(") + 1 : -1].split(",")[:3]
    )
    return f"#{red:02x}{green:02x}{blue:02x}"


def _marker_colour_bar(marker: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return shapes and labels of the colour bar of a marker."""
    colour_values = (
        [float(value) for value in marker.color if value is not None]
        if not isinstance(marker.color, str)
        else [0.0, 1.0]
    )
    lowest_value = (
        float(marker.cmin) if marker.cmin is not None else min(colour_values, default=0.0)
    )
    highest_value = (
        float(marker.cmax) if marker.cmax is not None else max(colour_values, default=1.0)
    )
    return _colour_bar_shapes(
        lowest_value,
        highest_value,
        _colour_stops(marker.colorscale),
        _colour_bar_title(marker.colorbar),
    )


def _colour_bar_title(colour_bar: Any) -> str:
    """Return the title of a colour bar, or ""."""
    return str(colour_bar.title.text or "") if colour_bar is not None else ""


def _colour_bar_shapes(
    lowest_value: float, highest_value: float, colour_stops: Sequence[tuple[float, str]], title: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return a colour bar right of the plot: rectangles, and labels for its ends and title."""
    cell_ends = [i / N_COLOUR_BAR_CELLS for i in range(N_COLOUR_BAR_CELLS + 1)]
    shapes = [
        {
            "type": "rect",
            "xref": "paper",
            "yref": "paper",
            "x0": 1.02,
            "x1": 1.05,
            "y0": cell_start,
            "y1": min(1.0, cell_end + 0.004),
            "line": {"width": 0},
            "fillcolor": _colour_of_value((cell_start + cell_end) / 2, 0, 1, colour_stops),
        }
        for cell_start, cell_end in pairwise(cell_ends)
    ]
    label_style = {
        "xref": "paper",
        "yref": "paper",
        "x": 1.055,
        "xanchor": "left",
        "showarrow": False,
        "font": {"size": style.SMALL_TEXT_SIZE, "color": style.TEXT_COLOUR},
    }
    labels: list[dict[str, Any]] = [
        {
            **label_style,
            "y": position,
            "yanchor": "middle",
            "text": style.format_number(lowest_value + position * (highest_value - lowest_value)),
        }
        for position in (0.0, 0.5, 1.0)
    ]
    if title:
        labels.append(
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
    return shapes, labels


def _bar_bases(trace: Any, height_by_stack: dict[tuple[Any, ...], float] | None) -> list[float]:
    """Return where each bar begins; ``height_by_stack`` holds the heights so far and is updated."""
    if trace.base is not None or height_by_stack is None:
        return [float(base_value or 0) for base_value in _values_per_bar(trace.base, len(trace.y))]
    bases = []
    for x, y in zip(trace.x, trace.y, strict=True):
        stack_key = trace.xaxis or "x", trace.yaxis or "y", x
        bases.append(height_by_stack.get(stack_key, 0.0))
        height_by_stack[stack_key] = bases[-1] + float(y or 0)
    return bases


def _hatch_shapes(trace: Any, bases: Sequence[float]) -> list[dict[str, Any]]:
    """Return lines for the bars with a pattern.

    They are drawn above bars without text. Bars with text become transparent, with the lines on
    grey below them, so that the text is above the lines.
    """
    pattern = trace.marker.pattern
    pattern_shape = pattern.shape if pattern is not None else None
    if not any(_values_per_bar(pattern_shape, 1)):
        return []
    patterns, is_below_text = _values_per_bar(pattern_shape, len(trace.y)), trace.text is not None
    widths = _values_per_bar(trace.width if trace.width is not None else 0.8, len(patterns))
    colour = "#d6d6d6" if is_below_text else pattern.fgcolor or style.BACKGROUND_COLOUR
    shapes = []
    for x, y, base, width, bar_pattern in zip(
        trace.x, trace.y, bases, widths, patterns, strict=True
    ):
        if bar_pattern and y:
            bar_left, bar_width, bar_height = float(x) - float(width) / 2, float(width), float(y)
            shape_options = {
                "layer": "between" if is_below_text else "above",
                "xref": trace.xaxis or "x",
                "yref": trace.yaxis or "y",
            }
            if is_below_text:
                shapes.append(
                    {
                        **shape_options,
                        "type": "rect",
                        "x0": bar_left,
                        "x1": bar_left + bar_width,
                        "y0": base,
                        "y1": base + bar_height,
                        "fillcolor": style.MISSING_COLOUR,
                        "line": {"width": 0},
                    }
                )
            hatch_line = {
                "width": 0.8,
                "color": colour,
                "dash": "dot" if bar_pattern == "." else "solid",
            }
            shapes.append(
                {
                    **shape_options,
                    "type": "path",
                    "path": _diagonals_path(bar_left, base, bar_width, bar_height),
                    "line": hatch_line,
                }
            )
    if shapes and is_below_text:
        fill_colours = _values_per_bar(trace.marker.color, len(patterns))
        trace.marker.color = [
            TRANSPARENT_COLOUR if bar_pattern else fill_colour
            for fill_colour, bar_pattern in zip(fill_colours, patterns, strict=True)
        ]
    trace.marker.pattern = None
    return shapes


def _diagonals_path(left: float, bottom: float, width: float, height: float) -> str:
    """Return the path of diagonals through a rectangle, clipped to it."""
    segments = []
    for k in range(1, 2 * N_HATCH_LINES):
        offset = k / N_HATCH_LINES
        (x0, y0), (x1, y1) = (
            ((0.0, offset), (offset, 0.0))
            if offset <= 1
            else ((offset - 1, 1.0), (1.0, offset - 1))
        )
        start_point = f"{left + x0 * width:.4f},{bottom + y0 * height:.4f}"
        end_point = f"{left + x1 * width:.4f},{bottom + y1 * height:.4f}"
        segments.append(f"M{start_point}L{end_point}")
    return "".join(segments)


def _values_per_bar(value: Any, n_bars: int) -> list[Any]:
    """Return a value for each of ``n_bars`` bars."""
    return (
        [value] * n_bars if value is None or isinstance(value, str | int | float) else list(value)
    )
