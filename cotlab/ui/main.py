"""The dashboard's entry script: its navigation, in which every page of ``places`` is registered."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from cotlab.core.errors import ConfigError
from cotlab.core.resources import checkout_root
from cotlab.run.secrets import load_secrets
from cotlab.ui import access, address
from cotlab.ui.navigation import APP_TITLE, Sidebar, context_run, streamlit_page, tab_title
from cotlab.ui.places import PAGES
from cotlab.ui.text import escape_markdown

ICON_PATH = Path(__file__).parent / "icon.png"
STYLE_PATH = Path(__file__).parent / "frame.css"


def main() -> None:
    """Show the page of the address, with the navigation beside it."""
    st.set_page_config(
        page_title=APP_TITLE, page_icon=str(ICON_PATH), layout="wide", initial_sidebar_state=220
    )
    try:
        load_secrets(checkout_root())
    except ConfigError as error:
        st.error(escape_markdown(str(error)))
        st.stop()
    st.html(STYLE_PATH)
    access.require_access()
    pages = {page.name: streamlit_page(page) for page in PAGES}
    shown = st.navigation(list(pages.values()), position="hidden")
    current = next(page for page in PAGES if pages[page.name] is shown)
    address.start_page(current.name)
    with st.sidebar, st.container(key="navigation"):
        sidebar = Sidebar(pages, current, st.empty())
    run = context_run(current)
    sidebar.render(run)
    title = tab_title(current, run)
    st.set_page_config(page_title=title)
    address_slot = st.container()
    try:
        shown.run()
    finally:
        with address_slot:
            address.render_unknown_values()
    final_run = context_run(current)  # another one where the page chose a run by default
    if final_run is not None and (run is None or final_run.id != run.id):
        sidebar.render(final_run)
    final_title = tab_title(current, final_run)
    if final_title != title:
        st.set_page_config(page_title=final_title)


if __name__ == "__main__":
    main()
