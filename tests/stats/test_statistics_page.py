"""docs/statistics.md: its examples run, and every function it names is one of ``cotlab.stats``."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import cotlab.stats

PAGE = Path(__file__).parents[2] / "docs" / "statistics.md"


def test_the_examples_give_what_they_print() -> None:
    blocks = re.findall(r"```pycon\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert len(blocks) >= 3
    for block in blocks:
        example = doctest.DocTestParser().get_doctest(block, {}, "statistics.md", None, None)
        assert doctest.DocTestRunner().run(example).failed == 0


def test_each_interval_of_the_table_names_a_public_function() -> None:
    table = PAGE.read_text("utf-8").split("## Which interval where")[1].split("\n\n")[1]
    named = {name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row)}
    assert len(named) >= 20 and named <= set(cotlab.stats.__all__)


def test_the_page_is_short() -> None:
    assert len(PAGE.read_text("utf-8").splitlines()) <= 200
