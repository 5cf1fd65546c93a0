"""Style of all figures: colours, symbols, text sizes, numbers as text, the white card."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any, NamedTuple

import plotly.graph_objects as go

from cotlab.core.text_safety import escape_plotly

# Okabe and Ito (2008), "Color Universal Design": distinguishable under every common
# colour-vision deficiency.
BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
BLACK, ORANGE, SKY, YELLOW = "#000000", "#E69F00", "#56B4E9", "#F0E442"
PALETTE = (BLUE, VERMILLION, GREEN, PURPLE, BLACK, ORANGE, SKY, YELLOW)
"""Colours of categories in order, the darkest first."""
ACCENT = BLUE
ACCENT_ON_DARK = SKY
"""Accent of text on a dark page, where blue has a contrast of only 3.5."""

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
"""Colours of magnitudes from low to high, at equal steps (Smith and van der Walt 2015)."""

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
"""Symbols of categories in order; each has an ``-open`` form."""

INK, SOFT_INK, GRID, PAPER, NOT_AVAILABLE = "#1a1a1a", "#4d4d4d", "#e3e3e3", "#ffffff", "#ececec"
FONT = "Arial, Helvetica, Liberation Sans, sans-serif"
"""Fonts with digits of equal width, so that numbers align."""
TITLE_SIZE, TEXT_SIZE, SMALL_SIZE = 15, 13, 11
"""Pixels; a printed page has 0.75 pt per pixel, so the smallest is 8.25 pt."""

_TITLE_CHARS, _SUBTITLE_CHARS = 56, 76
_LINE = 16  # px from line to line of the title and the subtitle
escape = escape_plotly
"""Escape text from data; see `cotlab.core.text_safety.escape_plotly`."""


class Code(NamedTuple):
    """Colour and marker symbol of a category."""

    colour: str
    """Colour, ``#rrggbb``."""
    symbol: str
    """Marker symbol of plotly."""


def category_codes(names: Iterable[str], known: Sequence[str] = ()) -> dict[str, Code]:
    """Assign a colour and a symbol to each name.

    Parameters
    ----------
    names : iterable of str
        The categories of one figure; codes repeat after 72.
    known : sequence of str
        Names with the same code in every figure; other names take the codes that are left.

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
    """Return the viridis colour of a magnitude.

    Parameters
    ----------
    value : float or None
        Clamped to [lo, hi]; None or NaN gives the grey of missing values.
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
    """Return black or white, whichever contrasts more with a background (at least 4.58)."""
    return max(("#000000", "#ffffff"), key=lambda ink: contrast(ink, background))


def contrast(first: str, second: str) -> float:
    """Return the contrast of two colours ``#rrggbb``, from 1 (equal) to 21 (black on white).

    References
    ----------
    WCAG 2.2, "contrast ratio" and "relative luminance"; text needs 4.5.
    """
    light, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def faded(colour: str, opacity: float) -> str:
    """Return a colour with an opacity, as rgba()."""
    return "rgba({}, {}, {}, {})".format(*_rgb(colour), opacity)


def truncate_text(text: object, most: int = 60) -> str:
    """Return the beginning of a text, on one line, in at most ``most`` characters; not escaped."""
    line = " ".join(str(text).split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def in_lines(text: object, width: int, most: int = 2) -> str:
    """Break a text into at most ``most`` lines of ``width`` characters and escape it."""
    lines = textwrap.wrap(str(text), width, max_lines=most, placeholder="…", break_on_hyphens=False)
    return "<br>".join(escape(line) for line in lines)


def format_number(value: float | None) -> str:
    """Format a number with three significant digits: 0.361, 12.3, 12,346, 1.20e−7, or "n/a"."""
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
    """Format a point with its bounds: "0.361 [0.340, 0.382]", or "n/a"."""
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
    """Set template, title, subtitle and axis titles, and the margins that they need.

    Parameters
    ----------
    fig : plotly.graph_objects.Figure
        Changed in place.
    title : str
        What is drawn, with its unit.
    subtitle : str or sequence of str
        Paragraphs about n, method and thresholds; broken into lines for a width of 540 px.
    x, y : str
        Axis titles. All texts may have markup; the caller escapes text from data.
    height : int, pixels
        With one line of title and one of subtitle; further lines are added.

    Returns
    -------
    plotly.graph_objects.Figure
        ``fig``; ``layout.meta`` has title, subtitle and height as given.
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
    """Add a paragraph of plain text to the subtitle of a styled figure."""
    meta = fig.layout.meta
    return apply_style(
        fig, meta["title"], subtitle=[*meta["subtitle"], escape(note)], height=meta["height"]
    )


def card() -> Any:
    """Return the template: a white card with dark text and a grey grid, in every theme."""
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
    """Break a text into lines of at most ``width`` characters; longer words stay whole."""
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _rgb(colour: str) -> tuple[int, int, int]:
    """Return the channels of ``#rrggbb``."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _luminance(colour: str) -> float:
    """Return the relative luminance of ``#rrggbb`` (WCAG 2.2)."""
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (part / 255 for part in _rgb(colour))
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
