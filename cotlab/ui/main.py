"""The dashboard's entry script: its navigation, in which every page is registered.

A new page is a file in ``pages/`` and a line in ``SECTIONS``.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import streamlit as st

from cotlab.core.errors import ConfigError
from cotlab.core.resources import checkout, page
from cotlab.run.secrets import load_secrets
from cotlab.ui import access
from cotlab.ui.text import as_code

ICON = Path(__file__).parent / "icon.png"
STYLE = Path(__file__).parent / "frame.css"


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
    hidden: bool = False
    """Whether the sidebar leaves it out: a page that needs a run or an item in its address."""


SECTIONS: dict[str, tuple[PageEntry, ...]] = {
    "Work": (
        PageEntry("home", "Home", "home", address=""),
        PageEntry("suites", "Suites", "list_alt"),
        PageEntry("new_run", "New run", "play_arrow", address="new"),
        PageEntry("runs", "Runs", "history"),
        PageEntry("run", "Run", "monitoring", hidden=True),
        PageEntry("item", "Item", "article", hidden=True),
    ),
    "Analyse": (
        PageEntry("steps", "Steps", "stairs"),
        PageEntry("reliability", "Reliability", "shield"),
        PageEntry("robustness", "Robustness", "vibration"),
        PageEntry("mediation", "Mediation", "conversion_path"),
        PageEntry("unfaithfulness", "Unfaithfulness", "contrast"),
        PageEntry("compare", "Compare", "compare_arrows"),
        PageEntry("validation", "Validation", "verified"),
    ),
    "Review": (
        PageEntry("label", "Label", "rate_review"),
        PageEntry("agreement", "Agreement", "handshake"),
    ),
    "Decide": (
        PageEntry("calibration", "Calibration", "query_stats"),
        PageEntry("decisions", "Decisions", "gavel"),
        PageEntry("drift", "Drift", "trending_up"),
    ),
    "Export": (PageEntry("figures", "Figures", "picture_as_pdf"),),
    "More": (PageEntry("settings", "Settings", "settings"),),
}
"""Every page by section, in the order of the sidebar."""


def main() -> None:
    """Show the page of the address, with the navigation beside it."""
    st.set_page_config(
        page_title="cotlab", page_icon=str(ICON), layout="wide", initial_sidebar_state=220
    )
    try:
        load_secrets(checkout())
    except ConfigError as error:
        st.error(as_code(str(error)))
        st.stop()
    st.html(STYLE)
    access.guard()
    pages = {name: [_navigation_page(entry) for entry in SECTIONS[name]] for name in SECTIONS}
    st.navigation(pages).run()


def _navigation_page(entry: PageEntry) -> st.Page:
    return st.Page(
        page(entry.name),
        title=entry.title,
        icon=f":material/{entry.icon}:",
        url_path=entry.name if entry.address is None else entry.address or None,
        default=entry.address == "",
        visibility="hidden" if entry.hidden else "visible",
    )


if __name__ == "__main__":
    main()
