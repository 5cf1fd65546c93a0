"""From a run to decisions in a real browser: label, fit, set thresholds, decide, check drift."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from benchmarks.mixed import mixed_suite
from cotlab.core.types import Item, Suite
from cotlab.store import calibrators, labels, read
from cotlab.store.calibrators import list_drift_checks
from cotlab.store.database import Store
from cotlab.store.decisions import list_audit, list_decisions
from cotlab.suites.jsonl import write_suite
from tests.support.browser import ARGUMENTS, LISTEN, serving, settle
from tests.support.running import run as run_command

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.soak,
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
N = 60
PICTURES = os.environ.get("COTLAB_TEST_PICTURES")
"""A folder for screenshots of each page on the way, where one is wanted."""


class Walk(NamedTuple):
    """A browser's page on the app over a store."""

    page: Any
    base: str
    store: Store

    def to(self, address: str, heading: str) -> None:
        from playwright.sync_api import expect

        self.page.goto(f"{self.base}{address}")
        expect(self.page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
        self.calm()

    def calm(self) -> None:
        """Wait until the page has finished, and check that it did not fail."""
        settle(self.page)
        assert self.page.get_by_text("This page failed").count() == 0

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()
        self.calm()

    def picture(self, name: str) -> None:
        for width in (1440, 800) if PICTURES else ():
            self.page.set_viewport_size({"width": width, "height": 1000})
            self.calm()
            tall = self.page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
            self.page.set_viewport_size({"width": width, "height": min(5000, max(1000, tall))})
            self.calm()
            self.page.screenshot(path=f"{PICTURES}/{name}-{width}.png")
        self.page.set_viewport_size({"width": 1440, "height": 1000})


@pytest.fixture
def walk(tmp_path: Path) -> Iterator[Walk]:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=180_000)
    with (
        serving(tmp_path / "store", tmp_path / "server.log") as base,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        page.set_default_timeout(180_000)
        page.add_init_script(LISTEN)
        yield Walk(page, base, Store(tmp_path / "store"))
        browser.close()


def shifted(n: int, before: Suite) -> Suite:
    """Return new questions of the same kind, none of whose chains is true."""
    drawn = mixed_suite(400, 9, excluded_questions={item.question for item in before.items}).items
    return Suite.from_items("shifted", [item for item in drawn if not item.meta["valid"]][:n])


def upload_and_run(walk: Walk, suite: Suite, folder: Path) -> str:
    """Upload a suite, measure the composite of its chains, and return the run's id."""
    from playwright.sync_api import expect

    path = folder / f"{suite.name}.jsonl"
    write_suite(suite, path)
    walk.to("/suites", "Suites")
    walk.page.get_by_role("tab", name="Upload").click()
    walk.page.get_by_role("tabpanel", name="Upload").locator("input[type=file]").set_input_files(
        path
    )
    walk.press(f"Add {len(suite.items)} items")
    expect(walk.page.get_by_text(f"Stored {len(suite.items)} items.")).to_be_visible()
    walk.calm()
    # the labels are about the chains of the suite, which the composite measures where it is told to
    told = ["--task-suite", str(path), "--profile", "phase3", "--chain", "reference"]
    code, _, error = run_command(walk.store.path.parent, *told)
    assert code == 0, error
    return str(read.list_runs(walk.store)["id"].iloc[0])


def make_queue(walk: Walk, run: str, name: str, n: int) -> None:
    """Make a queue with the page's form, which then opens it."""
    walk.to("/label", "Label")
    page = walk.page
    if page.get_by_label("Your name", exact=True).count():
        page.get_by_label("Your name", exact=True).fill("ada")
        walk.press("Begin")
        if page.get_by_role("button", name="I am ada").count():
            walk.press("I am ada")
    if not page.get_by_label("Name", exact=True).count():
        page.get_by_text("More: make a queue", exact=True).click()
        page.get_by_label("Name", exact=True).wait_for()
    box = page.get_by_role("combobox", name=re.compile("^(Selected .*)?Run")).last
    box.scroll_into_view_if_needed()
    settle(page)  # a list that opens while the page is scrolled or drawn again closes at once
    box.click()
    page.get_by_role("option", name=re.compile(run)).click()
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Items", exact=True).fill(str(n))
    page.keyboard.press("Tab")
    walk.press("Make the queue")
    page.wait_for_function("() => shown() !== ''")


def label_all(walk: Walk, items: Mapping[str, Item], n: int) -> None:
    """Label by keyboard: 1 where the chain is the true one, 2 with a failure mode elsewhere."""
    before = ready = ""
    for _ in range(n):
        walk.page.wait_for_function(
            "before => shown() !== '' && shown() !== before", arg=before, polling=20
        )
        walk.page.wait_for_function(
            "keys => ready() !== '' && ready() !== keys", arg=ready, polling=20
        )
        before, ready = walk.page.evaluate("shown()"), walk.page.evaluate("ready()")
        walk.page.wait_for_timeout(30)
        walk.page.keyboard.press("1" if items[before].meta["valid"] else "2")
    walk.calm()


def fit(walk: Walk, version: int) -> None:
    from playwright.sync_api import expect

    walk.to("/decide", "Decide")
    walk.page.get_by_text("Fit a calibrator", exact=True).wait_for()
    walk.calm()
    if version > 1:  # it lies open while there is no version
        walk.page.get_by_text("Fit a calibrator", exact=True).click()
        walk.calm()  # what opens moves its button
    walk.press("Fit")
    expect(walk.page.get_by_text(f"Version {version} is fitted and in use.")).to_be_visible()
    row = calibrators.current_calibrator(walk.store)
    assert row is not None and row["version"] == version


def test_from_a_run_to_decisions_and_back(walk: Walk, tmp_path: Path) -> None:
    from playwright.sync_api import expect

    first = mixed_suite(N, 3)
    run = upload_and_run(walk, first, tmp_path)
    make_queue(walk, run, "pilot", N)
    walk.picture("label")
    label_all(walk, {item.question: item for item in first.items}, N)
    expect(walk.page.get_by_text("This queue has all its labels.")).to_be_visible()
    said = labels.list_labels(walk.store, run=run)
    valid = {item.id: bool(item.meta["valid"]) for item in first.items}
    assert len(said) == N and said["id"].is_unique
    assert {r["item_id"]: r["reasoning"] == "acceptable" for r in said.to_dict("records")} == valid

    fit(walk, 1)
    walk.picture("calibration")
    walk.to(f"/decide?run={run}&thresholds=0.4,0.6&tab=policy", "Decide")
    walk.page.get_by_label("Reason for the change", exact=True).fill("pilot")
    walk.press("Save as the policy")
    walk.to(f"/decide?run={run}&tab=decisions", "Decide")
    walk.press("Decide on this run")
    expect(walk.page.get_by_role("button", name="Decide again")).to_be_visible()
    walk.page.get_by_text("More: all decisions").click()
    expect(walk.page.get_by_role("heading", name="Decisions of this run")).to_be_visible()
    made = list_decisions(walk.store, run_id=run)
    assert len(made) == N and set(made["calibrator"]) == {1}
    assert made["action"].nunique() > 1 and made["r_cal"].notna().any()
    low = made[made["r_cal"] < 0.4]["action"]
    assert (low == "escalate").all() and (made[made["r_cal"] >= 0.6]["action"] == "release").all()
    walk.picture("decisions")

    second = shifted(N, first)
    later = upload_and_run(walk, second, tmp_path)
    walk.to(f"/decide?reference={run}&current={later}&tab=drift", "Decide")
    expect(walk.page.get_by_text(re.compile("^Drift\\."))).to_be_visible()
    walk.press("Store this check")
    expect(walk.page.get_by_text("The check was stored.")).to_be_visible()
    check = list_drift_checks(walk.store).iloc[0]
    assert bool(check["alert"])
    walk.picture("drift")
    walk.to("/", "Can this model's chain of thought be trusted?")
    expect(walk.page.get_by_text(re.compile("Drift alerts?", re.IGNORECASE)).first).to_be_visible()
    walk.picture("home")

    make_queue(walk, later, "after the shift", 30)
    label_all(walk, {item.question: item for item in second.items}, 30)
    fit(walk, 2)
    walk.picture("refit")
    held = calibrators.current_calibrator(walk.store)
    assert held is not None and set(held["report"]["runs"]) == {run, later} and held["n"] > 60
    assert set(list_audit(walk.store)["what"]) >= {"policy", "decide"}
    walk.to(
        f"/label?queue={labels.list_label_queues(walk.store)['id'].iloc[0]}&tab=agreement",
        "Label",
    )
    walk.picture("agreement")
