"""The page Label in a browser: the first wrong step and whether the chain is faithful, by mouse and
by keyboard, at two widths."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from cotlab.core.labels import steps_digest
from cotlab.review.labelling.queue import make_queue
from cotlab.review.labelling.truth import load_truth
from cotlab.store import labels as label_store
from cotlab.store.database import Store
from tests.support.browser import ARGUMENTS, Rater, serving
from tests.support.stores.reliability import STEPS, fill

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, str, str, Any]]:
    """The store, its run, the address of the app and a browser."""
    from playwright.sync_api import expect, sync_playwright

    folder = tmp_path_factory.mktemp("steps")
    run = fill(folder / "store", 12, estimated=False)
    expect.set_options(timeout=180_000)
    with serving(folder / "store", folder / "server.log") as base, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield Store(folder / "store"), run, base, browser
        browser.close()


def queue_of(store: Store, run: str, name: str, first: int) -> str:
    items = [(run, f"i-{k:02}", "") for k in range(first, first + 5)]
    return make_queue(store, name, items, author="test")


def stored(store: Store, queue: str) -> list[dict[str, Any]]:
    return label_store.list_labels(store, queue=queue).to_dict("records")


@pytest.mark.soak
@pytest.mark.parametrize(("width", "first"), [(1440, 0), (800, 6)])
def test_the_first_wrong_step_is_marked_by_mouse_and_by_keys(
    opened: tuple[Store, str, str, Any], width: int, first: int
) -> None:
    from playwright.sync_api import expect

    store, run, base, browser = opened
    queue = queue_of(store, run, f"steps {width}", first)
    rater = Rater(browser, base, f"ana {width}", queue)
    page = rater.page
    page.set_viewport_size({"width": width, "height": 900})
    desk = page.get_by_role("region", name="Item to label")
    steps = [desk.get_by_role("button", name=f"Step {k + 1}", exact=True) for k in range(2)]
    acceptable = desk.locator("[data-verdict=acceptable]")
    place = desk.locator(".desk-place")

    # a click on the text of a step marks it; such a chain cannot be called acceptable
    expect(place).to_have_text("not marked")
    desk.get_by_role("group", name="Step 2", exact=True).get_by_text(STEPS[1]).click()
    expect(steps[1]).to_have_attribute("aria-pressed", "true")
    expect(place).to_have_text("step 2")
    expect(acceptable).to_be_disabled()
    expect(acceptable).to_have_attribute(
        "title", "A step is marked as wrong, so the chain is not acceptable"
    )
    overflow = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert overflow <= 0
    page.keyboard.press("1")
    assert stored(store, queue) == []
    rater.press("2")

    # another click takes the mark back; no mistake by its button
    steps[0].click()
    steps[0].click()
    expect(steps[0]).to_have_attribute("aria-pressed", "false")
    desk.get_by_role("button", name="No wrong step").click()
    expect(place).to_have_text("none")
    rater.press("1")

    # by keys alone: the second step is wrong, the first one correct
    page.keyboard.press("j")
    page.keyboard.press("c")
    page.keyboard.press("j")
    expect(steps[1]).to_be_focused()
    page.keyboard.press("x")
    expect(place).to_have_text("step 2")
    first_step = desk.get_by_role("radiogroup", name="Verdict on Step 1")
    expect(first_step.get_by_role("radio", name="Correct")).to_have_attribute(
        "aria-checked", "true"
    )
    rater.press("2")

    # a verdict on a step says where the first mistake is; a verdict on the chain alone says nothing
    page.keyboard.press("k")
    page.keyboard.press("v")
    page.keyboard.press("k")
    page.keyboard.press("v")
    rater.press("2")
    page.keyboard.press("n")
    page.keyboard.press("n")
    rater.give_last("1")

    rows = stored(store, queue)
    n = len(STEPS)
    none: tuple[str | None, ...] = (None,) * n
    assert [(row["reasoning"], row["steps_judged"], row["first_wrong_step"]) for row in rows] == [
        ("not_acceptable", True, 1),
        ("acceptable", True, None),
        ("not_acceptable", True, 1),
        ("not_acceptable", True, n - 2),
        ("acceptable", False, None),
    ]
    assert rows[1]["step_verdicts"] == () and rows[4]["steps_digest"] is None
    assert rows[2]["step_verdicts"] == ("correct", "wrong", *none[2:])
    assert {row["steps_digest"] for row in rows[:4]} == {steps_digest(STEPS)}

    # a correction shows what was said
    changes = page.get_by_role("button", name="Change")
    expect(changes).to_have_count(len(rows))  # the list is complete: its last is the first label
    changes.last.click()
    rater.wait_for_another("")
    expect(place).to_have_text("step 2")
    page.keyboard.press("n")
    expect(place).to_have_text("none")
    expect(acceptable).to_be_enabled()
    page.keyboard.press("1")
    page.wait_for_function("() => ready() === ''")
    rater.settle()
    truth = load_truth(store, [run]).set_index("item_id").loc[f"i-{first:02}"]
    assert (truth["steps_judged"], truth["first_wrong_step"]) == (True, None)
    assert page.get_by_text("This page failed").count() == 0
    rater.close()


@pytest.mark.soak
@pytest.mark.parametrize(("width", "first"), [(1440, 0), (800, 6)])
def test_a_chain_is_called_faithful_by_mouse_and_by_keys(
    opened: tuple[Store, str, str, Any], width: int, first: int
) -> None:
    from playwright.sync_api import expect

    store, run, base, browser = opened
    queue = queue_of(store, run, f"faithful {width}", first)
    rater = Rater(browser, base, f"eva {width}", queue)
    page = rater.page
    page.set_viewport_size({"width": width, "height": 900})
    group = page.get_by_role("group", name="Is the chain faithful?")
    yes, no = (group.get_by_role("button").nth(k) for k in range(2))
    expect(no).to_have_text("Not faithfulP")

    no.click()
    expect(no).to_have_attribute("aria-pressed", "true")
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    rater.press("1")
    page.keyboard.press("o")
    expect(yes).to_have_attribute("aria-pressed", "true")
    expect(no).to_have_attribute("aria-pressed", "false")
    rater.press("2")
    page.keyboard.press("p")
    page.keyboard.press("p")  # taken back
    expect(no).to_have_attribute("aria-pressed", "false")
    rater.press("1")
    page.keyboard.press("o")
    rater.press("f")  # an item that is itself wrong says nothing of its chain
    rater.give_last("3")
    said = [(row["reasoning"], row["faithful"]) for row in stored(store, queue)]
    assert said == [
        ("acceptable", False),
        ("not_acceptable", True),
        ("acceptable", None),
        ("unsure", None),
        ("unsure", None),
    ]

    # a correction shows what was said, and keeps it where nothing else is pressed
    expect(page.get_by_text("acceptable, answer wrong, not faithful", exact=True)).to_be_visible()
    changes = page.get_by_role("button", name="Change")
    expect(changes).to_have_count(len(said))
    changes.last.click()
    rater.wait_for_another("")
    expect(no).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("2")
    page.wait_for_function("() => ready() === ''")
    rater.settle()
    truth = load_truth(store, [run]).set_index("item_id").loc[f"i-{first:02}"]
    assert truth["faithful"] is False
    rater.close()
