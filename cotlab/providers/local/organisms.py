"""Which organisms ship with the project, read from the cards beside their weights; loads no model."""

from __future__ import annotations

import json
from pathlib import Path

from cotlab.core.resources import data_path

ORGANISMS = data_path("organisms")


def organism_names() -> dict[str, tuple[Path, str]]:
    """Every shipped organism: its name, its folder, and the control prefix that selects it there."""
    organisms: dict[str, tuple[Path, str]] = {}
    for card in sorted(ORGANISMS.glob("*/organism.json")):
        modes = json.loads(card.read_text())["recipe"]["modes"]
        if len(modes) == 1:
            organisms[card.parent.name] = (card.parent, "")
        else:
            organisms |= {mode: (card.parent, f"<{mode}>") for mode in modes}
    return organisms
