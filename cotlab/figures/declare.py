"""Declare figures: a name, the required columns, a caption and a pure function of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.figures.style import SOFT_INK, TEXT_SIZE, add_note, apply_style, in_lines


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
    empty: str = "the table has no rows."
    """Why a table may have no rows, as the end of "Nothing to draw: …"."""

    def __call__(self, table: pd.DataFrame, *, note: str = "") -> Any:
        """Draw a table.

        Parameters
        ----------
        table : DataFrame
            With at least ``columns``; a missing number is None, NaN or <NA>. Not changed.
        note : str
            Plain text for the subtitle, such as "partial: 37 of 60".

        Returns
        -------
        plotly.graph_objects.Figure
            For a table without rows, a card with one sentence.

        Raises
        ------
        ValueError
            If a table with rows lacks a column.
        """
        if table.empty:
            fig = nothing_to_draw(self.empty)
        else:
            missing = [column for column in self.columns if column not in table.columns]
            if missing:
                raise ValueError(
                    f"figure {self.name!r} needs the columns {', '.join(missing)}; the table has"
                    f" {_named(table)}"
                )
            fig = self.draw(table)
        return add_note(fig, note) if note else fig


def figure(
    name: str, *, columns: Sequence[str], caption: str, empty: str = "the table has no rows."
) -> Callable[[Callable[[pd.DataFrame], Any]], FigureBuilder]:
    """Decorate a function of a table as the figure ``name``."""

    def declare(draw: Callable[[pd.DataFrame], Any]) -> FigureBuilder:
        return FigureBuilder(name, tuple(columns), caption, draw, empty)

    return declare


def nothing_to_draw(reason: str) -> Any:
    """Return a figure with one centred sentence."""
    fig = apply_style(go.Figure(), "", height=200)
    fig.update_xaxes(visible=False)
    fig.update_yaxes(visible=False)
    text = in_lines(f"Nothing to draw: {reason}", 76, most=6)
    fig.add_annotation(
        text=text,
        x=0.5,
        y=0.5,
        xref="paper",
        yref="paper",
        xanchor="center",
        yanchor="middle",
        font={"size": TEXT_SIZE, "color": SOFT_INK},
    )
    return fig


def _named(table: pd.DataFrame) -> str:
    """List the columns of a table."""
    return ", ".join(map(str, table.columns)) or "none"
