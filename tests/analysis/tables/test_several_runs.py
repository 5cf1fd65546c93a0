"""Figures over several runs: the run asked for together with those that share its suite and have
tags."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

from cotlab.analysis.tables.catalogue import (
    FIGURE_TABLES,
    make_all_figure_tables,
    make_figure_table,
)
from cotlab.analysis.tables.declare import DEFAULT_CHOICE, FigureChoice, FigureData, MissingFigure
from cotlab.analysis.view import MAX_RUNS, RunView
from cotlab.cli.main import app
from cotlab.core.errors import ConfigError
from cotlab.core.types import Item, ModelRef, Plan, ScorerSpec, Suite
from cotlab.export import bundle
from cotlab.export import recipe as wanted
from cotlab.export.recipe import recipe_from_json, recipe_to_json
from cotlab.metrics import judge as cards_judge
from cotlab.metrics import unfaithfulness as cards_unfaithfulness
from cotlab.store import write
from cotlab.store.database import Store

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
        return (
            *found,
            *(
                [cards_judge.JUDGE_SCORE.score(item, float(k - 3), facet={"judge": "j"})]
                if run == "one"
                else []
            ),
        )

    plan = Plan(
        suite.name,
        suite.digest,
        {"subject": ModelRef("echo", "m")},
        (ScorerSpec("unfaithfulness", 1, {}),),
        tags=tags,
    )
    told = [
        write.EndedItem("unfaithfulness", 1, "p", item.id, scores(item, k))
        for k, item in enumerate(suite.items)
    ]
    with store.writing() as connection:
        write.add_suite(connection, suite)
        write.add_run(
            connection,
            run,
            plan,
            config={},
            code_version="t",
            output="",
            redacted=False,
            n_items=len(suite.items),
        )
        if ended:
            write.add_ended(connection, run, told)
            write.set_status(connection, run, "done")


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
    assert {one.run_id for one in RunView.read(store, "one").tagged_runs} == {
        "base",
        "one",
        "two",
        "empty",
    }
    assert {one.run_id for one in RunView.read(store, "bare").tagged_runs} == {
        "base",
        "one",
        "two",
        "bare",
        "empty",
    }
    assert [one.run_id for one in RunView.read(store, "elsewhere").tagged_runs] == ["elsewhere"]


def test_a_figure_has_at_most_so_many_runs_and_the_one_asked_for_among_them(tmp_path: Path) -> None:
    store = Store(tmp_path / "many")
    for k in range(MAX_RUNS + 3):
        add(store, f"r{k:02d}", SUITE, {"epoch": str(k)}, [1.0] * N)
    found = [one.run_id for one in RunView.read(store, "r00").tagged_runs]
    assert len(found) == MAX_RUNS and found[-1] == "r00"
    note = table_of(store, "r00", "unfaithful_rates").note
    assert f"Runs: {MAX_RUNS}, r00 and those with tags on its suite." in note


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


def test_the_caption_of_a_sweep_names_the_chosen_threshold_alone(store: Store) -> None:
    (recipe,), _ = wanted.make_recipes(RunView.read(store, "one"), ["threshold_sweep"])
    told = bundle.figure_caption(recipe)
    assert "Dashed: the chosen threshold, 0.5." in told and "Threshold:" not in told


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


def test_a_classifier_is_chosen_on_the_command_line(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(store.folder))
    words = [
        "figures",
        "one",
        "--out",
        str(tmp_path),
        "--figure",
        "unfaithful_rates",
        "--format",
        "html",
    ]
    told = CliRunner().invoke(app, [*words, "--classifier", "early_answer"])
    assert told.exit_code == 0, told.output
    assert "Classifier early_answer, unfaithful from a score of 0.5 on." in (
        tmp_path / "unfaithful_rates.caption.txt"
    ).read_text("utf-8")


def test_the_page_offers_them(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(store.folder))
    page = AppTest.from_file(str(ROOT / "cotlab/ui/main.py"), default_timeout=300)
    page.switch_page(str(ROOT / "pages/figures.py"))
    page.query_params |= {"run": "one", "figure": "paired_differences"}
    page.run()
    assert not page.exception and len(page.get("plotly_chart")) == 1
    assert any("Base: base." in text.value for text in page.text)
