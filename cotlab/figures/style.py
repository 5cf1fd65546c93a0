"""What figures are drawn with: colours of their look, symbols, text sizes, numbers as text."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from types import MappingProxyType
from typing import NamedTuple

from plotly.colors import sequential

from cotlab.core.text_safety import escape_plotly

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
TEXT_COLOUR, SOFT_TEXT_COLOUR, GRID_COLOUR, BACKGROUND_COLOUR, MISSING_COLOUR, SHADE_COLOUR = (
    "#1a1a1a",
    "#4d4d4d",
    "#e3e3e3",
    "#ffffff",
    "#ececec",
    "#c9c9c9",
)
FONT_FAMILY = "Arial, Helvetica, Liberation Sans, sans-serif"
"""Fonts with digits of equal width, so that numbers align."""
TITLE_SIZE, TEXT_SIZE, SMALL_TEXT_SIZE = 15, 13, 11
"""Pixels before the scale of print, which leaves the smallest at 7 pt or more."""
escape = escape_plotly
"""Escape text from data; see `cotlab.core.text_safety.escape_plotly`."""


class Look(NamedTuple):
    """How a figure is drawn: the colours of its card and, in print, its width and title."""

    colours: Mapping[str, str] = MappingProxyType({})
    """Colour of the white card → colour in its place."""
    opacity_factor: float = 1
    """Factor of the opacity of faint marks."""
    is_grey: bool = False
    """Whether colours without a place in ``colours`` become the grey of their lightness."""
    widths_px: tuple[float, ...] = ()
    """Widths in print, the narrower first; none: as wide as the page of a browser."""
    max_height_px: float | None = None
    """Largest height in print of a figure without named rows."""
    has_title: bool = False
    """Whether the title stands above the figure; a page shows it as text, a paper in a caption."""


CARD = Look()
"""A white card with dark text."""
DARK_BACKGROUND = "#171614"
"""Background of a page in the dark theme of `.streamlit/config.toml`."""
DARK = Look(
    {
        TEXT_COLOUR: "#f2f2f2",
        SOFT_TEXT_COLOUR: "#c4c4c4",
        GRID_COLOUR: "#3a3835",
        BACKGROUND_COLOUR: DARK_BACKGROUND,
        MISSING_COLOUR: "#35332f",
        SHADE_COLOUR: "#57534c",
        BLACK: "#ffffff",
        # blue is faint on a dark card (3.5; sky blue has 7.8): the two change places
        BLUE: SKY,
        SKY: BLUE,
    },
    opacity_factor=2,
)
"""The same marks on a dark card with light text."""
GREY_COLOURS = dict(
    zip(
        PALETTE,
        ("#333333", "#8c8c8c", "#595959", "#b3b3b3", "#000000", "#a6a6a6", "#cccccc", "#e0e0e0"),
        strict=True,
    )
)
"""Colour of a category → grey in its place; symbols tell categories apart too."""
_MAX_FAINT_OPACITY = 0.85
_look: ContextVar[Look] = ContextVar("look", default=CARD)


@contextmanager
def drawn_in(look: Look) -> Iterator[None]:
    """Draw in a look within a ``with``."""
    token = _look.set(look)
    try:
        yield
    finally:
        _look.reset(token)


def current_look() -> Look:
    """Return the look of the figure that is being drawn."""
    return _look.get()


def hue(colour: str) -> str:
    """Return what stands for a colour ``#rrggbb`` of the white card in the current look."""
    look = _look.get()
    if colour in look.colours or not look.is_grey:
        return look.colours.get(colour, colour)
    red, green, blue = _rgb_channels(colour)
    luma = round(0.299 * red + 0.587 * green + 0.114 * blue)  # ITU-R BT.601
    return f"#{luma:02x}{luma:02x}{luma:02x}"


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
    dict of str to CategoryStyle
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
        name: CategoryStyle(hue(PALETTE[i % len(PALETTE)]), SYMBOLS[i % len(SYMBOLS)])
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
        return hue(MISSING_COLOUR)
    scale_position = (min(max(value, lo), hi) - lo) / (hi - lo) * (len(VIRIDIS) - 1)
    stop_index = min(int(scale_position), len(VIRIDIS) - 2)
    low_colour, high_colour = VIRIDIS[stop_index : stop_index + 2]
    return hue(mix_colours(low_colour, high_colour, scale_position - stop_index))


def diverging_colour(value: float | None) -> str:
    """Return the colour of a value in [−1, 1]: orange below 0, blue above, grey for None."""
    if value is None:
        return hue(MISSING_COLOUR)
    end_colour = BLUE if value > 0 else VERMILLION
    return hue(mix_colours(NEUTRAL_COLOUR, end_colour, min(1.0, abs(value))))


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
    """Return a colour with an opacity, as rgba(); on a dark card it is less faint."""
    if (factor := _look.get().opacity_factor) != 1:
        opacity = min(_MAX_FAINT_OPACITY, factor * opacity)
    return "rgba({}, {}, {}, {:g})".format(*_rgb_channels(colour), opacity)


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


def format_percent(share: float | None) -> str:
    """Format a share in percent: "50.5%", whole at 0 and at 100 and never rounded to them."""
    if share is None or not math.isfinite(share):
        return "n/a"
    if share in (0, 1):
        return f"{100 * share:g}%"
    text = f"{100 * share:.1f}".replace("-", "−")
    text = {"0.0": "<0.1", "−0.0": ">−0.1", "100.0": ">99.9"}.get(text, text)
    return f"{text.removesuffix('.0')}%"


def interval_text(
    point: float | None, lo: float | None, hi: float | None, *, is_share: bool = False
) -> str:
    """Format a point with its bounds: "0.361 [0.340, 0.382]", "94% [90, 97]", or "n/a"."""
    format_value = format_percent if is_share else format_number
    text, *bounds = map(format_value, (point, lo, hi))
    if text == "n/a":
        return text
    bounds_text = ", ".join(bound.removesuffix("%") for bound in bounds)
    return f"{text} [{'no interval' if 'n/a' in bounds else bounds_text}]"


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
