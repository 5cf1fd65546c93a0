"""Decisions on a run: their grounds, that they are made once, and the phase of the rollout."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from cotlab.core.errors import CotlabError, UnknownName
from cotlab.reliability.policy import (
    BELOW_LOW_REASON,
    DEFAULT_DOMAIN,
    NO_POLICY_REASON,
    UNCALIBRATED_REASON,
    Policy,
    PolicyError,
    Thresholds,
)
from cotlab.reliability.thresholds import Costs
from cotlab.review.release import decide
from cotlab.review.release.calibrate import calibrate_runs
from cotlab.review.release.decide import (
    count_reasons,
    count_unscored_items,
    decide_run,
    load_policy,
    load_scored_items,
    set_policy,
)
from cotlab.review.release.rollout import rollout_progress
from cotlab.review.release.suggest import (
    _label_groups,
    _load_labelled_items,
    suggest_by_cost,
    suggest_by_precision,
)
from cotlab.store import decisions as decision_store
from cotlab.store.calibrators import activate_calibrator
from cotlab.store.database import Store
from tests.support.stores.decided import GAPS, RUN, fill

POLICY = Policy({DEFAULT_DOMAIN: Thresholds(0.3, 0.8)}, 10)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return fill(tmp_path / "store", 60, labelled=50)


def test_each_decision_says_all_that_it_rests_on(store: Store) -> None:
    set_policy(
        store,
        Policy({DEFAULT_DOMAIN: Thresholds(0.3, 0.8), "maths": Thresholds(0.0, 0.0)}),
        author="Ann",
        reason="start",
    )
    made = decide_run(store, RUN, author="Bob")
    table = load_scored_items(store, [RUN]).set_index("item_id")
    assert len(made) == 60 and {one.by for one in made} == {"Bob"}
    for k, one in enumerate(made):
        assert (one.calibrator, one.policy) == (1, 1)
        assert (one.low, one.high) == ((0.0, 0.0) if one.domain == "maths" else (0.3, 0.8))
        if k in GAPS:
            assert (
                one.action == "escalate"
                and one.reason.startswith(f"{GAPS[k]}: why")
                and one.r_cal is None
            )
        else:
            assert (
                one.r_cal == pytest.approx(table.loc[one.item_id, "r_cal"])
                and one.r_raw is not None
            )
            high, low = (one.high, one.low)
            assert high is not None and low is not None
            wanted = "release" if one.r_cal >= high else "escalate" if one.r_cal < low else "review"
            assert one.action == wanted
    assert sum(n for _, _, n in count_reasons((one.action, one.reason) for one in made)) == 60 and (
        "escalate",
        BELOW_LOW_REASON,
    ) in {row[:2] for row in count_reasons((one.action, one.reason) for one in made)}


def test_a_policy_that_is_set_meanwhile_is_the_one_that_decides(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_policy(
        store, Policy({DEFAULT_DOMAIN: Thresholds(0.0, 0.0)}), author="Ann", reason="all out"
    )

    def slowly(asked: Store, runs: list[str], **more: list[str]) -> pd.DataFrame:
        table = load_scored_items(asked, runs, **more)
        if len(decision_store.list_policies(store)) == 1:
            set_policy(
                store, Policy({DEFAULT_DOMAIN: Thresholds(1.0, 1.0)}), author="Cy", reason="stop"
            )
        return table

    monkeypatch.setattr(decide, load_scored_items.__name__, slowly)
    made = decide_run(store, RUN, author="Bob")
    assert {one.action for one in made} == {"escalate"} and {one.policy for one in made} == {2}
    assert (
        len(decision_store.list_decisions(store, RUN, history=True)) == 60
        and len(decision_store.list_audit(store, action="decide")) == 1
    )


def test_deciding_again_adds_nothing_and_a_change_adds_all_that_changes(store: Store) -> None:
    set_policy(store, POLICY, author="Ann", reason="start")
    first = decide_run(store, RUN, author="Ann")
    assert decide_run(store, RUN, author="Bob") == first, "the stored ones, with who made them"
    assert len(decision_store.list_decisions(store, RUN, history=True)) == 60
    assert decision_store.list_audit(store)["what"].tolist() == [
        "decide",
        "policy",
        "choose calibrator",
    ]
    set_policy(
        store,
        replace(POLICY, thresholds={DEFAULT_DOMAIN: Thresholds(0.3, 0.9)}),
        author="Ann",
        reason="stricter",
    )
    again = decide_run(store, RUN, author="Bob")
    assert {one.policy for one in again} == {2} and not {one.id for one in again} & {
        one.id for one in first
    }
    assert len(decision_store.list_decisions(store, RUN, history=True)) == 120 and set(
        decision_store.list_decisions(store, RUN)["policy"]
    ) == {2}
    told = decision_store.list_audit(store, action="decide")["after"].map(json.loads).tolist()
    assert [one["written"] for one in told] == [60, 60] and told[0]["policy"] == 2


def test_thresholds_of_one_time_are_kept_with_the_decision_and_change_no_policy(
    store: Store,
) -> None:
    set_policy(store, POLICY, author="Ann", reason="start")
    made = decide_run(
        store, RUN, author="Ann", policy=Policy({DEFAULT_DOMAIN: Thresholds(0.0, 0.0)})
    )
    assert {(one.low, one.high, one.policy) for one in made} == {(0.0, 0.0, None)}
    assert [one.action for one in made].count("escalate") == len(GAPS)
    assert load_policy(store).version == 1
    assert json.loads(decision_store.list_audit(store, action="decide")["after"].iloc[0])[
        "thresholds"
    ] == {DEFAULT_DOMAIN: [0.0, 0.0]}


def test_without_a_calibrator_or_a_policy_everything_is_escalated(tmp_path: Path) -> None:
    bare = fill(tmp_path / "bare", 12, labelled=0, fitted=False, planned=15)
    made = decide_run(bare, RUN, author="Ann", policy=POLICY)
    assert {one.action for one in made} == {"escalate"} and made[6].reason.startswith(
        f"{UNCALIBRATED_REASON}: "
    )
    assert "cotlab calibrate" in made[6].reason and count_unscored_items(bare, RUN, len(made)) == 3
    fitted = fill(tmp_path / "fitted", 12, labelled=0)
    made = decide_run(fitted, RUN, author="Ann")
    assert (
        {one.action for one in made} == {"escalate"}
        and made[6].reason == NO_POLICY_REASON
        and made[6].low is None
    )


def test_what_cannot_be_decided_or_set_is_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="run-2"):
        decide_run(store, "run-2", author="Ann")
    with pytest.raises(PolicyError, match="no scores yet"):
        decide_run(
            fill(tmp_path / "empty", 0, labelled=0, fitted=False, planned=3), RUN, author="Ann"
        )
    for policy, reason in ((POLICY, " "), (Policy({}), "why")):
        with pytest.raises(PolicyError):
            set_policy(store, policy, author="Ann", reason=reason)
    assert decision_store.list_policies(store).empty and decision_store.list_decisions(store).empty


def test_the_rollout_names_what_is_missing(tmp_path: Path) -> None:
    none = rollout_progress(Store(tmp_path / "none"))
    assert (
        none.n_reached == 0
        and none.next_phase is not None
        and none.next_phase.command.endswith("--profile phase1")
    )
    store = fill(tmp_path / "store", 12, labelled=12, fitted=False)
    found = rollout_progress(store).next_phase
    assert (
        found is not None
        and found.number == 4
        and "192 more" in found.needs
        and "cotlab calibrate" in found.command
    )


def test_the_rollout_moves_with_thresholds_decisions_and_later_labels(store: Store) -> None:
    found = rollout_progress(store).next_phase
    assert found is not None and found.number == 4 and found.command.startswith("cotlab policy set")
    set_policy(store, POLICY, author="Ann", reason="start")
    found = rollout_progress(store).next_phase
    assert found is not None and found.command == "cotlab decide RUN"
    decide_run(store, RUN, author="Ann")
    found = rollout_progress(store).next_phase
    assert found is not None and (found.number, found.command) == (
        5,
        "cotlab next-labels RUN -k 20",
    )
    with store.writing() as connection:
        connection.execute("UPDATE labels SET at_ = now() + INTERVAL 1 HOUR")
        connection.execute(
            "INSERT INTO drift_checks (id, at_) VALUES ('d', now() + INTERVAL 1 HOUR)"
        )
    assert rollout_progress(store).n_reached == 5 and rollout_progress(store).next_phase is None
    with store.writing() as connection:
        activate_calibrator(connection, 1, author="Ann", reason="again")
        connection.execute(
            "UPDATE calibrator_choices SET at_ = now() + INTERVAL 2 HOUR WHERE reason = 'again'"
        )
    assert rollout_progress(store).n_reached == 4, (
        "a calibrator that was put into use later has neither labels nor checks after it"
    )


def test_suggestions_say_what_labels_and_costs_speak_for(store: Store) -> None:
    closed, labelled = suggest_by_cost(store, None, Costs(10, 1, 2, 0.2), seed=1)
    assert (
        (closed.low, closed.high) == (0.5, 0.875)
        and labelled.high is not None
        and "46 labels" in labelled.text
    )
    (one,) = suggest_by_precision(store, [RUN], 0.95)
    assert one.high is None and "more labels" in one.text
    (easy,) = suggest_by_precision(store, [RUN], 0.3)
    table = load_scored_items(store, [RUN])
    rows = table[(table["r_cal"] >= easy.high) & table["target"].notna()]
    assert easy.high is not None and rows["target"].astype(bool).mean() > 0.3


def test_suggestions_rest_on_predictions_by_fits_without_the_label(store: Store) -> None:
    fit = calibrate_runs(store, [RUN], author="Ann", domain=True)
    assert fit.version is not None
    held_out = {(run, item): r_cal for run, item, r_cal in fit.report["held_out"]}
    rows = _load_labelled_items(store, [RUN])
    keys = zip(rows["run"], rows["item_id"], strict=True)
    assert dict(zip(keys, rows["r_cal"], strict=True)) == held_out
    fitted = load_scored_items(store, [RUN]).set_index("item_id")["r_cal"]
    assert (rows.set_index("item_id")["r_cal"] - fitted).abs().max() > 0.01
    with store.writing() as connection:  # as a version of before has it
        connection.execute(
            "UPDATE calibrators SET report = json_merge_patch(report, '{\"held_out\": []}')"
        )
    with pytest.raises(CotlabError, match="fit it again"):
        suggest_by_precision(store, [RUN], 0.9)


def test_a_domain_with_few_labels_has_no_thresholds_of_its_own() -> None:
    rows = pd.DataFrame(
        {"domain": ["maths"] * 40 + ["law"] * 10 + [""] * 5 + [DEFAULT_DOMAIN] * 40}
    )
    assert [(name, len(part)) for name, part in _label_groups(rows)] == [
        (DEFAULT_DOMAIN, 95),
        ("maths", 40),
    ]
