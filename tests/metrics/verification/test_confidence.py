"""How a judge's confidence is read from its words."""

from __future__ import annotations

import pytest

from cotlab.text.prompts.comparison import read_confidence


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.8", 0.8),
        ("Confidence: 0.75.", 0.75),
        ("80%", 0.8),
        ("8/10", 0.8),
        ("1", 1.0),
        (".5", 0.5),
        ("0", 0.0),
        ("0.8 (0.8)", 0.8),
        ("1/0", None),
        ("v1.2", None),
        ("", None),
        ("very sure", None),
        ("between 0.2 and 0.8", None),
        ("80", None),
        ("-0.5", None),
    ],
)
def test_confidence(text: str, value: float | None) -> None:
    assert read_confidence(text) == value
