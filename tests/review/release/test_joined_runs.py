"""Runs on the same chains are one datum: they complete each other in a fit and in decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import pytest
from typer.testing import CliRunner

from cotlab.analysis.evaluation.signals import load_labelled_chains
from cotlab.analysis.tables.calibration import calibrator_changes_text, with_targets
from cotlab.cli.main import app
from cotlab.core.labels import Label
from cotlab.core.types import Item, Score, Suite
from cotlab.review.labelling.targets import load_labelled_features
from cotlab.review.release.apply import load_calibrator_row
from cotlab.review.release.calibrate import calibrate_runs, tune_weights_on_runs
from cotlab.review.release.decide import load_scored_items
from cotlab.review.release.joined_runs import JOINED_REASON
from cotlab.store import labels as label_store
from cotlab.store.database import Store
from cotlab.store.write import EndedItem
from tests.support import stores
from tests.support.stores import composite
from tests.support.stores.evaluated import N_CHAINS, suite, values

TEXT, CRITIC = ("text_features", "text_characters"), ("critic", "critic_sound")


def add_run(
    store: Store, run: str, chains: Suite, columns: Mapping[tuple[str, str], Sequence[float | None]]
) -> None:
    """A run with one metric of each of these scorers."""

    def ended(item: Item, scorer: str, metric: str, value: float | None) -> EndedItem:
        return EndedItem(scorer, 1, "p", item.id, (Score(metric, item.id, value),))

    rows = [
        ended(item, scorer, metric, column[k])
        for (scorer, metric), column in columns.items()
        for k, item in enumerate(chains.items)
    ]
    stores.add_run(store, run, chains, rows, scorers=tuple(scorer for scorer, _ in columns))


def characters(seed: int = 0) -> list[float | None]:
    return [1000 * (value or 0.0) for value in values("chance", seed=seed + 7)]


@pytest.fixture
def store() -> Store:
    """The text of 60 labelled chains in one run, a critic's word on them in another."""
    made = Store()
    add_run(made, "text", suite(), {TEXT: characters()})
    add_run(made, "critic", suite(), {CRITIC: values("perfect", seed=1)})
    return made


def fit(store: Store, *runs: str) -> Mapping[str, object]:
    result = calibrate_runs(
        store, runs or None, author="ann", weights="combined", target="chain_sound", dry_run=True
    )
    return result.report


@pytest.mark.soak
@pytest.mark.parametrize("named", [("text", "critic"), ()])
def test_a_fit_on_both_runs_is_that_of_one_run_with_all_scores(
    store: Store, named: tuple[str, ...]
) -> None:
    report = fit(store, *named)
    assert report["n"] == N_CHAINS and report["runs"] == ["critic", "text"]
    assert report["left_out"] == {JOINED_REASON: N_CHAINS}
    assert report["joined_runs"] == ["text", "critic"] and report["n_imported"] == N_CHAINS

    whole = Store(store.folder / "whole")
    add_run(whole, "both", suite(), {TEXT: characters(), CRITIC: values("perfect", seed=1)})
    expected = fit(whole, "both")
    assert expected["joined_runs"] == []
    for name in ("methods", "baselines", "points", "combination", "defined_parts"):
        assert report[name] == expected[name], name


def test_evaluate_and_calibrate_join_the_same_chains(store: Store) -> None:
    labels = load_labelled_features(store, ["text", "critic"], target="chain_sound")
    labelled = load_labelled_chains(store, ["text", "critic"])
    assert labels["item_id"].tolist() == labelled.chains["item_id"].tolist()
    assert set(labels["run"]) == set(labelled.chains["run"]) == {"text"}
    signals = {signal.name: signal.values for signal in labelled.signals}
    assert labels["critic_sound"].tolist() == signals["critic_sound"].tolist()


@pytest.mark.soak
def test_runs_that_differ_in_a_number_stay_apart_and_a_rater_comes_before_the_file() -> None:
    store, chains = Store(), suite(n=12)
    for run, shift in (("a", 0.0), ("b", 0.1)):
        ended = [composite(item, 0.5 + shift, {"V": 0.5}) for item in chains.items]
        stores.add_run(store, run, chains, ended)
    assert len(load_labelled_features(store, ["a", "b"])) == 24
    ended = [composite(item, 0.5, {"V": 0.5}) for item in chains.items]
    stores.add_run(store, "again", chains, ended)
    assert load_labelled_features(store, ["a", "b", "again"])["run"].value_counts().to_dict() == {
        "a": 12,
        "b": 12,
    }
    said = Label("l", "again", "i000", "ana", "acceptable", True, datetime.now(UTC))
    with store.writing() as connection:
        label_store.add_labels(connection, [said])
    labels = load_labelled_features(store, ["a", "b", "again"]).set_index(["run", "item_id"])
    assert len(labels) == 24 and ("a", "i000") not in labels.index
    row = labels.loc["again", "i000"]
    assert (row["origin"], row["target"]) == ("raters", True)  # the file calls it wrong


def test_an_r_raw_is_taken_with_its_profile_where_a_run_has_none(store: Store) -> None:
    chains = suite()
    numbers = values("perfect", seed=2)
    facet = (("chain", "reference"), ("profile", "phase2"))
    ended = [
        composite(item, value, {"C": value, "V": value, "F": value}, facet=facet)
        for item, value in zip(chains.items, numbers, strict=True)
    ]
    stores.add_run(store, "composite", chains, ended)
    labels = load_labelled_features(store, ["text", "composite"], target="chain_sound")
    assert len(labels) == N_CHAINS and set(labels["run"]) == {"text"}
    assert labels["r_raw"].tolist() == numbers and set(labels["status"]) == {"ok"}
    assert set(labels["parts"]) == {"CVF"} and labels["text_characters"].notna().all()
    tuned = tune_weights_on_runs(store, ["text", "composite"], target="chain_sound")
    assert set(tuned.weights) >= {"V", "F"}


@pytest.mark.soak
def test_decisions_are_completed_by_the_runs_of_the_fit_or_by_those_that_are_named(
    store: Store,
) -> None:
    for run, column in (("new", {TEXT: characters(5)}), ("new critic", {CRITIC: values("weak")})):
        add_run(store, run, suite("fresh"), column)
    result = calibrate_runs(
        store, ["text", "critic"], author="ann", weights="combined", target="chain_sound"
    )
    assert result.version == 1, result.refusal
    assert load_scored_items(store, ["text"])["r_cal"].notna().all()
    alone = load_scored_items(store, ["new"])
    assert alone["r_cal"].isna().all() and "of this item length are defined" in alone["told"][0]
    completed = load_scored_items(store, ["new"], completed_by=["new critic"])
    assert completed["r_cal"].notna().all() and set(completed["run"]) == {"new"}

    decided = CliRunner().invoke(
        app, ["decide", "new", "--with", "new critic", "--low", "0", "--high", "0"]
    )
    assert f"{N_CHAINS}" in decided.output and decided.exit_code in (0, 1), decided.output
    row = load_calibrator_row(store)
    assert row is not None
    table = with_targets(store, row["report"]["runs"], "chain_sound", is_joined=True)
    assert "same scores and verdicts" in calibrator_changes_text(table, row)
