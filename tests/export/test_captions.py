"""A caption says each thing once: beside the title and the subtitle that stand with it."""

from __future__ import annotations

import re

import pytest

from cotlab.core.registry import FIGURES
from cotlab.figures.text_width import strip_markup
from tests.support.figure_tables import figure_table

N_WORDS = 4


def phrases(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"[\w']+", strip_markup(text).lower())
    return {tuple(words[i : i + N_WORDS]) for i in range(len(words) - N_WORDS + 1)}


@pytest.mark.parametrize("name", FIGURES)
def test_no_four_words_stand_in_two_of_title_subtitle_and_caption(name: str) -> None:
    meta = FIGURES[name](figure_table(name)).layout.meta
    title, caption = phrases(str(meta["title"])), phrases(FIGURES[name].caption)
    subtitle = phrases(" | ".join(map(str, meta["subtitle"])))
    assert not title & caption and not title & subtitle and not caption & subtitle
