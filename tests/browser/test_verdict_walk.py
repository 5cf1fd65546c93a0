"""From the verdict on Home to its evidence, by mouse and by keyboard, in one tab."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from cotlab.store.database import Store
from tests.support.browser import ARGUMENTS, serving
from tests.support.stores.judged import add_measured_run

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """Serve the app over a store with one run that follows its chain."""
    store = Store(tmp_path / "store")
    add_measured_run(store, "run-1", {"change": 1, "control": 0})
    with serving(tmp_path / "store", tmp_path / "server.log") as base:
        yield base


@pytest.mark.soak
def test_a_number_opens_its_evidence_and_a_lamp_what_lights_it(server: str) -> None:
    from playwright.sync_api import expect, sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        page.set_default_timeout(60_000)
        expect.set_options(timeout=180_000)
        page.goto(server)
        expect(
            page.get_by_role("heading", name=re.compile("always follows the chain"))
        ).to_be_visible()
        expect(page.get_by_role("table", name="Latest runs")).to_be_visible()
        for number, mode in (("100 % of the steps", "corrupt"), ("0 %", "paraphrase")):
            page.get_by_role("link", name=number, exact=True).first.click()
            expect(page).to_have_url(re.compile(r"/run\?run=run-1.*tab=steps"))
            page.get_by_text("More: one chain").click()
            expect(page.get_by_role("combobox", name="Mode")).to_have_value(mode)
            page.goto(server)
            expect(page.get_by_role("table", name="Latest runs")).to_be_visible()

        lamp = page.get_by_role("link", name="Measure this").first
        lamp.focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="New run")).to_be_visible()
        assert "measure=suggestion" in page.url and len(page.context.pages) == 1
        browser.close()
