"""A figure in shades of grey has no other colour, and its texts and numbers stay."""

from __future__ import annotations

import plotly.graph_objects as go

from cotlab.figures.grey import GREY_BY_CATEGORY, grey_figure
from cotlab.figures.style import PALETTE, VIRIDIS

"""A colour of a specification: ``#0072B2``."""


def test_every_colour_becomes_a_grey_and_data_stay() -> None:
    figure = go.Figure(
        data=[
            {"type": "bar", "x": ["#0072B2"], "y": [1.0], "marker": {"color": list(PALETTE)}},
            {"type": "heatmap", "z": [[0.0, 1.0]], "colorscale": [[0, VIRIDIS[0]], [1, "#fde725"]]},
            {"type": "scatter", "y": [1], "fillcolor": "rgba(0, 114, 178, 0.4)"},
        ],
        layout={"title": {"text": '<span style="color: #D55E00">rises with #0072B2</span>'}},
    )
    before = figure.to_json()
    grey = grey_figure(figure)
    assert figure.to_json() == before
    bars, cells, line = grey.data
    assert bars.marker.color == tuple(GREY_BY_CATEGORY.values()) and bars.x == ("#0072B2",)
    scale = [colour for _, colour in cells.colorscale]
    for colour in (*bars.marker.color, *scale):
        red, green, blue = (colour[i : i + 2] for i in (1, 3, 5))
        assert red == green == blue
    assert scale[0] < scale[1], "magnitudes keep their order of lightness"
    assert line.fillcolor == "rgba(87, 87, 87, 0.4)"
    assert "rises with #0072B2" in grey.layout.title.text
    assert "#D55E00" not in grey.layout.title.text


def test_categories_have_greys_of_their_own() -> None:
    assert len(set(GREY_BY_CATEGORY.values())) == len(PALETTE)
