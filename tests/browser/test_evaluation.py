"""The page Evaluation in a browser: by mouse and by keys, at two widths."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from cotlab.store.database import Store
from tests.support.browser import ARGUMENTS, serving
from tests.support.stores.evaluated import N_CHAINS, N_STEPS, add_run, is_sound, suite, values

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Any]]:
    """The address of the app and a browser."""
    from playwright.sync_api import expect, sync_playwright

    folder = tmp_path_factory.mktemp("evaluation")
    store = Store(folder / "store")
    named = [-1 if is_sound(k) else k % N_STEPS for k in range(N_CHAINS)]
    metrics = {"verification": values("perfect"), "weak_link": values("chance")}
    add_run(store, "judged", suite(), metrics, named_steps=named)
    expect.set_options(timeout=180_000)
    with serving(folder / "store", folder / "server.log") as base, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield base, browser
        browser.close()


@pytest.mark.soak
@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (800, "dark")])
def test_a_signal_is_chosen_by_a_click_and_by_keys(
    opened: tuple[str, Any], width: int, scheme: str
) -> None:
    from playwright.sync_api import expect

    base, browser = opened
    context = browser.new_context(viewport={"width": width, "height": 1000}, color_scheme=scheme)
    page = context.new_page()
    page.set_default_timeout(180_000)
    page.goto(f"{base}/validation?runs=judged&tab=evaluation")
    sentence = "On 60 labelled chains, verification tells more than length and answer_correct"
    expect(page.get_by_text(sentence)).to_be_visible()
    expect(page.get_by_text("First wrong step", exact=True)).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    point = page.locator(".js-plotly-plot .scatterlayer .trace:last-child .point").last
    point.scroll_into_view_if_needed()
    box = point.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.get_by_text("Does not tell", exact=False).first).to_be_visible()
    page.wait_for_url("**signal=weak_link**")

    # keys that come while the page runs again are lost: the choice shows, and the run has ended
    choice = page.get_by_role("combobox", name="Signal", exact=True)
    expect(choice).to_have_value(re.compile("^weak_link: "))
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    choice.focus()
    page.keyboard.type("random")
    option = page.get_by_role("option")
    expect(option).to_have_text(re.compile("^random: "))
    expect(option).to_have_attribute("data-focused", "true")
    page.keyboard.press("Enter")
    page.wait_for_url("**signal=random**")
    expect(choice).to_have_value(re.compile("^random: "))
    context.close()
