"""Figures over several runs: the run asked for together with those that share its suite and have
tags."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cotlab.analysis.tables.catalogue import (
    FIGURE_TABLES,
    make_all_figure_tables,
    make_figure_table,
)
from cotlab.analysis.tables.declare import DEFAULT_CHOICE, FigureChoice, FigureData, MissingFigure
from cotlab.analysis.view import RunView
from cotlab.core.errors import ConfigError
from cotlab.core.types import Item, ModelRef, Suite
from cotlab.export import recipe as wanted
from cotlab.export.recipe import recipe_from_json, recipe_to_json
from cotlab.metrics import judge as cards_judge
from cotlab.metrics import unfaithfulness as cards_unfaithfulness
from cotlab.store import write
from cotlab.store.database import Store
from tests.support.stores import add_run

pytestmark = pytest.mark.soak
ROOT = Path(__file__).parents[3]
N = 12
HOSTILE = "<b>bold</b> **x**"
SUITE = Suite.from_items(
    "s",
    [Item(f"i{k:02d}", f"Question {k}?", "1", (), ("algebra", "logic")[k % 2]) for k in range(N)],
)
ELSEWHERE = Suite.from_items("t", [Item("i00", "Another?", "1", ())])
RUNS: dict[str, tuple[dict[str, str], list[float]]] = {
    "base": ({"condition": "base"}, [1.0] * N),
    "one": ({"condition": HOSTILE, "epoch": "1"}, [float(k >= 4) for k in range(N)]),
    "two": ({"condition": HOSTILE, "epoch": "2"}, [float(k >= 8) for k in range(N)]),
    "bare": ({}, [0.0] * N),
}
OVER_RUNS = {
    "unfaithful_rates",
    "threshold_sweep",
    "unfaithful_by_category",
    "classifier_agreement",
    "judge_by_epoch",
    "chain_size",
    "process_result",
    "paired_differences",
}


def add(
    store: Store,
    run: str,
    suite: Suite,
    tags: dict[str, str],
    values: list[float],
    *,
    ended: bool = True,
) -> None:
    def scores(item: Item, k: int) -> tuple[Any, ...]:
        score = cards_unfaithfulness.UNFAITHFULNESS.score
        found = [
            score(item, values[k], facet={"classifier": "early_answer"}),
            score(item, float(k % 3 == 0), facet={"classifier": "truncation"}),
            cards_unfaithfulness.CHAIN_STEPS.score(item, float(k + 1), facet={"chain": "own"}),
            cards_unfaithfulness.KEYWORD_RATIO.score(item, float(k + 1), facet={"chain": "own"}),
        ]
        if run == "one":
            found.append(cards_judge.JUDGE_SCORE.score(item, float(k - 3), facet={"judge": "j"}))
        return tuple(found)

    told = [
        write.EndedItem("unfaithfulness", 1, "p", item.id, scores(item, k))
        for k, item in enumerate(suite.items)
    ]
    add_run(
        store,
        run,
        suite,
        told if ended else [],
        models={"subject": ModelRef("echo", "m")},
        scorers=("unfaithfulness",),
        tags=tags,
        status="done" if ended else None,
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("several") / "store")
    for run, (tags, values) in RUNS.items():
        add(store, run, SUITE, tags, values)
    add(store, "elsewhere", ELSEWHERE, {"epoch": "9"}, [1.0])
    add(store, "empty", SUITE, {"epoch": "3"}, [1.0] * N, ended=False)
    return store


def table_of(
    store: Store, run: str, name: str, choice: FigureChoice = DEFAULT_CHOICE
) -> FigureData:
    found = make_figure_table(RunView.read(store, run), name, choice)
    assert isinstance(found, FigureData), found
    return found


def test_a_run_comes_with_the_tagged_runs_of_its_suite(store: Store) -> None:
    runs = {
        name: {one.run_id for one in RunView.read(store, name).tagged_runs}
        for name in ("one", "bare")
    }
    assert runs["one"] == {"base", "one", "two", "empty"} == runs["bare"] - {"bare"}
    assert [one.run_id for one in RunView.read(store, "elsewhere").tagged_runs] == ["elsewhere"]


def test_rates_are_those_of_every_run(store: Store) -> None:
    first = table_of(store, "two", "unfaithful_rates")
    assert set(first.table["at"]) == {"truncation", "early_answer"}  # side by side
    assert set(first.table["group"]) == {f"echo/m · {at}" for at in ("base", "epoch 1", "epoch 2")}
    assert "Each classifier, unfaithful from" in first.note
    one = table_of(store, "two", "unfaithful_rates", FigureChoice(classifier="truncation"))
    assert set(one.table["point"]) == {4 / 12} and set(one.table["classifier"]) == {"truncation"}
    assert "Classifier truncation, unfaithful from" in one.note
    found = table_of(store, "two", "unfaithful_rates", FigureChoice(classifier="early_answer"))
    table = found.table.set_index("at")
    assert table["point"].to_dict() == {"base": 1.0, "epoch 1": 8 / 12, "epoch 2": 4 / 12}
    assert table["n"].tolist() == [N] * 3 and found.choice == FigureChoice(
        classifier="early_answer"
    )
    assert "Runs: base, one, two." in found.note
    with pytest.raises(
        ConfigError,
        match="classifier 'nobody' is not in this run; there are: all, truncation, early_answer",
    ):
        make_figure_table(
            RunView.read(store, "two"), "unfaithful_rates", FigureChoice(classifier="nobody")
        )


def test_differences_are_to_the_run_tagged_as_base(store: Store) -> None:
    found = table_of(store, "two", "paired_differences", FigureChoice(metric="unfaithful_rate"))
    table = found.table.set_index("label")["point"].to_dict()
    assert table["unfaithful_rate: early_answer (epoch 1)"] == pytest.approx(-4 / 12)
    assert table["unfaithful_rate: early_answer (epoch 2)"] == pytest.approx(-8 / 12)
    assert len(table) == 4 and found.note.startswith("Base: base. Unfaithful from a score of")
    whole = table_of(store, "one", "paired_differences")
    assert len(whole.table) > 4 and set(whole.table["unit"]) == {"no unit"}
    steps = table_of(store, "one", "paired_differences", FigureChoice(metric="chain_steps"))
    assert set(steps.table["point"]) == {0.0}
    with pytest.raises(ConfigError, match="metric 'nothing' is not in this run"):
        make_figure_table(
            RunView.read(store, "one"), "paired_differences", FigureChoice(metric="nothing")
        )


def test_one_run_alone_has_no_pairs_and_says_so(store: Store) -> None:
    source = RunView.read(store, "elsewhere")
    told = make_figure_table(source, "paired_differences")
    assert isinstance(told, MissingFigure) and told.reason.startswith("it takes two runs")
    assert not FIGURE_TABLES["paired_differences"].is_possible_for(source)
    assert make_figure_table(source, "unfaithful_by_category") == MissingFigure(
        "the items have no category"
    )
    assert make_figure_table(source, "judge_by_epoch") == MissingFigure(
        "the run has no scores of the scorer judge"
    )
    rates = table_of(store, "elsewhere", "unfaithful_rates")
    assert rates.table["n"].tolist() == [1, 1] and "Runs:" not in rates.note  # two classifiers
    assert table_of(store, "one", "judge_by_epoch").note == ""
    silent = make_all_figure_tables(RunView.read(store, "empty"))
    assert all(isinstance(silent[name], MissingFigure) for name in OVER_RUNS)


def test_each_is_drawn_again_from_its_recipe(store: Store) -> None:
    recipes, absent = wanted.make_recipes(RunView.read(store, "one"))
    assert {recipe.name for recipe in recipes} == OVER_RUNS | {
        "chain_lengths",
        "validation_doses",
    } - absent.keys()
    for recipe in recipes:
        again = recipe_from_json(recipe_to_json(recipe))
        assert again.draw().to_json() == recipe.draw().to_json()
        assert "<b>bold" not in again.draw().to_json().split('"meta"')[0]
