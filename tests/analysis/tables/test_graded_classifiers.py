"""Only a classifier with some score between 0 and 1 has a threshold."""

from __future__ import annotations

import pandas as pd

from cotlab.analysis.paired import SCORE_METRIC
from cotlab.analysis.tables.unfaithfulness import graded_classifiers


def test_a_score_of_0_or_1_has_no_threshold() -> None:
    rows = [("hint", 0.0), ("hint", 1.0), ("combined", 1.0), ("combined", 0.4), ("none", None)]
    values = pd.DataFrame(rows, columns=["name", "value"]).assign(metric=SCORE_METRIC)
    assert graded_classifiers(values) == ["combined"]
    assert graded_classifiers(values[values["name"] != "combined"]) == []
