"""Each figure on a dark page: nothing of the white card is left, text can be read, marks stay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import plotly.graph_objects as go
import pytest

from cotlab.core.registry import FIGURES
from cotlab.figures.cells import Cell, draw_cells
from cotlab.figures.dark import DARK_BACKGROUND, DARK_COLOURS, DARK_MISSING_COLOUR, dark_figure
from cotlab.figures.style import (
    BLACK,
    BLUE,
    MISSING_COLOUR,
    PALETTE,
    SKY,
    apply_style,
    contrast_ratio,
    with_opacity,
)
from tests.figures.test_figure_rules import table
from tests.figures.test_style import CONFIG


def colours(node: Any, key: str = "") -> Iterator[str]:
    """The colours of a node, and those in its titles."""
    if isinstance(node, dict):
        for name, value in node.items():
            yield from colours(value, name)
    elif isinstance(node, list | tuple):
        for value in node:
            yield from colours(value)
    elif isinstance(node, str) and (key.endswith("color") or key == "text"):
        yield node


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_of_the_white_card_is_left_and_the_marks_stay(name: str) -> None:
    figure = FIGURES[name](table(name))
    dark = dark_figure(figure)
    card = dark.layout.template.layout
    assert card.paper_bgcolor == card.plot_bgcolor == DARK_BACKGROUND
    layout = dark.to_plotly_json()["layout"]
    left = [text for text in colours(layout) if any(white in text for white in DARK_COLOURS)]
    assert not left
    for before, after in zip(figure.data, dark.data, strict=True):
        assert (str(before.x), str(before.y)) == (str(after.x), str(after.y))
    assert figure.layout.template.layout.paper_bgcolor == "#ffffff"


def test_the_card_has_the_background_of_the_dark_page() -> None:
    assert CONFIG["theme"]["dark"]["backgroundColor"] == DARK_BACKGROUND


def test_text_on_the_dark_card_has_the_contrast_of_text() -> None:
    texts = [colour for colour in DARK_COLOURS.values() if contrast_ratio(colour, "#000000") > 3]
    assert len(texts) == 2
    assert all(contrast_ratio(colour, DARK_BACKGROUND) >= 4.5 for colour in texts)


def test_colours_of_values_and_texts_that_look_like_colours_stay() -> None:
    marker = {"color": ["#ffffff", "#1a1a1a"], "line": {"color": "#ffffff"}}
    trace = go.Scatter(x=[1, 2], y=[1, 2], text=["#ffffff", "a"], name="#1a1a1a", marker=marker)
    dark = dark_figure(apply_style(go.Figure(trace), "Score (0 to 1)"))
    assert dark.data[0].marker.color == ("#ffffff", "#1a1a1a")
    assert dark.data[0].marker.line.color == DARK_BACKGROUND
    assert (dark.data[0].text, dark.data[0].name) == (("#ffffff", "a"), "#1a1a1a")


def test_a_cell_without_a_value_is_dark_and_its_text_can_be_read() -> None:
    cells = [Cell(0, 0, "#005a8c", "1.0", ""), Cell(1, 0, MISSING_COLOUR, "n/a", "", False)]
    figure = go.Figure()
    draw_cells(figure, cells, column_names=["a", "b"], row_names=["row"])
    (bars,) = dark_figure(apply_style(figure, "Score (0 to 1)")).data
    assert bars.marker.color == ("#005a8c", DARK_MISSING_COLOUR)
    assert contrast_ratio(bars.insidetextfont.color[1], DARK_MISSING_COLOUR) >= 4.5
    assert bars.insidetextfont.color[0] == figure.data[0].insidetextfont.color[0]


def test_blue_and_sky_blue_change_places_so_that_marks_can_be_seen() -> None:
    # WCAG 2.2, 1.4.11: marks need 3; blue has 3.49, and thin bars and faint points less
    marks = [
        go.Scatter(x=[1], y=[1], marker={"color": colour}, error_y={"color": colour})
        for colour in PALETTE
    ]
    dark = dark_figure(apply_style(go.Figure(marks), "Score (0 to 1)"))
    colours_on_dark = [trace.marker.color for trace in dark.data]
    assert colours_on_dark == [trace.error_y.color for trace in dark.data]
    assert all(contrast_ratio(colour, DARK_BACKGROUND) >= 3 for colour in colours_on_dark)
    assert {*colours_on_dark} == {*PALETTE} - {BLACK} | {"#ffffff"}
    assert contrast_ratio(colours_on_dark[PALETTE.index(BLUE)], DARK_BACKGROUND) > 7


def test_faint_blue_is_a_faint_sky_blue() -> None:
    marker = {"color": with_opacity(BLUE, 0.3)}
    figure = apply_style(go.Figure(go.Scatter(x=[1], y=[1], marker=marker)), "Score (0 to 1)")
    assert dark_figure(figure).data[0].marker.color == with_opacity(SKY, 0.6)


@pytest.mark.parametrize("name", FIGURES)
def test_no_mark_of_a_category_is_fainter_than_3_on_the_dark_card(name: str) -> None:
    categories = {*PALETTE} - {BLACK} | {"#ffffff"}
    for trace in dark_figure(FIGURES[name](table(name))).to_plotly_json()["data"]:
        found = [colour for colour in colours(trace) if colour in categories]
        assert all(contrast_ratio(colour, DARK_BACKGROUND) >= 3 for colour in found)
