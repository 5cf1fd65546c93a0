"""The sidebar: every page by section, and the run that the pages of an analysis are about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from cotlab.analysis.view import RunView
from cotlab.core.errors import StoreError, UnknownName
from cotlab.core.resources import page_path
from cotlab.ui import cached
from cotlab.ui.address import effective_param
from cotlab.ui.opened_run import opened_run, remember_run
from cotlab.ui.pickers import ANY
from cotlab.ui.text import escape_markdown, shorten

_MAX_RUN_CHARACTERS = 26


class PageEntry(NamedTuple):
    """A page of the navigation."""

    name: str
    """Name of its file in ``pages/``, and its address unless another is given."""
    title: str
    """Title in the sidebar and heading of the page."""
    icon: str
    """Name of a Material symbol."""
    address: str | None = None
    """Address, where it is not the name; "" is the page that opens first."""
    is_hidden: bool = False
    """Whether the sidebar leaves it out: a page that needs a run or an item in its address."""
    run_param: str = ""
    """Parameter of its address that takes a run, which the link in the sidebar then keeps; "" where
    it is not about one run."""
    is_blind: bool = False
    """Whether the sidebar may not name a model beside it: its reader judges chains."""


def streamlit_page(entry: PageEntry) -> st.Page:
    """Return the page of an entry, as Streamlit's navigation takes it."""
    return st.Page(
        page_path(entry.name),
        title=entry.title,
        icon=f":material/{entry.icon}:",
        url_path=entry.name if entry.address is None else entry.address or None,
        default=entry.address == "",
        visibility="hidden" if entry.is_hidden else "visible",
    )


def render_navigation(
    sections: Mapping[str, Sequence[tuple[PageEntry, st.Page]]],
    current_page: st.Page,
    slot: DeltaGenerator,
    row: RunView | None,
) -> None:
    """Show the links to the pages in a slot of the sidebar.

    The links to pages that are about one run lead to the run of ``row``.
    """
    is_blind = any(
        entry.is_blind and page is current_page
        for entries in sections.values()
        for entry, page in entries
    )
    run_id = None if row is None or is_blind else row.id
    with slot.container(gap="xxsmall"):
        for section, entries in sections.items():
            st.caption(section)
            for entry, page in entries:
                if not entry.is_hidden:
                    query = {entry.run_param: run_id} if run_id and entry.run_param else None
                    st.page_link(page, query_params=query, width="stretch")
                elif entry.name == "run" and row is not None and not is_blind:
                    _render_run_link(entry, page, row)


def context_run(entry: PageEntry) -> RunView | None:
    """Return the run that the pages are about; None where none was opened yet.

    It is that of the address, else the one that the page chose by default, else the last one. A
    page of several runs chooses none for the others.
    """
    run_id = effective_param("run") if entry.run_param else st.query_params.get("run")
    if run_id in (None, "", ANY):
        run_id = opened_run()
    if run_id is None:
        return None
    try:
        row: RunView = cached.stored_run(run_id)
    except (UnknownName, StoreError):  # the page says so
        return None
    remember_run(run_id)
    return row


def _render_run_link(entry: PageEntry, page: st.Page, row: RunView) -> None:
    """Show a link to the page of the run."""
    name = str(row.name or row.model.rpartition("/")[2])
    st.page_link(
        page,
        label=escape_markdown(shorten(f"{entry.title}: {name}", _MAX_RUN_CHARACTERS)),
        query_params={"run": row.id},
        width="stretch",
        help=escape_markdown(", ".join(filter(None, (row.name, f"{row.model}, run {row.id}")))),
    )
