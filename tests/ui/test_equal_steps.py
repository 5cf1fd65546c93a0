"""Where no step stands out, the page says so."""

from __future__ import annotations

import math

import pytest

from cotlab.ui.item.reader_data import equal_steps_text


@pytest.mark.parametrize(
    ("shares", "text"),
    [
        ([0.0, 0.0, 0], "zero"),
        ([1.0, 1.0], "equal"),
        ([0.5, 0.5, 0.5], "equal"),
        ([1.0, 0.0], ""),
        ([1.0], ""),
        ([], ""),
        ([None, None], ""),
        ([1.0, None], ""),
        ([1.0, math.nan], ""),
    ],
)
def test_the_sentence_says_that_no_step_stands_out(shares: list[float | None], text: str) -> None:
    assert equal_steps_text(shares, "zero", "equal").strip() == text
