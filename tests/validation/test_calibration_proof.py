"""A small version of benchmarks/calibration.py: from runs on organisms to a probability that holds
on fresh items."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from cotlab.review.labelling.targets import load_labelled_features
from cotlab.store.calibrators import current_calibrator, list_calibrators
from cotlab.store.database import Store
from cotlab.store.labels import list_labels

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "calibration.py"
N_LABELS, N_FRESH = 120, 240


@pytest.fixture(scope="module")
def proof() -> ModuleType:
    spec = importlib.util.spec_from_file_location("calibration_benchmark", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


def test_labelled_and_fresh_items_share_no_question(proof: ModuleType) -> None:
    """8 models, 25 labelled and 30 fresh items each: every question once, whatever the part and the
    model."""
    parts = list(proof.suites(200, 240, 1))
    questions = [item.question for _, _, suite in parts for item in suite.items]
    assert len(parts) == 2 * len(proof.MODELS) and len(questions) == 440 == len(set(questions))
    assert sum(len(suite.items) for part, _, suite in parts if part == "fit") == 200


@pytest.mark.soak
def test_a_probability_fitted_on_labels_holds_on_fresh_items(
    proof: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four models of different reliance; the bounds are those of the benchmark, widened by what 240
    items leave to chance."""
    monkeypatch.setattr(proof, "MODELS", ("r100", "r50", "r0", "hint"))
    store = Store(tmp_path)
    runs = proof.runs_of(store, N_LABELS, N_FRESH, 7, proof.MODELS)
    assert (
        proof.runs_of(store, N_LABELS, N_FRESH, 7, proof.MODELS) == runs
    )  # what is done is not asked again
    held, learnt, fresh = proof.judge(store, runs, 7)
    assert (
        len(learnt)
        == len(load_labelled_features(store, runs["fit"]))
        == len(list_labels(store))
        == N_LABELS
    )
    assert 0.9 * N_FRESH <= len(fresh) <= N_FRESH
    assert (fresh.loc[~fresh["valid"], "target"] == False).all()  # noqa: E712 — object column
    assert (fresh.loc[fresh["valid"], "target"] == fresh.loc[fresh["valid"], "right"]).all()
    for name in ("C", "R", "V", "D", "F", "ccs_corrupt", "mass_lost"):
        assert fresh[name].notna().mean() > 0.5, name
    assert len(list_calibrators(store)) == 2 and current_calibrator(store) is not None
    for one in held:
        _holds(one)


def _holds(one: Any) -> None:
    error, gap = one.measured.ece, one.against[one.best]
    chance = one.measured.band[1]  # what a perfect forecaster of so few items may show
    assert error.point <= 0.05 + chance, one
    assert gap.hi >= -0.02, one
    assert one.measured.gained.hi < 0, one  # the probabilities say more than the base rate
    assert np.isfinite([error.point, gap.point]).all()
