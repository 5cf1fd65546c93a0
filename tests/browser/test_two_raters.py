"""Two raters in two browsers on one queue: no label is lost or mixed up, and agreement is right."""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from cotlab.figures.style import format_number
from cotlab.review.labelling.queue import make_queue
from cotlab.store import labels as label_store
from cotlab.store.database import Store
from tests.support.browser import ARGUMENTS, Rater, serving
from tests.support.stores.reliability import HOSTILE, fill

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.soak,  # two hundred labels, one after the other
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
VERDICTS = {"1": "acceptable", "2": "not_acceptable", "3": "unsure"}
N, OVERLAP, EACH = 165, 50, 100
"""There is a little more to label than both are asked for in step: who gets the last places depends
on who is there first."""


def key_of(name: str, item: int) -> str:
    """Return a rater's key for an item: the true verdict in three of four cases, else any."""
    truth = random.Random(item).choice("112")
    own = random.Random(f"{name} {item}")
    return truth if own.random() < 0.75 else own.choice("123")


def kappa_by_hand(pairs: Sequence[tuple[str, str]]) -> float:
    """Return (observed - expected) / (1 - expected), expected from each rater's own shares."""
    n = len(pairs)
    one, two = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    same = sum(a == b for a, b in pairs) / n
    chance = sum(one[word] * two[word] for word in one) / n**2
    return (same - chance) / (1 - chance)


def alpha_by_hand(pairs: Sequence[tuple[str, str]]) -> float:
    """Return 1 - observed / expected disagreement, expected from all values without replacement."""
    pooled = Counter(word for pair in pairs for word in pair)
    n = sum(pooled.values())
    differ = sum(a != b for a, b in pairs) / len(pairs)
    chance = 1 - sum(count * (count - 1) for count in pooled.values()) / (n * (n - 1))
    return 1 - differ / chance


def test_none_lost_none_crossed_and_agreement_as_by_hand(tmp_path: Path) -> None:
    from playwright.sync_api import expect, sync_playwright

    run, store = fill(tmp_path / "store", N, estimated=False), Store(tmp_path / "store")
    queue = make_queue(
        store, "two", [(run, f"i-{k:02}", "") for k in range(N)], overlap=OVERLAP / N, author="test"
    )
    wanted = label_store.list_queue_items(store, queue).set_index("item_id")["raters"]
    assert (wanted == 2).sum() == OVERLAP and (wanted == 1).sum() == N - OVERLAP
    expect.set_options(timeout=180_000)
    with (
        serving(tmp_path / "store", tmp_path / "server.log") as base,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        raters = {name: Rater(browser, base, name, queue) for name in ("ada", "bob")}
        said: dict[tuple[str, int], str] = {}
        for step in range(EACH):
            before = {}
            for name, rater in raters.items():  # both press, then both wait
                before[name] = rater.shown()
                item = int(before[name].removeprefix(HOSTILE))
                said[name, item] = VERDICTS[key_of(name, item)]
                rater.page.keyboard.press(key_of(name, item))
            if step < EACH - 1:
                for name, rater in raters.items():
                    rater.wait_for_another(before[name])
        for rater in raters.values():
            rater.settle()
        assert label_store.list_labels(store, queue=queue).groupby("rater").size().to_dict() == {
            "ada": EACH,
            "bob": EACH,
        }
        until = time.monotonic() + 180
        while len(said) < N + OVERLAP:  # the last places, whoever they are left to
            assert time.monotonic() < until, (
                f"{len(said)} labels are said of {N + OVERLAP} that are wanted"
            )
            for name, rater in raters.items():
                if rater.page.evaluate("ready()"):
                    item = int(rater.shown().removeprefix(HOSTILE))
                    said[name, item] = VERDICTS[key_of(name, item)]
                    rater.page.keyboard.press(key_of(name, item))
                    rater.settle()
            raters["ada"].page.wait_for_timeout(100)
        done = f"{N + OVERLAP} of {N + OVERLAP} labels, {N} of {N} items complete"
        for rater in raters.values():
            expect(rater.page.get_by_text(done)).to_be_visible()

        rows = label_store.list_labels(store, queue=queue, history=True)
        found = {
            (r["rater"], int(r["item_id"].removeprefix("i-"))): r["reasoning"]
            for r in rows.to_dict("records")
        }
        assert (
            found == said and len(rows) == N + OVERLAP
        )  # each is the verdict of its rater on its item, and there is no other
        assert rows.groupby("item_id").size().to_dict() == wanted.to_dict()

        both = [k for k in range(N) if ("ada", k) in said and ("bob", k) in said]
        pairs = [(said["ada", k], said["bob", k]) for k in both]
        assert len(pairs) == OVERLAP
        page = raters["ada"].page
        page.goto(f"{base}/label?queue={queue}&tab=agreement")
        told = f"{N} items with a label, {OVERLAP} of them with labels of two raters or more."
        expect(page.get_by_text(told)).to_be_visible()
        texts = page.locator(".js-plotly-plot .annotation-text")
        expect(texts).to_have_count(2)
        assert (texts.nth(0).text_content() or "").startswith(format_number(alpha_by_hand(pairs)))
        assert (texts.nth(1).text_content() or "").startswith(format_number(kappa_by_hand(pairs)))
        assert f"n = {len(pairs)} items" in (texts.nth(1).text_content() or "")
        page.get_by_role("tab", name="Disagreements").click()
        differ = sum(a != b for a, b in pairs)
        expect(
            page.get_by_text(f"{differ} items, {differ} of them not adjudicated.")
        ).to_be_visible()
        page.get_by_role("button", name=f"Queue {differ} for adjudication").click()
        expect(page.get_by_role("link", name="To the new queue")).to_be_visible()
        made = label_store.list_label_queues(store)
        assert made[made["kind"] == "adjudication"]["n"].tolist() == [differ]
        page.screenshot(path=str(tmp_path / "agreement.png"), full_page=True)
        browser.close()
