"""The page Run lists items with their answers, and estimates; both are searched by words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

import cotlab
from cotlab.store import read
from cotlab.store.database import Store
from tests.support.linked import linked_frames
from tests.support.pages import components, opened_run

N_ITEMS = 4
WRONG = "wp-0-0002"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return a store and its run, in which one answer counts as wrong and one is not judged."""
    folder = tmp_path_factory.mktemp("table") / "store"
    run_id = cotlab.run_suite(
        "wordproblems", store=folder, model="faithful-a", mode=["remove"], limit=N_ITEMS
    ).run_id
    with Store(folder).writing() as connection:
        connection.execute(
            "UPDATE scores SET value = CASE WHEN item_id = ? THEN 0 END"
            " WHERE metric = 'baseline_correct' AND item_id IN (?, 'wp-0-0003')",
            [WRONG, WRONG],
        )
    return folder, run_id


@pytest.fixture
def run_id(run: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COTLAB_STORE", str(run[0]))
    return run[1]


def table(app: AppTest, column: str) -> pd.DataFrame:
    (found,) = [frame for frame in linked_frames(app) if column in frame.columns]
    return found


def search(app: AppTest, label: str, text: str) -> AppTest:
    (box,) = [box for box in app.text_input if box.label == label]
    box.set_value(text).run()
    assert not app.exception
    return app


def test_items_have_the_model_s_answer_and_whether_it_is_right(run_id: str) -> None:
    app = opened_run(run_id, "items")
    items = table(app, "question")
    store = Store()
    suite = read.get_run(store, run_id)["suite"]
    answers = [read.get_item(store, suite, item).answer for item in items["item"]]
    assert items["answer"].tolist() == answers  # the organism is right on every item
    assert items["right"].tolist() == ["right", "right", "wrong", "n/a"]
    assert items["item →"].tolist() == [
        f"/run?run={run_id}&item={i}&tab=items" for i in items["item"]
    ]
    (data,) = [data for data in components(app) if data.get("title") == "Items"]
    assert [c["title"] for c in data["columns"] if c.get("is_nowrap")] == ["item", "right"]
    marks = [row[3].get("mark") for row in data["rows"]]
    assert marks == ["yes", "yes", "no", None]


def test_a_search_finds_items_and_goes_on_in_their_pages(run_id: str) -> None:
    app = search(opened_run(run_id, "items"), "Search the items", "0002 ")
    assert app.query_params["q"].strip() == "0002"
    items = table(app, "question")
    assert items["item"].tolist() == [WRONG]
    assert items["item →"].tolist()[0].startswith(f"/run?run={run_id}&item={WRONG}&q=0002")
    assert any("1 of 1 that match, of 4 scored items" in c.value for c in app.caption)
    again = opened_run(run_id, "items", q="0002")
    assert table(again, "question")["item"].tolist() == [WRONG]
    app = search(app, "Search the items", "<b>' OR 1=1")
    assert "No item matches." in [info.value for info in app.info]


def test_estimates_are_found_by_words_of_name_variant_and_reason(run_id: str) -> None:
    app = opened_run(run_id, estimates="true")
    estimates = table(app, "variant")
    stored = read.run_estimates(Store(), run_id)
    assert len(estimates) == len(stored)
    assert not estimates.duplicated(["metric", "variant"]).any()
    names: dict[str, Any] = {"rrr": "rrr_ceiling", "REMOVE share": "rrr"}
    for text, metric in names.items():
        page = search(app, "Search the estimates", text)
        found = table(page, "variant")
        assert 0 < len(found) < len(estimates)
        assert (stored["metric"] == metric).any()
    page = search(app, "Search the estimates", "rrr_ceiling")
    n_stored = int((stored["metric"] == "rrr_ceiling").sum())
    assert len(table(page, "variant")) == n_stored > 0
    page = search(app, "Search the estimates", "no such words")
    assert "No estimate matches." in [info.value for info in page.info]
    assert any(c.value == f"0 of {len(stored)} estimates." for c in page.caption)
