"""Draw the hatch of a bar as vectors: a pattern becomes a raster image in print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cotlab.figures import style

N_HATCH_LINES = 4
"""Number of lines across a hatched cell."""
TRANSPARENT_COLOUR = "rgba(0, 0, 0, 0)"


def hatch_as_lines(fig: Any) -> Any:
    """Return a figure whose hatched bars have lines instead of a pattern, which print rasterises.

    Parameters
    ----------
    fig : plotly.graph_objects.Figure
        Changed.
    """
    hatch_shapes: list[dict[str, Any]] = []
    height_by_stack: dict[tuple[Any, ...], float] | None = (
        {} if fig.layout.barmode in ("stack", "relative") else None
    )
    for trace in fig.data:
        if trace.type == "bar":
            hatch_shapes += _hatch_shapes(trace, _bar_bases(trace, height_by_stack))
    # lines of the figure itself stay above them
    fig.layout.shapes = (*hatch_shapes, *fig.layout.shapes)
    return fig


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
