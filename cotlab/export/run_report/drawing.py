"""Small charts as inline SVG, without a browser: shares with intervals, by row or by position."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from cotlab.core.text_safety import printable_line
from cotlab.figures.style import BLUE, GREEN, GRID_COLOUR, SOFT_TEXT_COLOUR, TEXT_COLOUR, VERMILLION

Marker = Literal["circle", "open circle", "diamond", "square"]
WIDTH = 344.0
"""Width of a chart in its units; two stand side by side on a page."""
LABEL_SIZE, TICK_SIZE = 10.5, 10.0
_LEFT, _RIGHT = 124.0, 328.0
_ROW_HEIGHT = 24.0
_SPACING = 9.0
_TICKS = (0, 25, 50, 75, 100)
_PLOT_LEFT, _PLOT_RIGHT, _PLOT_TOP, _PLOT_BOTTOM = 34.0, 334.0, 8.0, 116.0
_NARROW = {"il.,:;|!'j ·/\\": 0.3, "ft()r-[]": 0.37, "mM%W@": 0.9, "w": 0.75}
_WIDTH_BY_CHARACTER = {c: width for characters, width in _NARROW.items() for c in characters}


@dataclass(frozen=True, slots=True)
class SharePoint:
    """A share in percent with its interval."""

    point: float
    """The share, 0 to 100."""
    lo: float | None
    """Lower end of its interval; None where it has none."""
    hi: float | None
    """Upper end of its interval."""


@dataclass(frozen=True, slots=True)
class ShareRow:
    """A row of a chart of shares."""

    label: str
    """What stands at its left."""
    share: SharePoint
    """The share that is drawn."""
    text: str
    """The share and its interval in words."""
    marker: Marker = "circle"
    """Symbol of the share."""
    colour: str = BLUE
    """Colour of symbol and interval."""
    note: str = ""
    """Second line of the label."""


@dataclass(frozen=True, slots=True)
class ShareSeries:
    """One series of a chart by position."""

    name: str
    """Name in the legend."""
    points: tuple[SharePoint | None, ...]
    """Share at each position; None where there is none."""
    counts: tuple[int, ...]
    """Items behind each share."""
    marker: Marker = "circle"
    """Symbol of its shares."""
    colour: str = BLUE
    """Colour of symbols and intervals."""


SERIES_STYLES: tuple[tuple[Marker, str], ...] = (
    ("diamond", BLUE),
    ("square", VERMILLION),
    ("open circle", GREEN),
)
"""Symbol and colour of series in order."""


def text_width(text: str, size: float) -> float:
    """Return the width of a text in Arial or DejaVu Sans Condensed, whichever is wider."""
    return (
        sum(
            _WIDTH_BY_CHARACTER.get(c, 0.73 if c.isupper() or ord(c) > 0x2FF else 0.575)
            for c in text
        )
        * size
    )


def fit_text(text: str, size: float, width: float) -> str:
    """Return a text on one line, cut with "…" where it is wider than ``width``."""
    line = printable_line(text)
    if text_width(line, size) <= width:
        return line
    while line and text_width(f"{line}…", size) > width:
        line = line[:-1]
    return f"{line.rstrip()}…"


def draw_share_chart(rows: Sequence[ShareRow], axis_title: str, name: str) -> str:
    """Return a chart with one share a row on an axis from 0 to 100, as an SVG element."""
    bottom = 6 + _ROW_HEIGHT * len(rows)
    elements = [
        element
        for tick in _TICKS
        for element in (
            _line(_x(tick), _x(tick), 0, bottom, GRID_COLOUR),
            _text(_x(tick), bottom + 14, str(tick), anchor="middle"),
        )
    ]
    elements.append(_line(_LEFT, _RIGHT, bottom, bottom, SOFT_TEXT_COLOUR))
    for i, row in enumerate(rows):
        elements += _row_elements(row, 6 + _ROW_HEIGHT * (i + 0.5))
    axis_x = (_LEFT + _RIGHT) / 2
    elements.append(_text(axis_x, bottom + 29, axis_title, anchor="middle", size=LABEL_SIZE))
    values = "; ".join(f"{row.label}: {row.text}" for row in rows)
    return _svg(elements, bottom + 35, f"{name}. {values}")


def draw_position_chart(series: Sequence[ShareSeries], name: str) -> str:
    """Return a chart of shares by position, each series with its symbol, as an SVG element."""
    n_positions = max(len(entry.points) for entry in series)
    slot = (_PLOT_RIGHT - _PLOT_LEFT) / n_positions
    offset = min(9.0, slot / (len(series) + 1))
    elements = [
        element
        for tick in _TICKS
        for element in (
            _line(_PLOT_LEFT, _PLOT_RIGHT, _y(tick), _y(tick), GRID_COLOUR),
            _text(_PLOT_LEFT - 5, _y(tick) + 3.5, str(tick), anchor="end"),
        )
    ]
    elements.append(_line(_PLOT_LEFT, _PLOT_RIGHT, _y(0), _y(0), SOFT_TEXT_COLOUR))
    elements += _position_labels(series, n_positions, slot)
    for rank, entry in enumerate(series):
        shift = (rank - (len(series) - 1) / 2) * offset
        for position, share in enumerate(entry.points):
            if share is not None:
                x = _PLOT_LEFT + slot * (position + 0.5) + shift
                elements += _upright_elements(share, x, entry)
    legend_bottom = _PLOT_BOTTOM + 46
    elements += _legend_elements(series, legend_bottom)
    values = "; ".join(
        f"{entry.name}: {', '.join(map(_share_text, entry.points))}" for entry in series
    )
    return _svg(elements, legend_bottom + 8, f"{name}. Positions 1 to {n_positions}. {values}")


def _share_text(share: SharePoint | None) -> str:
    return "n/a" if share is None else f"{share.point:.1f}"


def _row_elements(row: ShareRow, y: float) -> list[str]:
    share, reach = row.share, 6.0
    lo = share.point if share.lo is None else min(share.lo, share.point)
    hi = share.point if share.hi is None else max(share.hi, share.point)
    baseline = y + (3.5 if not row.note else -1.5)
    elements = [_text(0, baseline, fit_text(row.label, LABEL_SIZE, _LEFT - 8), size=LABEL_SIZE)]
    if row.note:
        elements.append(_text(0, y + 9.5, row.note, size=9, colour=SOFT_TEXT_COLOUR))
    if hi > lo:
        elements.append(_line(_x(lo), _x(hi), y, y, row.colour, 2))
        elements += [_line(_x(end), _x(end), y - 3.5, y + 3.5, row.colour, 1.3) for end in (lo, hi)]
    elements.append(_marker(row.marker, _x(share.point), y, row.colour))
    right = max(_x(hi), _x(share.point) + reach) + _SPACING - 3
    left = min(_x(lo), _x(share.point) - reach) - _SPACING + 3
    width = text_width(row.text, TICK_SIZE)
    if right + width <= _RIGHT - 4 or (left - width < _LEFT and right + width <= WIDTH):
        elements.append(_text(right, y + 3.5, row.text, is_haloed=True))
    elif left - width >= _LEFT:
        elements.append(_text(left, y + 3.5, row.text, anchor="end", is_haloed=True))
    else:
        middle = min(max(_x(share.point), _LEFT + width / 2), WIDTH - width / 2)
        elements.append(_text(middle, y - 7.5, row.text, anchor="middle", is_haloed=True))
    return elements


def _position_labels(series: Sequence[ShareSeries], n_positions: int, slot: float) -> Iterable[str]:
    counts = [
        _count_text([entry.counts[i] for entry in series if i < len(entry.counts)])
        for i in range(n_positions)
    ]
    widest = max(text_width(text, TICK_SIZE) for text in (*counts, str(n_positions)))
    every = max(1, -(-int(widest + 6) // int(max(slot, 1))))
    for i in range(0, n_positions, every):
        x = _PLOT_LEFT + slot * (i + 0.5)
        yield _text(x, _PLOT_BOTTOM + 15, str(i + 1), anchor="middle")
        yield _text(x, _PLOT_BOTTOM + 28, counts[i], anchor="middle", colour=SOFT_TEXT_COLOUR)


def _count_text(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low}" if low == high else f"{low}–{high}"


def _upright_elements(share: SharePoint, x: float, series: ShareSeries) -> list[str]:
    elements = []
    if share.lo is not None and share.hi is not None and share.hi > share.lo:
        elements.append(_line(x, x, _y(share.lo), _y(share.hi), series.colour, 1.8))
    return [*elements, _marker(series.marker, x, _y(share.point), series.colour, 4.2)]


def _legend_elements(series: Sequence[ShareSeries], y: float) -> list[str]:
    elements, x = [], 6.0
    for entry in series:
        elements.append(_marker(entry.marker, x, y - 3.5, entry.colour, 4.2))
        elements.append(_text(x + 10, y, entry.name, size=LABEL_SIZE))
        x += 28 + text_width(entry.name, LABEL_SIZE)
    return elements


def _x(value: float) -> float:
    return _LEFT + (_RIGHT - _LEFT) * min(max(value, 0), 100) / 100


def _y(value: float) -> float:
    return _PLOT_BOTTOM - (_PLOT_BOTTOM - _PLOT_TOP) * min(max(value, 0), 100) / 100


def _line(x1: float, x2: float, y1: float, y2: float, colour: str, width: float = 1) -> str:
    return (
        f'<line x1="{x1:.2f}" x2="{x2:.2f}" y1="{y1:.2f}" y2="{y2:.2f}" stroke="{colour}"'
        f' stroke-width="{width}"/>'
    )


def _marker(marker: Marker, x: float, y: float, colour: str, size: float = 4.5) -> str:
    if marker == "circle":
        return f'<circle cx="{x:.2f}" cy="{y:.2f}" r="{size}" fill="{colour}"/>'
    if marker == "open circle":
        return (
            f'<circle cx="{x:.2f}" cy="{y:.2f}" r="{size - 0.4:.1f}" fill="#ffffff"'
            f' stroke="{colour}" stroke-width="1.6"/>'
        )
    if marker == "square":
        side = 1.75 * size
        return (
            f'<rect x="{x - side / 2:.2f}" y="{y - side / 2:.2f}" width="{side:.2f}"'
            f' height="{side:.2f}" fill="{colour}"/>'
        )
    reach = 1.3 * size
    corners = f"M{x:.2f} {y - reach:.2f}l{reach} {reach}l-{reach} {reach}l-{reach} -{reach}z"
    return f'<path d="{corners}" fill="{colour}"/>'


def _text(
    x: float,
    y: float,
    text: str,
    *,
    anchor: Literal["start", "middle", "end"] = "start",
    size: float = TICK_SIZE,
    colour: str = TEXT_COLOUR,
    is_haloed: bool = False,
) -> str:
    halo = ' paint-order="stroke" stroke="#ffffff" stroke-width="3"' if is_haloed else ""
    return (
        f'<text x="{x:.2f}" y="{y:.2f}" font-size="{size}" text-anchor="{anchor}"'
        f' fill="{colour}"{halo}>{html.escape(printable_line(text))}</text>'
    )


def _svg(elements: Iterable[str], height: float, name: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH:g} {height:g}" width="100%" role="img"'
        f' aria-label="{html.escape(printable_line(name))}">{"".join(elements)}</svg>'
    )
