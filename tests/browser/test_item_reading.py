"""The page Item in a browser: steps and changes by keys and clicks, restored by a link."""

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
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, Any]]:
    """The address of the app, a run of two items, and a browser."""
    from playwright.sync_api import expect, sync_playwright

    folder = tmp_path_factory.mktemp("reading")
    options: dict[str, Any] = {"provider": "organism", "model": "r100", "scorer": ["ablation"]}
    options |= {"mode": ["corrupt", "remove", "truncate"], "limit": 2}
    run_id = cotlab.run_suite("wordproblems", store=folder / "store", **options).run_id
    expect.set_options(timeout=180_000)
    with serving(folder / "store", folder / "server.log") as base, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield base, run_id, browser
        browser.close()


@pytest.mark.soak
def test_keys_and_clicks_choose_and_the_address_restores(opened: tuple[str, str, Any]) -> None:
    from playwright.sync_api import expect

    base, run_id, browser = opened
    page = browser.new_page(viewport={"width": 1440, "height": 1000})
    page.set_default_timeout(180_000)
    page.goto(f"{base}/run?run={run_id}&item=wp-0-0000&tab=items")
    title = page.locator(".head h2")
    expect(title).to_be_visible()
    question = title.text_content()
    steps = page.locator(".reader button.row")
    tabs = {name: page.get_by_role("tab", name=name) for name in ("States", "left out", "Ends")}
    panel = page.locator(".reader h2")

    # it opens on what a changed step does, at the step that bears most; the tint grows with it
    expect(tabs["States"]).to_have_attribute("aria-selected", "true")
    expect(panel).to_have_text(re.compile(r"Step \d+ states something else"))
    expect(page.get_by_role("tab", name="same in other words")).to_be_disabled()
    page.keyboard.press("3")
    expect(tabs["left out"]).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowDown")
    expect(page).to_have_url(re.compile("change=remove"))
    expect(page.locator(".reader")).to_have_attribute("aria-busy", "false")
    steps.nth(1).click()
    expect(panel).to_have_text("Step 2 is left out")
    expect(page).to_have_url(re.compile("step=2"))
    expect(page.locator(".reader .given del")).to_have_count(1)
    expect(steps.nth(1)).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(panel).to_have_text("Step 1 is left out")
    expect(page).to_have_url(re.compile("step=1"))
    expect(steps.nth(0)).to_be_focused()

    # a link restores change and step; other changes are behind More
    address = page.url
    other = browser.new_page(viewport={"width": 800, "height": 900})
    other.set_default_timeout(180_000)
    other.goto(address)
    expect(other.locator(".reader h2")).to_have_text("Step 1 is left out")
    expect(other.locator(".reader .row.selected .label")).to_have_text("1")
    overflow = other.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert overflow <= 0
    other.get_by_role("button", name="More (1)").click()
    other.get_by_role("tab", name="Ends the chain").click()
    expect(other.locator(".reader h2")).to_have_text("Step 1 ends the chain")
    expect(other).to_have_url(re.compile("change=truncate"))
    other.go_back()
    expect(other.locator(".reader h2")).to_have_text("Step 1 is left out")
    other.get_by_role("tab", name="Ends the chain").click()  # the same choice again, after Back
    expect(other.locator(".reader h2")).to_have_text("Step 1 ends the chain")
    other.close()

    # J and K go to the neighbours, E opens the requests; a link of the scores stays in this tab
    page.keyboard.press("j")
    expect(page.get_by_text(re.compile("^Item 2 of 2"))).to_be_visible()
    expect(page.locator(".reader")).to_have_count(1)
    expect(title).not_to_have_text(question)
    expect(page).to_have_url(re.compile("item=wp-0-0001.*change=remove|change=remove.*wp-0-0001"))
    expect(tabs["left out"]).to_have_attribute("aria-selected", "true")
    page.keyboard.press("k")
    expect(page.get_by_text(re.compile("^Item 1 of 2"))).to_be_visible()
    expect(page.locator(".reader")).to_have_count(1)
    expect(title).to_have_text(question)
    expect(page.locator(".reader")).to_have_attribute("aria-busy", "false")
    requests = page.get_by_text(re.compile("^Requests behind this step: 2, 1 with"))
    page.keyboard.press("e")
    expect(page.get_by_role("button", name="All requests of this item")).to_be_visible()
    expect(requests).to_be_visible()
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    page.get_by_text(re.compile("^All scores of this item")).click()
    page.get_by_role("link", name=re.compile("requests behind Change of the answer")).first.click()
    expect(page).to_have_url(re.compile("score=answer_change"))
    expect(
        page.get_by_text(re.compile("requests behind this choice; the item has"))
    ).to_be_visible()
    # L opens the page Label, whose link is among the head's
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    page.keyboard.press("l")
    expect(page).to_have_url(re.compile("/label"))
    expect(page.get_by_role("heading", name="Label", exact=True)).to_be_visible()
    assert len(page.context.pages) == 1
    assert page.get_by_text("This page failed").count() == 0
    page.close()
