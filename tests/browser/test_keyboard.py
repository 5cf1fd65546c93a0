"""The keyboard alone reaches everything that can be pressed, and opens it."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from cotlab.ui.places import PAGE_BY_PLACE, PAGES, PageLink
from tests.support.browser import settle
from tests.support.pages import PLACES

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.soak,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
COLLECT = """() => {
  const PRESSED = `a[href], button, input, select, textarea, summary, [tabindex="0"], [role=button],
    [role=link], [role=tab], [role=checkbox], [role=slider], [role=combobox]`
  const BOXES = '[data-testid=stSelectbox], ' +
    '[data-testid=stMultiSelect], [data-testid=stNumberInput]'
  const MANY = '[role=tablist], [role=radiogroup], [role=listbox], [role=toolbar], [role=menu]'
  const parent = (node) => node.parentElement ?? node.getRootNode().host
  const above = (node, selector) => {
    for (let at = node; at; at = parent(at)) if (at.matches(selector)) return at
    return null
  }
  const found = []
  const walk = (node) => {
    for (const child of node.children ?? []) {
      // the parts of components open natively
      if (child.matches('details') && !child.closest('[data-testid=stExpander]')) child.open = true
      if (child.shadowRoot) walk(child.shadowRoot)
      if (child.matches(PRESSED)) found.push(child)
      walk(child)
    }
  }
  walk(document.body)
  window.numbers = new Map()
  window.group = new Map()
  const told = []
  for (const node of found) {
    const box = node.getBoundingClientRect(), style = getComputedStyle(node)
    if (!box.width || !box.height || style.visibility === 'hidden') continue
    if (!node.checkVisibility()) continue  // in a closed part
    if (above(node, '[disabled], [aria-disabled=true], [aria-hidden=true], [inert]')) continue
    if (node.type === 'hidden' || above(node, '[data-testid=stElementToolbar]')) continue
    // what their box does by arrows and Backspace
    if (node.tabIndex < 0 && above(node, BOXES)) continue
    const number = told.length
    window.numbers.set(node, number)
    const many = above(node, MANY)  // one of them is reached by Tab, the others by the arrows
    const name = node.type === 'radio' ? node.name : ''
    if (many && !window.group.has(many)) window.group.set(many, window.group.size)
    told.push([
      `${node.tagName} ${node.getAttribute('role') ?? ''} ` +
        `"${(node.ariaLabel ?? node.innerText ?? '').trim().slice(0, 60)}"`,
      many ? `many ${window.group.get(many)}` : name ? `radio ${name}` : '',
    ])
  }
  return told
}"""
"""What can be pressed with a mouse now: its name, and the group of which Tab reaches one."""
AT = """() => {
  let at = document.activeElement
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement
  if (!at || at === document.body) return -2
  return window.numbers.get(at) ?? -1
}"""
"""The number of what has the focus; -1 for something else and -2 for nothing."""
TOGGLE = """(node) => node.closest('details').open"""


def unreached(page: Any) -> list[str]:
    """Press Tab once around the page; return the names of what never had the focus."""
    told = page.evaluate(COLLECT)
    assert told
    reached, n_ends = set(), 0
    for _ in range(2 * len(told) + 100):  # from the last press to the end, and then all of it
        page.keyboard.press("Tab")
        at = page.evaluate(AT)
        reached.add(at)
        n_ends += at == -2
        if n_ends == 2:
            break
    groups = {told[at][1] for at in reached if at >= 0} - {""}
    return [
        name for at, (name, group) in enumerate(told) if at not in reached and group not in groups
    ]


@pytest.mark.parametrize("name", [page.name for page in PAGES])
def test_tab_reaches_all_that_can_be_pressed_and_enter_opens_the_sections(
    analysed: tuple[str, dict[str, str]], browser: Any, name: str
) -> None:
    server, runs = analysed
    check_pages(
        browser,
        server,
        name,
        run=runs["run"],
        base=runs["run"],
        other=runs["other"],
        item="wp-0-0001",
    )


def test_the_tabs_of_decisions_are_reached_too(decisions: str, browser: Any) -> None:
    check_pages(browser, decisions, "decide")


def presses_enter(page: Any, summary: Any, is_open: bool) -> bool:
    """Press Enter on what has the focus; return whether its section is then open, or closed."""
    page.keyboard.press("Enter")
    for _ in range(480):
        page.wait_for_timeout(250)
        if summary.evaluate(TOGGLE) is is_open:
            settle(page)
            return True
    return False


def check_pages(browser: Any, base: str, name: str, /, **query: str) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 1000})
    page.set_default_timeout(90_000)
    missed, closed = {}, {}
    for place in (place for place in PLACES if PAGE_BY_PLACE[place].name == name):
        page.goto(f"{base}{PageLink(place, tuple(query.items())).address}")
        page.get_by_role("heading", level=1).first.wait_for()
        settle(page)
        summaries = page.get_by_test_id("stMain").get_by_test_id("stExpander").locator("summary")
        for at in range(summaries.count()):
            summary = summaries.nth(at)
            was_open = summary.evaluate(TOGGLE)
            summary.focus()
            if not presses_enter(page, summary, not was_open):
                closed.setdefault(place, []).append(summary.inner_text())
            elif was_open:
                presses_enter(page, summary, True)
        settle(page)
        if names := unreached(page):
            missed[place] = names
    page.close()
    assert (missed, closed) == ({}, {})
