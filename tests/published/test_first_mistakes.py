"""The step model on real chains whose first mistake people marked, beside position and length."""

from __future__ import annotations

import pytest

from benchmarks.first_mistakes import FEATURES, FOLDER, in_folds, load, print_line

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="../shared/data/processbench is not there"),
]


def test_the_first_mistake_is_located_better_than_by_position_and_length() -> None:
    chains = load(FOLDER)
    names, baseline_names = FEATURES[""]
    columns = [
        [in_folds(chains, features, seed) for seed in range(2)]
        for features in (names, baseline_names)
    ]
    mean, baseline, lowest = print_line("two splits", chains, *columns)
    assert mean >= 36 and mean >= baseline + 2 and lowest > 0
