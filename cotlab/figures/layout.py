"""The frame of figures: the template of their card, and room for heads, titles, legends, labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise, zip_longest
from typing import Any

import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.style import hue
from cotlab.figures.text_width import text_width_px, wrap_to_width

_TOP_PX, _BOTTOM_PX, _RIGHT_PX, _GAP_PX = 24, 56, 24, 8
_LINE_HEIGHT = 1.3  # of the text size
_LEGEND_LINE_PX, _LEGEND_MARK_PX = 20, 40
_SCREEN_WIDTH_PX = 700


def apply_style(
    fig: Any,
    title: str,
    *,
    subtitle: Sequence[str] | str = "",
    x: str = "",
    y: str = "",
    height: int = 380,
) -> Any:
    """Set the template of the current look, and the titles.

    Parameters
    ----------
    fig : plotly.graph_objects.Figure
        Changed in place.
    title : str
        What is drawn, with its unit.
    subtitle : str or sequence of str
        Paragraphs about n, method and thresholds: a page shows them as text, a paper in a caption.
    x, y : str
        Axis titles. All texts may have markup; the caller escapes text from data.
    height : int, pixels
        With one line of tick labels and an axis title, without what stands above and below these.

    Returns
    -------
    plotly.graph_objects.Figure
        ``fig``; ``layout.meta`` has title and subtitle.
    """
    paragraphs = [subtitle] if isinstance(subtitle, str) else list(subtitle)
    fig.update_layout(
        template=card_template(),
        height=height,
        meta={"title": title, "subtitle": [text for text in paragraphs if text]},
    )
    if x:
        fig.update_xaxes(title={"text": x})
    if y:
        fig.update_yaxes(title={"text": y})
    return fig


def card_template() -> Any:
    """Return the template of the current look."""
    text, soft_text, grid, background = map(
        hue,
        (style.TEXT_COLOUR, style.SOFT_TEXT_COLOUR, style.GRID_COLOUR, style.BACKGROUND_COLOUR),
    )
    tick_font = {"size": style.TEXT_SIZE - 1, "color": text}
    axis = {
        "gridcolor": grid,
        "gridwidth": 1,
        "zeroline": False,
        "linecolor": soft_text,
        "linewidth": 1,
        "showline": True,
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": soft_text,
        "automargin": True,
        "tickfont": tick_font,
        "title": {"font": {"size": style.TEXT_SIZE, "color": text}, "standoff": 10},
    }
    layout = {
        "paper_bgcolor": background,
        "plot_bgcolor": background,
        "colorway": [hue(colour) for colour in style.PALETTE],
        "font": {"family": style.FONT_FAMILY, "size": style.TEXT_SIZE, "color": text},
        "title": {
            "x": 0,
            "xref": "container",
            "xanchor": "left",
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "font": {"size": style.TITLE_SIZE, "color": text},
        },
        "margin": {"l": 64, "autoexpand": True},
        "xaxis": {**axis, "showgrid": False},
        "yaxis": axis,
        "legend": {
            "orientation": "h",
            "x": 0,
            "xref": "paper",
            "xanchor": "left",
            "y": 0,
            "yref": "container",
            "yanchor": "bottom",
            "bgcolor": background,
            "font": tick_font,
        },
        "hoverlabel": {
            "bgcolor": background,
            "bordercolor": soft_text,
            "align": "left",
            "namelength": -1,
            "font": {"family": style.FONT_FAMILY, **tick_font},
        },
        "hovermode": "closest",
        "annotationdefaults": {
            "font": {"size": style.SMALL_TEXT_SIZE, "color": soft_text},
            "showarrow": False,
        },
        "shapedefaults": {"line": {"color": soft_text, "width": 1}, "layer": "below"},
    }
    return go.layout.Template(layout=layout)


def lay_out(fig: Any) -> Any:
    """Give a styled figure its width, and the room of what stands around the plot."""
    look, layout = style.current_look(), fig.layout
    layout.margin.r = _right_margin_px(fig)
    width: float | None = None
    if look.widths_px:
        required = required_width_px(fig)
        width = look.widths_px[0 if required <= look.widths_px[0] else -1]
        _wrap_labels(fig, width)
    title_lines = []
    if look.has_title:
        line_width = (width or _SCREEN_WIDTH_PX) - 12
        title = layout.meta["title"]
        title_lines = wrap_to_width(title, line_width, style.TITLE_SIZE, is_bold=True)
    title_height = _LINE_HEIGHT * style.TITLE_SIZE * len(title_lines)
    top_height = _head_height_px(fig) + title_height
    legend_height = _legend_height_px(fig, width or _SCREEN_WIDTH_PX)
    bottom_height = _axis_height_px(fig)
    height = layout.height + top_height + bottom_height - _BOTTOM_PX + legend_height
    if look.max_height_px is not None and not any(axis.ticktext for axis in fig.select_yaxes()):
        height = min(height, look.max_height_px)  # rows with a name each keep their height
    # plotly places a title by its first line: hence the padding of a title of several lines
    extra_padding = 0.85 * style.TITLE_SIZE if len(title_lines) > 1 else 0
    return fig.update_layout(
        width=None if width is None else round(width),
        height=round(height),
        margin={"t": _TOP_PX + top_height, "b": bottom_height + legend_height},
        title={
            "text": "<br>".join(f"<b>{line}</b>" for line in title_lines),
            "pad": {"l": 4, "t": 6 + extra_padding},
        },
    )


def required_width_px(fig: Any) -> float:
    """Return the width in px that a figure needs so that its labels do not overlap."""
    left_margin, plot_width = 64.0, max(240.0, _heads_width_px(fig))
    tick_size = style.TEXT_SIZE - 1
    for axis in fig.select_yaxes():
        widths = [text_width_px(text, tick_size) for text in axis.ticktext or ()]
        left_margin = max([left_margin, *(width + 24 for width in widths)])
    for axis in fig.select_xaxes():
        if axis.ticktext and axis.tickangle != -90:
            length = (axis.range[1] - axis.range[0]) / _domain_share(axis)
            halves = [text_width_px(text, tick_size) / 2 for text in axis.ticktext]
            ticks = sorted(dict(zip(axis.tickvals, halves, strict=True)).items())
            for (value, half), (next_value, next_half) in pairwise(ticks):
                required = (half + _GAP_PX + next_half) * length / (next_value - value)
                plot_width = max(plot_width, required)
    for trace in fig.data:
        if trace.type == "bar" and isinstance(trace.text, tuple) and trace.textangle == 0:
            widest = max(text_width_px(text, style.SMALL_TEXT_SIZE) for text in trace.text)
            plot_width = max(plot_width, (widest + _GAP_PX) * len(set(trace.x)))
    return left_margin + plot_width + float(fig.layout.margin.r or _RIGHT_PX)


def _right_margin_px(fig: Any) -> float:
    """Return the room for the texts that begin at the right end of a panel."""
    widths = [
        text_width_px(note.text, note.font.size or style.SMALL_TEXT_SIZE) + (note.xshift or 0)
        for note in fig.layout.annotations
        if (note.x, note.xanchor) == (1, "left") and str(note.xref).endswith(("paper", "domain"))
    ]
    return max([_RIGHT_PX, *(width + _GAP_PX for width in widths)])


def _axis_height_px(fig: Any) -> float:
    """Return the height of tick labels and title of the lowest horizontal axis."""
    tick_size, heights = style.TEXT_SIZE - 1, [0.0]
    for axis in fig.select_xaxes():
        texts = axis.ticktext or ("0",)
        label_heights = [_LINE_HEIGHT * tick_size * (text.count("<br>") + 1) for text in texts]
        if axis.tickangle == -90:
            label_heights = [text_width_px(text, tick_size) for text in texts]
        n_title_lines = axis.title.text.count("<br>") + 1 if axis.title.text else 0
        height = max(label_heights) + _LINE_HEIGHT * style.TEXT_SIZE * n_title_lines
        heights.append(height + (24 if n_title_lines else 14))
    return max(heights)


def _wrap_labels(fig: Any, width: float) -> None:
    """Break axis titles and legend names that are wider than the figure."""
    for axis in fig.select_xaxes():
        if axis.title.text:
            axis_width = (width - 90) * _domain_share(axis)
            lines = wrap_to_width(axis.title.text, axis_width, style.TEXT_SIZE)
            axis.title.text = "<br>".join(lines)
    for trace in fig.data:
        if trace.name:
            lines = wrap_to_width(trace.name, width - _LEGEND_MARK_PX - 30, style.TEXT_SIZE - 1)
            trace.name = "<br>".join(lines)


def _domain_share(axis: Any) -> float:
    """Return the share of the plot that an axis takes."""
    lo, hi = axis.domain or (0.0, 1.0)
    return float(hi - lo)


def _legend_height_px(fig: Any, width: float) -> float:
    """Return the height of the legend; all its entries are as wide as the widest."""
    names = [trace.name for trace in fig.data if trace.name and trace.showlegend is not False]
    if not names:
        return 0
    widest = max(text_width_px(name, style.TEXT_SIZE - 1) for name in names) + _LEGEND_MARK_PX
    n_lines = math.ceil(len(names) / max(1, int((width - 30) // widest)))
    text_lines = max(str(name).count("<br>") + 1 for name in names)
    return float(_LEGEND_LINE_PX * n_lines * text_lines)


def _heads(fig: Any) -> list[Any]:
    """Return the annotations that stand above the panels of a figure."""
    return [
        note for note in fig.layout.annotations if (note.yref, note.yanchor) == ("paper", "bottom")
    ]


def _head_height_px(fig: Any) -> float:
    """Return the height of what stands above the uppermost panels."""
    heights = [
        (note.text.count("<br>") + 1) * _LINE_HEIGHT * (note.font.size or style.SMALL_TEXT_SIZE)
        + float(note.yshift or 0)
        for note in _heads(fig)
        if note.y > 1 - 1e-6
    ]
    return max(heights, default=0.0)


def _heads_width_px(fig: Any) -> float:
    """Return the width of the plot at which the heads of panels stand side by side."""
    heads = sorted(
        (note for note in _heads(fig) if note.xref == "paper"), key=lambda note: (-note.y, note.x)
    )
    required = 0.0
    for head, following in zip_longest(heads, heads[1:]):
        width = text_width_px(head.text, head.font.size or style.SMALL_TEXT_SIZE) + 10
        if following is not None and following.y == head.y:
            required = max(required, width / (following.x - head.x))
        elif head.xanchor == "left" and head.x < 1:
            required = max(required, width / (1 - head.x))
    return required
