"""What Home proposes to compare a run with: one that measured in the same way whether its chain is
read, and of those the one whose verdict differs most plainly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cotlab.store.database import Store
from tests.support.linked import linked_view
from tests.support.stores.judged import add_measured_run
from tests.ui.test_pages import open_page


def compare_step(home: Any) -> tuple[str, str]:
    """Return the text and the address of the step."""
    view = linked_view(home, "steps")
    [step] = [s for s in view["steps"] if s["text"].startswith("Compare")]
    return step["text"], view["addresses"][step["link"]]


def test_the_proposed_run_asks_in_the_same_way_and_differs_most_plainly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path))
    store = Store(tmp_path)
    add_measured_run(store, "plain", {"change": 0, "control": 0}, model="bypass")
    add_measured_run(store, "half", {"change": 0.5, "control": 0}, model="half")
    add_measured_run(store, "hints", {"moved": 1, "admitted": 0}, model="bypass")
    add_measured_run(store, "newest", {"change": 1, "control": 0}, model="follows")
    text, address = compare_step(open_page("home"))
    assert text == "Compare with bypass"
    assert "other=plain" in address and "base=newest" in address
