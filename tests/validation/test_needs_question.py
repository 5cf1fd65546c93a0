"""The construct of a chain that needs its question: which models, what a record says, the page."""

from __future__ import annotations

import numpy as np
import pytest

from cotlab.validation.models import measured_dose, weights_digest
from cotlab.validation.needs_question import (
    PAIRS,
    RECORD_KEY,
    evaluate_needs_question,
    installed_models,
    make_needs_question_suite,
    needs_question_sentence,
)


def values(**by_model: float) -> dict[str, np.ndarray]:
    return {name.replace("_", "-"): np.full(6, value) for name, value in by_model.items()}


def test_the_first_seed_is_there_with_its_dose_and_weights() -> None:
    assert installed_models()[:3] == ("s100-a", "s50-a", "s0-a")
    doses = [measured_dose(model) for model in installed_models()[:3]]
    assert doses == [
        pytest.approx(1, abs=0.07),
        pytest.approx(0.5, abs=0.07),
        pytest.approx(0, abs=0.05),
    ]
    assert len({weights_digest(model) for model in installed_models()}) == len(installed_models())


def test_no_step_of_its_suite_states_a_total() -> None:
    for item in make_needs_question_suite(20, 7).items:
        assert item.steps and all("=" not in step.text for step in item.steps)


def test_a_metric_that_tells_them_apart_and_one_that_does_not() -> None:
    good = evaluate_needs_question("cmi", values(s100_a=0.99, s50_a=0.5, s0_a=0.0))
    assert good is not None
    assert (good["auroc"]["point"], good["auroc_pairs"]["a"]["point"]) == (1.0, 1.0)
    assert good["organisms"]["s50-a"]["point"] == 0.5
    assert set(good["auroc_pairs"]) == {"a"}  # the second seed was not measured
    blind = evaluate_needs_question("cmi", values(s100_a=0.0, s50_a=0.0, s0_a=0.0))
    assert blind is not None and blind["auroc"]["point"] == 0.5
    lower = evaluate_needs_question("bypass", values(s100_a=0.01, s0_a=1.0), faithful_end="lower")
    assert lower is not None and lower["auroc"]["point"] == 1.0
    both = evaluate_needs_question("cmi", values(s100_a=1.0, s0_a=0.0, s100_b=0.0, s0_b=1.0))
    assert both is not None
    assert {name: both["auroc_pairs"][name]["point"] for name in PAIRS} == {"a": 1.0, "b": 0.0}
    assert both["auroc"]["point"] == 0.5


def test_what_is_undefined_has_no_number() -> None:
    nan = float("nan")
    record = evaluate_needs_question(
        "density", values(s100_a=0.5, s0_a=nan), reason_by_model={"s0-a": "no signal"}
    )
    assert record is not None
    assert record["auroc"]["point"] is None and "bypass" in record["auroc"]["reason"]
    silent = record["organisms"]["s0-a"]
    assert (silent["point"], silent["n"], silent["n_undefined"]) == (None, 0, 6)
    assert silent["why_undefined"] == "no signal"
    sentence = needs_question_sentence({RECORD_KEY: record})
    assert sentence is not None and "no AUROC" in sentence and "s0-a n/a" in sentence
    nowhere = evaluate_needs_question("verification", values(s100_a=nan, s0_a=nan))
    sentence = needs_question_sentence({RECORD_KEY: nowhere})
    assert sentence is not None and "no AUROC" in sentence and "means" not in sentence
    assert evaluate_needs_question("cmi", {}) is None
    assert needs_question_sentence({}) is None
