"""The printed form of a figure: width and sizes of the venue, no raster source, nothing lost that
the screen has."""

from __future__ import annotations

from typing import Any

import pandas as pd
import plotly.graph_objects as go
import pytest

from cotlab.figures.presets import PRESETS, PT_PER_PX
from cotlab.figures.printed import MIN_TEXT_PT, font_sizes, printed_figure
from cotlab.figures.rasters import hatch_as_lines
from cotlab.figures.reliability import chain_cosines
from cotlab.figures.step_positions import ccs_by_position

ROWS = pd.DataFrame(
    {
        "metric": "answer_change",
        "mode": "remove",
        "step": [0, 1],
        "point": [0.25, 0.5],
        "lo": [0.1, 0.45],
        "hi": [0.6, 0.8],
        "n": [12, 8],
        "n_undefined": [0, 4],
        "method": "Wilson",
        "values": [[0.2, 0.3], [0.5]],
    }
)
PAIRS = pd.DataFrame(
    {"one": ["a", "a"], "other": ["b", "c"], "point": [0.5, None], "reason": [None, "why"]}
)


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("draw", [lambda: ccs_by_position(ROWS), lambda: chain_cosines(PAIRS)])
def test_widths_and_sizes_are_those_of_the_venue(name: str, draw: Any) -> None:
    preset = PRESETS[name]
    fig = printed_figure(draw(), preset)
    assert fig.layout.width * PT_PER_PX in (
        pytest.approx(preset.column_width_pt, abs=0.4),
        pytest.approx(preset.page_width_pt, abs=0.4),
    )
    assert min(font_sizes(fig)) * PT_PER_PX >= MIN_TEXT_PT
    rows_are_named = any(axis.ticktext for axis in fig.select_yaxes())
    assert rows_are_named or fig.layout.height * PT_PER_PX <= 541
    assert (
        fig.layout.paper_bgcolor in (None, "#ffffff")
        and fig.layout.template.layout.paper_bgcolor == "#ffffff"
    )


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


def test_print_keeps_title_data_and_intervals_and_leaves_the_subtitle_to_the_caption() -> None:
    screen = ccs_by_position(ROWS)
    paper = printed_figure(screen, PRESETS["neurips"])
    assert (
        "How often the answer changes" in paper.layout.title.text
        and "Wilson" in screen.layout.title.text
    )
    assert "Wilson" not in paper.layout.title.text and paper.layout.meta == screen.layout.meta
    assert len(paper.data) == len(screen.data)
    for one, other in zip(paper.data, screen.data, strict=True):
        assert tuple(one.x) == tuple(other.x) and tuple(one.y) == tuple(other.y)
        assert (
            one.error_x.array == other.error_x.array
            and one.error_x.arrayminus == other.error_x.arrayminus
        )
    assert "Wilson" in ccs_by_position(ROWS).layout.title.text  # the screen's own is not changed


def test_a_hatch_becomes_lines_inside_its_cell() -> None:
    fig = hatch_as_lines(chain_cosines(PAIRS))
    (bars,) = fig.data
    assert bars.marker.pattern.shape is None
    paths = [shape for shape in fig.layout.shapes if shape.type == "path"]
    assert len(paths) == 1
    at = next(i for i, fill in enumerate(bars.marker.color) if fill == "rgba(0, 0, 0, 0)")
    left, low = bars.x[at] - 0.48, bars.base[at]
    for point in paths[0].path.replace("L", "M").split("M")[1:]:
        x, y = map(float, point.split(","))
        assert left - 1e-3 <= x <= left + 0.96 + 1e-3 and low - 1e-3 <= y <= low + 0.94 + 1e-3


@pytest.mark.parametrize("mode", ["stack", "relative"])
def test_a_hatch_of_a_stacked_bar_lies_on_that_bar_and_the_bar_keeps_its_colour(mode: str) -> None:
    at, low, high = [0.5, 1.5], [3.0, 0.0], [2.0, 4.0]
    fig = go.Figure([go.Bar(x=at, y=low, width=1.0, marker={"color": "#0072B2"})])
    fig.add_bar(
        x=at,
        y=high,
        width=1.0,
        marker={"color": "#D55E00", "pattern": {"shape": "/", "fillmode": "overlay"}},
    )
    fig.add_bar(
        x=at,
        y=[1.0, 0.0],
        width=1.0,
        marker={"color": "#9a9a9a", "pattern": {"shape": ".", "fillmode": "overlay"}},
    )
    vector = hatch_as_lines(fig.update_layout(barmode=mode))
    assert [trace.marker.color for trace in vector.data] == ["#0072B2", "#D55E00", "#9a9a9a"]
    assert vector.layout.barmode == mode and all(
        trace.marker.pattern.shape is None for trace in vector.data
    )
    boxes = []
    for shape in vector.layout.shapes:
        ends = [
            tuple(map(float, point.split(",")))
            for point in shape.path.replace("L", "M").split("M")[1:]
        ]
        boxes.append((min(x for x, _ in ends), min(y for _, y in ends), max(y for _, y in ends)))
    assert boxes == [
        (0.0, 3.0, 5.0),
        (1.0, 0.0, 4.0),
        (0.0, 5.0, 6.0),
    ], "a bar of height 0 has no hatch"
