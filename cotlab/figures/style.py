"""One look for every figure, on screen and in print: colours, symbols, text sizes, numbers as text, a white card."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any, NamedTuple

import plotly.graph_objects as go

from cotlab.core.text_safety import escape_plotly

# Okabe and Ito (2008), "Color Universal Design": told apart under every common colour-vision
# deficiency.
BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
BLACK, ORANGE, SKY, YELLOW = "#000000", "#E69F00", "#56B4E9", "#F0E442"
PALETTE = (BLUE, VERMILLION, GREEN, PURPLE, BLACK, ORANGE, SKY, YELLOW)
"""Categories in this order: the darkest on white come first."""
ACCENT = BLUE
ACCENT_ON_DARK = SKY
"""The accent of text on a dark page, where blue has a contrast of 3.5 only."""

VIRIDIS = (
    "#440154",
    "#482878",
    "#3e4989",
    "#31688e",
    "#26828e",
    "#1f9e89",
    "#35b779",
    "#6ece58",
    "#b5de2b",
    "#fde725",
)
"""Magnitude, from low to high: ten stops at equal steps (Smith and van der Walt 2015, matplotlib's
viridis)."""

SYMBOLS = (
    "circle",
    "square",
    "diamond",
    "triangle-up",
    "cross",
    "triangle-down",
    "pentagon",
    "star",
    "hexagon",
)
"""The second code beside colour; each has an ``-open`` form."""

INK, SOFT_INK, GRID, PAPER, NOT_AVAILABLE = "#1a1a1a", "#4d4d4d", "#e3e3e3", "#ffffff", "#ececec"
FONT = "Arial, Helvetica, Liberation Sans, sans-serif"
"""Faces whose digits are all equally wide, so that numbers stand in columns."""
TITLE_SIZE, TEXT_SIZE, SMALL_SIZE = 15, 13, 11
"""Pixels. A page counts 0.75 pt for one, so the smallest is 8.25 pt in print."""

_TITLE_CHARS, _SUBTITLE_CHARS = 56, 76
_LINE = 16  # px from line to line of the title and the subtitle
escape = escape_plotly
"""Escape text from data; see `cotlab.core.text_safety.escape_plotly`."""


class Code(NamedTuple):
    """How a category is told apart: a colour and a marker symbol."""

    colour: str
    symbol: str


def category_codes(names: Iterable[str], known: Sequence[str] = ()) -> dict[str, Code]:
    """A colour and a symbol for each name.

    Parameters
    ----------
    names : iterable of str
        The categories of one figure, in any order and number; more than 72 repeat.
    known : sequence of str
        Names whose code is the same in every figure, whatever else is drawn beside them; other
        names take what is left.

    Returns
    -------
    dict of str to Code
        In the order of ``known``, then in that of ``names``.
    """
    given = list(dict.fromkeys(names))
    places = {name: i for i, name in enumerate(known) if name in given}
    left = (i for i in count() if i not in set(places.values()))
    places |= dict(zip((name for name in given if name not in places), left, strict=False))
    return {
        name: Code(PALETTE[i % len(PALETTE)], SYMBOLS[i % len(SYMBOLS)])
        for name, i in places.items()
    }


def shade(value: float | None, lo: float = 0.0, hi: float = 1.0) -> str:
    """The viridis colour of a magnitude.

    Parameters
    ----------
    value : float or None
        Clamped to [lo, hi]; None or NaN gives the grey of what is not available.
    lo, hi : float, lo < hi

    Returns
    -------
    str
        ``#rrggbb``.
    """
    if not lo < hi:
        raise ValueError(f"a shade needs lo < hi, got {lo} and {hi}")
    if value is None or math.isnan(value):
        return NOT_AVAILABLE
    position = (min(max(value, lo), hi) - lo) / (hi - lo) * (len(VIRIDIS) - 1)
    left = min(int(position), len(VIRIDIS) - 2)
    part = position - left
    mixed = (
        round(a + (b - a) * part)
        for a, b in zip(_rgb(VIRIDIS[left]), _rgb(VIRIDIS[left + 1]), strict=True)
    )
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def ink_on(background: str) -> str:
    """Black or white, whichever is easier to read on ``background``: its contrast is at least 4.58."""
    return max(("#000000", "#ffffff"), key=lambda ink: contrast(ink, background))


def contrast(first: str, second: str) -> float:
    """Contrast of two colours ``#rrggbb``, from 1 (the same) to 21 (black on white).

    References
    ----------
    WCAG 2.2, "contrast ratio" and "relative luminance"; text needs 4.5.
    """
    light, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def faded(colour: str, opacity: float) -> str:
    """``colour`` as an rgba() of that opacity."""
    return "rgba({}, {}, {}, {})".format(*_rgb(colour), opacity)


def truncate_text(text: object, most: int = 60) -> str:
    """The beginning of a text, on one line, of at most ``most`` characters; not escaped."""
    line = " ".join(str(text).split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def in_lines(text: object, width: int, most: int = 2) -> str:
    """Text from data broken into at most ``most`` lines of ``width`` characters, escaped."""
    lines = textwrap.wrap(str(text), width, max_lines=most, placeholder="…", break_on_hyphens=False)
    return "<br>".join(escape(line) for line in lines)


def format_number(value: float | None) -> str:
    """Three significant digits, as 0.361, 1.00, 12.3, 12,346 or 1.20e−7; "n/a" where there is no number."""
    if value is None or not math.isfinite(value):
        return "n/a"
    if value == 0:
        return "0"
    power = int(f"{value:.2e}".split("e")[1])
    text = f"{value:.2e}" if power < -5 or power > 11 else f"{value:,.{max(0, 2 - power)}f}"
    if "e" in text:
        digits, _, exponent = text.partition("e")
        text = f"{digits}e{int(exponent)}"
    return text.replace("-", "−")


def interval_text(point: float | None, lo: float | None, hi: float | None) -> str:
    """A point with its bounds, as "0.361 [0.340, 0.382]"; "n/a" without a point."""
    if format_number(point) == "n/a":
        return "n/a"
    known = format_number(lo) != "n/a" and format_number(hi) != "n/a"
    return (
        f"{format_number(point)} [{format_number(lo)}, {format_number(hi)}]"
        if known
        else f"{format_number(point)} [no interval]"
    )


def apply_style(
    fig: Any,
    title: str,
    *,
    subtitle: Sequence[str] | str = "",
    x: str = "",
    y: str = "",
    height: int = 420,
) -> Any:
    """Set the card, the title, and a subtitle for n, method and threshold, with the room that they need.

    Parameters
    ----------
    fig : plotly.graph_objects.Figure
        Changed in place.
    title : str
        What is drawn, with its unit.
    subtitle : str or sequence of str
        Each a paragraph of its own; broken into lines that fit a figure 540 px wide.
    x, y : str
        Axis titles. All texts may hold markup of the builder; text from data is escaped by it.
    height : int, pixels
        With one line of title and one of subtitle; each further line adds its own.

    Returns
    -------
    plotly.graph_objects.Figure
        ``fig``; ``layout.meta`` keeps title, subtitle and height as they were given.
    """
    paragraphs = [subtitle] if isinstance(subtitle, str) else list(subtitle)
    head = wrapped(title, _TITLE_CHARS)
    small = [line for paragraph in paragraphs for line in wrapped(paragraph, _SUBTITLE_CHARS)]
    lines = [
        f'<span style="font-size: {TITLE_SIZE}px; color: {INK}"><b>{line}</b></span>'
        for line in head
    ] + small
    extra = _LINE * max(0, len(lines) - 2)
    fig.update_layout(
        template=card(),
        height=height + extra,
        title={"text": "<br>".join(lines)},
        margin={"t": 64 + extra},
        meta={"title": title, "subtitle": paragraphs, "height": height},
    )
    if x:
        fig.update_xaxes(title={"text": x})
    if y:
        fig.update_yaxes(title={"text": y})
    return fig


def add_note(fig: Any, note: str) -> Any:
    """Add a paragraph of plain text to the subtitle of a styled figure, as "partial: 37 of 60, 4 errors"."""
    meta = fig.layout.meta
    return apply_style(
        fig, meta["title"], subtitle=[*meta["subtitle"], escape(note)], height=meta["height"]
    )


def card() -> Any:
    """The template: a white card with dark text and a thin grey grid, whatever the theme around it."""
    axis = {
        "gridcolor": GRID,
        "gridwidth": 1,
        "zeroline": False,
        "linecolor": SOFT_INK,
        "linewidth": 1,
        "showline": True,
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": SOFT_INK,
        "automargin": True,
        "tickfont": {"size": TEXT_SIZE - 1, "color": INK},
        "title": {"font": {"size": TEXT_SIZE, "color": INK}, "standoff": 10},
    }
    layout = {
        "paper_bgcolor": PAPER,
        "plot_bgcolor": PAPER,
        "colorway": PALETTE,
        "font": {"family": FONT, "size": TEXT_SIZE, "color": INK},
        "colorscale": {
            "sequential": [[i / (len(VIRIDIS) - 1), stop] for i, stop in enumerate(VIRIDIS)]
        },
        "title": {
            "x": 0,
            "xref": "container",
            "xanchor": "left",
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "pad": {"l": 14, "t": 17},
            "font": {"size": SMALL_SIZE + 1, "color": SOFT_INK},
        },
        "margin": {"l": 64, "r": 24, "b": 56, "autoexpand": True},
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
            "bgcolor": PAPER,
            "font": {"size": TEXT_SIZE - 1, "color": INK},
        },
        "hoverlabel": {
            "bgcolor": PAPER,
            "bordercolor": SOFT_INK,
            "align": "left",
            "namelength": -1,
            "font": {"family": FONT, "size": TEXT_SIZE - 1, "color": INK},
        },
        "hovermode": "closest",
        "annotationdefaults": {"font": {"size": SMALL_SIZE, "color": SOFT_INK}, "showarrow": False},
    }
    return go.layout.Template(layout=layout)


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most ``width`` characters; a word that is longer stays whole."""
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _luminance(colour: str) -> float:
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (part / 255 for part in _rgb(colour))
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
