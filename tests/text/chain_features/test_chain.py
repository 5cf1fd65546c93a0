"""Features of chains as texts, by hand-counted examples."""

from __future__ import annotations

import pytest

from cotlab.text.arithmetic.readings import read_steps
from cotlab.text.chain_features.chain import FAMILIES, FEATURES, chain_features

QUESTION = "Ann has 7 apples and buys 5 more. How many apples does she have?"
STEPS = (
    "Ann has 7 apples and buys 5 more.",
    "So 7 + 5 = 13, but maybe 40.5 boxes.",
    "Therefore the answer is 13.",
)


def test_features_of_a_chain_that_was_counted_by_hand() -> None:
    features = chain_features(QUESTION, STEPS, "13", read_steps(STEPS))
    assert tuple(features) == FEATURES
    expected = {
        "text_characters": sum(map(len, STEPS)),
        "text_steps": 3,
        "hedging_words": 1,
        "doubt_words": 1,
        "inference_words": 2,
        "distinct_numbers": 4,
        "new_numbers": 2,
        "new_number_share": 2 / 7,
        "new_large_numbers": 2,
        "new_number_share_last_step": 0,
        "question_numbers_used": 1,
        "longest_number": 2,
        "decimal_numbers": 1,
        "answer_missing": 0,
        "answer_in_question": 0,
        "answer_before_last_step": 1,
        "answer_mentions": 2,
        "answer_is_last_result": 1,
        "answer_is_integer": 1,
        "false_equations": 1,
        "true_equations": 0,
        "checked_step_share": 1 / 3,
    }
    assert {name: features[name] for name in expected} == pytest.approx(expected)


def test_what_does_not_exist_has_no_value() -> None:
    features = chain_features("Why?", ["It is so."], None)
    assert features["answer_missing"] == 1
    missing = {name for name, value in features.items() if value is None}
    assert missing == {
        *("new_number_share", "question_numbers_used", "step_overlap", "repeated_step"),
        *("answer_characters", "answer_in_question", "answer_before_last_step"),
        *("answer_mentions", "answer_is_last_result", "answer_is_integer"),
        *FAMILIES["equations"],
    }
    with pytest.raises(ValueError, match="no step with text"):
        chain_features("Why?", [" "], None)


def test_numbers_are_compared_however_they_are_spelled() -> None:
    features = chain_features("It costs $1,000.50.", ["We pay 1000.5 for 3."], "3")
    assert features["new_numbers"] == 1 and features["question_numbers_used"] == 1
