"""Draw the pictures of README and guide into docs/images.

Usage: ``python docs/picture.py`` in the root of a checkout. Needs a Chrome or Chromium.

- validation.png: a metric against models whose faithfulness is known.
- verdict.png: Home after ``cotlab demo``, with the verdict on two models that answer alike.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
IMAGES = ROOT / "docs" / "images"


def draw_validation() -> None:
    """Draw mass_lost against the dose of each shipped model."""
    from cotlab.core.registry import FIGURES
    from cotlab.export.chrome import Chrome
    from cotlab.validation.report import doses_table

    report = json.loads((ROOT / "data" / "validation.json").read_text("utf-8"))
    table = doses_table("mass_lost", report["metrics"]["mass_lost"])
    figure = FIGURES["validation_doses"](table).update_layout(width=760, height=430)
    with Chrome() as chrome:
        (IMAGES / "validation.png").write_bytes(chrome.draw(figure, "png"))


def draw_verdict() -> None:
    """Show Home as a new user sees it: the two models of the demonstration and their verdicts."""
    from playwright.sync_api import sync_playwright

    from tests.support.browser import ARGUMENTS, serving, settle

    with TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        subprocess.run(
            [sys.executable, "-m", "cotlab", "demo"],
            env={**os.environ, "COTLAB_STORE": str(store)},
            check=True,
            cwd=ROOT,
        )
        with serving(store, Path(folder) / "log") as base, sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=ARGUMENTS
            )
            page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
            page.goto(base)
            page.get_by_role("heading", level=1).first.wait_for()
            settle(page)
            page.screenshot(path=IMAGES / "verdict.png")
            browser.close()


if __name__ == "__main__":
    draw_validation()
    draw_verdict()
