"""Fits on some runs, evaluated on others alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cotlab.analysis.evaluation.held_out import evaluate_fit
from cotlab.core.errors import ConfigError
from cotlab.core.types import Step, Suite
from cotlab.store.database import Store
from tests.support.command import cotlab
from tests.support.stores.evaluated import N_CHAINS, add_run, is_sound, suite, values


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Two runs on different questions, of which ``arithmetic_ok`` ranks the chains perfectly, and a
    third on half of the second's."""
    store = Store(tmp_path_factory.mktemp("held") / "store")
    for run, seed in (("first", 1), ("second", 2)):
        metrics = {"arithmetic_ok": values("perfect", seed=seed)}
        add_run(store, run, suite(run), metrics)
    add_run(store, "half", suite("second", 30), {"arithmetic_ok": values("chance", 30)})
    return store


def test_fits_are_reported_on_the_test_runs_beside_trivial_ones(store: Store) -> None:
    evaluation = evaluate_fit(store, ["first"], ["second"], targets=["T1"])
    (target,) = evaluation.targets
    signals = {signal.name: signal for signal in target.signals}
    assert target.n == N_CHAINS and evaluation.runs == ("second",)
    assert {"length only", "answer only", "length + answer", "combined"} <= set(signals)
    assert signals["combined"].auroc.point == pytest.approx(1)
    assert signals["combined"].verdict == "tells more than every baseline"
    calibration = signals["combined"].calibration or {}
    assert calibration["brier"].point == pytest.approx(0, abs=0.1)
    assert signals["combined, domain unseen"].auroc.point == pytest.approx(1)
    assert signals["length only"].is_baseline and signals["answer only"].calibration
    locations = {location.name: location for location in target.locations}
    assert set(locations) >= {"hazard", "position and length only"}
    assert "position and length only" in locations["hazard"].differences
    assert "Fitted on first; every number is of second alone." in evaluation.notes


def test_among_right_answers_no_fit_reads_the_answer(store: Store) -> None:
    evaluation = evaluate_fit(store, ["first"], ["second"], targets=["T2"])
    names = {signal.name for signal in evaluation.targets[0].signals}
    assert "combined" in names and not names & {"answer only", "combined without answer"}


@pytest.mark.parametrize("gaps", [("first", "second"), ("first",), ("second",)])
@pytest.mark.parametrize("feature", ["answer_correct", "arithmetic_ok"])
def test_no_fit_ranks_chains_by_what_is_missing_of_one_class(
    feature: str, gaps: tuple[str, ...], tmp_path: Path
) -> None:
    """``arithmetic_ok`` is chance and answers are right where the chain is sound or by half of the
    others; in ``gaps``, chains with a mistake lack one of both."""
    store = Store(tmp_path)
    for seed, run in enumerate(("first", "second")):
        chance, items = values("chance", seed=seed), []
        for k, item in enumerate(suite(run).items):
            if run in gaps and not is_sound(k):
                if feature == "answer_correct":
                    item = replace(item, meta={"first_mistake": item.meta["first_mistake"]})
                else:
                    chance[k] = None
            steps = tuple(Step(i, "x" * (10 + k % 7)) for i in range(4))
            items.append(replace(item, steps=steps))
        add_run(store, run, Suite.from_items(run, items), {"arithmetic_ok": chance})
    evaluation = evaluate_fit(store, ["first"], ["second"], targets=["T1"])
    signals = {signal.name: signal for signal in evaluation.targets[0].signals}
    fits = [signal for signal in signals.values() if signal.calibration and signal.n]
    assert {"length only", "combined"} <= {signal.name for signal in fits}
    ceiling = 0.75 if feature == "answer_correct" else 0.9  # of chance; answers alone reach .75
    assert [signal.name for signal in fits if (signal.auroc.point or 0) > ceiling] == []
    compared = [value for signal in fits for value in signal.differences.values()]
    assert compared and all(difference.point is not None for difference in compared)
    (note,) = [
        note for note in evaluation.notes if note.startswith(f"{feature} was left out of the fits")
    ]
    assert "100%" in note and "0%" in note


@pytest.mark.soak
def test_questions_of_the_test_runs_are_not_fitted_on(store: Store) -> None:
    evaluation = evaluate_fit(store, ["first", "half"], ["second"], targets=["T1"])
    assert "30 chains of questions of the test runs were not fitted on." in evaluation.notes
    with pytest.raises(ConfigError, match="nothing would be held out"):
        evaluate_fit(store, ["half"], ["second"])


def test_the_command_takes_several_runs_after_each_option(store: Store) -> None:
    words = ("evaluate", "--fit", "first", "half", "--test", "second", "--target", "T1")
    out = cotlab(*words, store=store.folder).stdout
    assert "combined" in out and "Brier" in out and "30 chains of questions" in out
    done = cotlab("evaluate", "--fit", "first", store=store.folder, code=2)
    assert "give RUN… alone, or both --fit RUN… and --test RUN…" in done.stderr
