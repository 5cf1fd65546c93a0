"""Shares with intervals as rows of a table of HTML, each drawn as a small inline SVG."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from cotlab.core.text_safety import printable_line
from cotlab.figures.style import BLUE, GREEN, GRID_COLOUR, TEXT_COLOUR, VERMILLION

Marker = Literal["circle", "open circle", "diamond", "square"]
SERIES_STYLES: tuple[tuple[Marker, str], ...] = (
    ("diamond", BLUE),
    ("square", VERMILLION),
    ("open circle", GREEN),
)
"""Symbol and colour of series in order."""
MAX_LABEL_CHARS = 40
_WIDTH, _LEFT, _LINE_HEIGHT = 150, 9, 14
_TICKS = (0, 0.25, 0.5, 0.75, 1)


@dataclass(frozen=True, slots=True)
class ShareMark:
    """A share with its interval."""

    point: float
    """The share, 0 to 1."""
    lo: float | None
    """Lower end of its interval; None where it has none."""
    hi: float | None
    """Upper end of its interval."""
    text: str
    """The share and its interval in percent."""
    marker: Marker = "circle"
    """Symbol of the share."""
    colour: str = BLUE
    """Colour of symbol and interval."""


@dataclass(frozen=True, slots=True)
class ShareRow:
    """A row of a chart of shares."""

    label: str
    """What stands at its left."""
    marks: tuple[ShareMark | None, ...]
    """The shares that are drawn; None for one without a value."""
    note: str = ""
    """What stands small beside the label, such as n."""


def draw_share_table(
    rows: Sequence[ShareRow], axis_title: str, legend: Sequence[tuple[str, Marker, str]] = ()
) -> str:
    """Return a table with a row for each label, its shares drawn on an axis from 0 to 100%.

    ``legend`` has name, symbol and colour of each series.
    """
    ticks = "".join(
        f'<text x="{_x(tick):g}" y="10" font-size="9" text-anchor="middle">{100 * tick:g}</text>'
        for tick in _TICKS
    )
    names = "".join(
        f"<span>{_svg([_marker(marker, 6, 7, colour)], 12, 14)} {_escape(name)}</span>"
        for name, marker, colour in legend
    )
    legend_html = f'<p class="legend">{names}</p>' if legend else ""
    return (
        f'<table class="shares">{"".join(map(_row_html, rows))}<tr><th></th>'
        f"<td>{_svg([ticks], _WIDTH, 12)}</td><td>{_escape(axis_title)}</td></tr></table>"
        f"{legend_html}"
    )


def _row_html(row: ShareRow) -> str:
    height = _LINE_HEIGHT * len(row.marks)
    texts = ["n/a" if mark is None else mark.text for mark in row.marks]
    name = f"{row.label}: {', '.join(texts)}"
    note = f" <small>{_escape(row.note)}</small>" if row.note else ""
    drawing = _svg(_row_elements(row.marks, height), _WIDTH, height, name)
    return (
        f'<tr><th scope="row">{_escape(row.label)}{note}</th><td>{drawing}</td>'
        f"<td>{'<br>'.join(map(_escape, texts))}</td></tr>"
    )


def _row_elements(marks: Sequence[ShareMark | None], height: int) -> Iterator[str]:
    for tick in _TICKS:
        yield _line(_x(tick), 0, _x(tick), height, GRID_COLOUR, 1)
    for i, mark in enumerate(marks):
        if mark is None:
            continue
        y = _LINE_HEIGHT * (i + 0.5)
        if mark.lo is not None and mark.hi is not None:
            yield _line(_x(mark.lo), y, _x(mark.hi), y, mark.colour, 2)
            for end in (mark.lo, mark.hi):
                yield _line(_x(end), y - 3.5, _x(end), y + 3.5, mark.colour, 1.3)
        yield _marker(mark.marker, _x(mark.point), y, mark.colour)


def _x(share: float) -> float:
    return round(_LEFT + (_WIDTH - 2 * _LEFT) * min(max(share, 0), 1), 2)


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float) -> str:
    ends = f'x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width:g}"/>'


def _marker(marker: Marker, x: float, y: float, colour: str) -> str:
    if marker == "open circle":
        return f'<circle cx="{x}" cy="{y}" r="4" fill="#fff" stroke="{colour}" stroke-width="1.6"/>'
    if marker == "circle":
        return f'<circle cx="{x}" cy="{y}" r="4.5" fill="{colour}"/>'
    corners = "-4 -4h8v8h-8" if marker == "square" else "0 -5.6l5.6 5.6l-5.6 5.6l-5.6 -5.6"
    return f'<path d="M{x} {y}m{corners}z" fill="{colour}"/>'


def _svg(elements: Iterable[str], width: int, height: int, name: str = "") -> str:
    label = f'role="img" aria-label="{_escape(name, 200)}"' if name else 'aria-hidden="true"'
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" {label}'
        f' fill="{TEXT_COLOUR}">{"".join(elements)}</svg>'
    )


def _escape(text: str, max_chars: int = MAX_LABEL_CHARS) -> str:
    line = printable_line(text)
    return html.escape(line if len(line) <= max_chars else f"{line[: max_chars - 1]}…")
