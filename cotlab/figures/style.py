"""Style of all figures: colours, symbols, text sizes, numbers as text, the white card."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

import plotly.graph_objects as go
from plotly.colors import sequential

from cotlab.core.text_safety import escape_plotly
from cotlab.figures.text_width import wrap_to_width

# Okabe and Ito (2008), "Color Universal Design": distinguishable under every common
# colour-vision deficiency.
BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
BLACK, ORANGE, SKY, YELLOW = "#000000", "#E69F00", "#56B4E9", "#F0E442"
PALETTE = (BLUE, VERMILLION, GREEN, PURPLE, BLACK, ORANGE, SKY, YELLOW)
"""Colours of categories in order, the darkest first."""
ACCENT_COLOUR = BLUE
ACCENT_COLOUR_ON_DARK = SKY
"""Accent of text on a dark page, where blue has a contrast of only 3.5."""

VIRIDIS = tuple(sequential.Viridis)
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

NEUTRAL_COLOUR = "#f7f7f7"
"""Colour of 0 on a scale with a sign."""
TEXT_COLOUR, SOFT_TEXT_COLOUR, GRID_COLOUR, BACKGROUND_COLOUR, MISSING_COLOUR = (
    "#1a1a1a",
    "#4d4d4d",
    "#e3e3e3",
    "#ffffff",
    "#ececec",
)
FONT_FAMILY = "Arial, Helvetica, Liberation Sans, sans-serif"
"""Fonts with digits of equal width, so that numbers align."""
TITLE_SIZE, TEXT_SIZE, SMALL_TEXT_SIZE = 15, 13, 11
"""Pixels; a printed page has 0.75 pt per pixel, so the smallest is 8.25 pt."""

_TITLE_WIDTH_PX = 672  # px: the width of a figure that plotly gives none, less its edges
_LINE_HEIGHT_PX = 16  # px from line to line of the title and the subtitle
escape = escape_plotly
"""Escape text from data; see `cotlab.core.text_safety.escape_plotly`."""


class CategoryStyle(NamedTuple):
    """Colour and marker symbol of a category."""

    colour: str
    """Colour, ``#rrggbb``."""
    symbol: str
    """Marker symbol of plotly."""


def category_styles(
    names: Iterable[str], fixed_names: Sequence[str] = ()
) -> dict[str, CategoryStyle]:
    """Assign a colour and a symbol to each name.

    Parameters
    ----------
    names : iterable of str
        The categories of one figure; codes repeat after 72.
    fixed_names : sequence of str
        Names with the same code in every figure; other names take the codes that are left.

    Returns
    -------
    dict of str to Code
        In the order of ``fixed_names``, then in that of ``names``.
    """
    unique_names = list(dict.fromkeys(names))
    index_by_name = {name: i for i, name in enumerate(fixed_names) if name in unique_names}
    free_indices = (i for i in count() if i not in set(index_by_name.values()))
    index_by_name |= dict(
        zip(
            (name for name in unique_names if name not in index_by_name), free_indices, strict=False
        )
    )
    return {
        name: CategoryStyle(PALETTE[i % len(PALETTE)], SYMBOLS[i % len(SYMBOLS)])
        for name, i in index_by_name.items()
    }


def viridis_colour(value: float | None, lo: float = 0.0, hi: float = 1.0) -> str:
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
        return MISSING_COLOUR
    scale_position = (min(max(value, lo), hi) - lo) / (hi - lo) * (len(VIRIDIS) - 1)
    stop_index = min(int(scale_position), len(VIRIDIS) - 2)
    return mix_colours(VIRIDIS[stop_index], VIRIDIS[stop_index + 1], scale_position - stop_index)


def diverging_colour(value: float | None) -> str:
    """Return the colour of a value in [−1, 1]: orange below 0, blue above, grey for None."""
    if value is None:
        return MISSING_COLOUR
    return mix_colours(NEUTRAL_COLOUR, BLUE if value > 0 else VERMILLION, min(1.0, abs(value)))


