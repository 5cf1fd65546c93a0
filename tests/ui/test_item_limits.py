"""What an item's reading does not show depends on what happened to the step."""

from __future__ import annotations

import pytest

from cotlab.ui.item.reader_data import ChainReading, limit_lines


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        ("corrupt", "may word the rest otherwise even without a change"),
        ("paraphrase", "what that changes alone, this control does not show"),
    ],
)
def test_each_mode_has_its_limit(mode: str, text: str) -> None:
    modes = ("corrupt", "paraphrase", "remove")
    lines = {
        name: " ".join(limit_lines(ChainReading(name, modes, ("2 + 3 = 5.",), 0, (), (), 0, "")))
        for name in modes
    }
    assert text in lines[mode]
    assert not any(text in lines[other] for other in modes if other != mode)
