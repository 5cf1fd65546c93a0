"""Figures in shades of grey, for print without colour."""

from __future__ import annotations

import re
from typing import Any

import plotly.graph_objects as go

from cotlab.figures import style

GREY_BY_CATEGORY = dict(
    zip(
        style.PALETTE,
        ("#333333", "#8c8c8c", "#595959", "#b3b3b3", "#000000", "#a6a6a6", "#cccccc", "#e0e0e0"),
        strict=True,
    )
)
"""Colour of a category → grey in its place; symbols tell categories apart too."""
_COLOUR_RE = re.compile(r"#[0-9a-fA-F]{6}|rgba?\([^)]*\)")
"""A colour as figures write it: ``#0072B2``, ``rgb(68, 1, 84)`` or ``rgba(0, 0, 0, 0.4)``."""
_TEXT_COLOUR_RE = re.compile(r"(?<=color: )#[0-9a-fA-F]{6}")
"""A colour of a line of a title: ``color: #1a1a1a``."""
_COLOUR_KEYS = ("color", "colors", "colorscale", "colorway")
"""Endings of the keys whose values are colours."""
_LUMA_WEIGHTS = (0.299, 0.587, 0.114)
"""Weights of red, green and blue in the lightness of a grey (ITU-R BT.601)."""


def grey_figure(figure: Any) -> Any:
    """Return a copy of a figure in shades of grey.

    Categories have greys that differ; magnitudes keep their lightness. The two sides of a scale
    with a sign look alike: the numbers in its cells have the sign.

    Parameters
    ----------
    figure : plotly.graph_objects.Figure
        With the style of all figures; not changed.

    Returns
    -------
    plotly.graph_objects.Figure
    """
    spec = go.Figure(figure).to_plotly_json()
    return go.Figure(data=_grey_node(spec["data"]), layout=_grey_node(spec["layout"]))


def _grey_node(node: Any, key: str = "") -> Any:
    """Return a node of a specification with every colour in it as a grey; data stay."""
    if isinstance(node, go.layout.Template):
        node = node.to_plotly_json()
    if isinstance(node, dict):
        return {name: _grey_node(value, name) for name, value in node.items()}
    if isinstance(node, list | tuple):
        return [_grey_node(value, key) for value in node]
    if not isinstance(node, str):
        return node
    if key == "text":
        return _TEXT_COLOUR_RE.sub(lambda match: _grey(match[0]), node)
    is_colour = key.endswith(_COLOUR_KEYS) and _COLOUR_RE.fullmatch(node)
    return _grey(node) if is_colour else node


def _grey(colour: str) -> str:
    """Return the grey of a colour; an opacity stays."""
    opacity = None
    if colour.startswith("#"):
        if (category_grey := GREY_BY_CATEGORY.get(colour.upper())) is not None:
            return category_grey
        channels = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    else:
        parts = colour[colour.index("(") + 1 : -1].split(",")
        if len(parts) < len(_LUMA_WEIGHTS):
            return colour
        channels = [round(float(part)) for part in parts[:3]]
        opacity = parts[3].strip() if len(parts) > len(_LUMA_WEIGHTS) else None
    luma = round(sum(w * c for w, c in zip(_LUMA_WEIGHTS, channels, strict=True)))
    if opacity is None:
        return f"#{luma:02x}{luma:02x}{luma:02x}"
    return f"rgba({luma}, {luma}, {luma}, {opacity})"
