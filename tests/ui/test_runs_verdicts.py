"""The page Runs of a store whose verdicts nobody has computed: the table does not wait for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import streamlit as st

from cotlab.store.database import Store
from cotlab.ui.runs.list import MAX_COMPUTED_VERDICTS
from tests.support.linked import linked_view
from tests.support.stores.judged import add_measured_run, numbered_suite
from tests.ui.test_pages import open_page

N_RUNS = 2 * MAX_COMPUTED_VERDICTS + 1


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store of an earlier version: finished runs without any kept verdict."""
    store, suite = Store(tmp_path), numbered_suite()
    for k in range(N_RUNS):
        add_measured_run(store, f"run-{k}", {"change": 1, "control": 0}, suite=suite)
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path))
    return store


def count_kept(store: Store) -> int:
    """Return how many verdicts the store keeps."""
    return len(store.query_rows("SELECT run FROM run_results WHERE kind = 'verdict'"))


def listed_verdicts() -> list[str]:
    """Return the finding of each run on the page."""
    table: dict[str, Any] = linked_view(open_page("runs"), "table")
    (column,) = [i for i, entry in enumerate(table["columns"]) if entry["title"] == "Verdict"]
    return [row[column]["text"] for row in table["rows"]]


def test_a_first_look_at_runs_ends_with_every_verdict_computed_and_kept(store: Store) -> None:
    assert listed_verdicts() == ["mostly follows"] * N_RUNS
    assert count_kept(store) == N_RUNS


def test_the_table_of_runs_is_there_after_a_few_verdicts(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(st, "rerun", lambda: None)
    for n_computed in (MAX_COMPUTED_VERDICTS, 2 * MAX_COMPUTED_VERDICTS, N_RUNS):
        findings = listed_verdicts()
        assert findings.count("mostly follows") == n_computed == count_kept(store)
        assert findings.count("being computed") == N_RUNS - n_computed
