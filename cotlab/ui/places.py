"""The pages of the dashboard and their tabs, each with one name by which links lead to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlencode

TAB_PARAM = "tab"
"""Parameter of the address with the open tab; without it the first one is open."""


class Page(NamedTuple):
    """A page of the navigation."""

    name: str
    """Name of its file in ``pages/``, and its address unless another is given."""
    title: str
    """Title in the sidebar."""
    icon: str
    """Name of a Material symbol."""
    tabs: Mapping[str, str] = {}
    """Label of each tab by its name, which no other page or tab has."""
    address: str | None = None
    """Address, where it is not the name; "" is the page that opens first."""
    run_param: str = ""
    """Parameter of its address that takes a run, which the link in the sidebar then keeps; "" where
    it is not about one run."""
    is_blind: bool = False
    """Whether the sidebar may not name a model beside it: its reader judges chains."""

    @property
    def url_path(self) -> str:
        """Return the address of the page, without a slash."""
        return self.name if self.address is None else self.address


PAGES = (
    Page("home", "Home", "home", address=""),
    Page("suites", "Suites", "list_alt", {"stored": "Stored", "upload": "Upload"}),
    Page("new_run", "New run", "play_arrow", address="new"),
    Page("runs", "Runs", "history"),
    Page(
        "run",
        "Run",
        "monitoring",
        {
            "verdict": "Verdict",
            "steps": "Steps",
            "robustness": "Robustness",
            "mediation": "Mediation",
            "reliability": "Reliability",
            "unfaithfulness": "Unfaithfulness",
            "items": "Items",
        },
        run_param="run",
    ),
    Page("compare", "Compare", "compare_arrows", run_param="base"),
    Page(
        "validation",
        "Validation",
        "verified",
        {"shipped": "Shipped models", "evaluation": "Your labels"},
    ),
    Page(
        "label",
        "Label",
        "rate_review",
        {"desk": "Desk", "agreement": "Agreement", "disagreements": "Disagreements"},
        is_blind=True,
    ),
    Page(
        "decide",
        "Decide",
        "gavel",
        {
            "calibrate": "Calibrate",
            "policy": "Policy",
            "decisions": "Decisions",
            "drift": "Drift",
        },
        run_param="run",
    ),
    Page("figures", "Figures", "picture_as_pdf", run_param="run"),
    Page("settings", "Settings", "settings"),
)
"""Every page, in the order of the sidebar."""

PAGE_BY_PLACE = {place: page for page in PAGES for place in (page.name, *page.tabs)}
"""Each page by its own name and by those of its tabs."""


class PageLink(NamedTuple):
    """A page, or one of its tabs, with its query."""

    place: str
    """Name of the page or of the tab."""
    query: tuple[tuple[str, str], ...] = ()
    """Names and values of the address, without the tab."""

    @property
    def page(self) -> Page:
        """Return the page that the link opens."""
        return PAGE_BY_PLACE[self.place]

    @property
    def parameters(self) -> tuple[tuple[str, str], ...]:
        """Return names and values of the address with the tab."""
        is_tab = self.place in list(self.page.tabs)[1:]
        return (*self.query, (TAB_PARAM, self.place)) if is_tab else self.query

    @property
    def address(self) -> str:
        """Return the address of the place with its query."""
        query_text = f"?{urlencode(self.parameters)}" if self.parameters else ""
        return f"/{self.page.url_path}{query_text}"


def run_link(run_id: str, place: str = "verdict", **query: str) -> PageLink:
    """Return the link to a run, or to one of its tabs."""
    return PageLink(place, (("run", run_id), *query.items()))
