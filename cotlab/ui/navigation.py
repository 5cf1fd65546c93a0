"""The sidebar, the title of the browser's tab, and the run that the session is about."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from cotlab.analysis.view import RunView
from cotlab.core.errors import StoreError, UnknownName
from cotlab.core.resources import page_path
from cotlab.core.text_safety import printable_line
from cotlab.ui import cached
from cotlab.ui.address import effective_param
from cotlab.ui.places import PAGES, TAB_PARAM, Page
from cotlab.ui.text import shorten

APP_TITLE = "cotlab"
"""Name of the application: the last part of each title, and the title before a sign-in."""
MAX_NAME_CHARACTERS = 40
"""Characters of a run's name in a title."""
_RUN_KEY = "context-run"


def streamlit_page(page: Page) -> st.Page:
    """Return a page as Streamlit's navigation takes it."""
    return st.Page(
        page_path(page.name),
        title=page.title,
        icon=f":material/{page.icon}:",
        url_path=page.url_path or None,
        default=not page.url_path,
    )


class Sidebar(NamedTuple):
    """The links to the pages, in a slot of the sidebar."""

    pages: Mapping[str, st.Page]
    """Every page of Streamlit by its name."""
    current: Page
    """The page that is shown."""
    slot: DeltaGenerator
    """Where the links stand."""

    def render(self, run: RunView | None) -> None:
        """Show the links; those to pages about one run lead to this one."""
        run_id = None if run is None or self.current.is_blind else run.id
        with self.slot.container(gap="xxsmall"):
            for page in PAGES:
                query = {page.run_param: run_id} if run_id and page.run_param else None
                st.page_link(self.pages[page.name], query_params=query, width="stretch")


def opened_run() -> str | None:
    """Return the id of the run that the session was last about; None where there is none yet."""
    run_id: str | None = st.session_state.get(_RUN_KEY)
    return run_id


def remember_run(run_id: str) -> None:
    """Remember the run that a page is about."""
    st.session_state[_RUN_KEY] = run_id


def forget_run() -> None:
    """Forget the run: it was deleted."""
    st.session_state.pop(_RUN_KEY, None)


def default_run(default: str, run_ids: Collection[str]) -> str:
    """Return the run on which a page opens whose address names none: the open one, if it can."""
    opened = opened_run()
    return opened if opened is not None and opened in run_ids else default


def context_run(page: Page) -> RunView | None:
    """Return the run that the pages are about; None where none was opened yet.

    It is that of the address, else the last one, else the one that the page chose by default: a
    page that cannot show the open run shows another, and leaves it open.
    """
    default_id = effective_param("run") if page.run_param else None
    run_id = st.query_params.get("run") or opened_run() or default_id
    if run_id is None:
        return None
    try:
        run = cached.stored_run(run_id)
    except (UnknownName, StoreError):  # the page says so
        return None
    remember_run(run_id)
    return run


def tab_title(page: Page, run: RunView | None) -> str:
    """Return the title of the browser's tab: "Steps · faithful-a · cotlab", "Compare · cotlab".

    Only the pages of one run name it, where they show it, by its own name where it has one, else by
    its id; pages on which chains are judged blind never do.
    """
    names = [page.title]
    if page.tabs:
        names = [page.tabs.get(st.query_params.get(TAB_PARAM, ""), page.title)]
    if page.run_param == "run" and run is not None and effective_param("run") in (None, run.id):
        names.append(shorten(printable_line(run.name or run.id), MAX_NAME_CHARACTERS))
    return " · ".join([*names, APP_TITLE])
