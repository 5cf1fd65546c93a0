"""Estimates as people read them: steps from 1, and names that say what 1 means."""

import pytest

from cotlab.analysis.readable import decimal_text, readable_estimate


@pytest.mark.parametrize(
    "metric", ["first_mistake_step", "critic_step", "process_reward_mistake_step"]
)
def test_a_step_is_counted_from_1_and_a_missing_one_stays_missing(metric: str) -> None:
    stored = {"metric": metric, "point": 0.0, "lo": None, "hi": None}
    assert readable_estimate(stored) == {
        "metric": f"{metric} (from 1)",
        "point": 1.0,
        "lo": None,
        "hi": None,
    }
    assert stored["point"] == 0.0


def test_the_name_of_flags_says_what_1_means() -> None:
    shown = readable_estimate({"metric": "flags", "point": 1.0, "lo": None, "hi": None})
    assert (shown["metric"], shown["point"]) == ("flags (1 = no red flag)", 1.0)


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        ("classifier_mcnemar", 2 * 0.5**12, "< 0.001"),  # 12 items, all of one classifier
        ("judge_length_p", 0.0, "< 0.001"),  # below what a float can hold
        ("classifier_mcnemar", 0.0391, "0.039"),
        ("classifier_mcnemar", None, "n/a"),
        ("classifier_kappa", 0.0, "0.000"),
        ("answer_change", 0.0004, "0.000"),
    ],
)
def test_a_p_value_that_rounds_to_0_is_below_a_thousandth(
    metric: str, value: float | None, text: str
) -> None:
    assert decimal_text(metric, value) == text
