"""Every page by axe-core, light and dark: what it finds, also in the sections that are closed at
first, and whether a narrow window scrolls sideways."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from cotlab.ui.places import PageLink
from tests.support.browser import DRAWN, settle
from tests.support.pages import PLACES

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.soak,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
RUN_AXE = """() => axe.run(document, {resultTypes: ['violations']}).then((result) =>
  result.violations.map((v) => [v.id, v.impact, v.nodes.map((node) => node.html.slice(0, 200))]))"""
WEAK_TEXTS = """() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true})
  const channels = (colour) => {
    canvas.clearRect(0, 0, 1, 1)
    canvas.fillStyle = colour
    canvas.fillRect(0, 0, 1, 1)
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data
    return [r, g, b, a / 255]
  }
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3]))
  const luminance = (colour) => {
    const [r, g, b] = colour.map((c) => c / 255).map(
      (c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const ancestors = (node) => node ? [node, ...ancestors(node.parentElement)] : []
  const background = (node) => ancestors(node).reverse().reduce(
    (below, e) => over(channels(getComputedStyle(e).backgroundColor), below), [255, 255, 255])
  const weak = new Set()
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim(), node = walker.currentNode.parentElement
    if (!text || node.closest('script, style, svg, [disabled], [aria-disabled=true]')) continue
    const style = getComputedStyle(node), box = node.getBoundingClientRect()
    const opacity = ancestors(node).reduce((o, e) => o * getComputedStyle(e).opacity, 1)
    if (!box.width || !box.height || style.visibility === 'hidden' || opacity === 0) continue
    if (style.fontFamily.includes('Material')) continue  // icons
    const below = background(node), colour = channels(style.color)
    colour[3] *= opacity
    const [dark, light] = [luminance(over(colour, below)), luminance(below)].sort((a, b) => a - b)
    const contrast = (light + 0.05) / (dark + 0.05)
    if (contrast < 4.5) weak.add(`${text.slice(0, 40)}: ${contrast.toFixed(2)}`)
  }
  return [...weak]
}"""
"""Texts with a contrast below 4.5, before the backgrounds of the elements that hold them; axe skips
what it cannot see through."""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_on_any_page(
    analysed: tuple[str, dict[str, str]], browser: Any, theme: str
) -> None:
    base, runs = analysed
    run, other = runs["run"], runs["other"]
    spec = find_spec("axe_playwright_python")
    assert spec is not None and spec.submodule_search_locations
    axe = next(Path(spec.submodule_search_locations[0]).rglob("axe.min.js")).read_text("utf-8")
    page = browser.new_page(viewport={"width": 1440, "height": 1000}, color_scheme=theme)
    page.set_default_timeout(90_000)
    findings, n_sections = {}, 0
    query = (("run", run), ("base", run), ("other", other), ("item", "wp-0-0001"))
    for place in PLACES:
        page.goto(f"{base}{PageLink(place, query).address}")
        page.get_by_role("heading", level=1).first.wait_for()
        settle(page)
        closed = page.locator("[data-testid=stExpander] details:not([open]) > summary:visible")
        for _ in range(20):  # one that opens may bring others, or take them away
            if not closed.count():
                break
            closed.first.click()
            page.wait_for_function(DRAWN)
            n_sections += 1
        settle(page)  # what fades in has a weak contrast meanwhile
        assert page.get_by_text("This page failed").count() == 0, place
        page.evaluate(axe)
        if violations := [*page.evaluate(RUN_AXE), *page.evaluate(WEAK_TEXTS)]:
            findings[place] = violations
        page.set_viewport_size({"width": 800, "height": 1000})
        settle(page)
        overflow = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert overflow <= 0, place
        page.set_viewport_size({"width": 1440, "height": 1000})
    page.close()
    assert findings == {} and n_sections >= 10
