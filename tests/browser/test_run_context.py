"""One run over all pages: its page shows it or says what it lacks, and Back takes one press."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from cotlab.ui.places import PAGES
from tests.support.browser import STATE, serving, settle
from tests.support.command import cotlab as command

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.soak,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SCORER_BY_PAGE = {
    "steps": "ablation",
    "reliability": "composite",
    "robustness": "robustness",
    "mediation": "mediation",
    "unfaithfulness": "unfaithfulness",
}
"""Pages of one run, and the scorer that each shows."""
SIDEBAR_PAGES = {page.title: page.url_path for page in PAGES if page.url_path}
"""Links of the sidebar, and the address of each page."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve two runs of all pages' scorers and two of one scorer: the server's address."""
    folder = tmp_path_factory.mktemp("context")
    every = [word for scorer in SCORER_BY_PAGE.values() for word in ("--scorer", scorer)]
    modes = ("--mode", "corrupt", "--mode", "paraphrase")
    runs = {
        "full": (*every, *modes, "--model", "faithful-a"),
        "newer": (*every, *modes, "--model", "bypass-a"),
        "lacking": ("--scorer", "verification", "--model", "r100"),
        "ablated": ("--scorer", "ablation", "--model", "r100"),
    }
    for run, words in runs.items():
        words = ("--task-suite", "wordproblems", "--limit", "3", *words, "--run-id", run)
        command("run", *words, store=folder / "store")
    with serving(folder / "store", folder / "log") as base:
        yield base


def opened(browser: Any, address: str) -> Any:
    """Open an address in a window of its own."""
    page = browser.new_page(viewport={"width": 1440, "height": 1000})
    page.set_default_timeout(60_000)
    page.goto(address)
    page.get_by_role("heading", level=1).first.wait_for()
    settle(page)
    return page


def query(page: Any) -> dict[str, list[str]]:
    """Return the parameters of a window's address."""
    return parse_qs(urlsplit(page.url).query)


def follow(page: Any, title: str) -> None:
    """Click a link of the sidebar, and wait for its page."""
    page.get_by_test_id("stSidebar").get_by_role("link", name=title, exact=True).click()
    page.wait_for_url(re.compile(rf"/{SIDEBAR_PAGES[title]}(\?|$)"))
    settle(page)


@pytest.mark.parametrize("run", ["", "full", "lacking"])
def test_back_takes_one_press_from_every_page(run: str, base: str, browser: Any) -> None:
    page = opened(browser, f"{base}/run?run={run}" if run else base)
    visited = [(page.url, page.evaluate(STATE))]
    n_entries = page.evaluate("history.length")
    for title in SIDEBAR_PAGES:
        follow(page, title)
        if run and title in ("Run", "Figures"):
            assert query(page)["run"] == [run]
        n_entries += 1
        assert page.evaluate("history.length") == min(n_entries, 50), title
        visited.append((page.url, page.evaluate(STATE)))
    for url, state in reversed(visited[:-1]):
        page.go_back()
        page.wait_for_url(url)
        settle(page)
        assert page.evaluate(STATE)[:3] == state[:3], url
    page.close()


@pytest.mark.parametrize("choice", ["item", "step", "mode", "filter", "search"])
def test_one_choice_is_one_press(choice: str, base: str, browser: Any) -> None:
    """Another item, step, mode, filter or search of the tab Items is one entry of the history."""
    item = "" if choice in ("filter", "search") else "&item=wp-0-0000"
    page = opened(browser, f"{base}/run?run=full&tab=items{item}")
    address, state = page.url, page.evaluate(STATE)
    n_entries = page.evaluate("history.length")
    if choice == "item":
        page.keyboard.press("j")
    elif choice == "step":
        page.keyboard.press("ArrowDown")
    elif choice == "mode":
        page.locator("[data-mode][aria-selected=false]").first.click()
    elif choice == "filter":
        page.get_by_test_id("stButtonGroup").get_by_text("Changed").click()
    else:
        page.get_by_label("Search the items").fill("a")
        page.keyboard.press("Enter")
    page.wait_for_function("address => location.href !== address", arg=address)
    settle(page)
    assert page.evaluate("history.length") == n_entries + 1
    chosen = page.evaluate(STATE)
    page.reload()
    page.get_by_role("heading", level=1).first.wait_for()
    settle(page)
    assert page.evaluate(STATE) == chosen
    page.go_back()
    page.wait_for_url(address)
    settle(page)
    assert page.evaluate(STATE) == state
    page.close()


@pytest.mark.parametrize("name", SCORER_BY_PAGE)
def test_a_page_shows_the_run_of_its_address_or_what_it_lacks(
    name: str, base: str, browser: Any
) -> None:
    lacking = "ablated" if name == "reliability" else "lacking"  # equations are among its signs
    page = opened(browser, f"{base}/run?run=full&tab={name}")
    chosen_text = " ".join(page.evaluate(STATE))
    assert "full" in chosen_text and "Not measured" not in chosen_text
    assert query(page)["run"] == ["full"]
    page.goto(f"{base}/run?run={lacking}&tab={name}")
    missing = page.get_by_text("Not measured in this run")
    missing.wait_for()
    settle(page)
    assert query(page)["run"] == [lacking]
    assert page.locator(".js-plotly-plot").count() == 0
    page.get_by_role("link", name="Measure 3").click()
    for restore in (lambda: None, page.reload):
        restore()
        page.get_by_role("heading", name="New run", exact=True).wait_for()
        settle(page)
        assert query(page) == {"from": [lacking], "measure": [SCORER_BY_PAGE[name]]}
        values = {
            box.get_attribute("aria-label"): box.input_value()
            for box in page.get_by_test_id("stSelectbox").locator("input").all()
        }
        assert "wordproblems" in str(values), values
        assert "r100" in str(values), values
        scorers = page.get_by_test_id("stMultiSelect").filter(has_text="Scorers")
        assert scorers.inner_text().split() == ["Scorers", SCORER_BY_PAGE[name]]
    page.go_back()
    missing.wait_for()
    assert query(page)["run"] == [lacking]
    page.close()


def test_the_open_run_stays_over_pages_of_blind_judgement(base: str, browser: Any) -> None:
    """Their links name no run, and yet the next page is about the one that was open."""
    page = opened(browser, f"{base}/run?run=ablated&tab=steps")
    for title in ("Label", "Run"):
        follow(page, title)
    assert "run" not in query(page)
    assert any("ablated" in text for text in page.evaluate(STATE))
    page.close()


def test_tabs_are_one_press_each_and_keep_the_run_and_the_item(base: str, browser: Any) -> None:
    page = opened(browser, f"{base}/run?run=full&item=wp-0-0001&tab=items")
    n_entries = page.evaluate("history.length")
    page.get_by_role("tab", name="Steps").click()
    page.wait_for_url("**tab=steps*")
    settle(page)
    assert query(page) == {"run": ["full"], "item": ["wp-0-0001"], "tab": ["steps"]}
    assert page.evaluate("history.length") == n_entries + 1
    page.go_back()
    page.wait_for_url("**tab=items*")
    settle(page)
    tab = page.get_by_role("tab", name="Items")
    assert tab.get_attribute("aria-selected") == "true"
    page.close()
