"""The page Label in a browser: what a rater reads before the verdict, keys by keyboard layout, the
name over a reload, guidelines, and a disagreement settled, at two widths."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cotlab.core.labels import Label, Verdict, steps_digest
from cotlab.review.labelling.agreement import open_adjudication
from cotlab.review.labelling.queue import make_queue
from cotlab.review.labelling.truth import load_truth
from cotlab.store import labels as label_store
from cotlab.store.database import Store
from tests.support.browser import ARGUMENTS, Rater, serving
from tests.support.stores import MODEL
from tests.support.stores.reliability import STEPS, fill

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.soak,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
AZERTY = """
const keys = new Map([['Digit1', '&'], ['Digit2', 'é'], ['KeyU', 'u'], ['KeyQ', 'a']]);
Object.defineProperty(navigator, 'keyboard', {value: {getLayoutMap: async () => keys}});
"""
GREEK = """
const keys = new Map([['Digit1', '1'], ['KeyU', 'θ'], ['KeyN', 'ν']]);
Object.defineProperty(navigator, 'keyboard', {value: {getLayoutMap: async () => keys}});
"""


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, str, str, Any]]:
    """The store, its run, the address of the app and a browser."""
    from playwright.sync_api import expect, sync_playwright

    folder = tmp_path_factory.mktemp("blind")
    run = fill(folder / "store", 12, estimated=False)
    expect.set_options(timeout=180_000)
    with serving(folder / "store", folder / "server.log") as base, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield Store(folder / "store"), run, base, browser
        browser.close()


def queue_of(store: Store, run: str, name: str, first: int, n: int, **more: Any) -> str:
    items = [(run, f"i-{k:02}", "") for k in range(first, first + n)]
    return make_queue(store, name, items, author="test", **more)


def test_nothing_reveals_run_model_or_key_before_the_verdict(
    opened: tuple[Store, str, str, Any],
) -> None:
    from playwright.sync_api import expect

    store, run, base, browser = opened
    rater = Rater(browser, base, "ann", queue_of(store, run, f"of {run}", 0, 2))
    page = rater.page
    for n_labels in range(2):
        html = page.content().replace("is the answer right", "").lower()
        for name in (run, MODEL.name, "right answer" if not n_labels else run):
            assert name.lower() not in html, name
        assert run not in page.title() and run not in page.url
        if not n_labels:
            rater.press("1")
            rater.settle()
            expect(page.get_by_text("right answer 12")).to_be_visible()
    rater.give_last("2")
    link = page.get_by_role("link", name=MODEL.name).first
    expect(link).to_have_attribute("href", f"run?run={run}&item=i-01&tab=items")
    page.get_by_role("button", name="Agreement").click()
    expect(page.get_by_role("heading", name="Raters", exact=True)).to_be_visible()
    rater.close()


@pytest.mark.parametrize(
    ("layout", "signs"), [(AZERTY, {"1": "1 &", "U": "U"}), (GREEK, {"1": "1", "U": "U Θ"})]
)
def test_a_key_shows_what_this_keyboard_has_on_it(
    opened: tuple[Store, str, str, Any], layout: str, signs: dict[str, str]
) -> None:
    from playwright.sync_api import expect

    store, run, base, browser = opened
    page = browser.new_page()
    page.add_init_script(layout)
    page.goto(f"{base}/label?queue={queue_of(store, run, 'keys', 2, 1, raters=3)}")
    page.get_by_label("Your name", exact=True).fill(f"kay {signs['U']}")
    page.get_by_role("button", name="Begin").click()
    for key, sign in signs.items():
        expect(page.locator(f"[aria-keyshortcuts='{key}'] kbd").first).to_have_text(sign)
    page.close()


def test_guidelines_stand_beside_the_form_and_the_name_outlives_a_reload(
    opened: tuple[Store, str, str, Any],
) -> None:
    from playwright.sync_api import expect

    store, run, base, browser = opened
    rater = Rater(browser, base, "Gül, 2", queue_of(store, run, "guided", 3, 2))
    page = rater.page
    example = page.get_by_text("Jedes <b>Beispiel</b>")
    guidelines = page.locator(".desk-guidelines")
    expect(guidelines.get_by_text("The first wrong step")).to_be_visible()
    form, text = page.locator(".desk-form").bounding_box(), page.locator(".desk-texts")
    box = text.bounding_box()
    assert form is not None and box is not None and form["x"] >= box["x"] + box["width"]
    page.keyboard.press("g")
    expect(guidelines).not_to_have_attribute("open", "")
    path = Path(store.folder) / "guidelines.txt"
    path.write_text("# Regeln\nJedes <b>Beispiel</b>\n", "utf-8")
    page.reload()
    rater.keys = ""
    rater.wait_for_another("")
    expect(page.get_by_text("You label as Gül, 2.")).to_be_visible()
    expect(guidelines).not_to_have_attribute("open", "")  # as it was left
    page.keyboard.press("g")
    expect(example).to_be_visible()  # with its signs as they are
    path.unlink()
    page.get_by_role("button", name="Somebody else").click()
    expect(page.get_by_label("Your name", exact=True)).to_be_visible()
    page.wait_for_function("() => !document.cookie.includes('cotlab_rater')")
    page.reload()
    expect(page.get_by_label("Your name", exact=True)).to_be_visible()
    rater.close()


@pytest.mark.parametrize(("width", "item"), [(1440, "i-08"), (800, "i-09")])
def test_a_disagreement_is_settled_by_keys_and_undone(
    opened: tuple[Store, str, str, Any], width: int, item: str
) -> None:
    from playwright.sync_api import expect

    store, run, base, browser = opened
    given: list[tuple[str, Verdict, int | None]] = [
        ("ann", "acceptable", None),
        ("<i>bob</i>", "not_acceptable", 1),
    ]
    rows = [
        Label(
            f"{name} {item}",
            run,
            item,
            name,
            verdict,
            None,
            datetime.now(UTC),
            steps_judged=True,
            first_wrong_step=first,
            steps_digest=steps_digest(STEPS),
        )
        for name, verdict, first in given
    ]
    with store.writing() as connection:
        label_store.add_labels(connection, rows)
    queue = open_adjudication(store, author="test")
    rater = Rater(browser, base, f"dee {width}", queue)
    page = rater.page
    page.set_viewport_size({"width": width, "height": 900})
    others = page.locator(".desk-others")
    expect(page.get_by_text("Your own view, before you see the raters'")).to_be_visible()
    expect(page.get_by_text("<i>bob</i>")).to_have_count(0)
    page.get_by_role("button", name="Step 3", exact=True).click()
    page.keyboard.press("2")
    expect(others.get_by_role("columnheader", name="<i>bob</i>")).to_be_visible()
    expect(others.get_by_text("Your own view: not acceptable.")).to_be_visible()
    assert label_store.list_labels(store, rater=f"dee {width}").empty
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    page.get_by_role("button", name="Step 2", exact=True).click()  # bob has seen more
    page.wait_for_timeout(800)  # what has just come up cannot be settled by the same press
    rater.give_last("2")

    def truth() -> tuple[object, object]:
        row = load_truth(store, [run]).set_index("item_id").loc[item]
        return row["sound"], row["first_wrong_step"]

    assert truth() == (False, 1)
    page.goto(f"{base}/label?tab=disagreements")
    expect(page.get_by_text(f"settled by dee {width}")).to_be_visible()
    page.goto(f"{base}/label?queue={queue}")
    rater.keys = ""
    page.get_by_role("button", name="Undo").click()
    rater.wait_for_another("")
    rater.settle()
    assert truth() == (None, None)
    page.get_by_role("button", name="Step 2", exact=True).click()  # what was marked is there again
    page.keyboard.press("1")
    page.wait_for_timeout(800)
    rater.give_last("1")  # for the next test, nothing is left to settle
    rater.close()