def mix_colours(first_colour: str, second_colour: str, share: float) -> str:
    """Return the colour that lies ``share`` of the way from one colour to another."""
    channels = zip(_rgb_channels(first_colour), _rgb_channels(second_colour), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in channels)


def text_colour_on(background: str) -> str:
    """Return black or white, whichever contrasts more with a background (at least 4.58)."""
    return max(
        ("#000000", "#ffffff"), key=lambda text_colour: contrast_ratio(text_colour, background)
    )


def contrast_ratio(first_colour: str, second_colour: str) -> float:
    """Return the contrast of two colours ``#rrggbb``, from 1 (equal) to 21 (black on white).

    References
    ----------
    WCAG 2.2, "contrast ratio" and "relative luminance"; text needs 4.5.
    """
    lighter_luminance, darker_luminance = sorted(
        (_luminance(first_colour), _luminance(second_colour)), reverse=True
    )
    return (lighter_luminance + 0.05) / (darker_luminance + 0.05)


def with_opacity(colour: str, opacity: float) -> str:
    """Return a colour with an opacity, as rgba()."""
    return "rgba({}, {}, {}, {})".format(*_rgb_channels(colour), opacity)


def truncate_text(text: object, max_chars: int = 60) -> str:
    """Return the beginning of a text, on one line of at most ``max_chars``; not escaped."""
    line = " ".join(str(text).split())
    return line if len(line) <= max_chars else f"{line[: max_chars - 1].rstrip()}…"


def wrap_text(text: object, max_line_chars: int, max_lines: int = 2) -> str:
    """Break a text into ``max_lines`` lines of ``max_line_chars`` at most, and escape it."""
    lines = textwrap.wrap(
        str(text), max_line_chars, max_lines=max_lines, placeholder="…", break_on_hyphens=False
    )
    return "<br>".join(escape(line) for line in lines)


ALL_CLASSIFIERS = "all"
"""What a table's column ``classifier`` has where all of them lie along the axis."""
SMALLEST_NUMBER = 1e-6
"""Distance from 0 below which a number is shown as a bound."""


def format_number(value: float | None) -> str:
    """Format a number with three significant digits: 0.361, 12.3, 12,346, 1.20e−5, or "n/a".

    What lies within a millionth of 0 is "< 1e−6" or "> −1e−6": its digits are mostly rounding.
    """
    if value is None or not math.isfinite(value):
        return "n/a"
    if value == 0:
        return "0"
    if abs(value) < SMALLEST_NUMBER:
        return "< 1e−6" if value > 0 else "> −1e−6"
    power = int(f"{value:.2e}".split("e")[1])
    text = f"{value:.2e}" if power < -4 or power > 11 else f"{value:,.{max(0, 2 - power)}f}"
    if "e" in text:
        mantissa, _, exponent = text.partition("e")
        text = f"{mantissa}e{int(exponent)}"
    return text.replace("-", "−")


