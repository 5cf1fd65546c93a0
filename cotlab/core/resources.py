"""Paths of the files that ship with cotlab, in a checkout and where it is installed.

A wheel holds ``data/`` as the package ``cotlab.data``, and app.py, pages/ and .streamlit/ as
``cotlab.dashboard``.
"""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path


def checkout_root() -> Path | None:
    """Return the root of the checkout that this package runs from; None where it was installed."""
    root = Path(__file__).parents[2]
    return root if (root / "pyproject.toml").is_file() and (root / "app.py").is_file() else None


def data_path(*parts: str) -> Path:
    """Return the path of a shipped file or folder: suites, organisms, validation.json."""
    root = checkout_root()
    folder = root / "data" if root is not None else Path(str(files("cotlab.data")))
    return folder.joinpath(*parts)


def dashboard_path(*parts: str) -> Path:
    """Return the path of a part of the dashboard: app.py, pages, .streamlit/config.toml."""
    folder = checkout_root() or Path(str(files("cotlab") / "dashboard"))
    return folder.joinpath(*parts)


ORGANISMS_FOLDER = data_path("organisms")
"""Folder of the shipped organisms."""
PAGES_FOLDER = dashboard_path("pages")
"""Folder of the dashboard's pages."""


PROCESS_REWARD = "process_reward"
"""Kind of a recipe whose model judges steps and writes none."""


def shipped_organisms() -> dict[str, tuple[Path, str]]:
    """Return the shipped organisms: name → (folder, control prefix). Loads no model."""
    organisms: dict[str, tuple[Path, str]] = {}
    for card_path in sorted(ORGANISMS_FOLDER.glob("*/organism.json")):
        recipe = json.loads(card_path.read_text())["recipe"]
        modes = recipe["modes"]
        if recipe.get("kind") == PROCESS_REWARD:
            continue
        if len(modes) == 1:
            organisms[card_path.parent.name] = (card_path.parent, "")
        else:
            suffix = recipe.get("suffix", "")
            organisms |= {mode + suffix: (card_path.parent, f"<{mode}>") for mode in modes}
    return organisms


def shipped_reward_models() -> dict[str, Path]:
    """Return the shipped process reward models: name → folder. Loads no model."""
    return {
        path.parent.name: path.parent
        for path in sorted(ORGANISMS_FOLDER.glob("*/organism.json"))
        if json.loads(path.read_text())["recipe"].get("kind") == PROCESS_REWARD
    }


def page_path(name: str) -> str:
    """Return the path of a page's file."""
    return str(PAGES_FOLDER / f"{name}.py")
