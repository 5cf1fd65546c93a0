"""Features of the steps of a chain, by hand-counted examples."""

from __future__ import annotations

import pytest

from cotlab.text.chain_features.steps import STEP_FEATURES, step_features

QUESTION = "Ann has 7 apples and buys 5 more. How many apples does she have?"
STEPS = (
    "Ann has 7 apples and buys 5 more.",
    "So 7 + 5 = 13, but maybe 40.5 boxes.",
    "Therefore the answer is 13.",
)


def test_features_of_steps_that_were_counted_by_hand() -> None:
    rows = step_features(QUESTION, STEPS)
    assert [tuple(row) for row in rows] == [STEP_FEATURES] * 3
    expected = {
        "position": [0, 1, 2],
        "is_first": [1, 0, 0],
        "is_last": [0, 0, 1],
        "relative_position": [0, 0.5, 1],
        "characters": [33, 36, 27],
        "relative_length": [33 / 32, 36 / 32, 27 / 32],
        "distinct_numbers": [2, 4, 1],
        "new_numbers": [0, 2, 0],
        "long_new_numbers": [0, 1, 0],
        "known_number_share": [1, 0.5, 1],
        "decimals": [0, 1, 0],
        "equalities": [0, 1, 0],
        "hedging_words": [0, 1, 0],
        "inference_words": [0, 1, 1],
        "question_overlap": [6 / 11, 0, 0],
        "new_word_share": [0, 1, 1],
        "has_false_equation": [0, 1, 0],
        "false_steps_before": [0, 0, 1],
        "false_steps": [1, 1, 1],
    }
    for name, values in expected.items():
        assert [row[name] for row in rows] == pytest.approx(values), name


def test_what_does_not_exist_has_no_value() -> None:
    (row,) = step_features("7?", [""])
    missing = {name for name, value in row.items() if value is None}
    assert missing == {
        *("relative_position", "relative_length", "known_number_share", "previous_overlap"),
        *("question_overlap", "new_word_share", "question_word_share"),
    }
    assert step_features("7?", []) == []
