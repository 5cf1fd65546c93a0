"""The address of a page restores what was chosen on it: tab, sections, item, step and filters."""

from __future__ import annotations

import shutil
from difflib import ndiff
from typing import Any

import pytest

from tests.support.browser import STATE, settle

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.soak,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
PAGES = {
    "run": "run?run={run}&item=wp-0-0003",
    "compare": "compare?base={run}&other={other}",
    "validation": "validation",
    "figures": "figures?run={run}",
    "runs": "runs",
}
DECIDED_PAGES = ("decide", "label")


def choose_everything(page: Any) -> int:
    """Open every section, and choose another option in each box; return how many were changed."""
    for summary in page.get_by_test_id("stExpander").locator("summary").all():
        if "More" in summary.inner_text():
            summary.click()
            settle(page)
    changed, number = 0, 0
    while number < (boxes := page.get_by_test_id("stMain").get_by_role("combobox")).count():
        box = boxes.nth(number)
        number += 1
        label = box.get_attribute("aria-label") or ""
        if not box.is_visible() or "Run" in label or not box.input_value():
            continue
        before = box.input_value()
        box.click()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        settle(page)
        boxes = page.get_by_test_id("stMain").get_by_role("combobox")
        changed += number > boxes.count() or boxes.nth(number - 1).input_value() != before
    for slider in page.get_by_test_id("stMain").get_by_role("slider").all():
        slider.press("ArrowRight")
        settle(page)
        changed += 1
    return changed


def differences(state: list[str], page: Any) -> list[str]:
    """Return what a reader sees otherwise on a page than it was."""
    lines = ndiff(state, page.evaluate(STATE))
    return [line[:200] for line in lines if line.startswith(("-", "+"))][:12]


def check_address(page: Any, browser: Any, name: str) -> None:
    """Open the page's address anew, and compare what is seen; then reload, and go away and back."""
    state = page.evaluate(STATE)
    assert "This page failed" not in state, name
    fresh = browser.new_page(viewport={"width": 1440, "height": 1000})
    fresh.set_default_timeout(60_000)
    fresh.goto(page.url)
    fresh.get_by_role("heading", level=1).first.wait_for()
    settle(fresh)
    found = differences(state, fresh)
    assert not found, "\n".join([f"{name}: opened anew at {page.url}", *found])
    fresh.get_by_test_id("stSidebar").get_by_role("link", name="Settings").click()
    fresh.get_by_role("heading", name="Settings", exact=True).first.wait_for()
    settle(fresh)
    fresh.go_back()
    fresh.get_by_role("heading", name="Settings", exact=True).first.wait_for(state="detached")
    settle(fresh)
    found = differences(state, fresh)
    assert not found, "\n".join([f"{name}: back at {page.url}", *found])
    fresh.close()


def walk(page: Any, browser: Any, name: str) -> int:
    """Choose all that can be chosen in each tab of a page, and check the address of each."""
    tabs = page.get_by_test_id("stMain").get_by_test_id("stTab")
    n_tabs = tabs.count()
    n_changed = 0
    for number in range(max(1, n_tabs)):
        if n_tabs:
            tabs.nth(number).click()
            settle(page)
        n_changed += choose_everything(page)
        check_address(page, browser, name)
    return n_changed


@pytest.mark.parametrize("name", PAGES)
def test_the_address_restores_a_page(
    name: str, analysed: tuple[str, dict[str, str]], browser: Any
) -> None:
    base, runs = analysed
    page = browser.new_page(viewport={"width": 1440, "height": 1000})
    page.set_default_timeout(60_000)
    page.goto(f"{base}/{PAGES[name].format(**runs)}")
    page.get_by_role("heading", level=1).first.wait_for()
    settle(page)
    n_changed = walk(page, browser, name)
    page.close()
    assert n_changed or name == "compare", "nothing was chosen"


@pytest.mark.parametrize("name", DECIDED_PAGES)
def test_the_address_restores_a_page_of_decisions(name: str, decisions: str, browser: Any) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 1000})
    page.set_default_timeout(60_000)
    page.goto(f"{decisions}/{name}")
    page.get_by_role("heading", level=1).first.wait_for()
    settle(page)
    walk(page, browser, name)
    page.close()
