"""The printed form of a figure: as wide as a venue's column, its words at least 7 pt, every mark a vector.

What a screen figure says in its subtitle goes to the caption: on paper the card holds the title,
the axes and the marks.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import plotly.graph_objects as go
from plotly import __version__

from cotlab.figures import style
from cotlab.figures.rasters import as_vectors

PT_PER_PX = 0.75
"""A printed page counts 96 px for an inch of 72 points."""
SMALLEST_PT = 7.0
"""No text of a printed figure is smaller."""


class Preset(NamedTuple):
    """A venue's figure: widths and text size in points, as they are on paper.

    ``column_pt`` is the width of one column, ``page_pt`` that of the whole page: a figure that
    needs more room than a column gives takes the page. ``text_pt`` is the size of axis titles; the
    title is larger, ticks are smaller, none below 7 pt. ``tall_pt`` is the most that a figure
    without named rows may be high.
    """

    name: str
    column_pt: float
    page_pt: float
    text_pt: float
    tall_pt: float | None = None

    @property
    def column_px(self) -> float:
        return self.column_pt / PT_PER_PX

    @property
    def page_px(self) -> float:
        return self.page_pt / PT_PER_PX


PRESETS = {
    preset.name: preset
    for preset in (
        Preset("neurips", 396.0, 396.0, 8.0),  # one column of 5.5 in
        Preset("icml", 234.0, 486.0, 8.0),  # columns of 3.25 in, a page of 6.75 in
        Preset("nature", 252.0, 519.0, 7.5),  # columns of 89 mm, a page of 183 mm
        Preset("slide", 960.0, 960.0, 20.0, 540.0),  # 13.33 in, a slide of 16 to 9
    )
}
"""By name, as the style files and guides to authors of 2025 have them."""

_SIZES = frozenset(
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
_OF_LINES = frozenset({"width"})
_TAG = re.compile(r"<[^>]*>")
_LETTER = 0.54
"""The width of a letter of the faces we use, in sizes of the letter; measured on words of axis
labels, with a little room."""
_MARKERS_AT, _LARGE = 0.8, 20
"""A marker keeps more of its size than its surroundings where they shrink, unless it is a line or a
circle around text."""


def printed_figure(figure: Any, preset: Preset) -> Any:
    """The printed form of a figure.

    Parameters
    ----------
    figure : plotly.graph_objects.Figure
        As a builder gives it; it is not changed.
    preset : Preset

    Returns
    -------
    plotly.graph_objects.Figure
        Of ``preset``'s width in px (points / 0.75) and a height of its own, without a subtitle and
        without any trace or pattern that a page would hold as an image. ``layout.meta`` keeps title
        and subtitle as they were given.
    """
    spec = as_vectors(go.Figure(figure)).to_dict()
    layout = spec["layout"]
    scale = preset.text_pt / PT_PER_PX / style.TEXT_SIZE
    least = SMALLEST_PT / PT_PER_PX + 0.05
    template = layout.pop("template", None)
    fig = go.Figure(
        {
            "data": [_shrunk(trace, scale, least) for trace in spec["data"]],
            "layout": _shrunk({"template": template, **layout}, scale, least),
        }
    )
    width = preset.column_px if needed_width(figure) * scale <= preset.column_px else preset.page_px
    meta = layout.get("meta") or {}
    head = style.wrapped(
        str(meta.get("title", "")),
        max(20, int((width - 20 * scale) / (_LETTER * 1.08 * title_px(scale)))),
    )
    line = 1.25 * title_px(scale)
    top = (line * len(head) + 14 * scale) if head else 14 * scale
    plot_height = float(meta.get("height") or layout.get("height") or 420) - 64 - 56
    legends = _legend_lines(figure, width, max(least, (style.TEXT_SIZE - 1) * scale))
    bottom = 56 * scale + (
        legends * 1.6 * max(least, (style.TEXT_SIZE - 1) * scale) if legends else 0
    )
    text, height = (
        "<br>".join(f"<b>{part}</b>" for part in head),
        top + plot_height * scale + bottom,
    )
    if preset.tall_pt is not None and not any(axis.ticktext for axis in fig.select_yaxes()):
        height = min(height, preset.tall_pt / PT_PER_PX)  # rows with a name each keep their height
    fig.update_layout(
        width=round(width),
        height=round(height),
        margin={"t": top, "b": bottom},
        title={
            "text": text,
            "font": {"size": title_px(scale), "color": style.INK},
            "pad": {
                "l": 4 * scale,
                "t": 5 * scale + (0.85 * title_px(scale) if len(head) > 1 else 0),
            },
        },
    )
    _fold(fig, width, least)
    # a title of several lines stands higher than one of one, by its own first line: hence its
    # padding
    return fig


def _fold(fig: Any, width: float, least: float) -> None:
    """Break the titles of axes and the names in the legend where they are longer than there is room."""
    room = width - 90
    for axis in fig.select_xaxes():
        if axis.title.text:
            size = float(
                axis.title.font.size or fig.layout.template.layout.xaxis.title.font.size or least
            )
            part = room * _share(axis.to_plotly_json())
            axis.title.text = "<br>".join(
                style.wrapped(axis.title.text, max(12, int(part / (_LETTER * size))))
            )
    chars = max(16, int((width - 70) / (_LETTER * least)))
    for trace in fig.data:
        if trace.name and len(trace.name) > chars:
            trace.name = "<br>".join(style.wrapped(trace.name, chars))


def title_px(scale: float) -> float:
    """The size of a printed title in px."""
    return max(SMALLEST_PT / PT_PER_PX + 0.05, (style.TEXT_SIZE + 0.5) * scale)


def needed_width(figure: Any) -> float:
    """How many screen px a figure needs across so that its labels stand beside each other: margins, labels, columns."""
    layout = figure.to_dict()["layout"]
    margin = float((layout.get("margin") or {}).get("r") or 24)
    left, across = 64.0, 160.0
    for name, axis in layout.items():
        if not name.startswith(("xaxis", "yaxis")):
            continue
        texts = [str(text) for text in axis.get("ticktext") or ()]
        size = (
            float((axis.get("tickfont") or {}).get("size") or style.TEXT_SIZE - 1) if texts else 0.0
        )
        widest = max((_wide(text, size) for text in texts), default=0.0)
        if name.startswith("yaxis"):
            left = max(left, widest + 24)
        elif axis.get("tickangle") != -90:
            across = max(across, (widest + 8) * len(texts) / _share(axis))
    for trace in figure.data:
        if (
            trace.type == "bar"
            and trace.text is not None
            and not isinstance(trace.text, str)
            and trace.textangle == 0
        ):
            columns = len(set(trace.x)) if trace.x is not None and trace.orientation != "h" else 1
            across = max(
                across,
                columns
                * (max((_wide(str(t), style.SMALL_SIZE) for t in trace.text), default=0.0) + 8),
            )
    return left + across + margin


def _share(axis: Mapping[str, Any]) -> float:
    lo, hi = axis.get("domain") or (0.0, 1.0)
    return float(hi - lo) or 1.0


def _wide(text: str, size: float) -> float:
    lines = text.split("<br>")
    return max(len(html.unescape(_TAG.sub("", line))) for line in lines) * _LETTER * size


def _legend_lines(figure: Any, width: float, size: float) -> int:
    """How many lines a legend below the plot takes; 0 without one. All entries are as wide as the widest."""
    named_traces = [t for t in figure.data if t.showlegend or (t.showlegend is None and t.name)]
    if (
        not named_traces
        or figure.layout.showlegend is False
        or not (len(named_traces) > 1 or any(t.showlegend for t in named_traces))
    ):
        return 0
    widest = max(_wide(str(t.name or ""), size) for t in named_traces) + 40
    return math.ceil(len(named_traces) / max(1, int((width - 30) // widest)))


def _shrunk(node: Any, scale: float, least: float, within: str = "") -> Any:
    """Everything that is measured in px by ``scale``; text at least ``least`` px, as font sizes and as inline styles."""
    if isinstance(node, go.layout.Template):
        node = node.to_plotly_json()
    if not isinstance(node, Mapping):
        return node
    return {key: _part(key, value, scale, least, within) for key, value in node.items()}


def _part(key: str, value: Any, scale: float, least: float, within: str) -> Any:
    if key == "meta":
        return value
    if key in ("annotations", "shapes", "images") and isinstance(value, list | tuple):
        return [_shrunk(element, scale, least, key) for element in value]
    if key == "size" and within.endswith("font"):
        return _text(value, scale, least)
    if key == "size" and within == "marker":
        return _each(
            value,
            lambda v: v * (scale if v > _LARGE else max(scale, min(1.0, scale / _MARKERS_AT))),
        )
    measured = key in _SIZES or (
        key in _OF_LINES and (within.endswith("line") or within.startswith("error_"))
    )
    if measured and not isinstance(value, Mapping):
        return _each(value, lambda v: v * scale)
    return _shrunk(value, scale, least, key)


def _text(value: Any, scale: float, least: float) -> Any:
    return _each(value, lambda v: max(least, v * scale))


def _each(value: Any, change: Any) -> Any:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return round(float(change(value)), 3)
    return [_each(element, change) for element in value]


def font_sizes(figure: Any) -> list[float]:
    """Every size of text that a figure names, in px."""
    return list(_sizes(figure.to_dict(), ""))


def _sizes(node: Any, within: str) -> Iterator[float]:
    if isinstance(node, go.layout.Template):
        node = node.to_plotly_json()
    if isinstance(node, Mapping):
        for key, value in node.items():
            if key == "size" and within.endswith("font"):
                yield from (
                    float(v) for v in (value if isinstance(value, list | tuple) else [value])
                )
            else:
                yield from _sizes(value, key)
    elif isinstance(node, list | tuple):
        for element in node:
            yield from _sizes(element, within)


_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline';
 img-src data: blob:; font-src data:">
<style>body {{ margin: 24px; background: #fff; color: #1a1a1a; font: 13px/1.45 {font} }}
p {{ max-width: 640px; white-space: pre-wrap }}</style></head><body>
"""


def plotly_version() -> str:
    """Of the Python package."""
    return str(__version__)


def web_page(figure: Any, title: str, caption: str, font: str) -> str:
    """A page with the figure, interactive, and its caption; plotly.js is inside, and nothing is loaded from elsewhere.

    ``title`` and ``caption`` are plain text and escaped here.
    """
    body: str = figure.to_html(
        full_html=False,
        include_plotlyjs=True,
        include_mathjax=False,
        config={"displaylogo": False, "responsive": True},
    )
    head = _HEAD.format(title=html.escape(title), font=html.escape(font))
    return f"{head}{body}\n<p>{html.escape(caption)}</p>\n</body></html>\n"
