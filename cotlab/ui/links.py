"""The files of the pages, as links and the navigation need them."""

from __future__ import annotations

from cotlab.core.resources import dashboard_path

PAGES = dashboard_path("pages")


def page(name: str) -> str:
    """Return the path of a page's file."""
    return str(PAGES / f"{name}.py")
