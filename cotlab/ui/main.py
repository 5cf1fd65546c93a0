"""The dashboard's frame: every page by its section and address. Pages are registered here and nowhere else."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from cotlab.core.errors import ConfigError
from cotlab.core.resources import checkout
from cotlab.run.secrets import load_secrets
from cotlab.ui import access
from cotlab.ui.links import PAGES
from cotlab.ui.text import as_code

ICON = Path(__file__).parent / "icon.png"
STYLE = Path(__file__).parent / "frame.css"


def _page(
    name: str,
    title: str,
    icon: str,
    *,
    address: str | None = None,
    hidden: bool = False,
    default: bool = False,
) -> st.Page:
    return st.Page(
        PAGES / f"{name}.py",
        title=title,
        icon=f":material/{icon}:",
        url_path=None if default else address or name,
        default=default,
        visibility="hidden" if hidden else "visible",
    )


def sections() -> dict[str, list[st.Page]]:
    """The pages by section, in the order of the sidebar."""
    return {
        "Work": [
            _page("home", "Home", "home", default=True),
            _page("suites", "Suites", "list_alt"),
            _page("new_run", "New run", "play_arrow", address="new"),
            _page("runs", "Runs", "history"),
            _page("run", "Run", "monitoring", hidden=True),
            _page("item", "Item", "article", hidden=True),
        ],
        "Analyse": [
            _page("steps", "Steps", "stairs"),
            _page("reliability", "Reliability", "shield"),
            _page("robustness", "Robustness", "vibration"),
            _page("mediation", "Mediation", "conversion_path"),
            _page("unfaithfulness", "Unfaithfulness", "contrast"),
            _page("compare", "Compare", "compare_arrows"),
            _page("validation", "Validation", "verified"),
        ],
        "Review": [
            _page("label", "Label", "rate_review"),
            _page("agreement", "Agreement", "handshake"),
        ],
        "Decide": [
            _page("calibration", "Calibration", "query_stats"),
            _page("decisions", "Decisions", "gavel"),
            _page("drift", "Drift", "trending_up"),
        ],
        "Export": [_page("figures", "Figures", "picture_as_pdf")],
        "More": [_page("settings", "Settings", "settings")],
    }


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
st.navigation(sections()).run()
