"""docs/statistics.md: its examples run."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "statistics.md"


def test_the_examples_give_what_they_print() -> None:
    blocks = re.findall(r"```pycon\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert len(blocks) >= 3
    for block in blocks:
        example = doctest.DocTestParser().get_doctest(block, {}, "statistics.md", None, None)
        assert doctest.DocTestRunner().run(example).failed == 0
