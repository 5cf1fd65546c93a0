"""Figures outside the dashboard: the printed form of a venue, and a web page without network.

A printed figure is as wide as the venue's column, has text of at least 7 pt and only vectors. Its
subtitle is left to the caption.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping
from typing import Any

import plotly.graph_objects as go
from plotly import __version__

from cotlab.figures import style
from cotlab.figures.grey import grey_figure
from cotlab.figures.panel_heads import (
    LETTER_WIDTH,
    head_height_px,
    heads_width_px,
    text_width_px,
)
from cotlab.figures.presets import PT_PER_PX, FigurePreset
from cotlab.figures.rasters import hatch_as_lines
from cotlab.figures.text_width import wrap_to_width

MIN_TEXT_PT = 7.0
"""Smallest text size of a printed figure."""

_PIXEL_KEYS = frozenset(
    {
        "standoff",
        "ticklen",
        "tickwidth",
        "gridwidth",
        "linewidth",
        "zerolinewidth",
        "thickness",
        "xshift",
        "yshift",
        "pad",
        "arrowsize",
        "arrowwidth",
        "ax",
        "ay",
        "borderwidth",
        "borderpad",
        "tracegroupgap",
        "itemwidth",
        "l",
        "r",
    }
)
"""Keys of a layout whose numbers are pixels."""
_LINE_WIDTH_KEYS = frozenset({"width"})
_MARKER_SCALE, _LARGE_MARKER_PX = 0.8, 20
"""Markers shrink less than the figure, unless they are lines or circles around text."""


def printed_figure(figure: Any, preset: FigurePreset) -> Any:
    """Return the printed form of a figure.

    Parameters
    ----------
    figure : plotly.graph_objects.Figure
        As a builder returns it; not changed.
    preset : Preset

    Returns
    -------
    plotly.graph_objects.Figure
        With the preset's width in px, without a subtitle and without raster images.
        ``layout.meta`` has title and subtitle as given.
    """
    spec = hatch_as_lines(go.Figure(figure)).to_dict()
    layout = spec["layout"]
    scale = preset.text_size_pt / PT_PER_PX / style.TEXT_SIZE
    min_text_px = MIN_TEXT_PT / PT_PER_PX + 0.05
    template = layout.pop("template", None)
    fig = go.Figure(
        {
            "data": [_scale_node(trace, scale, min_text_px) for trace in spec["data"]],
            "layout": _scale_node({"template": template, **layout}, scale, min_text_px),
        }
    )
    width = (
        preset.column_width_px
        if required_width_px(figure) * scale <= preset.column_width_px
        else preset.page_width_px
    )
    figure_meta = layout.get("meta") or {}
    title = str(figure_meta.get("title", "")) if preset.has_title else ""
    title_lines = wrap_to_width(title, width - 12 * scale, title_size_px(scale), is_bold=True)
    line_height = 1.25 * title_size_px(scale)
    top_margin = (line_height * len(title_lines) + 14 * scale) if title_lines else 14 * scale
    top_margin += head_height_px(fig)
    plot_height = float(figure_meta.get("height") or layout.get("height") or 420) - 64 - 56
    n_legend_lines = _count_legend_lines(
        figure, width, max(min_text_px, (style.TEXT_SIZE - 1) * scale)
    )
    bottom_margin = 56 * scale + (
        n_legend_lines * 1.6 * max(min_text_px, (style.TEXT_SIZE - 1) * scale)
        if n_legend_lines
        else 0
    )
    title_text = "<br>".join(f"<b>{title_line}</b>" for title_line in title_lines)
    height = top_margin + plot_height * scale + bottom_margin
    if preset.max_height_pt is not None and not any(axis.ticktext for axis in fig.select_yaxes()):
        height = min(
            height, preset.max_height_pt / PT_PER_PX
        )  # rows with a name each keep their height
    fig.update_layout(
        width=round(width),
        height=round(height),
        margin={"t": top_margin, "b": bottom_margin},
        title={
            "text": title_text,
            "font": {"size": title_size_px(scale), "color": style.TEXT_COLOUR},
            "pad": {
                "l": 4 * scale,
                "t": 5 * scale + (0.85 * title_size_px(scale) if len(title_lines) > 1 else 0),
            },
        },
    )
    _wrap_labels(fig, width, min_text_px)
    # plotly places a title by its first line: hence the padding of a title of several lines
    return grey_figure(fig) if preset.is_grey else fig


def without_title(figure: Any) -> Any:
    """Return a copy of a figure without title, subtitle and their room: a page shows them as text.

    ``layout.meta`` keeps both.
    """
    fig = go.Figure(figure)
    top_margin = 24 + head_height_px(fig)
    height = float(fig.layout.height) - float(fig.layout.margin.t) + top_margin
    return fig.update_layout(title={"text": ""}, margin={"t": top_margin}, height=round(height))


def _wrap_labels(fig: Any, figure_width: float, min_text_px: float) -> None:
    """Break axis titles and legend names that are too long."""
    plot_width = figure_width - 90
    for axis in fig.select_xaxes():
        if axis.title.text:
            font_size = float(
                axis.title.font.size
                or fig.layout.template.layout.xaxis.title.font.size
                or min_text_px
            )
            axis_width = plot_width * _domain_share(axis.to_plotly_json())
            axis.title.text = "<br>".join(
                style.wrap_title(
                    axis.title.text, max(12, int(axis_width / (LETTER_WIDTH * font_size)))
                )
            )
    max_chars = max(16, int((figure_width - 70) / (LETTER_WIDTH * min_text_px)))
    for trace in fig.data:
        if trace.name and len(trace.name) > max_chars:
            trace.name = "<br>".join(style.wrap_title(trace.name, max_chars))


def title_size_px(scale: float) -> float:
    """Return the size of a printed title in px."""
    return max(MIN_TEXT_PT / PT_PER_PX + 0.05, (style.TEXT_SIZE + 0.5) * scale)


def required_width_pt(figure: Any, preset: FigurePreset) -> float:
    """Return the printed width in pt that a figure needs so that its labels do not overlap."""
    return required_width_px(figure) * preset.text_size_pt / style.TEXT_SIZE


def required_width_px(figure: Any) -> float:
    """Return the screen width in px that a figure needs so that its labels do not overlap."""
    layout = figure.to_dict()["layout"]
    right_margin = float((layout.get("margin") or {}).get("r") or 24)
    left_margin, plot_width = 64.0, max(160.0, heads_width_px(figure))
    for name, axis in layout.items():
        if not name.startswith(("xaxis", "yaxis")):
            continue
        texts = [str(text) for text in axis.get("ticktext") or ()]
        font_size = (
            float((axis.get("tickfont") or {}).get("size") or style.TEXT_SIZE - 1) if texts else 0.0
        )
        max_label_width = max((text_width_px(text, font_size) for text in texts), default=0.0)
        if name.startswith("yaxis"):
            left_margin = max(left_margin, max_label_width + 24)
        elif axis.get("tickangle") != -90:
            plot_width = max(plot_width, (max_label_width + 8) * len(texts) / _domain_share(axis))
    for trace in figure.data:
        if (
            trace.type == "bar"
            and trace.text is not None
            and not isinstance(trace.text, str)
            and trace.textangle == 0
        ):
            n_columns = len(set(trace.x)) if trace.x is not None and trace.orientation != "h" else 1
            plot_width = max(
                plot_width,
                n_columns
                * (
                    max(
                        (
                            text_width_px(str(bar_text), style.SMALL_TEXT_SIZE)
                            for bar_text in trace.text
                        ),
                        default=0.0,
                    )
                    + 8
                ),
            )
    return left_margin + plot_width + right_margin


def _domain_share(axis: Mapping[str, Any]) -> float:
    """Return the share of the plot that an axis takes."""
    lo, hi = axis.get("domain") or (0.0, 1.0)
    return float(hi - lo) or 1.0


def _count_legend_lines(figure: Any, width: float, font_size: float) -> int:
    """Return the number of lines of the legend; all entries are as wide as the widest."""
    named_traces = [
        trace
        for trace in figure.data
        if trace.showlegend or (trace.showlegend is None and trace.name)
    ]
    if (
        not named_traces
        or figure.layout.showlegend is False
        or not (len(named_traces) > 1 or any(trace.showlegend for trace in named_traces))
    ):
        return 0
    max_entry_width = (
        max(text_width_px(str(trace.name or ""), font_size) for trace in named_traces) + 40
    )
    return math.ceil(len(named_traces) / max(1, int((width - 30) // max_entry_width)))


def _scale_node(node: Any, scale: float, min_text_px: float, parent_key: str = "") -> Any:
    """Scale all sizes in px of a figure's specification; text stays at least ``min_text_px`` px."""
    if isinstance(node, go.layout.Template):
        node = node.to_plotly_json()
    if not isinstance(node, Mapping):
        return node
    return {
        key: _scale_entry(key, value, scale, min_text_px, parent_key) for key, value in node.items()
    }


