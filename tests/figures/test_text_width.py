"""Titles are broken at their drawn width, and pages show them as text."""

from __future__ import annotations

import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotlab.core.registry import FIGURES
from cotlab.figures.printed import without_title
from cotlab.figures.style import apply_style
from cotlab.figures.text_width import measured_width_px, strip_markup, wrap_to_width
from tests.support.figure_tables import figure_table


@pytest.mark.parametrize(("is_bold", "width"), [(False, 531.57), (True, 561.41)])
def test_a_text_is_as_wide_as_pillow_measures_it(is_bold: bool, width: float) -> None:
    # ImageFont.truetype("LiberationSans-Regular.ttf", 1000).getlength(text) * 0.015, and -Bold
    text = "How often the answer changes when a step does (0 to 1), n = 6–32 items a step"
    assert measured_width_px(text, 15, is_bold=is_bold) == pytest.approx(width, abs=0.1)


def test_markup_has_no_width_and_other_scripts_are_taken_as_wide() -> None:
    assert measured_width_px("<b>a &lt; b</b>", 10) == measured_width_px("a < b", 10)
    assert measured_width_px("推理", 10) == 20
    assert strip_markup("<b>a</b> &lt; 5 &#36;") == "a < 5 $"


@given(st.text(alphabet="aiWm −5<&", max_size=200), st.floats(20, 400))
def test_lines_fit_and_break_only_where_the_next_word_does_not(text: str, width: float) -> None:
    lines = wrap_to_width(text, width, 12)
    assert " ".join(lines) == " ".join(text.split())
    assert all(" " not in line or measured_width_px(line, 12) <= width for line in lines)
    for line, following in zip(lines, lines[1:], strict=False):
        assert measured_width_px(f"{line} {following.split()[0]}", 12) > width


def test_a_subtitle_has_the_lines_that_its_width_needs() -> None:
    subtitle = "Open marker: no interval, all 16 values are equal: a resample has no spread. " * 3
    figure = apply_style(go.Figure(), "T (nats)", subtitle=subtitle)
    lines = figure.layout.title.text.split("<br>")[1:]
    assert len(lines) == 2  # 231 characters, about 115 of 12 px in 672 px; at 76 each it had 4


@pytest.mark.parametrize("name", FIGURES)
def test_a_page_s_figure_has_no_title_and_loses_only_its_room(name: str) -> None:
    figure = FIGURES[name](figure_table(name))
    bare = without_title(figure)
    assert not bare.layout.title.text and bare.layout.meta == figure.layout.meta
    plots = [f.layout.height - f.layout.margin.t for f in (figure, bare)]
    assert plots[0] == pytest.approx(plots[1], abs=1)
    assert figure.layout.title.text and bare.layout.margin.t < figure.layout.margin.t
