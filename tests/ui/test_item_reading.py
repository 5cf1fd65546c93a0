"""The page Item reads a chain step by step: its numbers are the scores, its choice the address."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from streamlit.testing.v1 import AppTest

import cotlab
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.ui.address import step_query
from tests.support.linked import linked_view
from tests.support.pages import component, opened, opened_item, send

pytestmark = pytest.mark.soak
ITEM = "wp-0-0000"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return a run of one item with sampled replies under three modes."""
    folder = tmp_path_factory.mktemp("reading") / "store"
    options: dict[str, Any] = {
        "provider": "organism",
        "model": "r50",
        "scorer": ["ablation"],
        "mode": ["remove", "truncate", "corrupt"],
        "repeats": 2,
        "temperature": 1.0,
        "limit": 2,
    }
    return folder, cotlab.run_suite("wordproblems", store=folder, **options).run_id


@pytest.fixture
def run_id(run: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COTLAB_STORE", str(run[0]))
    return run[1]


def reader(app: AppTest) -> dict[str, Any]:
    return component(app, "panel")


def stored(run_id: str, mode: str) -> dict[int, list[float]]:
    """The stored scores of changed answers by step."""
    table = read.run_scores(Store(), run_id, item_id=ITEM)
    rows = table[(table["metric"] == "answer_change") & table["facet"].str.contains(f'"{mode}"')]
    return {int(k): g["value"].dropna().tolist() for k, g in rows.groupby("step")}


def test_the_page_opens_on_the_step_that_bears_most_and_its_numbers_are_the_scores(
    run_id: str,
) -> None:
    app = opened_item(run_id, ITEM)
    data, values = reader(app), stored(run_id, "corrupt")
    shares = [sum(v) / len(v) for _, v in sorted(values.items())]
    assert data["mode"] == "corrupt" and data["step"] == shares.index(max(shares))
    assert [row["tint"] for row in data["rows"]] == pytest.approx(shares)
    assert [row["pips"] for row in data["rows"]] == [
        [int(sum(v)), len(v)] for _, v in sorted(values.items())
    ]
    assert [tab["label"] for tab in data["tabs"]][:3] == [
        "States something else",
        "Says the same in other words",
        "Is left out",
    ]
    assert [(tab["mode"], tab["folded"]) for tab in data["tabs"]][3:] == [("truncate", True)]
    assert [tab["reason"] for tab in data["tabs"]] == ["", "not measured in this run", "", ""]
    panel, chosen = data["panel"], values[data["step"]]
    assert panel["claim"] == f"{sum(chosen):g} of {len(chosen)} answers change"
    assert sum(answer["counts"][0] for answer in panel["answers"]) == len(chosen)
    assert panel["given"][-1]["kind"] == "changed" and len(panel["given"]) == data["step"] + 1
    kinds = [kind for kind, _ in panel["given"][-1]["pieces"]]
    assert "removed" in kinds and "added" in kinds
    facts = component(app, "heading")["facts"]
    assert facts[1]["kind"] in ("right", "wrong") and "of 2 replies" in facts[1]["parts"][-1][0]


def test_a_choice_goes_into_the_address_and_the_address_restores_it(run_id: str) -> None:
    app = opened_item(run_id, ITEM)
    send(app, "panel", {"choice": {"mode": "remove", "step": 1}})
    assert (app.query_params["change"], app.query_params["step"]) == ("remove", "2")
    data = reader(app)
    assert (data["mode"], data["step"], data["panel"]["step"]) == ("remove", 1, "Step 2")
    assert reader(opened_item(run_id, ITEM, change="remove", step="2")) == data
    assert [line["kind"] for line in data["panel"]["given"]].count("left out") == 1
    assert data["later"] is None and data["arrows"] is None
    labels = [e.label for e in app.expander]
    assert any(label.startswith("Requests behind this step: 4, 2 with") for label in labels)
    for text in ("99", "0", "-1", "x", "²"):
        note = reader(opened_item(run_id, ITEM, step=text))["note"]
        assert "no step as the address asks" in note
    strange = reader(opened_item(run_id, ITEM, change="no such", step="99"))
    assert strange["mode"] == "corrupt" and "not measured here" in strange["note"]
    assert "no step as the address asks" in strange["note"]
    send(app, "panel", {"choice": {"mode": 7, "step": "<b>"}})  # no choice of the component
    assert (app.query_params["change"], app.query_params["step"]) == ("remove", "2")


def test_an_address_that_counted_from_0_opens_the_same_step_until_another_one(run_id: str) -> None:
    app = opened_item(run_id, ITEM, change="remove", step="1")
    assert reader(app)["panel"]["step"] == "Step 2"
    assert "step" not in app.query_params  # no entry of the history that nobody asked for
    send(app, "panel", {"choice": {"mode": "remove", "step": 0}})
    assert reader(app)["panel"]["step"] == "Step 1"
    assert app.query_params["step"] in ("1", ["1"]) and "step" not in app.query_params
    app = opened_item(run_id, ITEM, step="2", **step_query(0))  # the new name is decisive
    assert reader(app)["panel"]["step"] == "Step 1"


def test_what_was_not_measured_says_why(run_id: str) -> None:
    last = len(stored(run_id, "corrupt")) - 1
    data = reader(opened_item(run_id, ITEM, change="truncate", **step_query(last)))
    reason = "nothing follows the last step, so nothing is cut"
    assert data["rows"][last]["score"] == "n/a" and reason in data["rows"][last]["hint"]
    assert (data["panel"]["claim"], data["panel"]["interval"]) == ("n/a", reason)
    assert reason in data["panel"]["given"][0]["pieces"][0][1] and reason in data["legend"]


def test_neighbours_keep_the_change_and_scores_link_to_their_requests(run_id: str) -> None:
    app = opened_item(run_id, ITEM, change="remove")
    head = component(app, "heading")
    after = head["hrefs"][head["neighbours"]["j"]]
    asked = dict(parse_qsl(after.split("?")[1]))
    assert list(head["neighbours"]) == ["j"]
    assert asked == {"run": run_id, "tab": "items", "change": "remove", "item": "wp-0-0001"}
    table = linked_view(app, "table")
    addresses = [a for a in table["addresses"] if "score=" in a]
    assert addresses and all(a.startswith(f"/run?run={run_id}&") for a in addresses)
    app = opened("items", **dict(parse_qsl(urlsplit(addresses[0]).query)))
    assert any(e.label.startswith("Requests and replies") for e in app.expander)
    assert any("requests behind this choice; the item has" in c.value for c in app.caption)
    send(app, "heading", {"choice": {"address": after.split("?")[1]}})
    assert (app.query_params["item"], app.query_params["change"]) == ("wp-0-0001", "remove")
    assert component(app, "heading")["place"] == "Item 2 of 2 · wp-0-0001"
