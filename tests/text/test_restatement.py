"""What counts as restating a step: its words or its equations, not a number alone."""

from __future__ import annotations

import pytest

from cotlab.text.restatement import is_restated


@pytest.mark.parametrize(
    ("step", "reply", "expected"),
    [
        ("Step 2: 5 * 4 = 20.", "We see 4 × 5 = $20, so the answer is 20.", True),
        ("Tom has 3 + 4 = 7 apples.", "3 + 4 = 7", True),
        ("3 plus 4 equals 7", "3 + 4 equals 7", True),
        ("Each box has 4 pens.", "As **each  box** has 4 pens, there are 8.", True),
        ("3 + 4 = 7", "3 + 4 = 7.5", False),
        ("3 + 4 = 7", "So the answer is 7.", False),
        ("48 / 2 = 24 clips, 48 + 24 = 72", "48 / 2 = 24, so the answer is 24", False),
        ("Each box has 4 pens.", "Each box has 4 pensioners.", False),
        ("7.", "7", None),
        ("So it is 7", "So it is 7", True),
        ("So, seven", "So, seven", None),
    ],
)
def test_a_step_is_restated_by_its_words_or_all_its_equations(
    step: str, reply: str, expected: bool | None
) -> None:
    assert is_restated(step, reply) is expected
