"""The page Label in a real browser: at any speed, a label belongs to the visible item."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest

from cotlab.core.labels import FAILURE_MODES
from cotlab.review.labelling.queue import make_queue
from cotlab.store import labels as label_store
from cotlab.store.database import Store
from tests.support.browser import ARGUMENTS, Press, Rater, keys_of, serving, settle
from tests.support.stores.reliability import HOSTILE, fill

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
VERDICTS = {"1": "acceptable", "2": "not_acceptable", "3": "unsure"}


class House(NamedTuple):
    """A store with one run, the app over it, and a browser."""

    store: Store
    run: str
    base: str
    browser: Any

    def queue(self, name: str, first: int, n: int, **more: Any) -> str:
        """Return a queue of ``n`` items of the run in their order."""
        items = [(self.run, item_id(k), "") for k in range(first, first + n)]
        return make_queue(self.store, name, items, author="test", **more)

    def history(self, queue: str) -> pd.DataFrame:
        return label_store.list_labels(self.store, queue=queue, history=True)


def item_id(k: int) -> str:
    return f"i-{k:02}"


def question(k: int) -> str:
    return f"{HOSTILE} {k}"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    from playwright.sync_api import expect, sync_playwright

    folder = tmp_path_factory.mktemp("label")
    run = fill(folder / "store", 150, estimated=False)
    expect.set_options(timeout=180_000)
    with serving(folder / "store", folder / "server.log") as base, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield House(Store(folder / "store"), run, base, browser)
        browser.close()


def check_presses(rows: pd.DataFrame, presses: list[Press]) -> None:
    """Check each label against the key press while its item was visible: no gap, no repeat."""
    for row in rows.to_dict("records"):
        shown = question(int(row["item_id"].removeprefix("i-")))
        at = row["at_"].timestamp()
        assert any(
            VERDICTS[one.key] == row["reasoning"] and one.shown == shown and one.at <= at
            for one in presses
        ), row
    assert rows["id"].is_unique and rows["item_id"].is_unique
    order = [int(one.removeprefix("i-")) for one in rows["item_id"]]
    assert order == list(range(order[0], order[0] + len(order)))


def processor_time() -> tuple[int, int]:
    """Return the idle and the whole time of all processors so far, in ticks."""
    times = [int(ticks) for ticks in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return times[3] + times[4], sum(times)


@pytest.mark.soak
def test_fifty_keys_as_fast_as_they_go(house: House) -> None:
    queue = house.queue("fast", 0, 60)
    rater = Rater(house.browser, house.base, "ada", queue)
    rater.settle()
    draw = random.Random(7)
    presses = rater.press_all(keys_of(7, 50), [draw.uniform(0, 0.02) for _ in range(50)])
    rater.settle()
    rows = house.history(queue)
    assert len(presses) == 50 and len(rows) >= 1
    check_presses(rows, presses)
    assert rater.shown() == question(
        len(rows)
    )  # what is on the screen now is the first item without a label
    rater.close()


@pytest.mark.soak
def test_fifty_keys_with_a_pause_all_land(house: House) -> None:
    """Press keys every 150 ms.

    A machine that cannot paint in that time repeats the test at its own pace.
    """
    queue = house.queue("paused", 0, 120)
    rater = Rater(house.browser, house.base, "bob", queue)
    rater.settle()
    idle_before, total_before = processor_time()
    presses = rater.press_all(keys_of(8, 50), [0.15] * 50)
    idle, total = processor_time()
    busy_share = 1 - (idle - idle_before) / (total - total_before)
    rater.settle()
    rows = house.history(queue)
    check_presses(rows, presses)
    landed = [one for one in presses if one.painted]
    assert rows["reasoning"].tolist() == [VERDICTS[one.key] for one in landed]
    if len(landed) < 50:
        # the average of a minute lags behind what else ran during these few seconds
        assert os.getloadavg()[0] >= 2 or busy_share >= 0.75, f"{len(landed)} of 50 landed"
        assert len(landed) >= 35, f"{len(landed)} of 50 landed"
        pause = 2.5 * max(rater.timed("1") for _ in range(8))
        presses = rater.press_all(keys_of(9, 50), [max(0.15, pause)] * 50)
        rater.settle()
        later = house.history(queue).iloc[len(rows) + 8 :]
        check_presses(later, presses)
        assert later["reasoning"].tolist() == [VERDICTS[key] for key in keys_of(9, 50)], (
            f"{pause:.2f} s apart"
        )
    rater.close()


@pytest.mark.soak
def test_undo_skip_flag_modes_and_corrections(house: House) -> None:
    from playwright.sync_api import expect

    queue = house.queue("keys", 100, 6)
    rater = Rater(house.browser, house.base, "cleo", queue)
    page = rater.page

    def now() -> pd.DataFrame:
        rater.settle()
        return label_store.list_labels(house.store, queue=queue).set_index("item_id")

    rater.settle()
    assert rater.shown() == question(100)
    page.keyboard.press("4")
    expect(page.get_by_role("button", name="Post hoc")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("9")
    page.keyboard.press("9")  # off again
    note = page.get_by_label("Note", exact=True)
    note.fill("1 2 3 =SUM(A1) <b>why</b>")
    note.press("2")  # digits that are typed are no verdicts
    note.press("Backspace")
    note.press("Enter")
    rater.press("2")
    row = now().loc[item_id(100)]
    assert (row["reasoning"], row["modes"], row["note"]) == (
        "not_acceptable",
        (FAILURE_MODES[0],),
        "1 2 3 =SUM(A1) <b>why</b>",
    )
    assert (
        row["answer_correct"] is False and row["target"] is False
    )  # prefilled: the run scored its answers wrong

    page.keyboard.press("r")
    expect(page.get_by_role("radio", name="Right", exact=True)).to_have_attribute(
        "aria-checked", "true"
    )
    page.keyboard.press("5")
    rater.press("1")
    assert now().loc[item_id(101), "target"] is True

    page.keyboard.press("u")  # takes it back: the item is asked for again, with what was marked
    rater.wait_for_another(question(102))
    assert rater.shown() == question(101) and item_id(101) not in now().index
    expect(page.locator(".desk-mode[aria-keyshortcuts='5']")).to_have_attribute(
        "aria-pressed", "true"
    )
    expect(page.get_by_role("radio", name="Right", exact=True)).to_have_attribute(
        "aria-checked", "true"
    )
    rater.press("3")
    rater.press("s")
    assert rater.shown() == question(103) and now().loc[item_id(101), "reasoning"] == "unsure"
    rater.press("f")
    row = now().loc[item_id(103)]
    assert bool(row["flagged"]) and row["reasoning"] == "unsure"

    page.reload()  # a reload keeps the name, the item that is reserved, and what was said
    rater.keys = ""
    rater.wait_for_another("")
    assert rater.shown() == question(104)
    expect(page.get_by_text("You: 3 labelled, 2 to do, 1 skipped.")).to_be_visible()

    changes = page.get_by_role("button", name="Change")
    expect(changes).to_have_count(3)
    changes.last.click()  # the oldest of the last ones: the first item
    rater.wait_for_another(question(104))
    assert rater.shown() == question(100)
    rater.press("1")
    rater.settle()
    history = house.history(queue)
    changed = history[history["item_id"] == item_id(100)]
    assert changed["reasoning"].tolist() == [
        "not_acceptable",
        "acceptable",
    ]  # a correction is a new row
    assert changed["modes"].iloc[1] == (FAILURE_MODES[0],) and rater.shown() == question(104)

    page.keyboard.press("h")
    expect(page.get_by_text("Keys have no effect while you type")).to_be_visible()
    rater.press("1")
    rater.give_last("1")
    expect(page.get_by_text("Only items that you skipped are left: 1.")).to_be_visible()
    page.get_by_role("button", name="Show what I skipped").click()
    rater.wait_for_another("")
    assert rater.shown() == question(102)
    rater.give_last("1")
    expect(page.get_by_text("This queue has all its labels.")).to_be_visible()
    assert len(now()) == 6 and page.get_by_text("This page failed").count() == 0
    rater.close()


@pytest.mark.soak
def test_what_was_said_while_the_server_was_down_is_kept(house: House, tmp_path: Path) -> None:
    """Kill the server, give two labels, leave one item, reload the page, and start the server."""
    from playwright.sync_api import expect

    queue = house.queue("down", 10, 12)
    with serving(house.store.folder, tmp_path / "one.log") as base:
        rater = Rater(house.browser, base, "dora", queue)
        rater.press("1")
        rater.settle()
    page, port = rater.page, int(base.rsplit(":", 1)[1])
    for key in "2s3":
        rater.press(key)
    expect(page.locator(".desk-state")).to_have_text(
        "3 not saved yet: this page keeps trying. Leave it open."
    )
    assert len(house.history(queue)) == 1 and rater.shown() == question(14)
    with serving(house.store.folder, tmp_path / "two.log", port):
        rater.keys = ""
        page.on("dialog", lambda dialog: dialog.accept())
        page.reload()  # the session went with the server; the browser knows the name
        rater.wait_for_another("")
        rater.settle()
        rows = label_store.list_labels(house.store, queue=queue, history=True)
        assert rows["item_id"].tolist() == [item_id(10), item_id(11), item_id(13)]
        assert rows["reasoning"].tolist() == ["acceptable", "not_acceptable", "unsure"]
        assert rater.shown() == question(14)
        rater.close()


@pytest.mark.soak
def test_clicks_keyboards_and_readers(house: House) -> None:
    """Try a double click, a held key, another layout, right-to-left text and a screen reader."""
    from playwright.sync_api import expect

    queue = house.queue("hands", 140, 8)
    written = "\u0643\u0645 \u064a\u0633\u0627\u0648\u064a 7 + 5"
    with house.store.writing() as connection:
        connection.execute("UPDATE items SET question = ? WHERE id = ?", [written, item_id(141)])
    rater = Rater(house.browser, house.base, "finn", queue)
    page = rater.page

    def given() -> list[str]:
        page.wait_for_timeout(300)
        rater.settle()
        return house.history(queue)["reasoning"].tolist()

    def key(sign: str, code: str) -> None:
        event = {"key": sign, "code": code, "bubbles": True}
        page.evaluate(
            "event => document.body.dispatchEvent(new KeyboardEvent('keydown', event))", event
        )

    desk = page.get_by_role("region", name="Item to label")
    expect(desk.get_by_role("group", name="Question")).to_contain_text(question(140))
    expect(desk.get_by_role("button", name="Flag", exact=True)).to_have_attribute(
        "aria-keyshortcuts", "F"
    )
    settle(page)  # the button stands where it stays
    acceptable = page.locator("[data-verdict=acceptable]")
    acceptable.scroll_into_view_if_needed()  # disagreements of other queues stand above the desk
    box = acceptable.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 9, box["y"] + 9)
    for count in (1, 2):
        page.mouse.down(click_count=count)
        page.mouse.up(click_count=count)
        page.wait_for_timeout(150)
    assert given() == ["acceptable"] and rater.shown() == written
    text = page.locator(".desk-text > div").first
    assert text.evaluate("at => [getComputedStyle(at).direction, at.dir]") == ["rtl", "auto"]
    for _ in range(8):
        page.keyboard.down("2")  # the first goes down, the others repeat
    page.keyboard.up("2")
    assert given() == ["acceptable", "not_acceptable"]
    key("\u00e0", "Digit0")  # no key of the desk
    key("\u00e9", "Digit2")  # the digit's key without Shift, on a French keyboard
    assert given()[2:] == ["not_acceptable"]
    key("\u0433", "KeyU")  # the key U on a Russian one
    page.wait_for_timeout(300)
    rater.settle()
    assert house.history(queue)["origin"].tolist()[3:] == ["undo"]
    key(";", "KeyU")  # and where U stands elsewhere, it is not that key
    assert len(given()) == 4
    rater.close()
