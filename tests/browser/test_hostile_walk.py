"""A store full of attacks in a real browser: no script runs, no link or request leads outside."""

from __future__ import annotations

import shutil
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.soak,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
ARGUMENTS = ["--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking"]
MARKUP = """() => ({
    hacked: window.hacked ?? 0,
    links: [...document.querySelectorAll('a')].map(a => a.href.baseVal ?? a.href)
        .filter(href => href && new URL(href, location).host !== location.host),
    images: [...document.querySelectorAll('img, script, iframe')].map(e => e.src)
        .filter(src => /evil/.test(src)),
})"""


def test_no_page_runs_or_links_what_a_text_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from playwright.sync_api import expect, sync_playwright

    monkeypatch.syspath_prepend(str(ROOT / "tests" / "ui"))
    from tests.support import hostile
    from tests.support.served import app

    runs = hostile.filled(tmp_path / "store", "ablation", "unfaithfulness", "robustness", "flags")
    outside: list[str] = []
    with app(tmp_path) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1440, "height": 2400})
        page.set_default_timeout(120_000)
        expect.set_options(timeout=180_000)
        page.on(
            "request",
            lambda asked: (
                outside.append(asked.url) if hostile.HOST in urlsplit(asked.url).netloc else None
            ),
        )
        page.on("dialog", lambda dialog: outside.append(dialog.message))
        shown = toolbars = 0
        for name in sorted(path.stem for path in (ROOT / "pages").glob("*.py")):
            address = {"home": "", "new_run": "new"}.get(name, name)
            for i, run in enumerate(runs):
                item = hostile.suite().items[2 * i].id
                asked = {"run": run, "item": item, "suite": hostile.suite().digest, "from": run}
                asked |= {"base": runs[0], "other": runs[1]}
                page.goto(
                    f"http://{server}/{address}?"
                    + "&".join(f"{k}={quote(v, safe='')}" for k, v in asked.items())
                )
                expect(page.get_by_role("heading", level=1)).to_be_visible()
                expect(page.get_by_test_id("stApp")).to_have_attribute(
                    "data-test-script-state", "notRunning"
                )
                for title in page.get_by_test_id("stExpander").locator("summary").all():
                    title.click()
                for tab in page.get_by_role("tab", disabled=False).all():
                    tab.click()
                    expect(page.get_by_test_id("stApp")).to_have_attribute(
                        "data-test-script-state", "notRunning"
                    )
                    assert page.evaluate(MARKUP) == {"hacked": 0, "links": [], "images": []}, name
                assert page.evaluate(MARKUP) == {"hacked": 0, "links": [], "images": []}, name
                download = page.get_by_test_id("stElementToolbarButton").get_by_label(
                    "Download as CSV"
                )
                assert not any(button.is_visible() for button in download.all()), name
                toolbars += download.count()
                assert page.get_by_text("This page failed").count() == 0, name
                shown += hostile.HOST in page.inner_text("body")
        browser.close()
    assert outside == []
    assert toolbars, "tables whose own download is not offered"
    assert shown >= 6, "pages that show hostile text as text"
