"""From Home to a load-bearing step, a comparison and a figure's PDF, with the clicks counted."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cotlab
from cotlab.export.chrome import find_chrome
from tests.support.browser import ARGUMENTS, serving

CHROMIUM = shutil.which("chromium")
TIMEOUT_MS = 180_000
pytestmark = [
    pytest.mark.browser,
    pytest.mark.soak,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Any]]:
    """Serve a store with a bypassing and a faithful organism; yield its address and a browser."""
    from playwright.sync_api import sync_playwright

    folder = tmp_path_factory.mktemp("journeys")
    for model in ("bypass-b", "r100"):  # the newest has Home
        cotlab.run_suite(
            "wordproblems",
            provider="organism",
            model=model,
            mode=["corrupt", "paraphrase"],
            limit=30,
            store=folder / "store",
        )
    with (
        serving(folder / "store", folder / "server.log") as base,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield base, browser
        browser.close()


class Visitor:
    """Somebody who begins on Home, and whose clicks are counted."""

    def __init__(self, base: str, browser: Any) -> None:
        from playwright.sync_api import expect

        self.page = browser.new_page(viewport={"width": 1440, "height": 900})
        self.page.set_default_timeout(TIMEOUT_MS)
        expect.set_options(timeout=TIMEOUT_MS)
        self.clicks = 0
        self.page.goto(base)
        expect(
            self.page.get_by_role("heading", name=re.compile("always follows the chain"))
        ).to_be_visible()

    def click(self, locator: Any) -> None:
        locator.click()
        self.clicks += 1

    def leave(self) -> None:
        assert self.page.get_by_text("This page failed").count() == 0
        self.page.close()


def test_the_step_that_the_answer_depends_on(home: tuple[str, Any]) -> None:
    from playwright.sync_api import expect

    visitor = Visitor(*home)
    page = visitor.page
    visitor.click(page.get_by_role("link", name="Read one chain").first)
    visitor.click(page.locator(".reader .row").last)
    expect(page.locator(".reader h2")).to_have_text(re.compile(r"^Step \d+ "))
    expect(page.locator(".reader .given del").first).to_be_visible()  # what was changed
    assert visitor.clicks <= 3
    visitor.leave()


def test_two_models_are_compared(home: tuple[str, Any]) -> None:
    from playwright.sync_api import expect

    visitor = Visitor(*home)
    page = visitor.page
    visitor.click(page.get_by_role("button", name="Compare the two"))
    headline = "r100 changes its answer for 100 % of the steps"
    expect(page.get_by_role("heading", name=re.compile(f"^{headline}"))).to_be_visible()
    assert visitor.clicks <= 2
    visitor.leave()


@pytest.mark.skipif(find_chrome() is None, reason="no Chrome: the PDF cannot be drawn")
def test_a_figure_becomes_a_pdf(home: tuple[str, Any], tmp_path: Path) -> None:
    visitor = Visitor(*home)
    page = visitor.page
    visitor.click(page.get_by_test_id("stSidebar").get_by_role("link", name="Figures"))
    visitor.click(page.get_by_role("button", name="Draw the files"))
    with page.expect_download() as download:
        visitor.click(page.get_by_role("button", name="PDF", exact=True))
    download.value.save_as(tmp_path / "figure.pdf")
    assert (tmp_path / "figure.pdf").read_bytes().startswith(b"%PDF-")
    assert visitor.clicks <= 3
    visitor.leave()
