"""From a file of labelled chains to decisions on chains that no fit has seen, by pages alone."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from cotlab.store.database import Store
from cotlab.store.decisions import list_decisions
from tests.support.browser import ARGUMENTS, serving, settle

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.soak,
    pytest.mark.skipif(
        not os.environ.get("COTLAB_LONG_WALKS"), reason="takes over a minute: COTLAB_LONG_WALKS=1"
    ),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
N_CHAINS = 60


def labelled_chains() -> str:
    """ProcessBench records: a faulty chain has a false equation; answers and length say nothing."""
    drawn = random.Random(0)
    records = []
    for k in range(N_CHAINS):
        is_sound, a, b = k % 2 == 0, drawn.randint(10, 49), drawn.randint(10, 49)
        total = a + b + (0 if is_sound else 10)
        steps = [f"There are {a} red ones.", f"In all {a} + {b} = {total}.", f"So {total}."]
        records.append(
            {
                "id": f"math-{k}",
                "problem": f"There are {a} red and {b} blue ones in box {k}. How many in all?",
                "steps": steps,
                "final_answer_correct": drawn.random() < 0.5,
                "label": -1 if is_sound else 1,
            }
        )
    return json.dumps(records)


def test_from_a_file_to_decisions_on_the_held_part(tmp_path: Path) -> None:
    from playwright.sync_api import expect, sync_playwright

    file = tmp_path / "chains.json"
    file.write_text(labelled_chains(), "utf-8")
    expect.set_options(timeout=180_000)
    with (
        serving(tmp_path / "store", tmp_path / "server.log") as base,
        sync_playwright() as browsers,
    ):
        browser = browsers.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        page.set_default_timeout(60_000)
        runs = _measured_parts(page, base, file)
        fit_run, held_run = runs

        page.get_by_role("button", name="More").click()
        page.get_by_role("link", name="Your labels").click()
        settle(page)
        box = page.get_by_role("combobox", name="Fit on (optional)")
        box.fill("chains-fit")
        page.get_by_role("option").filter(has_text="chains-fit").first.click()
        expect(page.get_by_text(re.compile(r"On 30 labelled chains, \w+ .*tells"))).to_be_visible()
        expect(page.get_by_text(f"Fitted on {fit_run}; every number is of")).to_be_visible()

        page.goto(f"{base}/decide?run={fit_run}&target=chain_sound")
        _choose(page, "Weights of the components", "combined")
        page.get_by_role("button", name="Fit", exact=True).click()
        fitted = page.get_by_text("Version 1 is fitted and in use.")
        expect(fitted).to_be_visible(timeout=600_000)

        page.goto(f"{base}/decide?run={held_run}&tab=policy")
        page.get_by_text("Thresholds from costs or from a target precision").click()
        expect(page.get_by_text(re.compile("If r_cal is calibrated: low"))).to_be_visible()
        expect(page.get_by_text(re.compile("All domains, by 30 labels"))).to_be_visible()
        page.get_by_role("button", name="Try these thresholds").click()
        page.wait_for_url("**thresholds=**")
        page.get_by_label("Reason for the change").fill("least cost on the fit part")
        page.get_by_role("button", name="Save as the policy").click()
        expect(page.get_by_text(re.compile("Policy 1 is in force"))).to_be_visible()
        page.get_by_role("tab", name="Decisions").click()
        page.get_by_role("button", name="Decide on this run").click()
        expect(page.get_by_role("button", name="Decide again")).to_be_visible()
        browser.close()
    decisions = list_decisions(Store(tmp_path / "store"), held_run)
    is_sound = [int(item.removeprefix("math-")) % 2 == 0 for item in decisions["item_id"]]
    assert len(decisions) == N_CHAINS // 2 and set(decisions["calibrator"]) == {1}
    assert decisions["r_cal"][is_sound].min() > decisions["r_cal"][[not s for s in is_sound]].max()
    assert list_decisions(Store(tmp_path / "store"), fit_run).empty


def _measured_parts(page: Any, base: str, file: Path) -> tuple[str, str]:
    """Import the file, divide it by question, and run both parts; return the runs."""
    from playwright.sync_api import expect

    page.goto(f"{base}/suites")
    page.get_by_role("tab", name="Upload").click()
    page.get_by_role("tabpanel", name="Upload").locator("input[type=file]").set_input_files(file)
    page.get_by_role("button", name=f"Add {N_CHAINS} items").click()
    expect(page.get_by_text(f"Stored {N_CHAINS} items.")).to_be_visible()
    upload = page.get_by_role("tabpanel", name="Upload")
    upload.get_by_text("Divide by question: fit on one part, test on the other").click()
    expect(upload.get_by_label("Name of the first part")).to_have_value("chains-fit")
    upload.get_by_role("button", name="Divide").click()
    links = [
        upload.get_by_role("link", name=re.compile(f"labelled chains of chains-{part},"))
        for part in ("fit", "test")
    ]
    addresses = [link.get_attribute("href") for link in links]
    runs = []
    for address in addresses:
        page.goto(f"{base}/{address.lstrip('/')}")
        start = page.get_by_role("button", name="Start run")
        expect(start).to_be_enabled()
        settle(page)
        start.click()
        page.wait_for_url("**run?run=**")
        expect(page.get_by_text(re.compile("items? · done"))).to_be_visible()
        runs.append(page.url.partition("run?run=")[2].partition("&")[0])
    return runs[0], runs[1]


def _choose(page: Any, label: str, text: str) -> None:
    """Choose the option of a list that has this text."""
    from playwright.sync_api import expect

    settle(page)
    box = page.get_by_role("combobox", name=label, exact=True)
    box.click()
    box.fill(text)
    page.get_by_role("option").filter(has_text=text).first.click()
    expect(box).to_have_value(re.compile(re.escape(text)))
    settle(page)
