"""Paths of the files that ship with cotlab, in a checkout and where it is installed.

A wheel holds ``data/`` as the package ``cotlab.data``, and app.py, pages/ and .streamlit/ as
``cotlab.dashboard``.
"""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path


def checkout() -> Path | None:
    """Return the root of the checkout that this package runs from; None where it was installed."""
    root = Path(__file__).parents[2]
    return root if (root / "pyproject.toml").is_file() and (root / "app.py").is_file() else None


def data_path(*parts: str) -> Path:
    """Return the path of a shipped file or folder: suites, organisms, validation.json."""
    root = checkout()
    folder = root / "data" if root is not None else Path(str(files("cotlab.data")))
    return folder.joinpath(*parts)


def dashboard_path(*parts: str) -> Path:
    """Return the path of a part of the dashboard: app.py, pages, .streamlit/config.toml."""
    folder = checkout() or Path(str(files("cotlab") / "dashboard"))
    return folder.joinpath(*parts)


ORGANISMS = data_path("organisms")
"""Folder of the shipped organisms."""
PAGES = dashboard_path("pages")
"""Folder of the dashboard's pages."""


def organism_names() -> dict[str, tuple[Path, str]]:
    """Return the shipped organisms: name → (folder, control prefix). Loads no model."""
    organisms: dict[str, tuple[Path, str]] = {}
    for card in sorted(ORGANISMS.glob("*/organism.json")):
        modes = json.loads(card.read_text())["recipe"]["modes"]
        if len(modes) == 1:
            organisms[card.parent.name] = (card.parent, "")
        else:
            organisms |= {mode: (card.parent, f"<{mode}>") for mode in modes}
    return organisms


def page(name: str) -> str:
    """Return the path of a page's file."""
    return str(PAGES / f"{name}.py")
