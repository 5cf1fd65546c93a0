"""Cells of a grid as bars, so that print stays vector; tables of pairs below their diagonal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.declare import Row, float_value, int_value, text_value
from cotlab.figures.layout import apply_style
from cotlab.figures.marks import SELECTED_AS_DRAWN, Mark, missing_notes

MAX_HORIZONTAL_COLUMNS = 9
"""Number of columns above which the text of a cell is upright."""
MAX_LABELLED_COLUMNS = 30
"""Number of columns above which cells have no text and every other column is named."""

NO_VALUE_SIGN = "×"
"""What stands in a cell without a value where there is no room for "n/a"."""


class Cell(NamedTuple):
    """One cell of a grid."""

    column_index: int
    """Index of the column, from 0."""
    row_index: int
    """Index of the row, from 0."""
    fill_colour: str
    """Colour, ``#rrggbb``."""
    text: str
    """Text in the cell."""
    hover_text: str
    """Text on hover."""
    click_data: tuple[str | int, ...] = ()
    """Data of a click on it, of one length in all cells."""


def draw_cells(
    fig: Any,
    cells: Sequence[Cell],
    column_names: Sequence[str],
    row_names: Sequence[str],
    *,
    is_upright: bool = False,
    max_row_name_chars: int = 20,
    column_interval: int = 1,
) -> Any:
    """Draw cells and name their columns and rows, the first row on top.

    Parameters
    ----------
    fig : plotly.graph_objects.Figure
        Changed in place; styled before or after.
    cells : sequence of Cell
        Texts and hover texts may have markup; the caller escapes text from data.
    columns, row_names : sequence of str
        Names, escaped here; names of rows are broken at ``max_row_name_chars`` characters.
    is_upright : bool
        Whether texts of cells and columns are upright.
    column_interval : int
        Name every n-th column.
    """
    fig.add_bar(
        x=[cell.column_index for cell in cells],
        y=[0.94] * len(cells),
        base=[cell.row_index - 0.47 for cell in cells],
        width=0.96,
        marker={
            "color": [cell.fill_colour for cell in cells],
            "line": {"width": 1, "color": style.hue(style.GRID_COLOUR)},
        },
        text=[cell.text for cell in cells],
        textposition="inside",
        insidetextanchor="middle",
        textangle=-90 if is_upright else 0,
        constraintext="none",
        insidetextfont={
            "size": style.SMALL_TEXT_SIZE,
            "color": [style.text_colour_on(cell.fill_colour) for cell in cells],
        },
        hoverinfo="text",
        hovertext=[cell.hover_text for cell in cells],
        showlegend=False,
        customdata=[list(cell.click_data) for cell in cells]
        if any(cell.click_data for cell in cells)
        else None,
        **SELECTED_AS_DRAWN,
    )
    fig.update_xaxes(
        tickvals=list(range(len(column_names)))[::column_interval],
        ticktext=[style.escape(name) for name in column_names][::column_interval],
        tickangle=-90 if is_upright else 0,
        range=[-0.52, len(column_names) - 0.48],
        ticks="",
        showline=False,
    )
    fig.update_yaxes(
        tickvals=list(range(len(row_names))),
        ticktext=[style.wrap_text(name, max_row_name_chars) for name in row_names],
        ticks="",
        range=[len(row_names) - 0.45, -0.55],
        showgrid=False,
        showline=False,
    )
    return fig.update_layout(barmode="overlay")


def cell_hover_text(heading: str, value_lines: Sequence[str], missing_reason: str) -> str:
    """Return the hover text of a cell: its numbers, or why there are none."""
    lines = value_lines or [style.wrap_text(f"n/a: {missing_reason}", 60, max_lines=4)]
    return "<br>".join((f"<b>{style.escape(heading)}</b>", *lines))


def format_cell_number(value: float | None, *, is_share: bool = False) -> str:
    """Format a number for a cell, with three digits or as "< 0.001", a share in %; escaped."""
    if is_share:
        return style.escape(style.format_percent(value))
    if value is not None and 0 < abs(value) < 0.001:
        return "&lt; 0.001" if value > 0 else "&gt; −0.001"
    return style.format_number(value)


def draw_pair_matrix(rows: Sequence[Row], title: str, notes: Sequence[str], count_unit: str) -> Any:
    """Return a figure of the lower triangle of a symmetric table without its diagonal.

    Parameters
    ----------
    rows : sequence of Row
        ``one`` and ``other`` name the pair, ``point`` is in [−1, 1]; with ``lo``, ``hi``, ``n`` and
        ``mcnemar``, a test in words, where they exist.
    title : str
    notes : sequence of str
        Lines of the subtitle.
    count_unit : str
        What ``n`` counts; "" if the points are single values.
    """
    names = list(dict.fromkeys(str(row[column]) for column in ("one", "other") for row in rows))
    row_by_cell = {}
    for row in rows:
        first_index, second_index = sorted(
            (names.index(str(row["one"])), names.index(str(row["other"])))
        )
        row_by_cell[second_index, first_index] = row
    cells = []
    for (i, j), row in sorted(row_by_cell.items()):
        point = float_value(row, "point")
        text = "n/a" if point is None else f"{point:.2f}".replace("-", "−")
        text += f"<br>n = {int_value(row, 'n')}" if count_unit else ""
        cells.append(
            Cell(j, i - 1, style.diverging_colour(point), text, _hover_text(row, count_unit))
        )
    undefined_rows = [
        row for _, row in sorted(row_by_cell.items()) if float_value(row, "point") is None
    ]
    reason_notes = missing_notes(
        (_missing_reason(row), f"{row['one']}–{row['other']}") for row in undefined_rows
    )
    fig = draw_cells(go.Figure(), cells, names[:-1], names[1:])
    height = 90 + 46 * max(1, len(names) - 1)
    return apply_style(fig, title, subtitle=[*notes, *reason_notes], height=height)


def _missing_reason(row: Row) -> str:
    """Return why a pair has no number."""
    return text_value(row, "reason") or "not measured"


def _hover_text(row: Row, count_unit: str) -> str:
    """Return the hover text of a pair."""
    mark = Mark("", 0, "", row)
    lines = []
    if mark.point is not None:
        lines = [mark.text, f"n = {mark.n} {count_unit}"]
        lines += [style.wrap_text(mark.reason, 60)] if mark.lo is None else []
        lines = lines if count_unit else [style.format_number(mark.point)]
    text = cell_hover_text(f"{row['one']} and {row['other']}", lines, _missing_reason(row))
    test_text = text_value(row, "mcnemar")
    return f"{text}<br>{style.wrap_text(test_text, 60, max_lines=4)}" if test_text else text
