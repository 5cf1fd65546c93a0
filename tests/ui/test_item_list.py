"""The tab Items filters the run's items: the address has it, and J and K go through them."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

import cotlab
from cotlab.store.database import Store
from tests.support.linked import linked_frames
from tests.support.pages import component, opened_item, opened_run, send

N_ITEMS = 14
WRONG = ("wp-0-0002", "wp-0-0005", "wp-0-0013")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return a store and its run, in which three answers are wrong and no step changed one."""
    folder = tmp_path_factory.mktemp("list") / "store"
    run_id = cotlab.run_suite(
        "wordproblems", store=folder, model="faithful-a", mode=["remove"], limit=N_ITEMS
    ).run_id
    with Store(folder).writing() as connection:
        connection.execute("UPDATE scores SET value = 0 WHERE metric = 'answer_change'")
        connection.execute(
            "UPDATE scores SET value = 0 WHERE metric = 'baseline_correct' AND"
            " list_contains(?, item_id)",
            [list(WRONG)],
        )
    return folder, run_id


@pytest.fixture
def run_id(run: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COTLAB_STORE", str(run[0]))
    return run[1]


def head(app: AppTest) -> dict[str, Any]:
    return component(app, "heading")


def follow(app: AppTest, link: int) -> AppTest:
    """Click a link of the head."""
    address = head(app)["hrefs"][link].split("?")[1]
    return send(app, "heading", {"choice": {"address": address}})


def test_the_filters_of_the_items_are_in_the_address_and_keys_go_through_them(run_id: str) -> None:
    app = opened_run(run_id, "items")
    (control,) = [group for group in app.get("button_group") if group.label == "Show"]
    assert control.options == [
        f"All · {N_ITEMS}",
        "Changed · 0",
        "Wrong answer · 3",
        "No value · 0",
    ]
    for query, expected in (
        ({"show": "wrong"}, WRONG),
        ({"show": "wrong", "q": "0005"}, WRONG[1:2]),
    ):
        table = linked_frames(opened_run(run_id, "items", **query))[0]
        assert tuple(table["item"]) == expected
        assert all("show=wrong" in address for address in table["item →"])
    app = opened_item(run_id, WRONG[0], show="wrong")
    assert head(app)["place"] == f"Item 3 of {N_ITEMS} · {WRONG[0]} · 1 of 3 that match"
    for key, item in (("j", WRONG[1]), ("j", WRONG[2]), ("k", WRONG[1])):
        app = follow(app, head(app)["neighbours"][key])
        assert (app.query_params["item"], app.query_params["show"]) == (item, "wrong")


def test_an_item_beside_the_list_says_so_and_what_is_forged_changes_nothing(run_id: str) -> None:
    app = opened_item(run_id, "wp-0-0003", show="wrong")
    assert head(app)["place"].endswith("· not among the 3 that match")
    queries = {k: parse_qs(head(app)["hrefs"][link]) for k, link in head(app)["neighbours"].items()}
    assert {key: query["item"] for key, query in queries.items()} == {
        "k": [WRONG[0]],
        "j": [WRONG[1]],
    }
    assert opened_item(run_id, "wp-0-0003", show="no such").query_params["item"] == "wp-0-0003"
    nothing = opened_item(run_id, "wp-0-0003", q="<script>")
    assert head(nothing)["neighbours"] == {} and head(nothing)["place"].endswith("no item matches")
    for forged in ({"search": 7}, {"address": ["x"]}, {}):
        app = send(app, "heading", {"choice": forged})
        assert app.query_params["item"] == "wp-0-0003"
    app = send(app, "heading", {"choice": {"address": "run=other&item=wp-0-0001&x=1"}})
    assert (app.query_params["run"], app.query_params["item"]) == (run_id, "wp-0-0001")
    assert "x" not in app.query_params
