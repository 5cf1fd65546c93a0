"""What the walks in a real browser share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

import cotlab
from tests.support.browser import ARGUMENTS, serving
from tests.support.stores import decided

SCORERS = ("ablation", "mediation", "robustness", "flags", "unfaithfulness", "composite")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Start a browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=ARGUMENTS
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def analysed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, str]]]:
    """Serve two runs of many scorers: the server's address, and the runs."""
    folder = tmp_path_factory.mktemp("deep")
    runs = {
        name: cotlab.run_suite(
            "wordproblems", store=folder / "store", model=model, scorer=list(SCORERS), limit=6
        ).run_id
        for name, model in (("run", "faithful-a"), ("other", "bypass-a"))
    }
    with serving(folder / "store", folder / "log") as base:
        yield base, runs


@pytest.fixture(scope="module")
def decisions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve a run with labels and a calibrator: the server's address."""
    folder = tmp_path_factory.mktemp("decided")
    store = decided.fill(folder / "store")
    with serving(store.folder, folder / "log") as base:
        yield base
