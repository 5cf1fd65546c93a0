"""Feature vectors: the means of an item's scores to the last bit, and as the store has them now."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cotlab.core.keys import digest
from cotlab.core.types import Score
from cotlab.review.release.features import feature_table
from cotlab.store import read, write
from cotlab.store.database import Store
from cotlab.store.write import EndedItem
from tests.support.stores.composed import fill

FACET = {"source": "filler", "span": "all"}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "store")
    fill(made)
    return made


def add_bypass(store: Store, item: str, *values: float | None) -> None:
    """Replace the item's scores of bypass: two a step, of two facets that the feature pools."""
    scores = [
        Score(
            "bypass",
            item,
            value,
            step=k // 2,
            facet=tuple({**FACET, "given": "prefix" if k % 2 else "tags"}.items()),
            status="undefined" if value is None else "ok",
            reason="no drop" if value is None else None,
        )
        for k, value in enumerate(values)
    ]
    other = replace(scores[0], value=9.0, status="ok", reason=None, facet=(("source", "own"),))
    with store.writing() as connection:
        ended = EndedItem("mediation", 1, "", item, (*scores, other))
        write.add_ended(connection, "run-1", [ended])


def test_a_feature_is_the_mean_of_the_scores_of_its_facets(store: Store) -> None:
    rng = np.random.default_rng(1)
    for item in ("i-003", "i-001"):
        add_bypass(store, item, *rng.random(9).tolist(), None)
    add_bypass(store, "i-002", None)
    table = feature_table(store, ["run-1"]).set_index("item_id")
    scores = read.select_scores(store, "run-1", metrics=["bypass"])
    pooled = scores[scores["facet"].str.contains("filler")]
    means = pooled.groupby("item_id")["value"].mean()
    assert means.notna().sum() == 2
    pd.testing.assert_series_equal(
        table["bypass"], means.reindex(table.index), check_exact=True, check_names=False
    )
    raw = read.select_scores(store, "run-1", metrics=["r_raw"]).set_index("item_id")
    assert table["r_raw"].equals(raw["value"].reindex(table.index))
    assert table["status"].tolist() == raw["status"].reindex(table.index).tolist()


def test_new_scores_are_read_and_a_caller_may_change_its_table(store: Store) -> None:
    add_bypass(store, "i-000", 0.25)
    table = feature_table(store, ["run-1"])
    table["bypass"] = 7.0
    table.loc[0, "question"] = "changed"
    again = feature_table(store, ["run-1"])
    assert again["bypass"].dropna().tolist() == [0.25] and again["question"][0] != "changed"
    add_bypass(store, "i-000", 0.75)
    assert feature_table(store, ["run-1"])["bypass"].dropna().tolist() == [0.75]


def test_a_suite_that_is_added_in_full_gives_the_questions(store: Store) -> None:
    run = read.get_run(store, "run-1")
    suite = read.get_suite(store, run["suite"])
    with store.writing() as connection:
        connection.execute("DELETE FROM items WHERE suite = ?", [suite.digest])
        write.add_suite(connection, suite, redact=True)
    redacted = feature_table(store, ["run-1"])["question"]
    with store.writing() as connection:
        write.add_suite(connection, suite)
    questions = feature_table(store, ["run-1"])["question"]
    assert questions.tolist() == [digest(item.question) for item in suite.items]
    assert set(questions).isdisjoint(redacted)
