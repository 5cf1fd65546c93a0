"""Comparisons that are made pair by pair are those that are made at once."""

from __future__ import annotations

import pandas as pd
import pytest

from cotlab.analysis.compare import Comparison, combine_comparisons, compare_runs
from cotlab.analysis.paired import SCORE_METRIC
from cotlab.analysis.tables.comparison import (
    AxisPosition,
    bar_row,
    order_by_epoch,
)
from cotlab.analysis.tables.unfaithfulness import (
    classifier_choices,
    classifier_kappa_pairs,
    classifier_points,
    graded_classifiers,
)
from cotlab.core.types import Item, ModelRef, Suite
from cotlab.figures.unfaithfulness import unfaithful_rates
from cotlab.metrics import unfaithfulness as cards_unfaithfulness
from cotlab.store import write
from cotlab.store.database import Store
from tests.support.stores import add_run

N = 8
SUITE = Suite.from_items("s", [Item(f"i{k}", f"Question {k // 2}?", "1", (), "") for k in range(N)])
"""Each prompt stands twice, so that intervals come from a bootstrap."""
VALUES = {"base": lambda k: 1.0, "one": lambda k: k / N, "two": lambda k: float(k % 3 == 0)}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("pairs") / "store")
    for run, value in VALUES.items():
        told = []
        for k, item in enumerate(SUITE.items):
            own = [
                cards_unfaithfulness.UNFAITHFULNESS.score(
                    item, value(k), facet={"classifier": "early_answer"}
                ),
                cards_unfaithfulness.CHAIN_STEPS.score(
                    item, float(k + len(run)), facet={"chain": "own"}
                ),
            ]
            if run == "one" or k:
                own.append(
                    cards_unfaithfulness.HINT_ACKNOWLEDGED.score(
                        item, None, reason="the hint was not followed"
                    )
                )
            told.append(write.EndedItem("unfaithfulness", 1, "p", item.id, tuple(own)))
        models = {"subject": ModelRef("echo", run)}
        add_run(store, run, SUITE, told, models=models, scorers=("unfaithfulness",), status=None)
    return store


def only(store: Store, other: str, **how: object) -> Comparison:
    return compare_runs(store, "base", [other], scorers=(SCORE_METRIC,), **how).comparisons[0]  # type: ignore[arg-type]


def assert_same(one: Comparison, other: Comparison) -> None:
    assert one.rows == other.rows
    pd.testing.assert_frame_equal(one.pairs, other.pairs, check_dtype=False)
    assert (one.n_shared, one.n_prompts, one.changes) == (
        other.n_shared,
        other.n_prompts,
        other.changes,
    )
    assert (one.metrics_only_base, one.metrics_only_other) == (
        other.metrics_only_base,
        other.metrics_only_other,
    )


@pytest.mark.soak
def test_pairs_put_together_are_the_comparison_made_at_once(store: Store) -> None:
    whole = compare_runs(store, "base", ["one", "two"], scorers=(SCORE_METRIC,))
    found = combine_comparisons([only(store, "one"), only(store, "two")])
    assert found.directions == whole.directions and found.base == "base"
    for mine, theirs in zip(found.comparisons, whole.comparisons, strict=True):
        assert_same(mine, theirs)


def test_a_row_without_a_matched_item_says_what_is_missing(store: Store) -> None:
    row = next(row for row in only(store, "one").rows if row.metric == "hint_acknowledged")
    assert (
        bar_row(row, "x", "no unit")["reason"]
        == "base: 7 the hint was not followed; 1 not scored in this run · other: 8 the hint was not"
        " followed"
    )


def test_runs_are_ordered_by_epoch_where_they_have_one() -> None:
    told = {run: ("m", {"epoch": e}) for run, e in (("a", "10"), ("b", "2"), ("c", "1"))}
    assert order_by_epoch(told) == ["c", "b", "a"]
    assert order_by_epoch({run: (model, {}) for run, model in (("b", "y"), ("a", "x"))}) == [
        "b",
        "a",
    ], "as they are given"


def values(rows: list[tuple[str, str, str, float]]) -> pd.DataFrame:
    found = pd.DataFrame(rows, columns=["run", "name", "item_id", "value"])
    metric = ["judge_score" if name.startswith("judge") else SCORE_METRIC for name in found["name"]]
    return found.assign(metric=metric, category="c", why=None)


def test_why_kappa_is_not_there_names_the_classifier() -> None:
    table = values(
        [("r", name, f"i{k}", float(name == "b" and k % 2)) for name in "ab" for k in range(10)]
    )
    found = classifier_kappa_pairs(table)
    assert found["reason"][0].startswith("a gives one label")


def test_all_classifiers_stand_in_rows_with_value_interval_and_n() -> None:
    """10 of 10 and 5 of 10: Wilson by hand (1.96² = 3.84) gives [.722, 1] and [.237, .763]."""
    table = values(
        [("r", "truncation", f"i{k}", float(k % 2)) for k in range(10)]
        + [("r", "hint", f"i{k}", 1.0) for k in range(10)]
    )
    points = classifier_points(table, {"r": AxisPosition("r", "")}, "all")
    assert points["at"].tolist() == ["hint", "truncation"] and set(points["group"]) == {"r"}
    fig = unfaithful_rates(points)
    assert "by classifier" in fig.layout.meta["title"]
    assert [one.text for one in fig.layout.annotations if "n = " in one.text] == [
        "100% [72.2, 100]<br>n = 10 items, 0 undefined",
        "50% [23.7, 76.3]<br>n = 10 items, 0 undefined",
    ]
    (one,) = [classifier_points(table, {"r": AxisPosition("r", "")}, "hint")]
    assert "by “hint”" in unfaithful_rates(one).layout.meta["title"]
    assert classifier_choices(["hint", "truncation"], 9) == ["hint", "truncation", "all"]


def test_the_same_items_in_two_runs_give_kappa_without_an_interval() -> None:
    rows = [
        {
            "run": run,
            "metric": "unfaithfulness",
            "name": name,
            "item_id": f"i{k}",
            "value": float(k % step == 0),
        }
        for run in ("a", "b")
        for name, step in (("one", 2), ("other", 3))
        for k in range(12)
    ]
    one_run = classifier_kappa_pairs(pd.DataFrame([row for row in rows if row["run"] == "a"])).iloc[
        0
    ]
    both = classifier_kappa_pairs(pd.DataFrame(rows)).iloc[0]
    assert one_run["lo"] < one_run["point"] < one_run["hi"] and "McNemar" in one_run["mcnemar"]
    assert (both["point"], both["n"], both["lo"], both["mcnemar"]) == (
        one_run["point"],
        24,
        None,
        "",
    )
    assert "not independent" in both["reason"]


def test_a_score_of_0_or_1_has_no_threshold() -> None:
    rows = [("hint", 0.0), ("hint", 1.0), ("combined", 1.0), ("combined", 0.4), ("none", None)]
    values = pd.DataFrame(rows, columns=["name", "value"]).assign(metric=SCORE_METRIC)
    assert graded_classifiers(values) == ["combined"]
    assert graded_classifiers(values[values["name"] != "combined"]) == []
