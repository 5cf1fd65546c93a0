"""Names of the organisms that ship with cotlab, from the cards beside their weights."""

from __future__ import annotations

import json
from pathlib import Path

from cotlab.core.resources import data_path

ORGANISMS = data_path("organisms")


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
