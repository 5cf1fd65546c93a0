"""Text features on ProcessBench: what combined fits have to reach, by the benchmark's code."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.real_chains import DATA, load_chains, measure_split, measure_unseen_sets

pytestmark = [
    pytest.mark.skipif(not DATA.exists(), reason="../shared/data/processbench is missing"),
    pytest.mark.soak,
]


def test_text_features_beat_length_and_the_answer_on_fresh_questions() -> None:
    chains = load_chains(DATA)
    splits = [measure_split(chains, seed) for seed in range(5)]

    def mean(fit: str, key: str) -> float:
        return float(np.mean([split[fit][key] for split in splits]))

    assert mean("features", "T1") >= 0.75 and mean("features", "T2") >= 0.81
    for target in ("T1", "T2"):
        for baseline in ("characters", "length family"):
            differences = [split[f"features minus {baseline}, {target}"] for split in splits]
            assert np.mean([point for point, _, _ in differences]) >= 0.02
            assert np.mean([lo for _, lo, _ in differences]) > 0
    assert mean("features and answer", "T1") >= 0.955
    assert mean("features and answer", "brier") <= 0.085
    assert mean("features and answer", "ece") <= 0.05
    for baseline in ("characters and answer", "length family and answer"):
        lows = [split[f"features and answer minus {baseline}, T1"][1] for split in splits]
        assert np.mean(lows) > 0
    unseen = measure_unseen_sets(chains)["mean of the four"]
    features, characters = unseen["T1 features"], unseen["T1 characters"]
    assert features is not None and characters is not None
    assert characters < features < mean("features", "T1")
