"""The page Label in a real browser: whatever the speed of the keys, a label is of the item that was on the screen, once."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Iterator
from typing import Any, NamedTuple

import pandas as pd
import pytest
from labelling import ARGUMENTS, Rater, keys_of, serving
from reliability_store import HOSTILE, fill

from cotlab.core.labels import FAILURE_MODES
from cotlab.review.queue import make_queue
from cotlab.store import labels as kept
from cotlab.store.gate import Store

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
        """A queue of ``n`` items of the run in their order."""
        items = [(self.run, item_id(k), "") for k in range(first, first + n)]
        return make_queue(self.store, name, items, by="test", **more)

    def history(self, queue: str) -> pd.DataFrame:
        return kept.labels(self.store, queue=queue, history=True)


def item_id(k: int) -> str:
    return f"i-{k:02}"


def question(k: int) -> str:
    return f"{HOSTILE} {k}"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    from playwright.sync_api import expect, sync_playwright

    folder = tmp_path_factory.mktemp("label")
    run = fill(folder / "store", 150, estimated=False)
    expect.set_options(timeout=40_000)
    with serving(folder / "store", folder / "server.log") as base, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield House(Store(folder / "store"), run, base, browser)
        browser.close()


def check_presses(rows: pd.DataFrame, presses: list[tuple[str, float, str]]) -> None:
    """Each label follows a press of its key while its item's question was on the screen; no item has two, none is left out."""
    for row in rows.to_dict("records"):
        shown = question(int(row["item_id"].removeprefix("i-")))
        at = row["at_"].timestamp()
        assert any(VERDICTS[key] == row["reasoning"] and seen == shown and when <= at for key, when, seen in presses), row
    assert rows["id"].is_unique and rows["item_id"].is_unique
    order = [int(one.removeprefix("i-")) for one in rows["item_id"]]
    assert order == list(range(order[0], order[0] + len(order)))


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
    assert rater.shown() == question(len(rows))  # what is on the screen now is the first item without a label
    rater.close()


@pytest.mark.soak
def test_fifty_keys_with_a_pause_all_land(house: House) -> None:
    """Presses 150 ms apart; on a machine that takes longer to show an item, as far apart as it needs."""
    queue = house.queue("paused", 0, 70)
    rater = Rater(house.browser, house.base, "bob", queue)
    rater.settle()
    slowest = max(rater.timed("1") for _ in range(8))
    pause = 0.15 if slowest < 0.15 else 2.5 * slowest
    presses = rater.press_all(keys_of(8, 50), [pause] * 50)
    rater.settle()
    rows = house.history(queue)
    check_presses(rows.iloc[8:], presses)
    assert len(rows) == 58, f"{len(rows) - 8} of 50 presses landed, {pause:.2f} s apart; {len({p[2] for p in presses})} seen"
    assert rows["reasoning"].iloc[8:].tolist() == [VERDICTS[key] for key in keys_of(8, 50)]
    rater.close()


@pytest.mark.soak
def test_undo_skip_flag_modes_and_corrections(house: House) -> None:
    from playwright.sync_api import expect

    queue = house.queue("keys", 100, 6)
    rater = Rater(house.browser, house.base, "cleo", queue)
    page = rater.page

    def now() -> pd.DataFrame:
        rater.settle()
        return kept.labels(house.store, queue=queue).set_index("item_id")

    rater.settle()
    assert rater.shown() == question(100)
    page.keyboard.press("4")
    expect(page.get_by_role("button", name=re.compile("Post hoc")).get_by_text("check_box", exact=True)).to_be_visible()
    page.keyboard.press("9")
    rater.settle()
    page.keyboard.press("9")  # off again
    rater.settle()
    note = page.get_by_label("Note", exact=True)
    note.fill("1 2 3 =SUM(A1) <b>why</b>")  # digits that are typed are no verdicts
    note.press("Enter")
    rater.settle()
    page.locator("h1").first.click()
    rater.press("2")
    row = now().loc[item_id(100)]
    assert (row["reasoning"], row["modes"], row["note"]) == ("not_acceptable", (FAILURE_MODES[0],), "1 2 3 =SUM(A1) <b>why</b>")
    assert row["answer_correct"] is False and row["target"] is False  # prefilled: the run scored its answers wrong

    page.get_by_role("radio", name="correct", exact=True).click()
    rater.settle()
    rater.press("1")
    assert now().loc[item_id(101), "target"] is True

    page.keyboard.press("z")  # takes it back: the item is asked for again
    rater.wait_for_another(question(102))
    assert rater.shown() == question(101) and item_id(101) not in now().index
    rater.press("3")
    rater.press("s")
    assert rater.shown() == question(103) and now().loc[item_id(101), "reasoning"] == "unsure"
    rater.press("f")
    row = now().loc[item_id(103)]
    assert bool(row["flagged"]) and row["reasoning"] == "unsure"

    page.reload()  # a reload keeps the item that is reserved, and what was said
    rater.keys = ""
    rater.enter("cleo")
    assert rater.shown() == question(104)
    expect(page.get_by_text("You: 3 labelled, 2 to do, 1 skipped.")).to_be_visible()

    page.get_by_role("button", name="Change").last.click()  # the oldest of the last ten: the first item
    rater.wait_for_another(question(104))
    assert rater.shown() == question(100)
    rater.press("1")
    history = house.history(queue)
    changed = history[history["item_id"] == item_id(100)]
    assert changed["reasoning"].tolist() == ["not_acceptable", "acceptable"]  # a correction is a new row
    assert changed["modes"].iloc[1] == (FAILURE_MODES[0],) and rater.shown() == question(104)

    page.keyboard.press("h")
    expect(page.get_by_text("Keys rest while you type")).to_be_visible()
    rater.press("1")
    page.keyboard.press("1")
    expect(page.get_by_text("Only what you skipped is left: 1.")).to_be_visible()
    page.get_by_role("button", name="Show what I skipped").click()
    rater.wait_for_another("")
    assert rater.shown() == question(102)
    page.keyboard.press("1")
    expect(page.get_by_text("This queue has all the labels that it wants.")).to_be_visible()
    assert len(now()) == 6 and page.get_by_text("This page failed").count() == 0
    rater.close()
