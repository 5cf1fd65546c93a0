"""Which items a calibrator speaks of: those whose defined parts occur among the items that it was
fitted on."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest

from cotlab.core.labels import Label
from cotlab.reliability.policy import DEFAULT_DOMAIN, Policy, Thresholds
from cotlab.review.release.apply import calibrated_scores
from cotlab.review.release.calibrate import calibrate_runs
from cotlab.review.release.decide import decide_run
from cotlab.review.release.features import feature_table
from cotlab.store.database import Store
from cotlab.store.decisions import list_audit, list_decisions
from cotlab.store.labels import add_labels
from tests.support.stores.composed import PARTS, fill

RELEASE_ALL = Policy({DEFAULT_DOMAIN: Thresholds(0.0, 0.0)})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "store")
    fill(made)
    return made


def test_an_item_whose_defined_parts_no_label_has_is_not_released(store: Store) -> None:
    fill(store, "run-2", 12, seed=9, undefined={0: "RD", 1: "RD", 2: "F"})
    found = calibrate_runs(store, ["run-1"], author="ann")
    made = decide_run(store, "run-2", author="ann", policy=RELEASE_ALL)
    assert [one.action for one in made] == ["escalate"] * 3 + ["release"] * 8 + ["escalate"]
    assert found.report["defined_parts"] == [{"parts": list(PARTS), "n": 59}]
    assert all(
        one.r_cal is None and one.r_raw is not None and one.calibrator == 1 for one in made[:3]
    )
    assert (
        made[0].reason
        == "not calibrated: of this item C, V, F are defined, and the calibrator's labelled items"
        " have C, R, V, D, F (59): label items like this one and fit a calibrator on them too"
    )
    kept = list_decisions(store, "run-2")
    assert (
        kept["reason"].tolist()[:3] == [one.reason for one in made[:3]]
        and made[2].reason != made[0].reason
    )
    assert json.loads(list_audit(store, action="decide")["after"].iloc[0])["release"] == 8


def test_an_item_whose_defined_parts_a_label_has_is_released(store: Store) -> None:
    fill(store, "run-2", 12, seed=9, undefined={0: "RD", 1: "RD", 2: "F"}, labels=1)
    found = calibrate_runs(store, None, author="ann")
    made = decide_run(store, "run-2", author="ann", policy=RELEASE_ALL)
    assert [one.action for one in made][:3] == ["release", "release", "escalate"]
    assert found.report["defined_parts"] == [
        {"parts": list(PARTS), "n": 59},
        {"parts": ["C", "V", "F"], "n": 1},
    ]
    assert "C, R, V, D, F (59) or C, V, F (1)" in made[2].reason


@pytest.mark.soak
@pytest.mark.parametrize("weights", ["example", "tuned", "combined"])
def test_a_version_kept_without_its_defined_parts_takes_them_from_the_labels_it_was_fitted_on(
    store: Store, weights: str
) -> None:
    fill(store, "run-2", 12, seed=9, undefined={0: "RD", 1: "F"})
    calibrate_runs(store, ["run-1"], author="ann", weights=weights)
    table = feature_table(store, ["run-2"])
    before = calibrated_scores(store, table)
    assert before["r_cal"].notna().tolist() == [False, False, *[True] * 9, False]
    forget_parts(store)
    pd.testing.assert_frame_equal(calibrated_scores(store, table), before, check_exact=True)
    with store.writing() as connection:  # what is labelled later was not there at the fit
        add_labels(
            connection,
            [Label("later", "run-2", "i-000", "zoe", "acceptable", True, datetime.now(UTC))],
        )
        add_labels(
            connection,
            [Label("turned", "run-1", "i-000", "zoe", "not_acceptable", True, datetime.now(UTC))],
        )
    pd.testing.assert_frame_equal(calibrated_scores(store, table), before, check_exact=True)


@pytest.mark.soak
def test_a_version_whose_defined_parts_cannot_be_known_releases_nothing(store: Store) -> None:
    calibrate_runs(store, ["run-1"], author="ann")
    forget_parts(store)
    with store.writing() as connection:
        connection.execute("UPDATE calibrators SET labels_digest = 'of labels that are gone'")
    made = decide_run(store, "run-1", author="ann", policy=RELEASE_ALL)
    assert {one.action for one in made} == {"escalate"} and made[0].r_cal is None
    assert (
        made[0].reason
        == "not calibrated: which parts the labelled items of calibrator 1 have cannot be known any"
        " more: fit one anew with cotlab calibrate RUN"
    )
    calibrate_runs(store, ["run-1"], author="ann")
    assert {
        one.action for one in decide_run(store, "run-1", author="ann", policy=RELEASE_ALL)[:-1]
    } == {"release"}


def forget_parts(store: Store) -> None:
    """Leave the versions as they were kept before they had the sets of defined parts."""
    with store.writing() as connection:
        for version, text in connection.execute(
            "SELECT version, report FROM calibrators"
        ).fetchall():
            report = json.loads(text)
            del report["defined_parts"]
            connection.execute(
                "UPDATE calibrators SET report = ? WHERE version = ?", [json.dumps(report), version]
            )
