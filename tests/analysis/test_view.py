"""One run as it is stored: typed, read in parts, and the same object until the run changes."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from pathlib import Path

import pytest

from cotlab.analysis.view import RunView, run_view
from cotlab.core.errors import UnknownName
from cotlab.store import read, write
from cotlab.store.database import Store
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
    assert view.plan == read.stored_plan(row) and view.estimate == {}


def test_rows_of_a_list_give_the_same_view(store: Store) -> None:
    (row,) = read.list_runs(store).to_dict("records")
    listed, alone = RunView.of_row(store, row), RunView.read(store, "run-1")
    for field in dataclasses.fields(alone)[1:]:
        assert getattr(listed, field.name) == getattr(alone, field.name), field.name


def test_a_view_is_made_again_when_its_run_changes(store: Store) -> None:
    first = run_view(store, "run-1")
    assert run_view(store, "run-1") is first
    assert first.scores("feature") is first.scores("feature")
    with store.writing() as connection:
        write.set_status(connection, "run-1", "stopped")
    later = run_view(store, "run-1")
    assert later is not first and (later.status, later.revision) == ("stopped", first.revision + 1)


def test_an_unknown_run_is_named(store: Store) -> None:
    with pytest.raises(UnknownName, match="run-2"):
        RunView.read(store, "run-2")


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
    assert view.items_with("r_raw", defined=True) == sorted(set(defined["item_id"]))
