"""Estimates as people read them: steps from 1, and names that say what 1 means."""

from cotlab.analysis.readable import readable_estimate


def test_a_step_is_counted_from_1_and_a_missing_one_stays_missing() -> None:
    stored = {"metric": "first_mistake_step", "point": 0.0, "lo": None, "hi": None}
    assert readable_estimate(stored) == {
        "metric": "first_mistake_step (from 1)",
        "point": 1.0,
        "lo": None,
        "hi": None,
    }
    assert stored["point"] == 0.0


def test_the_name_of_flags_says_what_1_means() -> None:
    shown = readable_estimate({"metric": "flags", "point": 1.0, "lo": None, "hi": None})
    assert (shown["metric"], shown["point"]) == ("flags (1 = no red flag)", 1.0)
