"""What the page Item says a reading does not show: of the change that is open, and no other."""

from __future__ import annotations

from typing import Any

import pytest

from cotlab.analysis.tables.step_effects import StepEffect
from cotlab.analysis.tables.step_replies import StepReplies
from cotlab.metrics.ablation import ANSWER_CHANGE
from cotlab.ui.item.reader_data import ChainReading, few_replies_text, limit_lines, reader_data

MODES = ("corrupt", "paraphrase", "remove", "truncate", "filler")
NO_REPLIES = StepReplies()


def reading(mode: str = "corrupt", n: int = 1, temperature: float = 0.0) -> ChainReading:
    effects = (StepEffect(0, 1, n, 0, None),)
    return ChainReading(mode, MODES, ("1 + 1 = 2.",), 0, effects, (), 1, "", temperature)


@pytest.mark.parametrize("mode", MODES)
def test_removal_is_warned_of_only_where_a_step_is_left_out(mode: str) -> None:
    text = " ".join(limit_lines(reading(mode)))
    assert (ANSWER_CHANGE.not_shown in text) is (mode == "remove")
    assert ("removal" in text) is (mode == "remove")


@pytest.mark.parametrize(
    ("n", "temperature", "is_single"), [(1, 0.0, True), (1, 1.0, False), (2, 0.0, False)]
)
def test_one_reply_at_temperature_0_has_no_interval(
    n: int, temperature: float, is_single: bool
) -> None:
    shown = reading(n=n, temperature=temperature)
    panel: dict[str, Any] = reader_data(shown, None, NO_REPLIES, {}, {})["panel"]
    for text in (panel["interval"], few_replies_text(shown)):
        assert (text == "one reply (temperature 0)") is is_single
        assert ("[" in text or "may be" in text) is not is_single
    assert any("Wilson" in line for line in limit_lines(shown)) is not is_single


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        ("corrupt", "may word the rest otherwise even without a change"),
        ("paraphrase", "what that changes alone, this control does not show"),
    ],
)
def test_a_limit_of_one_mode_stands_under_no_other(mode: str, text: str) -> None:
    lines = {name: " ".join(limit_lines(reading(name))) for name in MODES}
    assert [name for name in MODES if text in lines[name]] == [mode]
