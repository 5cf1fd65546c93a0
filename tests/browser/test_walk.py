"""One walk through the app in a real browser: upload a suite, run a pilot, open Steps."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from cotlab.suites.jsonl import write_suite
from cotlab.suites.wordproblems import make_suite
from tests.support.browser import ARGUMENTS, serving, settle

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """Serve the app on a free port, with an empty store."""
    with serving(tmp_path / "store", tmp_path / "server.log") as base:
        yield base


@pytest.mark.soak
def test_from_an_upload_to_the_step_that_matters(server: str, tmp_path: Path) -> None:
    from playwright.sync_api import expect, sync_playwright

    suite = tmp_path / "mine.jsonl"
    write_suite(make_suite(8, seed=7), suite)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        page.set_default_timeout(180_000)
        expect.set_options(timeout=180_000)
        page.goto(f"{server}/suites")
        page.get_by_role("tab", name="Upload").click()
        page.get_by_role("tabpanel", name="Upload").locator("input[type=file]").set_input_files(
            suite
        )
        page.get_by_role("button", name="Add 8 items").click()
        expect(page.get_by_text("Stored 8 items.")).to_be_visible()
        expect(page.get_by_text("Chain length: number of chains").last).to_be_visible()
        assert page.get_by_text("This page failed").count() == 0
        page.get_by_role("tabpanel", name="Upload").get_by_role(
            "link", name="Run this suite"
        ).click()

        expect(page.get_by_role("heading", name="New run")).to_be_visible()
        expect(page.get_by_role("combobox", name="Suite")).to_have_value(
            re.compile(r"^mine \(8 items")
        )
        organism = page.get_by_role("combobox", name=re.compile("Organism"))
        organism.click()
        page.get_by_role("option", name="faithful-a").click()
        page.get_by_role("button", name="Run 5-item pilot").click()

        expect(page.get_by_role("heading", name=" on ", level=1)).to_be_visible()
        expect(page.get_by_text(re.compile("items? · done"))).to_be_visible()
        expect(page.get_by_text("5 / 5")).to_be_visible()
        settle(page)  # the page of a run that has ended is drawn anew
        page.get_by_role("tab", name="Items").click()
        expect(page.get_by_role("table", name="Items")).to_be_visible()
        expect(page.get_by_text("No estimates yet")).to_have_count(0)
        page.get_by_role("tab", name="Steps").click()
        expect(
            page.get_by_text("Step effect (CCS) by position: answers that change").first
        ).to_be_visible()
        page.get_by_text("More: one chain").click()
        page.get_by_role("button", name="What the model was given").click()
        expect(page.locator(".reader .row").last.locator(".score")).to_have_text("changes")
        address = page.url
        page.reload()
        expect(page.get_by_role("tab", name="Items")).to_have_attribute("aria-selected", "true")
        assert "run=" in address and page.url.split("?")[0] == address.split("?")[0]
        assert page.get_by_text("Traceback").count() == 0
        browser.close()
