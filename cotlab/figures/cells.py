"""Cells of a grid with fill and text, drawn as bars so that print stays vector; hatched is n/a."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from cotlab.figures import style

NARROW = 9
"""Number of columns above which the text of a cell is upright."""
DENSE = 30
"""Number of columns above which cells have no text and every other column is named."""


class Cell(NamedTuple):
    """One cell of a grid."""

    column: int
    """Index of the column, from 0."""
    row: int
    """Index of the row, from 0."""
    fill: str
    """Colour, ``#rrggbb``."""
    text: str
    """Text in the cell."""
    hover: str
    """Text on hover."""
    known: bool = True
    """Whether it has a value; otherwise it is hatched."""
    of: tuple[str | int, ...] = ()
    """Data of a click on it, of one length in all cells."""


def draw_cells(
    fig: Any,
    cells: Sequence[Cell],
    columns: Sequence[str],
    rows: Sequence[str],
    *,
    upright: bool = False,
    width: int = 20,
    every: int = 1,
) -> Any:
    """Draw cells and name their columns and rows, the first row on top.

    Parameters
    ----------
    fig : plotly.graph_objects.Figure
        Changed in place; styled before or after.
    cells : sequence of Cell
        Texts and hover texts may have markup; the caller escapes text from data.
    columns, rows : sequence of str
        Names, escaped here; names of rows are broken at ``width`` characters.
    upright : bool
        Whether texts of cells and columns are upright.
    every : int
        Name every n-th column.
    """
    fig.add_bar(
        x=[cell.column for cell in cells],
        y=[0.94] * len(cells),
        base=[cell.row - 0.47 for cell in cells],
        width=0.96,
        marker={
            "color": [cell.fill for cell in cells],
            "line": {"width": 1, "color": style.GRID},
            "pattern": {
                "shape": ["" if cell.known else "/" for cell in cells],
                "fgcolor": "#d6d6d6",
                "size": 6,
                "solidity": 0.25,
                "fillmode": "overlay",
            },
        },
        text=[cell.text for cell in cells],
        textposition="inside",
        insidetextanchor="middle",
        textangle=-90 if upright else 0,
        constraintext="none",
        insidetextfont={
            "size": style.SMALL_SIZE,
            "color": [style.ink_on(cell.fill) for cell in cells],
        },
        hoverinfo="text",
        hovertext=[cell.hover for cell in cells],
        showlegend=False,
        customdata=[list(cell.of) for cell in cells] if any(cell.of for cell in cells) else None,
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 1}},
    )
    fig.update_xaxes(
        tickvals=list(range(len(columns)))[::every],
        ticktext=[style.escape(name) for name in columns][::every],
        tickangle=-90 if upright else 0,
        range=[-0.52, len(columns) - 0.48],
        ticks="",
        showline=False,
    )
    fig.update_yaxes(
        tickvals=list(range(len(rows))),
        ticktext=[style.in_lines(name, width) for name in rows],
        ticks="",
        range=[len(rows) - 0.45, -0.55],
        showgrid=False,
        showline=False,
    )
    return fig.update_layout(barmode="overlay")


def tiny(point: float | None) -> str:
    """Format a number for a cell, with three digits or as "< 0.001"; escaped."""
    if point is not None and 0 < abs(point) < 0.001:
        return "&lt; 0.001" if point > 0 else "&gt; −0.001"
    return style.format_number(point)
