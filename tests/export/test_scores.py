"""All scores of a run as CSV and Parquet: written some items at a time, equal to the whole."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd
import pytest

from cotlab.core.types import Plan
from cotlab.export import tabular
from cotlab.store import read, write
from cotlab.store.database import Store
from tests.support.stores.reliability import fill


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    fill(tmp_path / "store", 5)
    monkeypatch.setattr(tabular, "ITEMS_AT_A_TIME", 2)
    return Store(tmp_path / "store")


def test_parts_of_a_run_are_the_whole_in_both_formats(store: Store, tmp_path: Path) -> None:
    every = read.run_scores(store, "run-1")
    whole = tabular.escape_formulas(every.assign(evidence=every["evidence"].map(" ".join)))
    text = io.StringIO()
    tabular.write_scores_csv(store, "run-1", text)
    assert text.getvalue() == whole.to_csv(index=False)
    tabular.write_scores_parquet(store, "run-1", tmp_path / "scores.parquet")
    stored = pd.read_parquet(tmp_path / "scores.parquet")
    assert list(stored.columns) == list(whole.columns) and len(stored) == len(whole)
    for name in whole.columns:
        assert stored[name].isna().tolist() == whole[name].isna().tolist(), name
        assert stored[name].dropna().tolist() == whole[name].dropna().tolist(), name


def test_a_run_without_scores_gives_the_names_of_the_columns(store: Store) -> None:
    view = read.get_run(store, "run-1")
    with store.writing() as connection:
        write.add_run(
            connection,
            "bare",
            Plan("synthetic", view["suite"], dict(read.plan_from_row(view).models), ()),
            config={},
            code_version="test",
            output="",
            redacted=False,
            n_items=5,
        )
    text = io.StringIO()
    tabular.write_scores_csv(store, "bare", text)
    assert text.getvalue().startswith("scorer,metric,item_id,step,") and text.getvalue()[-1] == "\n"
    assert len(text.getvalue().splitlines()) == 1
