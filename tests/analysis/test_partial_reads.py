"""A part of a run's scores, as tables ask the store for it, is that part of all of them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from cotlab.metrics.ablation import mean_by_item, step_means
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.store.item_scores import load_item_scores
from tests.support.stores.reliability import fill


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("reads") / "store"
    fill(folder, 6)
    return Store(folder)


def test_a_part_is_what_a_filter_of_all_scores_gives(store: Store) -> None:
    every = read.run_scores(store, "run-1")
    part = read.select_scores(store, "run-1", metrics=["feature"], items=["i-01", "i-02"])
    kept = every[(every["metric"] == "feature") & every["item_id"].isin(["i-01", "i-02"])]
    assert len(part) and part.reset_index(drop=True).equals(kept.reset_index(drop=True))
    one = read.select_scores(store, "run-1", metrics=["feature"], facet={"feature": "C"})
    assert len(one) == 6 and one["facet"].nunique() == 1
    steps = read.select_scores(store, "run-1", steps=[1], with_evidence=False)
    assert list(steps.columns) == [name for name in every.columns if name != "evidence"]
    assert len(steps) == (every["step"] == 1).sum() > 0 and set(steps["step"]) == {1}
    assert read.select_scores(store, "run-1", metrics=[]).empty
    with pytest.raises(ValueError, match="needs metrics, scorers, items or steps"):
        read.select_scores(store, "run-1", facet={"feature": "C"})


def test_groups_count_the_scores_of_each_metric_and_facet(store: Store) -> None:
    every, groups = read.run_scores(store, "run-1"), read.count_score_groups(store, "run-1")
    assert groups["n"].sum() == len(every)
    for row in groups.itertuples():
        rows = every[
            (every["scorer"] == row.scorer)
            & (every["metric"] == row.metric)
            & (every["facet"] == row.facet)
        ]
        assert (row.n, row.n_defined, row.n_steps, row.n_items) == (
            len(rows),
            rows["value"].notna().sum(),
            rows["step"].notna().sum(),
            rows["item_id"].nunique(),
        )


def test_scores_summed_up_by_item_are_those_of_all_scores(store: Store) -> None:
    every = read.run_scores(store, "run-1").assign(run="run-1")
    keys = ["run", "scorer", "metric", "facet"]
    undefined = every[every["value"].isna() & every["reason"].notna()]
    reasons = sorted({"no such reason", undefined["reason"].iloc[0]})
    scores = load_item_scores(store, ["run-1", "run-1"], reasons)
    by_item = every.groupby([*keys, "item_id"])
    expected = by_item["value"].agg(["mean", "min", "max"])
    first_reasons = undefined.groupby([*keys, "item_id"])["reason"].min().to_dict()
    n_told = 0
    for group, key in enumerate(scores.groups):
        values = scores.sum_up(group)
        rows = expected.loc[key]
        items = [scores.items[item][1] for item in values.is_scored.nonzero()[0]]
        assert items == rows.index.tolist()
        found = np.column_stack([values.mean, values.lowest, values.highest])[values.is_scored]
        assert found == pytest.approx(rows.to_numpy(), nan_ok=True)
        told = [first_reasons.get((*key, item)) for item in items]
        places = [reasons.index(text) if text in reasons else -1 for text in told]
        assert values.reason[values.is_scored].tolist() == places
        n_told += sum(place >= 0 for place in places)
    assert len(scores.groups) == every.groupby(keys).ngroups and n_told
    assert load_item_scores(store, ["run-9"]).groups == []


def test_scored_items_are_in_the_order_of_the_suite(store: Store) -> None:
    every = read.run_scores(store, "run-1")
    assert read.list_scored_items(store, "run-1") == [f"i-{k:02}" for k in range(6)]
    defined = every[(every["metric"] == "r_raw") & every["value"].notna()]["item_id"]
    assert read.list_scored_items(store, "run-1", ["r_raw"], only_defined=True) == sorted(
        set(defined)
    )
    assert read.list_scored_items(store, "run-1", ["nothing"]) == []
    page = read.list_run_items(store, "run-1", 2, 3)
    assert page["id"].tolist() == ["i-03", "i-04"]
    assert page.equals(read.list_run_items(store, "run-1").iloc[3:5].reset_index(drop=True))


@pytest.mark.parametrize("means", [mean_by_item, step_means])
def test_a_mean_does_not_depend_on_the_scores_of_other_groups(
    means: Callable[[pd.DataFrame], pd.DataFrame],
) -> None:
    """A missing value elsewhere in a table must not change how the values of a group are added:
    a table of one metric has the means of a table of all."""
    values = [3.1422294539175067e-06, 3.2015653624015545e-06, 3.999979046887921e-06, 12.2058513884]
    part = pd.DataFrame({"metric": "m", "facet": "{}", "item_id": "a", "step": 0, "value": values})
    whole = pd.concat([part, part.iloc[:1].assign(metric="other", value=float("nan"))])
    (mean,) = means(part)["value"]
    assert means(whole)["value"].tolist()[0] == mean == math.fsum(values) / 4
