"""Figures on a dark page: the same marks and categories on a dark card with light text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import plotly.graph_objects as go

from cotlab.figures import style

DARK_BACKGROUND = "#171614"
"""Background of a page in the dark theme of `.streamlit/config.toml`."""
DARK_COLOURS: Mapping[str, str] = {
    style.TEXT_COLOUR: "#f2f2f2",
    style.SOFT_TEXT_COLOUR: "#c4c4c4",
    style.GRID_COLOUR: "#3a3835",
    style.BACKGROUND_COLOUR: DARK_BACKGROUND,
}
"""Colour of the white card → colour in its place on a dark one."""
DARK_MISSING_COLOUR, _DARK_HATCH_COLOUR = "#35332f", "#57534c"
# Blue is faint on a dark card (3.5; sky blue has 7.8): the two change places, as in the dark
# palette of `.streamlit/config.toml`, so that all categories keep a colour of their own.
_SWAPPED_COLOURS = {style.BLUE: style.SKY, style.SKY: style.BLUE}
_LAYOUT_COLOURS = {
    **DARK_COLOURS,
    **_SWAPPED_COLOURS,
    style.MISSING_COLOUR: DARK_MISSING_COLOUR,
}
_TRACE_COLOURS = {**DARK_COLOURS, **_SWAPPED_COLOURS, style.BLACK: "#ffffff"}
_TRANSLUCENT_COLOURS = {
    "rgba(255, 255, 255, ": "rgba(23, 22, 20, ",
    "rgba(0, 0, 0, ": "rgba(255, 255, 255, ",
}
"""Beginning of a colour with an opacity → what stands in its place."""
_FAINT_COLOUR_RE = re.compile(r"(rgba\([^)]*, )(0?\.\d+)\)")
_MAX_FAINT_OPACITY = 0.85
"""A faint colour is twice as opaque on a dark card, on which it is darker than on a white one."""


def dark_figure(fig: Any) -> Any:
    """Return a copy of a figure for a dark page.

    Colours of values and of the text on them stay: lists of colours are of values.

    Parameters
    ----------
    fig : plotly.graph_objects.Figure
        With the style of all figures.

    Returns
    -------
    plotly.graph_objects.Figure
    """
    spec = fig.to_plotly_json()
    layout, data = spec["layout"], spec["data"]
    return go.Figure(
        data=[_darken_hatched(_replace_colours(trace, _TRACE_COLOURS)) for trace in data],
        layout=_replace_colours(layout, _LAYOUT_COLOURS),
    )


def _darken_hatched(trace: dict[str, Any]) -> dict[str, Any]:
    """Return a trace whose hatched bars, cells without a value, are dark with light text."""
    marker, text_font = trace.get("marker") or {}, trace.get("insidetextfont") or {}
    shapes = (marker.get("pattern") or {}).get("shape")
    if not isinstance(shapes, list | tuple):
        return trace
    fills, texts = (
        [dark if shape else value for shape, value in zip(shapes, values, strict=True)]
        for values, dark in (
            (marker["color"], DARK_MISSING_COLOUR),
            (text_font["color"], DARK_COLOURS[style.TEXT_COLOUR]),
        )
    )
    pattern = {**marker["pattern"], "fgcolor": _DARK_HATCH_COLOUR}
    return {
        **trace,
        "marker": {**marker, "color": fills, "pattern": pattern},
        "insidetextfont": {**text_font, "color": texts},
    }


def _replace_colours(value: Any, colours: Mapping[str, str], key: str = "") -> Any:
    """Return a node of a figure with other colours; lists of colours stay as they are."""
    if isinstance(value, dict):
        return {name: _replace_colours(node, colours, name) for name, node in value.items()}
    if isinstance(value, list | tuple):
        return [
            _replace_colours(node, colours) if isinstance(node, dict) else node for node in value
        ]
    if not isinstance(value, str):
        return value
    if key == "text":  # lines of a title have colours
        for colour, dark_colour in DARK_COLOURS.items():
            value = value.replace(f"color: {colour}", f"color: {dark_colour}")
    elif key.endswith("color"):
        value = colours.get(value, value)
        for start, dark_start in _TRANSLUCENT_COLOURS.items():
            if value.startswith(start):
                return dark_start + value.removeprefix(start)
        if faint := _FAINT_COLOUR_RE.fullmatch(value):
            opacity = min(_MAX_FAINT_OPACITY, 2 * float(faint[2]))
            for colour, dark_colour in _SWAPPED_COLOURS.items():
                if value == style.with_opacity(colour, float(faint[2])):
                    return style.with_opacity(dark_colour, opacity)
            return f"{faint[1]}{opacity:g})"
    return value
