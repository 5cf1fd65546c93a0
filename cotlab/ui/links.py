"""Where the pages lie."""

from __future__ import annotations

from cotlab.core.resources import dashboard_path

PAGES = dashboard_path("pages")


def page(name: str) -> str:
    """The file of a page, as links and the navigation want it."""
    return str(PAGES / f"{name}.py")
