"""The precision that is promised of a threshold, on chains of ProcessBench that neither the fit nor
the choice saw: over 50 splits by question."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.proportion import confint_proportions_2indep

from cotlab.reliability.combine import fit_with_predictions
from cotlab.reliability.thresholds import choose_high_threshold
from cotlab.text.chain_features.chain import chain_features

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "processbench"
N_SPLITS = 50
TARGETS = (0.7, 0.8, 0.85)
"""Targets that the labels of every half reach: where some do not, those that do were lucky."""
pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data/processbench is not there"),
]


def _load_chains() -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return the features of each chain, whether it is sound, and its question."""
    texts = [path.read_text("utf-8") for path in sorted(DATA.glob("*.json"))]
    rows = [row for text in texts for row in json.loads(text)]
    features = pd.DataFrame([chain_features(row["problem"], row["steps"], None) for row in rows])
    features["answer_correct"] = [row["final_answer_correct"] for row in rows]
    is_sound = np.array([row["label"] < 0 for row in rows])
    return features.astype(float), is_sound, np.array([row["problem"] for row in rows])


def test_what_is_promised_holds_on_the_other_half() -> None:
    features, is_sound, questions = _load_chains()
    names, unique = tuple(features), np.unique(questions)
    differences: dict[float, list[float]] = {target: [] for target in TARGETS}
    n_outside = dict.fromkeys(TARGETS, 0)
    for seed in range(N_SPLITS):
        half = np.random.default_rng(seed).permutation(unique)[: len(unique) // 2]
        is_fitted = np.isin(questions, half)
        groups, y = questions[is_fitted].tolist(), is_sound[is_fitted]
        fit = fit_with_predictions(features[is_fitted], y, groups, names=names)
        r_cal = fit.combination.predict(features[~is_fitted])
        for target in TARGETS:
            found = choose_high_threshold(fit.predictions, y.tolist(), target, groups=groups)
            if found.high is None or found.precision.point is None:
                continue
            released = is_sound[~is_fitted][r_cal >= found.high]
            n = found.precision.n
            lo, hi = confint_proportions_2indep(
                released.sum(),
                len(released),
                found.precision.point * n,
                n,
                method="newcomb",
                compare="diff",
            )
            n_outside[target] += not lo <= 0 <= hi
            differences[target].append(released.mean() - found.precision.point)
    assert all(len(values) == N_SPLITS for values in differences.values())
    assert all(abs(np.mean(values)) < 0.01 for values in differences.values()), differences
    assert max(n_outside.values()) <= N_SPLITS / 10, n_outside
