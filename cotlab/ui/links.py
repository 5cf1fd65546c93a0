"""The files of the pages, as links and the navigation need them."""

from __future__ import annotations

from pathlib import Path

PAGES = Path(__file__).parents[2] / "pages"


def page(name: str) -> str:
    """Return the path of a page's file."""
    return str(PAGES / f"{name}.py")
