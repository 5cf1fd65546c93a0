"""The dashboard's entry script: its navigation, in which every page is registered.

A new page is a file in ``pages/`` and a line in ``SECTIONS``.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from cotlab.core.errors import ConfigError
from cotlab.core.resources import checkout_root
from cotlab.run.secrets import load_secrets
from cotlab.ui import access, address
from cotlab.ui.navigation import PageEntry, context_run, render_navigation, streamlit_page
from cotlab.ui.opened_run import start_view
from cotlab.ui.tab_title import APP_TITLE, tab_title
from cotlab.ui.text import escape_markdown

ICON_PATH = Path(__file__).parent / "icon.png"
STYLE_PATH = Path(__file__).parent / "frame.css"

SECTIONS: dict[str, tuple[PageEntry, ...]] = {
    "Work": (
        PageEntry("home", "Home", "home", address=""),
        PageEntry("suites", "Suites", "list_alt"),
        PageEntry("new_run", "New run", "play_arrow", address="new"),
        PageEntry("runs", "Runs", "history"),
        PageEntry("search", "Search", "search", run_param="run"),
        PageEntry("run", "Run", "monitoring", is_hidden=True),
        PageEntry("item", "Item", "article", is_hidden=True),
    ),
    "Analyse": (
        PageEntry("steps", "Steps", "stairs", run_param="run"),
        PageEntry("reliability", "Reliability", "shield", run_param="run"),
        PageEntry("robustness", "Robustness", "vibration", run_param="run"),
        PageEntry("mediation", "Mediation", "conversion_path", run_param="run"),
        PageEntry("unfaithfulness", "Unfaithfulness", "contrast", run_param="run"),
        PageEntry("compare", "Compare", "compare_arrows", run_param="base"),
        PageEntry("validation", "Validation", "verified"),
        PageEntry("evaluation", "Evaluation", "rule"),
    ),
    "Review": (
        PageEntry("label", "Label", "rate_review", is_blind=True),
        PageEntry("agreement", "Agreement", "handshake", is_blind=True),
    ),
    "Decide": (
        PageEntry("calibration", "Calibration", "query_stats"),
        PageEntry("decisions", "Decisions", "gavel", run_param="run"),
        PageEntry("drift", "Drift", "trending_up", run_param="current"),
    ),
    "Export": (PageEntry("figures", "Figures", "picture_as_pdf", run_param="run"),),
    "More": (PageEntry("settings", "Settings", "settings"),),
}
"""Every page by section, in the order of the sidebar."""


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
    sections = {
        name: [(entry, streamlit_page(entry)) for entry in entries]
        for name, entries in SECTIONS.items()
    }
    pages = {name: [page for _, page in entries] for name, entries in sections.items()}
    current_page = st.navigation(pages, position="hidden")
    address.start_page()
    with st.sidebar, st.container(key="navigation"):
        navigation_slot = st.empty()
    current_entry = next(
        entry for section in sections.values() for entry, page in section if page is current_page
    )
    start_view(current_entry.name, is_blind=current_entry.is_blind)
    row = context_run(current_entry)
    render_navigation(sections, current_page, navigation_slot, row)
    title = tab_title(current_entry)
    st.set_page_config(page_title=title)
    address_slot = st.container()
    try:
        current_page.run()
    finally:
        with address_slot:
            address.render_unknown_values()
    final_row = context_run(current_entry)  # another one where the page chose a run by default
    if final_row is not None and (row is None or final_row.id != row.id):
        render_navigation(sections, current_page, navigation_slot, final_row)
    final_title = tab_title(current_entry)
    if final_title != title:  # the page chose a run or an item by default
        st.set_page_config(page_title=final_title)


if __name__ == "__main__":
    main()