def _scale_entry(key: str, value: Any, scale: float, min_text_px: float, parent_key: str) -> Any:
    """Scale one entry of a specification."""
    if key == "meta":
        return value
    if key in ("annotations", "shapes", "images") and isinstance(value, list | tuple):
        return [_scale_node(child, scale, min_text_px, key) for child in value]
    if key == "size" and parent_key.endswith("font"):
        return _scale_text_sizes(value, scale, min_text_px)
    if key == "size" and parent_key == "marker":
        return _map_numbers(
            value,
            lambda v: (
                v * (scale if v > _LARGE_MARKER_PX else max(scale, min(1.0, scale / _MARKER_SCALE)))
            ),
        )
    is_pixel_size = key in _PIXEL_KEYS or (
        key in _LINE_WIDTH_KEYS and (parent_key.endswith("line") or parent_key.startswith("error_"))
    )
    if is_pixel_size and not isinstance(value, Mapping):
        return _map_numbers(value, lambda v: v * scale)
    return _scale_node(value, scale, min_text_px, key)


def _scale_text_sizes(value: Any, scale: float, min_text_px: float) -> Any:
    """Scale text sizes."""
    return _map_numbers(value, lambda v: max(min_text_px, v * scale))


def _map_numbers(value: Any, transform: Any) -> Any:
    """Apply a function to a number or to each number of a list."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return round(float(transform(value)), 3)
    return [_map_numbers(element, transform) for element in value]


def font_sizes(figure: Any) -> list[float]:
    """Return all text sizes of a figure, in px."""
    return list(_iter_font_sizes(figure.to_dict(), ""))


def _iter_font_sizes(node: Any, parent_key: str) -> Iterator[float]:
    """Yield the text sizes of a part of a specification."""
    if isinstance(node, go.layout.Template):
        node = node.to_plotly_json()
    if isinstance(node, Mapping):
        for key, value in node.items():
            if key == "size" and parent_key.endswith("font"):
                yield from (
                    float(size) for size in (value if isinstance(value, list | tuple) else [value])
                )
            else:
                yield from _iter_font_sizes(value, key)
    elif isinstance(node, list | tuple):
        for element in node:
            yield from _iter_font_sizes(element, parent_key)


_PAGE_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline';
 img-src data: blob:; font-src data:">
<style>body {{ margin: 24px; background: #fff; color: #1a1a1a; font: 13px/1.45 {font} }}
p {{ max-width: 640px; white-space: pre-wrap }}</style></head><body>
"""


def plotly_version() -> str:
    """Return the version of plotly's Python package."""
    return str(__version__)


def web_page(figure: Any, title: str, caption: str, font_family: str) -> str:
    """Return a web page with the interactive figure and its caption; it loads nothing.

    Title and caption are plain text and escaped here.
    """
    body_html: str = figure.to_html(
        full_html=False,
        include_plotlyjs=True,
        include_mathjax=False,
        config={"displaylogo": False, "responsive": True},
    )
    page_head = _PAGE_HEAD.format(title=html.escape(title), font=html.escape(font_family))
    return f"{page_head}{body_html}\n<p>{html.escape(caption)}</p>\n</body></html>\n"
