"""From labels in the store to a calibrator in use: versions, roll-back, domains, the commands, and
hostile text."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from cotlab.cli.main import app
from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.labels import Label
from cotlab.reliability.calibrator import select_calibrator
from cotlab.reliability.combine import Combination
from cotlab.reliability.maps import NotCalibrated
from cotlab.reliability.policy import DEFAULT_DOMAIN, Policy, Thresholds
from cotlab.review.release.apply import (
    NO_ACTIVE_VERSION_REASON,
    apply_calibrator,
    calibrated_scores,
)
from cotlab.review.release.calibrate import calibrate_runs, roll_back_calibrator
from cotlab.review.release.decide import decide_run
from cotlab.review.release.features import feature_table
from cotlab.review.release.fit_report import fit_domain_maps
from cotlab.store.calibrators import current_calibrator, list_calibrator_choices, list_calibrators
from cotlab.store.database import Store
from cotlab.store.labels import add_labels
from tests.support.stores.composed import HOSTILE, PARTS, fill


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filled") / "store"
    fill(Store(folder))
    return folder


@pytest.fixture
def store(filled: Path, tmp_path: Path) -> Store:
    return Store(shutil.copytree(filled, tmp_path / "store"))


def test_labels_become_a_version_that_is_in_use(store: Store) -> None:
    found = calibrate_runs(store, ["run-1"], author="ann")
    row = current_calibrator(store)
    assert row is not None and (row["version"], row["made_by"], row["n"]) == (1, "ann", 59) == (
        found.version,
        "ann",
        59,
    )
    assert row["params"]["all"] == dict(found.calibrator.params) and row["weights"] is None
    report = row["report"]
    assert (
        report["left_out"] == {"r_raw is stopped": 1}
        and report["runs"] == ["run-1"]
        and report["n_questions"] == 30
    )
    assert [one["method"] for one in report["methods"]] == ["platt", "beta", "isotonic"]
    assert report["methods"][2]["refused"].startswith("isotonic needs more labels")
    assert sum(one["n"] for one in report["diagram"]) == len(report["points"]["target"]) == 59
    with store.reading() as connection:
        audit = connection.execute("SELECT who, what, before, after FROM audit").fetchall()
    assert audit == [("ann", "choose calibrator", None, "1")]


def test_the_current_calibrator_gives_probabilities_and_reasons(store: Store) -> None:
    table = feature_table(store, ["run-1"])
    before = calibrated_scores(store, table)
    assert (
        before["r_cal"].isna().all()
        and before["why"].iloc[0] == NO_ACTIVE_VERSION_REASON
        and before["calibrator"].isna().all()
    )
    found = calibrate_runs(store, ["run-1"], author="ann")
    after = calibrated_scores(store, table)
    assert after["r_cal"].iloc[:-1].to_numpy() == pytest.approx(
        found.calibrator.predict(table["r_raw"].iloc[:-1])
    )
    assert (
        pd.isna(after["r_cal"].iloc[-1]) and after["why"].iloc[-1] == f"r_raw is stopped: {HOSTILE}"
    )
    assert not after["outside"].any() and set(after["calibrator"]) == {1}
    wide = table.assign(r_raw=[0.0, 1.0, *table["r_raw"].iloc[2:]]).set_index(
        pd.Index(range(100, 100 + len(table)))
    )
    told = calibrated_scores(store, wide)
    assert told["outside"].tolist()[:3] == [True, True, False] and told.index[0] == 100
    assert "outside the range of the labels" in told["why"].iloc[0]
    assert calibrated_scores(store, table.iloc[:0]).empty


def test_a_score_of_other_parts_than_the_labels_had_is_not_calibrated(store: Store) -> None:
    fill(store, "run-2", 12, seed=9, profile="phase1")
    assert calibrate_runs(store, ["run-1"], author="ann").report["parts"] == ["CVFRD"]
    policy = Policy({DEFAULT_DOMAIN: Thresholds(0.0, 0.0)})
    made = decide_run(store, "run-2", author="ann", policy=policy)
    assert {one.action for one in made} == {"escalate"} and all(one.r_cal is None for one in made)
    assert made[0].reason.startswith(
        "not calibrated: r_raw is composed of C, V, and the calibrator saw labels of C, V, F, R"
    )
    row, table = current_calibrator(store), feature_table(store, ["run-2"])
    assert (
        row is not None
        and apply_calibrator(row, table.assign(parts="CVFRD"))["r_cal"].notna().sum() == 11
    )
    row["report"]["parts"] = ["CV", "CVFRD"]
    row["report"]["defined_parts"].append({"parts": ["C", "V"], "n": 1})
    assert apply_calibrator(row, table)["r_cal"].notna().sum() == 11


def test_a_score_of_other_chains_than_the_labels_were_of_is_not_calibrated(store: Store) -> None:
    fill(store, "run-2", 12, seed=9, chain="own")
    assert calibrate_runs(store, ["run-1"], author="ann").report["chains"] == ["reference"]
    policy = Policy({DEFAULT_DOMAIN: Thresholds(0.0, 0.0)})
    made = decide_run(store, "run-2", author="ann", policy=policy)
    assert {one.action for one in made} == {"escalate"} and all(one.r_cal is None for one in made)
    assert made[0].reason.startswith(
        "not calibrated: r_raw is of the model's own chains, and the calibrator saw "
    )
    assert feature_table(store, ["run-1", "run-2"]).groupby("run")["chain"].unique().map(
        list
    ).to_dict() == {
        "run-1": ["reference"],
        "run-2": ["own"],
    }
    row, table = current_calibrator(store), feature_table(store, ["run-2"])
    assert (
        row is not None
        and apply_calibrator(row, table.assign(chain=""))["r_cal"].notna().sum() == 11
    )
    row["report"]["chains"] = ["own", "reference"]
    assert apply_calibrator(row, table)["r_cal"].notna().sum() == 11


def test_rollback_restores_the_predictions_exactly(store: Store) -> None:
    table = feature_table(store, ["run-1"])
    calibrate_runs(store, ["run-1"], author="ann")
    first = calibrated_scores(store, table)
    fill(store, "run-2", seed=9)
    calibrate_runs(store, None, author="ben", method="beta")
    second = calibrated_scores(store, table)
    assert set(second["calibrator"]) == {2} and not np.array_equal(
        first["r_cal"][:-1], second["r_cal"][:-1]
    )
    with pytest.raises(ConfigError, match="needs its reason"):
        roll_back_calibrator(store, 1, author="ann", reason=" ")
    roll_back_calibrator(store, 1, author="ann", reason=HOSTILE)
    pd.testing.assert_frame_equal(calibrated_scores(store, table), first, check_exact=True)
    rolled_back = calibrated_scores(store, table, version=2)
    pd.testing.assert_frame_equal(rolled_back, second, check_exact=True)
    assert list_calibrator_choices(store)["version"].tolist() == [1, 2, 1]
    assert list_calibrators(store).set_index("version")["current"].to_dict() == {2: False, 1: True}
    with pytest.raises(UnknownName, match="calibrator version '7'"):
        roll_back_calibrator(store, 7, author="ann", reason="x")
    assert len(list_calibrators(store)) == 2


@pytest.mark.soak
def test_the_digest_is_of_the_labels_and_not_of_their_order(store: Store) -> None:
    one, two = (
        calibrate_runs(store, ["run-1"], author="ann", dry_run=True, seed=seed) for seed in (0, 1)
    )
    assert one.version is None and list_calibrators(store).empty
    assert one.report["labels_digest"] == two.report["labels_digest"]
    point = feature_table(store, ["run-1"])["item_id"].iloc[0]
    later = datetime(2026, 1, 2, tzinfo=UTC)
    with store.writing() as connection:
        query = "SELECT reasoning FROM labels WHERE item_id = ?"
        turned = connection.execute(query, [point]).fetchone()
        other = "acceptable" if turned == ("not_acceptable",) else "not_acceptable"
        said = [
            Label("new", "run-1", point, "zoe", other, True, later),
            Label("more", "run-1", point, "yan", other, True, later),
        ]
        add_labels(
            connection, [*said, Label("gone", "run-1", "i-001", HOSTILE, "unsure", True, later)]
        )
    third = calibrate_runs(store, ["run-1"], author="ann", dry_run=True)
    assert third.report["labels_digest"] != one.report["labels_digest"] and third.report["n"] == 58
    assert third.report["left_out"] == {"nobody is sure": 1, "r_raw is stopped": 1}


def test_a_domain_whose_own_map_is_no_better_has_the_one_over_all(store: Store) -> None:
    found = calibrate_runs(store, ["run-1"], author="ann", domain=True)
    told = found.report["domains"]
    assert (
        told["sums"]["used"] == told[HOSTILE]["used"] == "all"
        and not found.calibrator_by_domain
        and told["sums"]["n"] == 44
    )
    assert (
        told["sums"]["why"]
        == "the map over all domains: its own, platt, is not better beyond chance"
    )
    gap = told["sums"]["difference"]
    assert (
        gap["point"] == pytest.approx(told["sums"]["own"]["point"] - told["sums"]["all"]["point"])
        and gap["hi"] >= 0
    )
    assert gap["n"] == 30  # questions
    assert (
        told[HOSTILE]["why"].startswith("the map over all domains: No calibrator")
        and told[HOSTILE]["difference"] is None
    )
    assert told[HOSTILE]["all"]["point"] > 0


def test_a_domain_whose_own_map_is_better_has_it(store: Store) -> None:
    """Chains of law are acceptable from .8 on, of sums from .2 on: a map over both is right for
    neither."""
    rng = np.random.default_rng(4)
    raw, law = rng.random(120), np.arange(120) % 2 == 0
    table = pd.DataFrame(
        {"domain": np.where(law, "law", "sums"), "question": [f"q{k // 2}" for k in range(120)]}
    )
    target = rng.random(120) < 1 / (1 + np.exp(-12 * (raw - np.where(law, 0.8, 0.2))))
    whole = select_calibrator(raw, target, table["question"].tolist(), method="platt").chosen_trial
    assert whole.predictions is not None
    maps, told, predictions = fit_domain_maps(
        table, raw, target, whole.predictions, method="platt", seed=0
    )
    assert not np.allclose(predictions, whole.predictions)
    assert set(maps) == {"law", "sums"}
    for name, own in (("law", law), ("sums", ~law)):
        one = told[name]
        assert (
            one["used"] == "own"
            and one["difference"]["hi"] < 0
            and one["own"]["hi"] < one["all"]["lo"]
        )
        assert one["all"]["point"] == pytest.approx(
            float(np.mean((whole.predictions[own] - target[own]) ** 2))
        )


def test_a_map_of_a_domain_is_that_of_its_items_alone(store: Store) -> None:
    calibrate_runs(store, ["run-1"], author="ann", method="platt")
    row, table = current_calibrator(store), feature_table(store, ["run-1"]).iloc[:-1]
    assert row is not None
    own = {**row["params"]["all"], "intercept": row["params"]["all"]["intercept"] + 2.0}
    changed = {**row, "params": {**row["params"], "domains": {"sums": own}}}
    after = apply_calibrator(changed, table)["r_cal"]
    sums, before = (table["domain"] == "sums").to_numpy(), apply_calibrator(row, table)["r_cal"]
    assert (after[sums] > before[sums]).all() and after[~sums].tolist() == before[~sums].tolist()


@pytest.mark.soak
def test_tuned_weights_weigh_r_raw_anew(store: Store) -> None:
    found = calibrate_runs(store, ["run-1"], author="ann", weights="tuned", objective="auc")
    assert found.weights is not None and found.report["weights"]["weights"] == found.weights
    table = feature_table(store, ["run-1"]).iloc[:-1]
    own = sum(found.weights[part] * table[part] for part in PARTS)
    after = calibrated_scores(store, table)
    assert after["r_raw"].to_numpy() == pytest.approx(own.to_numpy())
    assert after["r_cal"].to_numpy() == pytest.approx(found.calibrator.predict(own))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"method": "magic"}, ConfigError, "no method of calibration"),
        ({"weights": "mine"}, ConfigError, "example, tuned, combined"),
        ({"objective": "f1"}, ConfigError, "auc or brier"),
        ({"method": "isotonic"}, NotCalibrated, "59 labels of at least 200"),
    ],
)
def test_what_cannot_be_fitted_is_refused_and_nothing_is_written(
    store: Store, options: dict[str, str], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        calibrate_runs(store, ["run-1"], author="ann", **options)  # type: ignore[arg-type]
    with pytest.raises(UnknownName):
        calibrate_runs(store, ["no such run"], author="ann")
    assert list_calibrators(store).empty and current_calibrator(store) is None


def test_few_labels_are_refused(tmp_path: Path) -> None:
    store = Store(tmp_path / "few")
    fill(store, labels=12)
    with pytest.raises(NotCalibrated, match="12 labels of at least 20"):
        calibrate_runs(store, None, author="ann")
    with pytest.raises(NotCalibrated, match="0 labels of at least 20"):
        calibrate_runs(Store(tmp_path / "none"), None, author="ann")


Command = Callable[..., str]


@pytest.fixture
def command(store: Store, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("COTLAB_STORE", str(store.folder))

    def run(*words: str) -> str:
        found = CliRunner().invoke(app, words)
        if found.exception is not None and not isinstance(found.exception, SystemExit):
            raise found.exception
        assert found.exit_code == 0, found.output
        return found.output

    return run


def test_the_commands_fit_list_and_roll_back(command: Command) -> None:
    dry = command("calibrate", "run-1", "--dry-run")
    assert (
        "Nothing was written" in dry
        and "refused: isotonic needs more labels" in dry
        and "Chosen (*): " in dry
    )
    assert "No calibrator yet" in command("calibrate", "--list")
    told = " ".join(command("calibrate", "run-1", "--domain", "--by", HOSTILE).split())
    assert (
        "Version 1 is in use" in told
        and "Domain 'sums' (44 labels" in told
        and ", own minus all " in told
    )
    told = json.loads(command("calibrate", "run-1", "--method", "beta", "--json"))
    assert told["version"] == 2 and told["report"]["chosen"] == "beta"
    assert "1 (in use)" in command(
        "calibrate", "--rollback", "1", "--reason", "the labels of run-1 were wrong"
    )
    rows = json.loads(command("calibrate", "--list", "--json"))
    assert [(row["version"], row["current"]) for row in rows] == [(2, False), (1, True)] and rows[
        1
    ]["made_by"] == HOSTILE


def test_the_commands_refuse_what_contradicts_itself(command: Command) -> None:
    for words in (
        ["--list", "--rollback", "1"],
        ["run-1", "--list"],
        ["run-1", "--rollback", "1"],
        ["--rollback", "1"],
    ):
        with pytest.raises(ConfigError):
            command("calibrate", *words)


@pytest.mark.soak
def test_tune_says_whether_to_keep_the_example_weights(command: Command) -> None:
    told = command("tune", "run-1")
    assert "keep the example weights" in told and "Tuned minus example" in told
    assert "No calibrator" in command("calibrate", "--list")
    applied = json.loads(command("tune", "run-1", "--apply", "--json"))
    assert (
        applied["version"] == 1
        and applied["report"]["weights"]["weights"] == applied["tuned"]["weights"]
    )
    with pytest.raises(ConfigError, match="auc or brier"):
        command("tune", "run-1", "--objective", "f1")


@pytest.mark.soak
def test_a_combination_is_a_version_that_is_applied_and_rolled_back(store: Store) -> None:
    calibrate_runs(store, ["run-1"], author="ada")
    found = calibrate_runs(store, ["run-1"], author="ada", weights="combined")
    row = current_calibrator(store)
    assert row is not None and (row["version"], row["method"], found.version) == (2, "combined", 2)
    table = feature_table(store, ["run-1"])
    told = calibrated_scores(store, table)
    own = Combination.from_params(row["params"]["combined"]).predict(table)
    ok = (table["status"] == "ok").to_numpy()
    assert (
        np.allclose(told["r_cal"][ok], own[ok])
        and told["r_cal"][~ok].isna().all()
        and (~ok).sum() == 1
    )
    assert told["why"][~ok].str.startswith("r_raw is stopped").all()
    pd.testing.assert_series_equal(
        told["r_raw"][ok], table["r_raw"][ok], check_names=False
    )  # the score stays what it was
    report = row["report"]
    assert report["n"] == 59 and report["methods"][0]["brier"]["lo"] < report["base_brier"]["point"]
    assert "run-1" in report["runs"] and "AUROC minus that of r_raw" in report["why"]
    roll_back_calibrator(store, 1, author="ada", reason="simpler")
    assert set(calibrated_scores(store, table)["calibrator"]) == {1}


def test_a_combination_takes_no_method_and_no_domains(store: Store) -> None:
    for more in ({"method": "platt"}, {"domain": True}):
        with pytest.raises(ConfigError, match="a probability already"):
            calibrate_runs(store, ["run-1"], author="ada", weights="combined", **more)  # type: ignore[arg-type]
    assert current_calibrator(store) is None


def test_the_command_says_what_was_combined(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(store.folder))
    found = CliRunner().invoke(app, ["calibrate", "run-1", "--weights", "combined"])
    assert found.exit_code == 0 and "Combined: weights of standardised columns:" in found.output
    listed = CliRunner().invoke(app, ["calibrate", "--list"])
    assert "combined" in listed.output
