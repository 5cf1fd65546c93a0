"""Tuned weights: on the simplex, found where there is a signal, and no better than chance where
there is none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from cotlab.reliability.composite import tune_weights
from cotlab.reliability.maps import NotCalibrated
from cotlab.stats.calibration import auroc
from cotlab.stats.composite import (
    COMPONENT_NAMES,
    EXAMPLE_WEIGHTS,
    MIN_WEIGHT_SHARE,
    weighted_mean,
    weighted_means,
)

PART = st.none() | st.floats(-1, 1)


def parts_of(n: int, seed: int, *, missing: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    found = rng.random((n, 5))
    found[rng.random((n, 5)) < missing] = np.nan
    return found


@settings(max_examples=60)
@given(
    st.lists(st.tuples(PART, PART, PART, PART, PART), min_size=1, max_size=8),
    st.lists(st.floats(0, 1).map(lambda w: round(w, 3)), min_size=5, max_size=5),
    st.sampled_from([0.0, MIN_WEIGHT_SHARE]),
)
def test_reweighing_is_the_composites_own_arithmetic(
    rows: list[tuple[float | None, ...]], own: list[float], least: float
) -> None:
    weights = dict(zip(COMPONENT_NAMES, own, strict=True))
    table = np.array(
        [[np.nan if value is None else value for value in row] for row in rows], dtype=float
    )
    for row, found in zip(rows, weighted_means(table, weights, min_weight=least), strict=True):
        value, share, _ = weighted_mean(
            dict(zip(COMPONENT_NAMES, row, strict=True)), weights, least
        )
        if share is not None and abs(share - least) < 1e-9 and least:
            continue  # exactly at the least share the last digit of a sum decides
        assert np.isnan(found) if value is None else found == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("objective", ["auc", "brier"])
def test_the_part_that_tells_gets_the_weight_and_the_gain_is_out_of_fold(objective: str) -> None:
    parts = parts_of(100, 1, missing=0.03)
    signal = np.where(
        np.isfinite(parts[:, 3]), parts[:, 3], 0.5
    )  # D, which the example weights all but leave out
    targets = np.random.default_rng(2).random(100) < expit(9 * signal - 4.5)
    found = tune_weights(parts, targets, [f"q{k // 2}" for k in range(100)], objective=objective)
    assert max(found.weights, key=lambda part: found.weights[part]) == "D"
    assert found.is_better and "better side" in found.reason and found.n + found.n_left_out == 100
    for weights in (found.weights, *found.fold_weights):
        assert set(weights) == set(COMPONENT_NAMES) and min(weights.values()) >= 0
        assert sum(weights.values()) == pytest.approx(1, abs=1e-6)
    assert (found.difference.point or 0) == pytest.approx(
        (found.tuned_objective.point or 0) - (found.example_objective.point or 0)
    )
    assert (
        np.isfinite(weighted_means(parts, found.weights)).sum() >= found.n
    )  # no label loses its r_raw


def test_without_a_signal_the_example_weights_stay() -> None:
    told, flattered = [], []
    for seed in range(3):
        parts, targets = parts_of(60, seed), np.random.default_rng(seed + 100).random(60) < 0.5
        found = tune_weights(parts, targets, list(range(60)), seed=seed)
        told.append(found.tuned_objective.point or 0.0)
        flattered.append(auroc(weighted_means(parts, found.weights), targets) or 0.0)
        assert not found.is_better and "keep the example weights" in found.reason
    assert abs(np.mean(told) - 0.5) < 0.15  # the standard error of three AUCs of 60 labels is .043
    assert (
        np.mean(flattered) > np.mean(told) + 0.05
    )  # measured on its own labels, tuning would look like a gain


def test_a_part_that_nobody_measured_gets_no_weight() -> None:
    parts = parts_of(60, 3)
    parts[:, 4] = np.nan
    targets = np.random.default_rng(3).random(60) < parts[:, 2]
    found = tune_weights(parts, targets, list(range(60)))
    assert (
        found.shrinkage == 1 or found.weights["F"] <= EXAMPLE_WEIGHTS["F"] * found.shrinkage + 1e-6
    )


def test_labels_without_r_raw_are_left_out_and_counted() -> None:
    parts = parts_of(50, 5)
    parts[:7, :3] = np.nan  # a fifth of the weight is left
    targets = np.arange(50) % 2 == 0
    found = tune_weights(parts, targets, list(range(50)))
    assert (found.n, found.n_left_out, len(found.folds)) == (43, 7, 43)


def test_one_class_and_too_few_labels_are_refused() -> None:
    with pytest.raises(
        NotCalibrated, match="No weights can be tuned: all 40 labels are not acceptable"
    ):
        tune_weights(parts_of(40, 0), np.zeros(40), list(range(40)))
    with pytest.raises(NotCalibrated, match="10 labels of at least 20"):
        tune_weights(parts_of(10, 0), np.arange(10) % 2, list(range(10)))
    with pytest.raises(NotCalibrated, match="0 labels of at least 20"):
        tune_weights(np.zeros((0, 5)), [], [])
