"""A verdict names an earlier run of the same model and suite that found something else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cotlab.analysis.verdict import stored
from cotlab.analysis.verdict.record import judge_stored_run
from cotlab.analysis.verdict.wording import Passage
from cotlab.analysis.view import RunView
from cotlab.store.database import Store
from cotlab.store.run_names import delete_run, edit_run
from tests.support.linked import linked_view
from tests.support.stores.judged import add_measured_run, numbered_suite
from tests.ui.test_pages import open_page

FOLLOWS, IGNORES = {"change": 1.0, "control": 0.0}, {"change": 0.0, "control": 0.0}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return a store with an earlier run in which no answer changed, and a later one."""
    store = Store(tmp_path / "store")
    add_measured_run(store, "before", IGNORES)
    add_measured_run(store, "now", FOLLOWS)
    return store


def earlier_link(store: Store, run: str) -> Passage | None:
    result = judge_stored_run(RunView.read(store, run))
    passages = [passage for sentence in result.verdict.sentences for passage in sentence]
    return next((passage for passage in passages if passage.earlier_run), None)


def test_the_later_run_names_the_earlier_one_with_both_shares(store: Store) -> None:
    link = earlier_link(store, "now")
    assert link is not None and link.earlier_run == "before"
    result = judge_stored_run(RunView.read(store, "now"))
    assert result.evidence.earlier is not None
    text = result.evidence.earlier.text
    assert "0 % there and 100 % here" in text and "+100" in text and "n = 40" in text
    assert earlier_link(store, "before") is None, "nothing was known when it ended"


@pytest.mark.parametrize(
    ("values", "more"),
    [
        (FOLLOWS, {}),
        (IGNORES, {"model": "another"}),
        (IGNORES, {"suite": numbered_suite(40, "others", source="b")}),
        (IGNORES, {"status": "stopped"}),
        ({"sound": 1.0}, {}),
    ],
    ids=["same finding", "other model", "other suite", "not done", "another measure"],
)
def test_a_run_that_found_nothing_else_is_not_named(
    tmp_path: Path, values: dict[str, float], more: dict[str, Any]
) -> None:
    store = Store(tmp_path / "store")
    add_measured_run(store, "before", values, **more)
    add_measured_run(store, "now", FOLLOWS)
    assert earlier_link(store, "now") is None


def test_a_deleted_run_is_named_no_longer(store: Store) -> None:
    assert "before" in str(stored.judge_run_once(RunView.read(store, "now")).evidence.earlier)
    delete_run(store, "before", "an analyst")
    assert stored.judge_run_once(RunView.read(store, "now")).evidence.earlier is None


def test_the_page_links_to_the_comparison(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(store.folder))
    page = open_page("run", run="now")
    assert "/compare?base=before&other=now" in linked_view(page, "verdict")["addresses"]


def test_an_archived_run_is_left_out(store: Store) -> None:
    with store.writing() as connection:
        edit_run(connection, "before", "an analyst", is_archived=True)
    assert earlier_link(store, "now") is None
