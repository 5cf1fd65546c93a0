"""Stored metrics against labels: what tells, what does not, where a first mistake is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from sklearn.metrics import roc_auc_score

from cotlab.analysis.evaluation.measure import (
    NoLabelledChains,
    evaluate_chains,
    evaluate_runs,
    signal_details,
)
from cotlab.analysis.evaluation.results import (
    CONSTANT,
    UNDEFINED,
    UNINFORMATIVE,
    Evaluation,
    SignalResult,
    evaluation_json,
    headline,
)
from cotlab.analysis.evaluation.signals import EvaluationData, load_labelled_chains
from cotlab.core.errors import UnknownName
from cotlab.store.database import Store
from cotlab.store.labels import add_labels
from cotlab.store.write import add_suite
from tests.support import stores
from tests.support.stores.evaluated import (
    DOMAINS,
    N_CHAINS,
    N_STEPS,
    add_run,
    is_right,
    is_sound,
    suite,
    values,
)

SOUND = [is_sound(k) for k in range(N_CHAINS)]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def by_name(evaluation: Evaluation, target: str = "chain_sound") -> dict[str, SignalResult]:
    result = next(result for result in evaluation.targets if result.target == target)
    return {signal.name: signal for signal in result.signals}


def test_each_kind_of_metric_has_its_verdict(store: Store) -> None:
    metrics = {
        "verification": values("perfect"),
        "weak_link": values("chance"),
        "pass_rate": values("constant"),
        "arithmetic_ok": values("missing"),
        "verification_mean": [None if v is None else 1 - v for v in values("perfect")],
        "coverage": [None if v is None else 1 - v for v in values("perfect")],
    }
    add_run(store, "run", suite(), metrics)
    evaluation = evaluate_runs(store, ["run"])
    signals = by_name(evaluation)
    assert [name for name, signal in signals.items() if signal.is_baseline] == [
        "length",
        "answer_correct",
        "random",
    ]
    assert signals["verification"].auroc.point == 1
    assert signals["verification"].beaten == ("length", "answer_correct")
    assert signals["verification"].verdict == "tells more than length and answer_correct"
    assert signals["weak_link"].verdict == UNINFORMATIVE
    assert signals["pass_rate"].verdict == CONSTANT and signals["pass_rate"].auroc.point == 0.5
    assert signals["arithmetic_ok"].verdict == UNDEFINED
    assert (signals["arithmetic_ok"].n, signals["arithmetic_ok"].n_undefined) == (0, N_CHAINS)
    assert signals["arithmetic_ok"].auroc.point is None
    # a metric whose card has a direction can point the wrong way; of another the labels decide
    assert signals["verification_mean"].auroc.point == 0
    assert signals["verification_mean"].verdict == "points the wrong way"
    assert signals["coverage"].is_flipped and signals["coverage"].auroc.point == 1
    expected = roc_auc_score(SOUND, values("chance"))
    assert signals["weak_link"].auroc.point == pytest.approx(expected)
    assert set(signals["weak_link"].by_domain or {}) == set(DOMAINS)
    assert headline(evaluation.targets[0]).startswith("On 60 labelled chains, ")


def test_among_right_answers_the_answer_is_constant_and_not_compared_with(store: Store) -> None:
    add_run(store, "run", suite(), {"verification": values("perfect")})
    evaluation = evaluate_runs(store, ["run"], targets=["T2"])
    signals = by_name(evaluation, "chain_sound_given_correct")
    assert signals["answer_correct"].verdict == CONSTANT
    assert set(signals["verification"].differences) == {"length"}
    assert evaluation.targets[0].n == sum(is_right(k) for k in range(N_CHAINS))


def test_the_worst_mistakes_are_the_chains_that_a_signal_ranks_worst(store: Store) -> None:
    column: list[float | None] = [float(sound) for sound in SOUND]
    column[3], column[4] = 1.0, 0.0  # one faulty chain on top, one sound chain at the bottom
    add_run(store, "run", suite(), {"verification": column})
    signal = by_name(evaluate_runs(store, ["run"]))["verification"]
    assert signal.missed[0] == ("run", "i003") and signal.false_alarms[0] == ("run", "i004")


def test_a_metric_that_names_a_step_is_measured_by_place(store: Store) -> None:
    named: list[int | None] = [-1 if sound else k % N_STEPS for k, sound in enumerate(SOUND)]
    named[0] = None  # no result: neither right nor wrong
    named[3] = (3 % N_STEPS) - 1  # another step
    add_run(store, "run", suite(), {"verification": values("chance")}, named_steps=named)
    evaluation = evaluate_runs(store, ["run"])
    (location,) = evaluation.targets[0].locations
    n_faulty = SOUND.count(False)
    assert (location.n, location.n_undefined) == (N_CHAINS - 1, 1)
    assert location.measures.exact.point == pytest.approx((n_faulty - 2) / (n_faulty - 1))
    assert location.measures.none_right.point == 1
    assert "first_mistake_step" not in by_name(evaluation)


def test_runs_on_one_suite_are_joined_by_item_and_compared(store: Store) -> None:
    add_run(store, "text", suite(), {"arithmetic_ok": values("weak")})
    add_run(store, "a", suite(), {"verification": values("weak")}, facet={"verifier": "a"})
    add_run(store, "b", suite(), {"verification": values("perfect")}, facet={"verifier": "b"})
    evaluation = evaluate_runs(store, ["text", "a", "b"])
    assert evaluation.n_chains == N_CHAINS
    names = set(by_name(evaluation)) - {"length", "answer_correct", "random"}
    assert names == {"arithmetic_ok", "verification (verifier=a)", "verification (verifier=b)"}
    (row,) = evaluation.targets[0].run_differences
    assert (row.signal, row.first, row.second, row.is_same_chains) == (
        "verification",
        "a",
        "b",
        True,
    )
    weak = roc_auc_score(SOUND, values("weak"))
    assert row.difference.point == pytest.approx(1 - weak) and (row.difference.lo or 0) > 0


def test_runs_that_differ_in_a_value_have_a_signal_each_and_equal_ones_share_it(
    store: Store,
) -> None:
    add_run(store, "a", suite(), {"verification": values("weak"), "weak_link": values("weak")})
    add_run(store, "b", suite(), {"verification": values("chance"), "weak_link": values("weak")})
    evaluation = evaluate_runs(store, ["a", "b"])
    assert {"verification [a]", "verification [b]", "weak_link"} <= set(by_name(evaluation))
    assert [row.signal for row in evaluation.targets[0].run_differences] == ["verification"]


def rate(store: Store, run: str, sound: list[bool]) -> None:
    rows = [stores.label(run, f"i{k:03}", good, id=f"{run}{k}") for k, good in enumerate(sound)]
    with store.writing() as connection:
        add_labels(connection, rows)


def test_models_own_chains_have_raters_labels_only_and_share_questions(store: Store) -> None:
    for run, kind in (("one", "chance"), ("two", "perfect")):
        add_run(store, run, suite(), {"verification": values(kind)}, own_chains=True)
    with pytest.raises(NoLabelledChains, match="no labels"):
        evaluate_runs(store, ["one", "two"])
    rate(store, "one", SOUND)
    rate(store, "two", SOUND)
    evaluation = evaluate_runs(store, ["one", "two"])
    assert evaluation.targets[0].n == 2 * N_CHAINS
    assert evaluation.targets[0].n_questions == N_CHAINS
    signals = by_name(evaluation)
    assert signals["length"].verdict == UNDEFINED  # the suite's chains are not these
    (row,) = evaluation.targets[0].run_differences
    assert not row.is_same_chains and row.difference.n == N_CHAINS and (row.difference.lo or 0) > 0
    assert any("model's own" in note for note in evaluation.notes)


def test_one_kind_of_chain_and_unknown_names_are_refused(store: Store) -> None:
    all_sound = suite(sound=[True] * N_CHAINS)
    add_run(store, "run", all_sound, {"verification": values("weak")})
    with pytest.raises(NoLabelledChains, match="it is true of all 60 labelled chains"):
        evaluate_runs(store, ["run"], targets=["T1"])
    with pytest.raises(UnknownName, match="target"):
        evaluate_runs(store, ["run"], targets=["T3"])
    with pytest.raises(UnknownName, match="run"):
        evaluate_runs(store, ["nowhere"])
    add_run(store, "mixed", suite("other"), {"verification": values("weak")})
    with pytest.raises(UnknownName, match="metric"):
        evaluate_runs(store, ["mixed"], metrics=["nothing"])
    partly = evaluate_runs(store, ["mixed"], targets=["T1", "faithful"])
    assert dict(partly.left_out) == {"faithful": "no chain has this label"}


def test_a_redacted_suite_has_neither_lengths_nor_imported_labels(store: Store) -> None:
    chains = suite()
    with store.writing() as connection:
        add_suite(connection, chains, redact=True)
    add_run(store, "run", chains, {"verification": values("perfect")})
    with store.writing() as connection:
        connection.execute("UPDATE items SET meta = NULL")
    rate(store, "run", SOUND)
    signals = by_name(evaluate_runs(store, ["run"]))
    assert signals["length"].verdict == UNDEFINED
    assert signals["verification"].auroc.point == 1


def test_json_has_every_number_by_target_and_metric(store: Store) -> None:
    named = [-1 if sound else k % N_STEPS for k, sound in enumerate(SOUND)]
    add_run(store, "run", suite(), {"verification": values("weak")}, named_steps=named)
    made = evaluation_json(evaluate_runs(store, ["run"]))
    assert {"T1", "T2"} <= set(made["targets"])
    target = made["targets"]["T1"]
    assert target["n"] == N_CHAINS
    assert {"length", "answer_correct", "random", "verification"} == set(target["metrics"])
    for metric in target["metrics"].values():
        assert {"point", "lo", "hi", "n"} <= set(metric["auroc"])
        assert metric["auroc"]["n"] + metric["n_undefined"] == N_CHAINS
        assert 0 <= metric["tpr_at_1"] <= metric["tpr_at_5"] <= 1
    assert target["location"]["first_mistake_step"]["exact"] == 1
    assert target["location"]["first_mistake_step"]["pb_f1"] == 1


def test_without_details_the_numbers_are_the_same_and_one_signal_has_the_rest(store: Store) -> None:
    add_run(store, "run", suite(), {"verification": values("weak"), "weak_link": values("chance")})
    data = EvaluationData(load_labelled_chains(store, ["run"]), 0)
    whole = evaluate_runs(store, ["run"], targets=["T1"]).targets[0]
    quick = evaluate_chains(data, targets=["chain_sound"], with_details=False).targets[0]
    assert headline(quick) == headline(whole) and len(quick.signals) == len(whole.signals)
    for first, second in zip(quick.signals, whole.signals, strict=True):
        assert (first.name, first.auroc, first.verdict) == (
            second.name,
            second.auroc,
            second.verdict,
        )
        assert first.differences == second.differences and set(first.measures) == {"auroc"}
        assert signal_details(data, "chain_sound", first.name) == second
    with pytest.raises(UnknownName):
        signal_details(data, "chain_sound", "nothing")


def test_hostile_names_stay_text(store: Store) -> None:
    name = "<b>'; DROP TABLE runs; --[bold]"
    add_run(store, name, suite(name), {"verification": values("weak")}, facet={"a": name})
    add_run(store, "b", suite(name), {"verification": values("chance")}, facet={"a": "b"})
    evaluation = evaluate_runs(store, [name, "b"])
    assert f"verification (a={name})" in by_name(evaluation)


def test_raters_come_before_imported_labels(store: Store) -> None:
    add_run(store, "run", suite(), {"verification": values("perfect")})
    flipped = [not sound for sound in SOUND]
    rate(store, "run", flipped)
    assert by_name(evaluate_runs(store, ["run"]))["verification"].auroc.point == 0
