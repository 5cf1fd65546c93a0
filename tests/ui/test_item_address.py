"""Addresses of the page Item without an item, with an unknown one, and of an empty list."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from streamlit.testing.v1 import AppTest

import cotlab
from cotlab.store import read
from cotlab.store.database import Store
from tests.support.linked import linked_view
from tests.support.pages import component, opened


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


def said(app: AppTest) -> tuple[str, str, dict[str, str]]:
    """Return the message of a page without an item, and the label and query of its link."""
    (info,) = app.info
    link = app.main.get("page_link")[-1].proto
    return info.value.replace("\\", ""), link.label, dict(parse_qsl(link.query_string))


def test_a_run_without_an_item_opens_its_first_one(run_id: str) -> None:
    store = Store()
    suite = read.get_run(store, run_id)["suite"]
    for query, item_id in (({}, "wp-0-0000"), ({"q": "0002"}, "wp-0-0002")):
        question = read.get_item(store, suite, item_id).question
        app = opened("item", question, run=run_id, **query)
        assert item_id in component(app, "place")["place"] and "item" not in app.query_params


def test_an_unknown_item_is_named_with_a_link_to_the_items_of_the_run(run_id: str) -> None:
    app = opened("item", "Item", run=run_id, item="zzz<b>*")
    items = {"run": run_id, "items": "true"}
    assert said(app) == (f"Run {run_id} has no item zzz<b>*.", "Its items", items)
    assert "<b>" not in app.info[0].value  # escaped
    app = opened("item", "Item", run=run_id, q="nothing has this")
    text = f"No item of run {run_id} is as the address asks for."
    assert said(app) == (text, "All items", {"run": run_id})
    assert said(opened("item", "Item", run="gone", item="x"))[:2] == (
        "There is no run gone in this store.",
        "All runs",
    )
    assert said(opened("item", "Item"))[:2] == ("No run is named in the address.", "All runs")


def test_a_hit_in_a_step_links_to_its_step_counted_from_1(run_id: str) -> None:
    store = Store()
    text = read.get_item(store, read.get_run(store, run_id)["suite"], "wp-0-0001").steps[1].text
    app = opened("search", "Search", run=run_id, q=text)
    table = linked_view(app, "table")
    (step_hit,) = [row for row in table["rows"] if row[1]["text"] == "step, step 2"]
    address = table["addresses"][step_hit[0]["link"]]
    assert address.endswith("&item=wp-0-0001&step-number=2")
