"""Declare figures, each a pure function of a table, and read the rows of their tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.layout import apply_style, lay_out


@dataclass(frozen=True, slots=True)
class FigureBuilder:
    """A declared figure; call it with a table to draw it."""

    name: str
    """Name in the registry of figures."""
    columns: tuple[str, ...]
    """Columns that the table must have."""
    caption: str
    """What is drawn, how to read it, and what it does not show."""
    draw: Callable[[pd.DataFrame], Any]
    """Function of the table that returns a plotly figure."""
    empty_reason: str = "the table has no rows."
    """Why a table may have no rows, as the end of "Nothing to draw: …"."""

    def __call__(
        self, table: pd.DataFrame, *, note: str = "", look: style.Look = style.CARD
    ) -> Any:
        """Draw a table in a look.

        Parameters
        ----------
        table : DataFrame
            With at least ``columns``; a missing number is None, NaN or <NA>. Not changed.
        note : str
            Plain text for the subtitle, such as "partial: 37 of 60".
        look : Look
            Colours and, in print, width and title.

        Returns
        -------
        plotly.graph_objects.Figure
            For a table without rows, a card with one sentence.

        Raises
        ------
        ValueError
            If a table with rows lacks a column.
        """
        missing_columns = [column for column in self.columns if column not in table.columns]
        if missing_columns and not table.empty:
            raise ValueError(
                f"figure {self.name!r} needs the columns {', '.join(missing_columns)}; the"
                f" table has {', '.join(map(str, table.columns)) or 'none'}"
            )
        with style.drawn_in(look):
            fig = draw_empty_figure(self.empty_reason) if table.empty else self.draw(table)
            if fig.layout.meta is None:
                apply_style(fig, "")
            if note:
                meta = fig.layout.meta
                fig.layout.meta = {**meta, "subtitle": [*meta["subtitle"], style.escape(note)]}
            return lay_out(fig)


def figure(
    name: str, *, columns: Sequence[str], caption: str, empty_reason: str = "the table has no rows."
) -> Callable[[Callable[[pd.DataFrame], Any]], FigureBuilder]:
    """Decorate a function of a table as the figure ``name``."""

    def declare(draw_table: Callable[[pd.DataFrame], Any]) -> FigureBuilder:
        return FigureBuilder(name, tuple(columns), caption, draw_table, empty_reason)

    return declare


def draw_empty_figure(reason: str) -> Any:
    """Return a figure with one centred sentence."""
    fig = apply_style(go.Figure(), "", height=160)
    fig.update_xaxes(visible=False)
    fig.update_yaxes(visible=False)
    text = style.wrap_text(f"Nothing to draw: {reason}", 76, max_lines=6)
    fig.add_annotation(
        text=text,
        x=0.5,
        y=0.5,
        xref="paper",
        yref="paper",
        xanchor="center",
        yanchor="middle",
        font={"size": style.TEXT_SIZE},
    )
    return fig


Row = Mapping[str, Any]
"""One row of a table by column."""


def table_records(table: pd.DataFrame) -> list[Row]:
    """Return the rows of a table."""
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def float_value(row: Row, column: str) -> float | None:
    """Return the number in a column, or None."""
    value = row.get(column)
    return None if value is None or pd.isna(value) else float(value)


def text_value(row: Row, column: str) -> str:
    """Return the text in a column, or ""."""
    value = row.get(column)
    return value if isinstance(value, str) else ""


def int_value(row: Row, column: str) -> int:
    """Return the integer in a column, or 0."""
    return int(float_value(row, column) or 0)


def group_rows(rows: Iterable[Row], column: str, order_column: str = "") -> dict[str, list[Row]]:
    """Return rows by the name in a column, sorted by the number in ``order_column`` if given."""
    rows_by_name: dict[str, list[Row]] = {}
    for row in rows:
        rows_by_name.setdefault(str(row[column]), []).append(row)
    if order_column:
        for grouped_rows in rows_by_name.values():
            grouped_rows.sort(key=lambda row: float(row[order_column]))
    return rows_by_name


def in_order(names: Iterable[object], order: Sequence[str]) -> list[str]:
    """Return each name once: those in ``order`` as it has them, then the others as they come."""
    unique_names = dict.fromkeys(map(str, names))
    return sorted(unique_names, key=lambda n: order.index(n) if n in order else len(order))


def count_range(rows: Iterable[Row]) -> str:
    """Return the numbers of items of rows as text: "48", or "45–48" if they differ."""
    item_counts = [int_value(row, "n") for row in rows]
    return (
        f"{min(item_counts)}"
        if min(item_counts) == max(item_counts)
        else f"{min(item_counts)}–{max(item_counts)}"
    )
