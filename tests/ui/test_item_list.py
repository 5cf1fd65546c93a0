"""The page Item lists the run's items: its filters are in the address, J and K go through them."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

import cotlab
from cotlab.store.database import Store
from tests.support.pages import component, opened_item, send

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


def chip(app: AppTest, text: str) -> dict[str, Any]:
    (found,) = [chip for chip in head(app)["chips"] if chip["text"] == text]
    return dict(found)


def test_a_chip_opens_its_first_item_and_keys_go_through_the_filtered_list(run_id: str) -> None:
    app = opened_item(run_id, "wp-0-0001")
    counts = {chip["text"]: chip["count"] for chip in head(app)["chips"]}
    assert counts == {"All": N_ITEMS, "Changed": 0, "Wrong answer": 3, "No value": 0}
    assert chip(app, "Changed")["link"] is None  # nothing is behind it
    assert not head(app)["is_filtered"] and len(head(app)["rows"]) == 12
    app = follow(app, chip(app, "Wrong answer")["link"])
    assert (app.query_params["item"], app.query_params["show"]) == (WRONG[0], "wrong")
    assert head(app)["place"] == f"Item 3 of {N_ITEMS} · {WRONG[0]} · 1 of 3 that match"
    assert [row["number"] for row in head(app)["rows"]] == [3, 6, 14]
    assert [row["answers"] for row in head(app)["rows"]] == [[{"text": "✕", "kind": "wrong"}]] * 3
    for key, item in (("j", WRONG[1]), ("j", WRONG[2]), ("k", WRONG[1])):
        app = follow(app, head(app)["neighbours"][key])
        assert (app.query_params["item"], app.query_params["show"]) == (item, "wrong")
    fresh = head(opened_item(run_id, WRONG[1], show="wrong"))
    assert {**head(app), "hrefs": []} == {**fresh, "hrefs": []}  # parameters in another order


def test_a_search_keeps_an_item_that_matches_and_stays_where_nothing_does(run_id: str) -> None:
    app = opened_item(run_id, "wp-0-0005")
    app = send(app, "heading", {"choice": {"search": "0005"}})
    assert (app.query_params["item"], app.query_params["q"]) == ("wp-0-0005", "0005")
    app = send(app, "heading", {"choice": {"search": "wp-0-0007"}})
    assert app.query_params["item"] == "wp-0-0007" and head(app)["search"] == "wp-0-0007"
    app = send(app, "heading", {"choice": {"search": "<script>"}})
    assert app.query_params["item"] == "wp-0-0007" and head(app)["neighbours"] == {}
    assert head(app)["place"].endswith("· no item matches") and head(app)["rows"] == []
    app = send(app, "heading", {"choice": {"search": ""}})
    assert "q" not in app.query_params and head(app)["chips"][0]["selected"]
    for forged in ({"search": 7}, {"address": ["x"]}, {}):
        app = send(app, "heading", {"choice": forged})
    app = send(app, "heading", {"choice": {"address": "run=other&item=wp-0-0001&x=1"}})
    assert (app.query_params["run"], app.query_params["item"]) == (run_id, "wp-0-0001")
    assert "x" not in app.query_params


def test_an_item_beside_the_list_says_so_and_its_neighbours_are_listed(run_id: str) -> None:
    app = opened_item(run_id, "wp-0-0003", show="wrong")
    assert head(app)["place"].endswith("· not among the 3 that match")
    queries = {k: parse_qs(head(app)["hrefs"][link]) for k, link in head(app)["neighbours"].items()}
    assert {key: query["item"] for key, query in queries.items()} == {
        "k": [WRONG[0]],
        "j": [WRONG[1]],
    }
    assert opened_item(run_id, "wp-0-0003", show="no such").query_params["item"] == "wp-0-0003"
    later = head(opened_item(run_id, "wp-0-0001"))
    assert later["part"] == f"1 to 12 of {N_ITEMS}" and list(later["pages"]) == ["Later"]
