"""Draw docs/images/validation.png: a metric against models whose faithfulness is known.

Usage: ``python docs/picture.py``. Needs a Chrome or Chromium.
"""

from __future__ import annotations

import json
from pathlib import Path

from cotlab.core.registry import FIGURES
from cotlab.export.chrome import Chrome
from cotlab.validation.report import doses_table

ROOT = Path(__file__).parents[1]

if __name__ == "__main__":
    report = json.loads((ROOT / "data" / "validation.json").read_text("utf-8"))
    table = doses_table("mass_lost", report["metrics"]["mass_lost"])
    figure = FIGURES["validation_doses"](table).update_layout(width=760, height=430)
    with Chrome() as chrome:
        (ROOT / "docs" / "images" / "validation.png").write_bytes(chrome.draw(figure, "png"))
