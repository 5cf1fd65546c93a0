"""A figure in each look: no colour of the white card is left on a dark page, no hue in grey print,
sizes are the venue's, and marks stay where they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from cotlab.core.registry import FIGURES
from cotlab.figures.presets import PRESETS, PT_PER_PX
from cotlab.figures.style import (
    BLACK,
    BLUE,
    CARD,
    DARK,
    DARK_BACKGROUND,
    GREY_COLOURS,
    PALETTE,
    SKY,
    contrast_ratio,
    drawn_in,
    hue,
    with_opacity,
)
from cotlab.figures.text_width import text_width_px
from tests.figures.test_style import CONFIG
from tests.support.figure_tables import figure_table

COLOUR = re.compile(r"#[0-9a-fA-F]{6}|rgba?\([^)]*\)")
GREY = re.compile(r"#(..)\1\1|rgba\((\d+), \2, \2, [\d.]+\)")


def colours(node: Any, key: str = "") -> Iterator[str]:
    """The colours of a specification, those of its template too."""
    if isinstance(node, dict):
        for name, value in node.items():
            yield from colours(value, name)
    elif isinstance(node, list | tuple):
        for value in node:
            yield from colours(value, key)
    elif isinstance(node, str) and key.endswith(("color", "colorway")) and COLOUR.fullmatch(node):
        yield node


def font_sizes(node: Any, key: str = "") -> Iterator[float]:
    if isinstance(node, dict):
        for name, value in node.items():
            if name == "size" and key.endswith("font"):
                yield value
            yield from font_sizes(value, name)
    elif isinstance(node, list | tuple):
        for value in node:
            yield from font_sizes(value, key)


def spec(name: str, look: Any) -> dict[str, Any]:
    drawn: dict[str, Any] = FIGURES[name](figure_table(name), look=look).to_plotly_json()
    return drawn


def places(drawn: dict[str, Any]) -> list[tuple[str, str]]:
    return [(str(trace.get("x")), str(trace.get("y"))) for trace in drawn["data"]]


@pytest.mark.parametrize("name", FIGURES)
def test_marks_stay_and_nothing_of_the_white_card_is_left_in_the_dark(name: str) -> None:
    card, dark = spec(name, CARD), spec(name, DARK)
    assert places(card) == places(dark)
    white_card = set(DARK.colours) - {BLUE, SKY, BLACK, "#ffffff"}
    used = set(colours(dark["data"])) | set(colours(dark["layout"]))
    assert not used & white_card
    card_layout = dark["layout"]["template"]["layout"]
    assert card_layout["paper_bgcolor"] == card_layout["plot_bgcolor"] == DARK_BACKGROUND
    categories = set(colours(dark["data"])) & (
        set(PALETTE) - {BLACK}
    )  # black is a text on a bright cell
    assert all(contrast_ratio(colour, DARK_BACKGROUND) >= 3 for colour in categories)


@pytest.mark.parametrize("name", FIGURES)
def test_grey_print_has_no_hue(name: str) -> None:
    drawn = spec(name, PRESETS["icml"]._replace(is_grey=True).look)
    used = set(colours(drawn["data"])) | set(colours(drawn["layout"]))
    assert used and [colour for colour in used if not GREY.fullmatch(colour)] == []


@pytest.mark.parametrize("preset", [PRESETS["icml"], PRESETS["slide"]])
@pytest.mark.parametrize("name", FIGURES)
def test_widths_are_the_venue_s_and_no_text_is_below_7_pt(name: str, preset: Any) -> None:
    drawn = spec(name, preset.look)
    width_pt = drawn["layout"]["width"] * preset.scale * PT_PER_PX
    assert any(
        width_pt == pytest.approx(venue, abs=0.5 * preset.scale)
        for venue in (preset.column_width_pt, preset.page_width_pt)
    )
    sizes = [*font_sizes(drawn["data"]), *font_sizes(drawn["layout"])]
    assert min(sizes) * preset.scale * PT_PER_PX >= 7
    assert not drawn["layout"]["title"]["text"], "the title is in the caption"
    titled = spec(name, preset._replace(has_title=True).look)["layout"]
    lines = re.sub("<[^>]*>", " ", titled["title"]["text"]).split()
    assert lines == re.sub("<[^>]*>", " ", titled["meta"]["title"]).split()


@pytest.mark.parametrize("look", [CARD, PRESETS["icml"].look])
def test_long_numbers_at_the_right_end_within_the_figure(look: Any) -> None:
    tiny = figure_table("modes_by_metric").assign(point=1.43e-6, lo=-1.05e-6, hi=1.91e-6)
    drawn = FIGURES["modes_by_metric"](tiny, look=look)
    widths = [text_width_px(note.text, note.font.size) for note in drawn.layout.annotations]
    assert max(widths) > 150 and drawn.layout.margin.r > max(widths) + 14


@pytest.mark.parametrize("name", ["cmi_density", "item_density", "validation_doses"])
def test_labels_at_uneven_places_of_an_axis_do_not_meet(name: str) -> None:
    drawn = FIGURES[name](figure_table(name), look=PRESETS["icml"].look)
    plot_width = drawn.layout.width - 64 - drawn.layout.margin.r
    axis = drawn.layout.xaxis
    left, right = axis.domain or (0, 1)
    px = plot_width * (right - left) / (axis.range[1] - axis.range[0])
    ticks = sorted(zip(axis.tickvals, axis.ticktext, strict=True))
    for (value, text), (next_value, next_text) in pairwise(ticks):
        halves = (text_width_px(text, 12) + text_width_px(next_text, 12)) / 2
        assert (next_value - value) * px > halves


def test_a_missing_point_is_named_with_its_series_where_there_are_several() -> None:
    notes = FIGURES["drop_density"](figure_table("drop_density")).layout.meta["subtitle"]
    assert "n/a (no score is defined here): 50% of positions (shuffle)" in notes


def test_a_preset_is_as_wide_as_the_venue_says() -> None:
    """NeurIPS: 5.5 in of text; ICML: columns of 3.25 in; Nature: 89 mm; 72 points are an inch, 25.4
    mm."""
    widths = {name: preset.column_width_pt for name, preset in PRESETS.items()}
    assert widths == {
        "neurips": 5.5 * 72,
        "icml": 3.25 * 72,
        "nature": round(89 / 25.4 * 72),
        "slide": 13 * 72 + 24,
    }


def test_the_dark_card_is_that_of_the_dark_page_with_legible_texts() -> None:
    assert CONFIG["theme"]["dark"]["backgroundColor"] == DARK_BACKGROUND
    with drawn_in(DARK):
        texts = [hue(colour) for colour in ("#1a1a1a", "#4d4d4d")]
        assert with_opacity(hue(BLUE), 0.3) == "rgba(86, 180, 233, 0.6)"
    assert all(contrast_ratio(colour, DARK_BACKGROUND) >= 4.5 for colour in texts)
    assert hue("#1a1a1a") == "#1a1a1a"


def test_categories_have_greys_of_their_own() -> None:
    assert len(set(GREY_COLOURS.values())) == len(PALETTE)
