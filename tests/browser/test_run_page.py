"""The page Run in a real browser: it polls until the run ends, and then no longer; a click on Stop
counts however soon the page is left."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import cotlab
from cotlab.core.errors import UnknownName
from cotlab.store import read, write
from cotlab.store.database import Store
from cotlab.store.live import LiveRunStore, RunProgress
from cotlab.store.log import open_log
from cotlab.suites.jsonl import write_suite
from cotlab.suites.wordproblems import make_suite
from tests.support.browser import ARGUMENTS, serving, settle
from tests.support.running import start

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.soak,  # tests/ui/test_run_page_polls.py asks the same of the server's messages
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
QUIET_MS = 5000


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def server(store: Store, tmp_path: Path) -> Iterator[str]:
    with serving(store.folder, tmp_path / "server.log") as base:
        yield base


def becomes(store: Store, run: str, status: str) -> None:
    """Let a run have this status since an hour ago, as its process would write it."""
    with store.writing() as connection:
        write.set_status(connection, run, status)
        connection.execute(
            "UPDATE runs SET ended_at = ended_at - INTERVAL 1 HOUR WHERE id = ?", [run]
        )
    live = LiveRunStore(store.log_path)
    live.write_heartbeat(run, RunProgress(status=status, items_done=1, items_total=3))
    live.close()
    with closing(
        open_log(store.log_path)
    ) as log:  # it does not grow stale while a slow machine draws the page
        log.execute("UPDATE live SET heartbeat = heartbeat + 600")


def test_a_run_is_followed_to_its_end_and_then_nothing_is_sent(store: Store, server: str) -> None:
    from playwright.sync_api import WebSocket, expect, sync_playwright

    run = cotlab.run_suite(
        "wordproblems", store=store.folder, model="faithful-a", mode=["remove"], limit=3
    ).run_id
    becomes(store, run, "running")
    frames: list[str] = []

    def listen(socket: WebSocket) -> None:
        socket.on("framesent", lambda _: frames.append("sent"))
        socket.on("framereceived", lambda _: frames.append("received"))

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        page.set_default_timeout(180_000)
        expect.set_options(timeout=180_000)
        page.on("websocket", listen)
        page.goto(f"{server}/run?run={run}")
        expect(page.get_by_text(re.compile("items? · running"))).to_be_visible()
        frames.clear()
        for _ in range(240):  # it asks each second; a busy machine is late
            page.wait_for_timeout(500)
            if "sent" in frames:
                break
        assert "sent" in frames, "it comes back by itself"
        becomes(store, run, "done")
        expect(page.get_by_text(re.compile("items? · done"))).to_be_visible()
        expect(page.get_by_role("button", name="Stop")).to_have_count(0)
        settle(page)  # the page of a run that has ended is drawn anew
        page.get_by_role("tab", name="Items").click()
        expect(page.get_by_role("table", name="Items")).to_be_visible()
        for at in ("drawn anew", "opened"):
            settle(page)
            for _ in range(20):  # what was asked for before may come late; who polls never ends
                frames.clear()
                page.wait_for_timeout(QUIET_MS)
                if not frames:
                    break
            assert frames == [], at
            if at == "drawn anew":
                page.reload()
                expect(page.get_by_text(re.compile("items? · done"))).to_be_visible()
        browser.close()


def test_a_run_that_is_resumed_from_its_page_is_followed_again(store: Store, server: str) -> None:
    from playwright.sync_api import expect, sync_playwright

    run = cotlab.run_suite(
        "wordproblems", store=store.folder, model="faithful-a", mode=["remove"], limit=3
    ).run_id
    becomes(store, run, "stopped")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        page.set_default_timeout(60_000)
        expect.set_options(timeout=180_000)
        page.goto(f"{server}/run?run={run}")
        expect(page.get_by_text(re.compile("items? · stopped"))).to_be_visible()
        page.get_by_role("button", name="Resume").click()
        expect(page.get_by_text("Resuming: the model is being loaded.")).to_be_visible()
        expect(page.get_by_text(re.compile("items? · done"))).to_be_visible()
        expect(page.get_by_role("button", name="Resume")).to_have_count(0)
        browser.close()


@pytest.mark.parametrize("way", ["sidebar", "address"])
def test_a_stop_counts_though_the_page_is_left_at_once(
    way: str, store: Store, server: str, tmp_path: Path
) -> None:
    from playwright.sync_api import expect, sync_playwright

    path = tmp_path / "many.jsonl"
    write_suite(make_suite(2000), path)
    words = ("--task-suite", str(path), "--model", "r100", "--mode", "corrupt", "--run-id", "r")
    process = start(store.folder, *words, "--chain", "reference")
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            page = browser.new_page(viewport={"width": 1440, "height": 1000})
            page.set_default_timeout(180_000)
            expect.set_options(timeout=180_000)
            for _ in range(600):
                try:
                    read.get_run(store, "r")
                    break
                except UnknownName:
                    page.wait_for_timeout(200)
            page.goto(f"{server}/run?run=r")
            button = page.get_by_role("button", name="Stop")
            suites = page.get_by_role("link", name=re.compile("Suites"))
            expect(suites).to_be_visible()
            expect(button).to_be_enabled()
            button.click()
            page.wait_for_timeout(150)
            if way == "sidebar":
                suites.click(no_wait_after=True)
            else:
                page.goto(f"{server}/suites")
            expect(page.get_by_role("heading", name="Suites", level=1)).to_be_visible()
            browser.close()
        process.communicate(timeout=600)
    finally:
        process.kill()
    row = read.get_run(store, "r")
    assert (row["status"], row["note"]) == ("stopped", "stopped on request")
