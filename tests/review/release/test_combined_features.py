"""Combined fits of whatever a run has measured: no r_raw is needed, trivial baselines are bars, a
missing family gives no probability."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from cotlab.cli.main import app
from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.types import Item, Score, Step, Suite
from cotlab.reliability.combine import class_bound_features
from cotlab.reliability.maps import NotCalibrated
from cotlab.reliability.policy import DEFAULT_DOMAIN, Policy, Thresholds
from cotlab.review.labelling.targets import load_labelled_features
from cotlab.review.release.apply import calibrated_scores
from cotlab.review.release.calibrate import (
    calibrate_runs,
    tune_weights_by_domain,
    tune_weights_on_runs,
)
from cotlab.review.release.decide import decide_run
from cotlab.review.release.features import feature_table
from cotlab.store.calibrators import current_calibrator
from cotlab.store.database import Store
from cotlab.store.write import EndedItem
from tests.support.stores import add_run

TARGET = "chain_sound"


def fill(
    store: Store,
    run: str,
    *,
    seed: int,
    n: int = 150,
    slope: float = 2.5,
    only_sound_answers: bool = False,
) -> None:
    """A run of chains with known mistakes: short ones are sound more often, and, by ``slope``,
    those without hedging words; a sound chain has a right answer, the only one that is known where
    ``only_sound_answers``."""
    rng = np.random.default_rng(seed)
    items, ended = [], []
    for k in range(n):
        length, hedges = float(rng.integers(100, 2000)), float(rng.integers(0, 4))
        logit = 1.5 - 0.001 * length - slope * (hedges - 1.5)
        is_sound = bool(rng.random() < 1 / (1 + np.exp(-logit)))
        meta: dict[str, object] = {"first_mistake": None if is_sound else 0}
        if is_sound or not only_sound_answers:
            meta["answer_correct"] = is_sound or bool(rng.random() < 0.3)
        item = Item(f"i{k}", f"Question {run} {k // 2}?", None, (Step(0, "So."),), "", meta)
        values = {"text_characters": length, "text_steps": 3.0, "hedging_words": hedges}
        facet = (("chain", "reference"),)
        scores = tuple(Score(m, item.id, v, facet=facet) for m, v in values.items())
        items.append(item)
        ended.append(EndedItem("text_features", 1, "p", item.id, scores))
    add_run(store, run, Suite.from_items(f"suite {run}", items), ended, scorers=("text_features",))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "store")
    fill(made, "a", seed=1)
    fill(made, "b", seed=2)
    return made


def test_what_is_known_of_one_class_only_is_not_read(tmp_path: Path) -> None:
    store = Store(tmp_path)
    fill(store, "a", seed=1, only_sound_answers=True)
    labels = load_labelled_features(store, ["a"], target=TARGET)
    assert set(class_bound_features(labels, labels["target"], labels)) == {"answer_correct"}
    report = calibrate_runs(store, ["a"], author="ada", weights="combined", target=TARGET).report
    assert "answer_correct" not in report["combination"]["features"]
    assert "missing in 0%" in report["combination"]["left_out"]["answer_correct"]
    assert report["baselines"]["answer"]["auroc"] is None
    assert not report["baselines"]["answer"]["is_bar"]


@pytest.mark.soak
def test_a_fit_of_text_features_is_a_version_that_decides_without_an_r_raw(store: Store) -> None:
    found = calibrate_runs(
        store,
        ["a"],
        author="ada",
        weights="combined",
        target=TARGET,
        without=["answer_correctness"],
    )
    assert found.version == 1 and found.report["n"] == 150 and not found.report["left_out"]
    assert set(found.report["combination"]["features"]) == {"text_characters", "hedging_words"}
    assert found.report["combination"]["left_out"] == {"text_steps": "does not vary"}
    scores = calibrated_scores(store, feature_table(store, ["b"]))
    assert scores["r_cal"].notna().all() and scores["r_raw"].isna().all()
    policy = Policy({DEFAULT_DOMAIN: Thresholds(0.3, 0.7)})
    made = decide_run(store, "b", author="ada", policy=policy)
    assert {one.action for one in made} >= {"release", "escalate"}
    baselines = found.report["baselines"]
    assert baselines["length"]["brier_difference"]["hi"] < 0
    assert baselines["length"]["is_bar"] and not baselines["answer"]["is_bar"]
    assert baselines["answer"]["auroc"]["point"] > 0.5


def test_what_is_no_better_than_length_is_no_version(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    fill(store, "a", seed=3, slope=0.0)
    found = calibrate_runs(
        store, ["a"], author="ada", weights="combined", target=TARGET, without=["answer_correct"]
    )
    assert found.version is None and current_calibrator(store) is None
    assert "better than" in found.refusal


@pytest.mark.soak
def test_the_answer_is_a_bar_where_the_fit_reads_it(store: Store) -> None:
    found = calibrate_runs(store, ["a", "b"], author="ada", weights="combined", target=TARGET)
    assert found.version == 1
    assert all(entry["is_bar"] for entry in found.report["baselines"].values())
    assert "answer_correct" in found.report["combination"]["features"]
    only_trivial = calibrate_runs(
        store, ["a", "b"], author="ada", weights="combined", target=TARGET, without=["wording"]
    )
    assert only_trivial.version is None
    assert "answer alone" in only_trivial.refusal


@pytest.mark.soak
def test_each_domain_is_predicted_by_a_fit_on_the_others(store: Store) -> None:
    found = calibrate_runs(
        store,
        ["a", "b"],
        author="ada",
        weights="combined",
        target=TARGET,
        domain_intercepts=True,
        dry_run=True,
    )
    unseen = found.report["unseen_domains"]
    assert set(unseen["domains"]) == {"suite a", "suite b"} and unseen["all"]["n"] == 300
    assert all(entry["auroc"]["lo"] > 0.5 for entry in unseen["domains"].values())
    domains = {c["domain"] for c in found.report["combination"]["columns"] if "domain" in c}
    assert domains == {"suite a", "suite b"}


@pytest.mark.soak
def test_a_row_without_a_family_of_the_labels_has_no_probability(store: Store) -> None:
    calibrate_runs(store, ["a"], author="ada", weights="combined", target=TARGET)
    table = feature_table(store, ["b"]).assign(answer_correct=np.nan)
    scores = calibrated_scores(store, table)
    assert scores["r_cal"].isna().all()
    assert scores["why"].str.contains("label items like this one").all()


def test_labels_that_cannot_be_used_are_counted_and_never_called_none(store: Store) -> None:
    for fit in (
        lambda: calibrate_runs(store, ["a"], author="ada", target=TARGET),
        lambda: tune_weights_on_runs(store, ["a"], target=TARGET),
    ):
        with pytest.raises(
            NotCalibrated, match="150 items are labelled, and none of them has an"
        ) as e:
            fit()
        assert "--weights combined" in str(e.value) and "0 labels" not in str(e.value)
    by_domain = tune_weights_by_domain(store, ["a", "b"], target=TARGET)
    assert set(by_domain) == {"suite a", "suite b"}
    assert all("150 items are labelled" in str(reason) for reason in by_domain.values())


def test_options_of_a_combined_fit_are_checked(store: Store) -> None:
    with pytest.raises(UnknownName, match="hedging"):
        calibrate_runs(store, ["a"], author="ada", weights="combined", without=["hedging"])
    with pytest.raises(ConfigError, match="add --weights combined"):
        calibrate_runs(store, ["a"], author="ada", without=["wording"])


@pytest.mark.soak
def test_the_command_prints_what_is_trivial_beside_the_fit(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(store.folder))
    arguments = ["calibrate", "a", "b", "--weights", "combined", "--target", TARGET, "--dry-run"]
    found = CliRunner().invoke(app, [*arguments, "--domain-intercepts"])
    text = " ".join(found.output.split())
    assert found.exit_code == 0
    for words in (
        "length alone: AUROC",
        "length and answer alone: AUROC",
        "combined minus length: AUROC",
        "Without labels of 'suite a'",
        "Leave one domain out, all",
    ):
        assert words in text
