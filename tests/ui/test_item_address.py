"""Addresses of the page Item without an item, with an unknown one, and of an empty list."""

from __future__ import annotations

from pathlib import Path

import pytest

import cotlab
from cotlab.store import read
from cotlab.store.database import Store
from tests.support.linked import linked_view
from tests.support.pages import opened, opened_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return a store and the id of its run of three items."""
    folder = tmp_path_factory.mktemp("address") / "store"
    run_id = cotlab.run_suite(
        "wordproblems", store=folder, model="faithful-a", mode=["remove"], limit=3
    ).run_id
    return folder, run_id


@pytest.fixture
def run_id(run: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COTLAB_STORE", str(run[0]))
    return run[1]


def test_a_run_without_an_item_lists_its_items(run_id: str) -> None:
    for query, n in (({}, None), ({"q": "0002"}, 1)):
        table = linked_view(opened_run(run_id, "items", **query), "table")
        assert n is None or len(table["rows"]) == n
        assert all("tab=items" in address for address in table["addresses"])


def test_an_unknown_item_is_named_beside_a_way_to_the_items_of_the_run(run_id: str) -> None:
    app = opened_run(run_id, "items", item="zzz<b>*")
    (info,) = app.info
    assert info.value.replace("\\", "") == f"Run {run_id} has no item zzz<b>*."
    assert "<b>" not in info.value  # escaped
    (back,) = [button for button in app.button if button.label == "All items"]
    assert "item" not in back.click().run().query_params
    gone = opened("items", "Run", run="gone", item="x")
    assert [link.proto.label for link in gone.main.get("page_link")] == ["All runs"]


def test_a_hit_in_a_step_links_to_its_step_counted_from_1(run_id: str) -> None:
    store = Store()
    text = read.get_item(store, read.get_run(store, run_id)["suite"], "wp-0-0001").steps[1].text
    app = opened("runs", run=run_id, q=text)
    table = linked_view(app, "table")
    (step_hit,) = [row for row in table["rows"] if row[1]["text"] == "step, step 2"]
    address = table["addresses"][step_hit[0]["link"]]
    assert address.endswith("&item=wp-0-0001&step=2&tab=items")
