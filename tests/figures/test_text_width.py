"""Titles are broken at their drawn width."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotlab.figures.text_width import strip_markup, text_width_px, wrap_to_width


@pytest.mark.parametrize(("is_bold", "width"), [(False, 531.57), (True, 561.41)])
def test_a_text_is_as_wide_as_pillow_measures_it(is_bold: bool, width: float) -> None:
    # ImageFont.truetype("LiberationSans-Regular.ttf", 1000).getlength(text) * 0.015, and -Bold
    text = "How often the answer changes when a step does (0 to 1), n = 6–32 items a step"
    assert text_width_px(text, 15, is_bold=is_bold) == pytest.approx(width, abs=0.1)


def test_markup_has_no_width_and_other_scripts_are_taken_as_wide() -> None:
    assert text_width_px("<b>a &lt; b</b>", 10) == text_width_px("a < b", 10)
    assert text_width_px("推理", 10) == 20
    assert strip_markup("<b>a</b> &lt; 5 &#36;") == "a < 5 $"


@given(st.text(alphabet="aiWm −5<&", max_size=200), st.floats(20, 400))
def test_lines_fit_and_break_only_where_the_next_word_does_not(text: str, width: float) -> None:
    lines = wrap_to_width(text, width, 12)
    assert " ".join(lines) == " ".join(text.split())
    assert all(" " not in line or text_width_px(line, 12) <= width for line in lines)
    for line, following in zip(lines, lines[1:], strict=False):
        assert text_width_px(f"{line} {following.split()[0]}", 12) > width
