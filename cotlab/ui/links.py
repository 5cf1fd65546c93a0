"""Where the pages lie."""

from __future__ import annotations

from pathlib import Path

PAGES = Path(__file__).parents[2] / "pages"


def page(name: str) -> str:
    """The file of a page, as links and the navigation want it."""
    return str(PAGES / f"{name}.py")