def interval_text(point: float | None, lo: float | None, hi: float | None) -> str:
    """Format a point with its bounds: "0.361 [0.340, 0.382]", or "n/a"."""
    if format_number(point) == "n/a":
        return "n/a"
    has_interval = format_number(lo) != "n/a" and format_number(hi) != "n/a"
    return (
        f"{format_number(point)} [{format_number(lo)}, {format_number(hi)}]"
        if has_interval
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
    margin: Mapping[str, int] | None = None,
) -> Any:
    """Set template, title, subtitle and axis titles, and the margins that they need.

    Parameters
    ----------
    fig : plotly.graph_objects.Figure
        Changed in place.
    title : str
        What is drawn, with its unit.
    subtitle : str or sequence of str
        Paragraphs about n, method and thresholds, broken at their drawn width for a figure of
        700 px; a page shows title and subtitle as its own text instead (`without_title`).
    x, y : str
        Axis titles. All texts may have markup; the caller escapes text from data.
    height : int, pixels
        With one line of title and one of subtitle; further lines are added.
    margin : mapping of "l", "r" and "b" to int, pixels
        Margins that differ from the template's.

    Returns
    -------
    plotly.graph_objects.Figure
        ``fig``; ``layout.meta`` has title, subtitle and height as given.
    """
    paragraphs = [subtitle] if isinstance(subtitle, str) else list(subtitle)
    title_lines = wrap_to_width(title, _TITLE_WIDTH_PX, TITLE_SIZE, is_bold=True)
    subtitle_lines = [
        line
        for paragraph in paragraphs
        for line in wrap_to_width(paragraph, _TITLE_WIDTH_PX, SMALL_TEXT_SIZE + 1)
    ]
    lines = [
        f'<span style="font-size: {TITLE_SIZE}px; color: {TEXT_COLOUR}"><b>{line}</b></span>'
        for line in title_lines
    ] + subtitle_lines
    extra_height = _LINE_HEIGHT_PX * max(0, len(lines) - 2)
    fig.update_layout(
        template=card_template(),
        height=height + extra_height,
        title={"text": "<br>".join(lines)},
        margin={"t": 64 + extra_height, **(margin or {})},
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


def card_template() -> Any:
    """Return the template: a white card with dark text; `cotlab.figures.dark` has the other."""
    axis = {
        "gridcolor": GRID_COLOUR,
        "gridwidth": 1,
        "zeroline": False,
        "linecolor": SOFT_TEXT_COLOUR,
        "linewidth": 1,
        "showline": True,
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": SOFT_TEXT_COLOUR,
        "automargin": True,
        "tickfont": {"size": TEXT_SIZE - 1, "color": TEXT_COLOUR},
        "title": {"font": {"size": TEXT_SIZE, "color": TEXT_COLOUR}, "standoff": 10},
    }
    layout = {
        "paper_bgcolor": BACKGROUND_COLOUR,
        "plot_bgcolor": BACKGROUND_COLOUR,
        "colorway": PALETTE,
        "font": {"family": FONT_FAMILY, "size": TEXT_SIZE, "color": TEXT_COLOUR},
        "colorscale": {
            "sequential": [[i / (len(VIRIDIS) - 1), colour] for i, colour in enumerate(VIRIDIS)]
        },
        "title": {
            "x": 0,
            "xref": "container",
            "xanchor": "left",
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "pad": {"l": 14, "t": 17},
            "font": {"size": SMALL_TEXT_SIZE + 1, "color": SOFT_TEXT_COLOUR},
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
            "bgcolor": BACKGROUND_COLOUR,
            "font": {"size": TEXT_SIZE - 1, "color": TEXT_COLOUR},
        },
        "hoverlabel": {
            "bgcolor": BACKGROUND_COLOUR,
            "bordercolor": SOFT_TEXT_COLOUR,
            "align": "left",
            "namelength": -1,
            "font": {"family": FONT_FAMILY, "size": TEXT_SIZE - 1, "color": TEXT_COLOUR},
        },
        "hovermode": "closest",
        "annotationdefaults": {
            "font": {"size": SMALL_TEXT_SIZE, "color": SOFT_TEXT_COLOUR},
            "showarrow": False,
        },
    }
    return go.layout.Template(layout=layout)


def wrap_title(text: str, max_line_chars: int) -> list[str]:
    """Break a text into lines of at most ``max_line_chars`` characters; longer words stay whole."""
    return textwrap.wrap(text, max_line_chars, break_long_words=False, break_on_hyphens=False)


def _rgb_channels(colour: str) -> tuple[int, int, int]:
    """Return the channels of ``#rrggbb``."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _luminance(colour: str) -> float:
    """Return the relative luminance of ``#rrggbb`` (WCAG 2.2)."""
    linear_channels = [
        channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
        for channel in (value / 255 for value in _rgb_channels(colour))
    ]
    return 0.2126 * linear_channels[0] + 0.7152 * linear_channels[1] + 0.0722 * linear_channels[2]
