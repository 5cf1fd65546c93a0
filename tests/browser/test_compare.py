"""The page Compare in a browser: items by clicks and keys, both chains, restored by a link."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

import cotlab
from tests.support.browser import ARGUMENTS, serving

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.soak,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[str], Any]]:
    """The address of the app, two runs of different models, and a browser."""
    from playwright.sync_api import expect, sync_playwright

    folder = tmp_path_factory.mktemp("compare")
    options: dict[str, Any] = {"provider": "organism", "scorer": ["ablation"], "limit": 8}
    options |= {"mode": ["corrupt", "paraphrase"], "chain": "own"}
    runs = [
        cotlab.run_suite("wordproblems", store=folder / "store", model=model, **options).run_id
        for model in ("r100", "hint")
    ]
    expect.set_options(timeout=180_000)
    with serving(folder / "store", folder / "server.log") as base, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield base, runs, browser
        browser.close()


def test_clicks_and_keys_choose_and_the_address_restores(
    served: tuple[str, list[str], Any],
) -> None:
    from playwright.sync_api import expect

    base, runs, browser = served
    page = browser.new_page(viewport={"width": 1440, "height": 1000})
    page.set_default_timeout(180_000)
    page.goto(f"{base}/compare?base={runs[0]}&other={runs[1]}")
    entries = page.locator(".items a.entry")
    title = page.get_by_role("heading", level=1)
    expect(title).to_have_text(re.compile("too few to compare"))
    expect(entries).to_have_count(8)
    question = page.locator(".pair h2")

    # a click opens another item below the same heading, in this tab, and J and K the neighbours
    first = question.text_content()
    entries.nth(1).click()
    expect(entries.nth(1)).to_have_attribute("aria-current", "true")
    expect(question).not_to_have_text(str(first))
    expect(page).to_have_url(re.compile("item=wp-0-0001"))
    page.keyboard.press("j")
    expect(entries.nth(2)).to_have_attribute("aria-current", "true")
    page.keyboard.press("k")
    page.keyboard.press("k")
    expect(entries.nth(0)).to_have_attribute("aria-current", "true")
    expect(question).to_have_text(str(first))
    entries.nth(0).focus()
    page.keyboard.press("ArrowDown")  # moves the choice and not the page
    expect(entries.nth(1)).to_have_attribute("aria-current", "true")
    assert page.get_by_test_id("stMain").evaluate("main => main.scrollTop") == 0
    page.keyboard.press("ArrowUp")
    expect(entries.nth(0)).to_have_attribute("aria-current", "true")

    # both chains stand side by side, and what differs is marked on each side
    expect(page.locator(".line .side[role=cell]").first).to_be_visible()
    expect(page.locator(".line del").first).to_be_visible()
    expect(page.locator(".line ins").first).to_be_visible()
    boxes = [page.locator(".side.top").nth(k).bounding_box() for k in (0, 1)]
    assert boxes[0]["y"] == boxes[1]["y"] and boxes[0]["x"] < boxes[1]["x"]

    # a chip by keyboard, another change of a step, and the address brings all of it back
    page.locator(".chip", has_text="Both right").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".chip[aria-current]")).to_have_text(re.compile("Both right"))
    page.locator(".choice", has_text="Says the same in other words").click()
    expect(page.locator(".choice[aria-current]")).to_have_text("Says the same in other words")
    chosen, address = question.text_content(), page.url
    assert "show=both" in address and "effect=paraphrase" in address
    search = page.get_by_role("searchbox", name="Search questions")
    search.fill("no such question")
    expect(entries).to_have_count(0)
    page.goto(address)
    expect(question).to_have_text(str(chosen))
    expect(page.locator(".chip[aria-current]")).to_have_text(re.compile("Both right"))
    expect(page.locator(".choice[aria-current]")).to_have_text("Says the same in other words")

    # narrow: one chain under the other; the item's page is a click away
    page.set_viewport_size({"width": 800, "height": 1200})
    expect(page.locator(".side.top").first).to_be_visible()
    boxes = [page.locator(".side.top").nth(k).bounding_box() for k in (0, 1)]
    assert boxes[0]["x"] == boxes[1]["x"] and boxes[0]["y"] < boxes[1]["y"]
    page.locator(".side.top a", has_text="Open item").nth(1).click()
    expect(page).to_have_url(re.compile(f"/run.*run={runs[1]}.*tab=items"))
    expect(title).to_have_text(str(chosen))
