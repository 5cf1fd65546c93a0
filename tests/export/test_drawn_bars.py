"""The bars of a stacked figure as a venue prints them: what is drawn is what the table holds, in
each preset."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pytest

from cotlab.core.registry import FIGURES
from cotlab.export.chrome import Chrome, find_chrome
from cotlab.figures.presets import PRESETS

GROUPS = ("acceptable", "not acceptable", "no label")
COUNTS = {0.5: (3, 2, 1), 0.6: (1, 4, 0), 0.7: (0, 0, 5), 0.8: (0, 3, 2)}
"""Chains of each group in the bin that begins there: 21."""
TABLE = pd.DataFrame(
    [
        {
            "group": group,
            "left": left,
            "right": round(left + 0.1, 1),
            "count": n,
            "score": "r_cal",
            "low": 0.55,
            "high": 0.75,
        }
        for left, counts in COUNTS.items()
        for group, n in zip(GROUPS, counts, strict=True)
    ]
)
BOX = re.compile(r"M([-\d.]+),([-\d.]+)V([-\d.]+)H([-\d.]+)V[-\d.]+Z")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def drawn() -> Any:
    """Each preset's figure and its SVG, by one browser."""
    with Chrome() as chrome:
        figures = {
            name: FIGURES["score_histogram"](TABLE, look=preset.look)
            for name, preset in PRESETS.items()
        }
        return {
            name: (fig, ElementTree.fromstring(chrome.draw(fig, "svg")))
            for name, fig in figures.items()
        }


def style_of(node: Any) -> dict[str, str]:
    return {
        key.strip(): value.strip()
        for key, _, value in (one.partition(":") for one in node.get("style", "").split(";"))
    }


def bars(svg: Any, top: float) -> list[list[tuple[float, float, float]]]:
    """For each trace its visible bars as (left in px, bottom, top), heights in units of the axis
    from 0 to ``top``."""
    plot = next(node for node in svg.iter(f"{SVG}clipPath") if node.get("class") == "plotclip")
    tall = float(plot[0].get("height"))
    found = []
    for trace in (node for node in svg.iter(f"{SVG}g") if node.get("class") == "trace bars"):
        own = []
        for path in trace.iter(f"{SVG}path"):
            box = BOX.fullmatch(path.get("d", ""))
            if box is not None and float(style_of(path).get("fill-opacity", 1)) > 0:
                x, low, high, _ = map(float, box.groups())
                own.append((x, (tall - low) / tall * top, (tall - high) / tall * top))
        found.append(own)
    return found


@pytest.mark.browser
@pytest.mark.skipif(find_chrome() is None, reason="no Chromium: apt-get install chromium")
@pytest.mark.parametrize("preset", PRESETS)
def test_the_bars_that_are_drawn_stack_to_the_counts_of_the_table(drawn: Any, preset: str) -> None:
    fig, svg = drawn[preset]
    traces = bars(svg, fig.layout.yaxis.range[1])
    heights = [[n for _, low, high in own if (n := round(high - low, 1))] for own in traces]
    assert heights == [
        [counts[k] for counts in COUNTS.values() if counts[k]] for k in range(len(GROUPS))
    ]
    piles: dict[int, float] = {}
    for own in traces:
        for x, low, high in own:
            assert low == pytest.approx(piles.get(round(x), 0.0), abs=0.1), (
                "each bar stands on the one below it"
            )
            piles[round(x)] = high
    assert [round(piles[x]) for x in sorted(piles)] == [sum(counts) for counts in COUNTS.values()]
    assert sum(map(sum, heights)) == TABLE["count"].sum() == 21


@pytest.mark.browser
@pytest.mark.skipif(find_chrome() is None, reason="no Chromium: apt-get install chromium")
@pytest.mark.parametrize("preset", PRESETS)
def test_each_group_has_one_colour_in_its_bars_and_in_the_legend(drawn: Any, preset: str) -> None:
    fig, svg = drawn[preset]
    traces = [node for node in svg.iter(f"{SVG}g") if node.get("class") == "trace bars"]
    fills = [{style_of(path)["fill"] for path in trace.iter(f"{SVG}path")} for trace in traces]
    assert [len(one) for one in fills] == [1, 1, 1] and len(set.union(*fills)) == 3
    legend = {}
    for entry in (node for node in svg.iter(f"{SVG}g") if node.get("class") == "traces"):
        text = next("".join(node.itertext()) for node in entry.iter(f"{SVG}text"))
        swatch = next(
            style_of(node)
            for node in entry.iter(f"{SVG}path")
            if node.get("class") == "legendundefined"
        )
        legend[text] = swatch["fill"], float(swatch.get("fill-opacity", 1))
    assert legend == {trace.name: (*fill, 1.0) for trace, fill in zip(fig.data, fills, strict=True)}
