"""One run as it is stored: typed, read in parts, and the same object until the run changes."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from pathlib import Path

import pytest

from cotlab.analysis.tables.unfaithfulness import collect_item_values
from cotlab.analysis.view import RunView, position_estimates, run_view
from cotlab.core.types import CLUSTER_KEY, Item, Step, Suite
from cotlab.metrics.ablation import ANSWER_CHANGE
from cotlab.metrics.unfaithfulness import CHAIN_STEPS
from cotlab.store import read, write
from cotlab.store.database import Store
from tests.support.stores import add_run
from tests.support.stores.reliability import fill


@pytest.fixture
def store(tmp_path: Path) -> Store:
    fill(tmp_path / "store", 4)
    return Store(tmp_path / "store")


def test_every_column_of_a_run_is_a_typed_field(store: Store) -> None:
    view, row = RunView.read(store, "run-1"), read.get_run(store, "run-1")
    names = {field.name.removesuffix("_json") for field in dataclasses.fields(view)} - {"store"}
    assert names == set(row)
    for field in dataclasses.fields(view)[1:]:
        value = getattr(view, field.name)
        kinds = {"int": int, "str": str, "bool": bool, "datetime": datetime}
        optional = str(field.type).endswith(" | None")
        kind = kinds[str(field.type).removesuffix(" | None")]
        assert type(value) is kind or isinstance(value, kind) or (optional and value is None), field
    assert (view.id, view.n_items, view.status) == ("run-1", 4, "done")
    assert view.plan == read.plan_from_row(row) and view.estimate == {}


def test_a_view_is_made_again_when_its_run_changes(store: Store) -> None:
    first = run_view(store, "run-1")
    assert run_view(store, "run-1") is first
    assert first.scores("feature") is first.scores("feature")
    with store.writing() as connection:
        write.set_status(connection, "run-1", "stopped")
    later = run_view(store, "run-1")
    assert later is not first and (later.status, later.revision) == ("stopped", first.revision + 1)


def test_a_view_knows_what_was_scored_without_reading_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = read.run_scores(store, "run-1")
    view = RunView.read(store, "run-1")
    monkeypatch.setattr(read, "run_scores", None)
    monkeypatch.setattr(read, "select_scores", None)
    assert view.metrics == set(every["metric"])
    assert view.step_metrics == set(every[every["step"].notna()]["metric"])
    assert view.items == sorted(set(every["item_id"]))
    defined = every[(every["metric"] == "r_raw") & every["value"].notna()]
    assert view.items_with("r_raw", with_value=True) == sorted(set(defined["item_id"]))


def test_items_of_one_cluster_count_as_one_in_tables_that_resample(tmp_path: Path) -> None:
    """Four epochs of each of three samples are twelve draws, not twelve independent items."""
    items = [
        Item(f"{k}-epoch{e}", f"Question {k}?", "1", (Step(0, "s"),), meta={CLUSTER_KEY: f"{k}"})
        for k in range(3)
        for e in range(4)
    ]
    suite = Suite.from_items("epochs", items)
    facet = {"mode": "remove"}
    ended = [
        write.EndedItem(name, 3, "p", item.id, (score,))
        for item in items
        for name, score in (
            ("ablation", ANSWER_CHANGE.score(item, float(item.id < "1"), step=0, facet=facet)),
            ("unfaithfulness", CHAIN_STEPS.score(item, 2.0 + (item.id < "1"))),
        )
    ]
    store = Store(tmp_path)
    add_run(store, "r", suite, ended, scorers=("ablation", "unfaithfulness"))
    view = RunView.read(store, "r")
    (position,) = position_estimates(view, "answer_change", facet).to_dict("records")
    assert position["n"] == 3 and position["point"] == pytest.approx(1 / 3)
    clusters = {"r": read.get_cluster_by_item(store, "r")}
    values = collect_item_values({"r": view.scores("chain_steps")}, {}, clusters)
    assert values["value"].tolist() == [3.0, 2.0, 2.0]
