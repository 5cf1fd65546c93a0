"""Figures on a page: drawn in the reader's theme, with caption, data, evidence and printed form."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from cotlab.analysis.tables.catalogue import FIGURE_TABLES
from cotlab.analysis.tables.declare import (
    DEFAULT_CHOICE,
    FigureChoice,
    FigureData,
    MissingFigure,
)
from cotlab.analysis.verdict.wording import noun_count
from cotlab.analysis.view import RunView
from cotlab.core.errors import ConfigError
from cotlab.core.registry import FIGURES
from cotlab.figures.style import CARD, DARK
from cotlab.figures.text_width import strip_markup
from cotlab.store.recorded_models import captioned_model_name
from cotlab.ui import cached
from cotlab.ui.components import csv_button, page_link
from cotlab.ui.places import PageLink, run_link
from cotlab.ui.text import escape_markdown, shorten

MAX_NAMED_RUNS = 4
"""Most runs that a caption names; the others are counted."""
ClickHandler = Callable[[Sequence[Any]], None]
"""Called with the custom data of a figure's mark."""


class PaperFigure(NamedTuple):
    """The figure of a run that the page Figures prints, from the same numbers."""

    run: str
    """Id of the run."""
    name: str
    """Name among the figures of a run."""
    choice: FigureChoice = DEFAULT_CHOICE
    """What the page that shows it has chosen."""

    def query(self) -> dict[str, str]:
        """Return the query of its address on the page Figures."""
        return {"run": self.run, "figure": self.name, **self.choice.as_dict()}


def show_title(figure: Any) -> None:
    """Show title and subtitle of a figure as text, so that they have lines of the page's width."""
    title = strip_markup(figure.layout.meta["title"])
    notes = [strip_markup(paragraph) for paragraph in figure.layout.meta["subtitle"]]
    with st.container(gap=None):
        if title:
            st.markdown(f"**{escape_markdown(title)}**")
        if any(notes):
            st.caption("  \n".join(escape_markdown(note) for note in notes if note))


def show_figure(
    name: str,
    table: pd.DataFrame,
    *,
    key: str,
    note: str = "",
    evidence: PageLink | None = None,
    paper: PaperFigure | None = None,
    on_click: ClickHandler | None = None,
) -> None:
    """Show a registered figure with its caption, its data, and links to evidence and print.

    Parameters
    ----------
    name : str
        Name of the figure in the registry.
    table : DataFrame
        The figure's data.
    key : str
        Key of the chart's widget, unique on the page.
    note : str
        Text after the figure's caption.
    evidence : PageLink or None
        What the link "Evidence" opens.
    paper : PaperFigure or None
        What the link "Use in paper" opens; it must have the same table.
    on_click : callable or None
        Called with a mark's custom data when it is clicked, before the page runs again.
    """
    build_figure, widget_key = FIGURES[name], f"figure-{key}"

    def handle_click() -> None:
        points = st.session_state[widget_key]["selection"]["points"]
        if points and on_click is not None and points[0].get("customdata"):
            on_click(points[0]["customdata"])

    figure = cached_figure(name, table)
    show_title(figure)
    st.plotly_chart(
        figure,
        theme=None,
        key=widget_key,
        config={"displaylogo": False, "displayModeBar": False},
        on_select="ignore" if on_click is None else handle_click,
        selection_mode="points",
    )
    st.caption(" ".join(part for part in (build_figure.caption, note) if part))
    with st.container(horizontal=True, vertical_alignment="center"):
        csv_button(name, table, key)
        if evidence is not None:
            page_link(evidence.place, "Evidence", "fact_check", evidence.query)
        if paper is not None:
            page_link("figures", "Use in paper", "print", paper.query())


def source_text(rows: Sequence[RunView]) -> str:
    """Return the sentence of a caption that names model, suite and items of the runs."""
    sources = [
        f"{shorten(captioned_model_name(row.model), 60)} on"
        f" {shorten(row.suite_name, 60)},"
        f" {noun_count(row.n_items, 'item')}"
        for row in rows[:MAX_NAMED_RUNS]
    ]
    n_more = len(rows) - len(sources)
    more_text = f"; and {n_more} more" if n_more else ""
    noun = "Run" if len(rows) == 1 else "Runs"
    return escape_markdown(f"{noun}: {'; '.join(sources)}{more_text}.")


def show(
    run: RunView,
    name: str,
    choice: FigureChoice = DEFAULT_CHOICE,
    *,
    note: str = "",
    has_own_note: bool = True,
    evidence: PageLink | None = None,
    mark: Callable[[pd.DataFrame], pd.DataFrame] | None = None,
    on_click: ClickHandler | None = None,
) -> FigureData | None:
    """Show a figure of a run from the table that its report and its files have.

    Parameters
    ----------
    run : RunView
    name : str
        Name among the figures of a run.
    choice : FigureChoice
        What it shows.
    note : str
        Text after the figure's caption and the note of its table.
    has_own_note : bool
        Whether the note of its table is shown; ``note`` is in its place where it is not.
    evidence : PageLink or None
        What the link "Evidence" opens, by default the items of the run.
    mark : callable or None
        Adds to the table what is chosen on the page.
    on_click : callable or None
        Called with a mark's custom data when it is clicked, before the page runs again.

    Returns
    -------
    FigureData or None
        The table; None where the run has none, which is said with its reason.
    """
    try:
        result = cached.run_figure_table(run, name, choice)
    except ConfigError as error:
        result = MissingFigure(str(error).rstrip("."))
    if isinstance(result, MissingFigure):
        st.caption(escape_markdown(f"{name.replace('_', ' ').capitalize()}: n/a, {result.reason}."))
        return None
    own_note = escape_markdown(result.note) if has_own_note else ""
    members = [cached.stored_run(run_id) for run_id in (choice.runs or run.id).split(",")]
    show_figure(
        FIGURE_TABLES[name].figure,
        result.table if mark is None else mark(result.table),
        key=f"{name}-{choice.item or ''}",
        note=" ".join(filter(None, (own_note, note, source_text(members)))),
        evidence=evidence or run_link(run.id, "items"),
        paper=PaperFigure(run.id, name, result.choice),
        on_click=on_click,
    )
    return result


MAX_CACHED_FIGURES = 128
"""Most figures that a server keeps."""


def cached_figure(name: str, table: pd.DataFrame) -> Any:
    """Return a registered figure of a table in the reader's theme; no caller may change it.

    It has no title: `charts.show_title` shows that as text, which the browser breaks at the width
    that there is. ``layout.meta`` has it.

    Most of a repeated view was drawing: a figure is a function of its table alone, so the same
    table and theme give the same figure.
    """
    digest = hashlib.sha256(pickle.dumps(table, protocol=5)).hexdigest()
    return _figure_of_table(name, digest, st.context.theme.type == "dark", table)


@st.cache_resource(show_spinner=False, max_entries=MAX_CACHED_FIGURES)
def _figure_of_table(name: str, digest: str, is_dark: bool, _table: pd.DataFrame) -> Any:
    return FIGURES[name](_table, look=DARK if is_dark else CARD)
