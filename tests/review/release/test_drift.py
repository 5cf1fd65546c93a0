"""Runs held against each other: an alert where features moved, none where they did not, and what
follows from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cotlab.core.errors import ConfigError, UnknownName
from cotlab.review.release.drift import (
    DriftCheck,
    NoCommonFeatures,
    drift_doubts,
    drift_from_json,
    drift_json,
    drift_state,
    group_runs_for_drift,
    measure_drift,
    store_drift_check,
    uncompared_text,
)
from cotlab.review.release.reaudit import NothingReleased, measure_quality, queue_reaudit
from cotlab.store.calibrators import list_drift_checks
from cotlab.store.database import Store
from cotlab.store.labels import list_label_queues, list_queue_items
from tests.support.stores.drifted import add_run, calibrated, decide, label, vectors


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """``ref``, ``same`` and ``low`` on questions of their own; ``again`` is ``ref`` once more."""
    made = Store(tmp_path_factory.mktemp("drift") / "store")
    add_run(made, "ref", vectors(80, 1), tags={"epoch": "1"})
    add_run(made, "same", vectors(70, 2), first=100, tags={"epoch": "2"})
    add_run(made, "low", vectors(60, 3, shift=0.3), first=200, tags={"epoch": "10"})
    add_run(made, "again", vectors(80, 1), tags={"epoch": "2"})
    return made


@pytest.fixture(scope="module")
def low(store: Store) -> DriftCheck:
    return measure_drift(store, ["ref"], ["low"], permutations=399)


def test_two_samples_of_one_distribution_raise_no_alert(store: Store) -> None:
    found = measure_drift(store, ["ref"], ["same"], permutations=399)
    assert (
        not found.alert
        and found.moved_features == []
        and found.suggestion == ""
        and found.shared == 0
    )
    assert found.reason.startswith(
        "No feature of 4 moved past KS 0.2 or PSI 0.2 by more than chance"
    )
    assert (found.joint.energy.p or 0) > 0.05 and [one.name for one in found.features] == [
        "r_raw",
        "C",
        "V",
        "D",
    ]


def test_a_shift_raises_an_alert_that_names_the_features_and_the_way_out(low: DriftCheck) -> None:
    assert low.alert and low.moved_features == ["r_raw", "V"]
    assert "V (PSI" in low.reason and "C (PSI" not in low.reason
    assert "cotlab calibrate ref low" in low.suggestion and low.joint.energy.p == 1 / 400
    v = next(one for one in low.features if one.name == "V")
    assert v.drift.n_reference < 80 and v.drift.n_current < 60  # what is undefined is not counted


@pytest.mark.soak
@pytest.mark.parametrize(("ks", "psi", "alert"), [(0.2, 0.2, True), (1.0, 50.0, False)])
def test_what_is_certain_but_small_is_no_alert(
    store: Store, ks: float, psi: float, alert: bool
) -> None:
    found = measure_drift(store, ["ref"], ["low"], ks=ks, psi=psi, permutations=399)
    assert found.alert is alert
    assert any("r_raw, V moved by more than chance" in doubt for doubt in drift_doubts(found))


@pytest.mark.soak
def test_the_same_items_with_the_same_scores_have_not_moved(store: Store) -> None:
    found = measure_drift(store, ["ref"], ["again"], permutations=399)
    assert found.shared == 80 and not found.alert
    assert all(one.drift.psi.value == 0 and one.drift.psi.p == 1 for one in found.features)


def test_no_drift_is_said_only_where_a_shift_would_have_been_seen(
    store: Store, low: DriftCheck, tmp_path: Path
) -> None:
    """70 and 80 items: shuffled, KS reaches 1.36 √(1/70 + 1/80) = .22, PSI .3; of 800, a third."""
    assert drift_state(low) == "drift"
    few = measure_drift(store, ["ref"], ["same"], permutations=399)
    assert not few.alert and drift_state(few) == "unclear"
    assert any("chance alone may reach the limit" in doubt for doubt in drift_doubts(few))
    assert drift_state(measure_drift(store, ["ref"], ["again"], permutations=399)) == "none"
    large = Store(tmp_path / "large")
    add_run(large, "ref", vectors(800, 1))
    add_run(large, "same", vectors(800, 2), first=1_000)
    add_run(large, "moved", vectors(800, 3, shift=0.3), first=2_000)
    same = measure_drift(large, ["ref"], ["same"], permutations=399)
    assert drift_state(same) == "none" and drift_doubts(same) == []
    # sure of it, but below the limits: not green
    small = measure_drift(large, ["ref"], ["moved"], ks=1.0, psi=50.0, permutations=399)
    assert not small.alert and drift_state(small) == "unclear"
    assert [doubt.split(" moved")[0] for doubt in drift_doubts(small)] == [
        "all features together",
        "r_raw, V",
    ]


def test_what_was_not_compared_is_named(store: Store, low: DriftCheck) -> None:
    assert uncompared_text(low) == (
        "Not compared: whether the answer follows a step that states something else; what the"
        " answer loses without the chain's states; whether a suggestion moves the answer."
    )


def test_a_kept_check_is_read_as_it_was_and_nothing_in_it_is_no_number(
    store: Store, low: DriftCheck
) -> None:
    made = measure_drift(
        store, ["ref"], ["low"], author="bo", features=["V", "D"], permutations=199
    )
    assert store_drift_check(store, made)
    row = list_drift_checks(store, run_id="low").iloc[0]
    assert (row["id"], row["reference"], row["current"], row["by_"]) == (
        made.id,
        ["ref"],
        ["low"],
        "bo",
    ) and row["alert"]
    assert drift_from_json(json.loads(row["result"])) == made
    told = json.dumps(drift_json(low), allow_nan=False)
    assert json.loads(told)["quality"]["brier"] is None and "no calibrator is in use" in told


def test_few_values_are_undefined_with_their_reason(store: Store, tmp_path: Path) -> None:
    few = Store(tmp_path / "few")
    add_run(few, "ref", vectors(30, 1))
    add_run(few, "cur", vectors(15, 2), first=50)
    found = measure_drift(few, ["ref"], ["cur"], permutations=199)
    assert (
        not found.alert
        and found.features[0].drift.psi.value is None
        and found.joint.energy.value is None
    )
    assert "30 and 15 defined values: it takes 20 in each" in found.reason


@pytest.mark.parametrize(
    ("reference", "current", "more", "error", "said"),
    [
        (["ref"], ["ref"], {}, ConfigError, "both sides"),
        ([], ["ref"], {}, ConfigError, "name one"),
        (["ref"], ["nope"], {}, UnknownName, "nope"),
        (["ref"], ["low"], {"features": ["v"]}, UnknownName, "feature"),
        (["ref"], ["low"], {"permutations": 99}, ConfigError, "can reject only from 160"),
        (["ref"], ["low"], {"ks": 0}, ConfigError, "above 0"),
        (["ref"], ["low"], {"features": ["bypass"]}, NoCommonFeatures, "--profile phase3"),
    ],
)
def test_what_cannot_be_compared_is_one_message(
    store: Store,
    reference: list[str],
    current: list[str],
    more: dict[str, float],
    error: type[Exception],
    said: str,
) -> None:
    with pytest.raises(error, match=said):
        measure_drift(store, reference, current, **more)  # type: ignore[arg-type]


def test_a_series_goes_by_tags_as_numbers_or_by_time(store: Store) -> None:
    assert group_runs_for_drift(store, ["low", "same", "again"], "epoch") == [
        ("epoch 2", ("same", "again")),
        ("epoch 10", ("low",)),
    ]
    assert [runs for _, runs in group_runs_for_drift(store, ["low", "ref", "same"], "time")] == [
        ("ref",),
        ("same",),
        ("low",),
    ]
    with pytest.raises(ConfigError, match="no tag of this name"):
        group_runs_for_drift(store, ["low"], "season")


def test_released_items_are_drawn_for_another_look_and_no_others(store: Store) -> None:
    with pytest.raises(NothingReleased, match="cotlab decide low"):
        queue_reaudit(store, ["low"], 5, author="bo")
    actions = {f"i-{200 + k}": "release" if k < 12 else "review" for k in range(30)}
    decide(store, "low", actions)
    queue, n = queue_reaudit(store, ["low"], 5, author="bo", seed=1)
    asked = list_queue_items(store, queue)
    assert (
        n == 5
        and all(actions[item] == "release" for item in asked["item_id"])
        and set(asked["run"]) == {"low"}
    )
    assert list_label_queues(store).set_index("id").loc[queue, "kind"] == "audit"
    assert not asked["reason"].str.contains("release|r_cal").any()  # raters are told no score
    again, _ = queue_reaudit(store, ["low"], 5, author="bo", seed=1)
    other, every = queue_reaudit(store, ["low"], 50, author="bo", seed=2)
    assert list(list_queue_items(store, again)["item_id"]) == list(asked["item_id"]) and every == 12
    assert len(list_queue_items(store, other)) == 12


def test_what_the_fit_saw_does_not_speak_for_it_when_labelled_again(tmp_path: Path) -> None:
    own = Store(tmp_path / "own")
    add_run(own, "ref", vectors(30, 5))
    label(own, "ref", {f"i-{k:03}": k % 2 == 0 for k in range(10)})
    add_run(own, "new", vectors(10, 6), first=100)
    calibrated(own, [k / 40 for k in range(40)], [k % 40 > 9 + k % 20 for k in range(40)], 0.2)
    label(own, "ref", {f"i-{k:03}": k % 2 == 0 for k in range(13)}, rater="bob")
    assert measure_quality(own, ["ref"]).n == 3 and measure_quality(own, ["new"]).n == 0


@pytest.mark.soak
def test_brier_since_the_fit_counts_later_labels_only(tmp_path: Path) -> None:
    own = Store(tmp_path / "own")
    table = vectors(80, 5)
    add_run(own, "ref", table)
    later = vectors(60, 6, shift=0.3)
    add_run(own, "cur", later, first=100)
    raw = [v or 0.0 for v in table["r_raw"]]
    label(own, "cur", {f"i-{100 + k}": True for k in range(5)})
    assert measure_quality(own, ["cur"]).reason == "no calibrator is in use"
    calibrated(own, raw, [(r > 0.8) == (k % 9 > 0) for k, r in enumerate(raw)], 0.11)
    assert measure_quality(own, ["cur"]).reason.startswith("0 items")
    label(own, "cur", {f"i-{100 + k}": k % 2 == 0 for k in range(10, 50)})
    found = measure_quality(own, ["cur"])
    assert (
        found.n == 40 and found.version == 1 and found.brier is not None and found.ece is not None
    )
    assert (
        found.brier["lo"] <= found.brier["point"] <= found.brier["hi"] and found.is_worse
    )  # right half of the time, at random
    assert found.fitted == 0.11 and found.band is not None


def test_what_the_fit_saw_is_not_new_when_it_is_labelled_again(tmp_path: Path) -> None:
    own, table = Store(tmp_path / "own"), vectors(60, 5)
    for run in ("ref", "cur"):
        add_run(own, run, table)
        label(own, run, {f"i-{k:03}": True for k in range(30)})
    calibrated(
        own, [v or 0.0 for v in table["r_raw"]], [k % 3 > 0 for k in range(60)], 0.11
    )  # on labels of ref
    for run in ("ref", "cur"):
        label(own, run, {f"i-{k:03}": True for k in range(15, 45)}, rater="cy")
    assert measure_quality(own, ["ref"]).n == 15 and measure_quality(own, ["cur"]).n == 30
