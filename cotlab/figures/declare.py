"""What a figure is: a name, the columns it needs, a caption, and a pure function of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.figures.style import SOFT_INK, TEXT_SIZE, add_note, apply_style, in_lines


@dataclass(frozen=True, slots=True)
class FigureBuilder:
    """A declared figure; calling it with a table draws it.

    Attributes
    ----------
    name : str
        As in the registry of figures.
    columns : tuple of str
        What the table must have.
    caption : str
        What is drawn, how to read it, and what it does not show.
    draw : function of DataFrame to Figure
    empty : str
        Why a table may have no rows, as the end of "Nothing to draw: …".
    """

    name: str
    columns: tuple[str, ...]
    caption: str
    draw: Callable[[pd.DataFrame], Any]
    empty: str = "the table has no rows."

    def __call__(self, table: pd.DataFrame, *, note: str = "") -> Any:
        """Draw ``table``.

        Parameters
        ----------
        table : DataFrame
            With at least ``columns``; a missing number is None, NaN or <NA>. It is not changed.
        note : str
            Plain text added to the subtitle: that a run is partial, which threshold holds.

        Returns
        -------
        plotly.graph_objects.Figure
            For a table without rows, a sentence that says so.

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
    """Declare a function of a table as the figure ``name``."""

    def declare(draw: Callable[[pd.DataFrame], Any]) -> FigureBuilder:
        return FigureBuilder(name, tuple(columns), caption, draw, empty)

    return declare


def nothing_to_draw(reason: str) -> Any:
    """A card with one centred sentence."""
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
    return ", ".join(map(str, table.columns)) or "none"
