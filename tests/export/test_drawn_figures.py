"""Every registered figure as every venue prints it: no text lies on another, all ink is on the
page, and bars are as long as the numbers of the table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from playwright.sync_api import sync_playwright

from cotlab.core.registry import FIGURES
from cotlab.export.chrome import Chrome, find_chrome
from cotlab.figures.presets import PRESETS
from cotlab.figures.style import Look
from cotlab.figures.text_width import strip_markup
from tests.support.drawn_ink import crossing_texts, ink_outside, measure_ink
from tests.support.figure_tables import GRIDS, figure_table

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(find_chrome() is None, reason="no Chromium: apt-get install chromium"),
]
BAR_COLUMNS = {
    "chain_lengths": ("count",),
    "item_parts": ("value",),
    "score_histogram": ("count",),
    "drift_scores": ("psi_hi", "ks_hi"),
    "drift_over_time": ("psi_hi", "ks_hi"),
}
"""Figures whose bars are as long as numbers of their table, and the columns of these."""
QUICK = (
    "ccs_ranking",
    "feature_distributions",
    "calibrator_comparison",
    "item_parts",
    "label_agreement",
    "unfaithful_by_category",
    "ccs_by_position",
)
"""Figures that were cut off or had a text on another, and one with bars."""
LINE_WIDTHS = """() => [...document.querySelectorAll('.gtitle')].flatMap(title => {
  const lines = [...title.querySelectorAll('tspan.line')]
  return (lines.length ? lines : [title]).map(line => line.getComputedTextLength())
})"""
"""Widths of the lines of a title in px."""
SVG = "{http://www.w3.org/2000/svg}"
BOX = re.compile(r"M([-\d.]+),([-\d.]+)V([-\d.]+)H([-\d.]+)V[-\d.]+Z")


@contextmanager
def layout_page() -> Iterator[Any]:
    """A page that lays drawings out; to be opened when all are drawn, as it has a loop too."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chrome(), args=["--no-sandbox"])
        yield browser.new_page(viewport={"width": 1400, "height": 1000})
        browser.close()


def draw(names: Iterable[str], preset: str) -> dict[str, tuple[Any, str]]:
    """Each figure in the form of a venue, and its SVG, by one browser."""
    with Chrome() as chrome:
        figures = {
            name: FIGURES[name](figure_table(name), look=_with_title(preset)) for name in names
        }
        return {name: (fig, chrome.draw(fig, "svg").decode()) for name, fig in figures.items()}


def _with_title(preset: str) -> Look:
    return PRESETS[preset]._replace(has_title=True).look


def early_breaks(drawn: dict[str, tuple[Any, str]]) -> dict[str, list[str]]:
    """The titles of which a line ends although the next word has room, as the browser draws them.

    Whether it has room is measured by the browser, with 6 % to spare.
    """
    found: dict[str, list[str]] = {}
    with layout_page() as page:
        for name, (fig, svg) in drawn.items():
            page.set_content(f'<body style="margin:0">{svg}</body>')
            widths = page.evaluate(LINE_WIDTHS)
            lines = strip_markup(fig.layout.title.text.replace("<br>", "\n").replace("\n", " | "))
            texts = [line.strip() for line in lines.split("|")]
            for (width, line), following in zip(
                zip(widths, texts, strict=False), texts[1:], strict=False
            ):
                with_next = width * len(f"{line} {following.split()[0]}") / len(line)
                if with_next < 0.9 * fig.layout.width:
                    found.setdefault(name, []).append(line)
    return found


def faults(drawn: dict[str, tuple[Any, str]]) -> dict[str, Any]:
    """What is wrong with each figure; empty where nothing is."""
    found = {}
    with layout_page() as page:
        for name, (_, svg) in drawn.items():
            ink = measure_ink(page, svg)
            assert len(ink.texts) > 3, f"{name} has no text to measure"
            if wrong := [*crossing_texts(ink), *ink_outside(ink)]:
                found[name] = wrong
    return found


def drawn_lengths(svg: str, orientation: str) -> list[list[float]]:
    """The lengths of the visible bars of each trace, in px along the axis of their values."""
    found = []
    for trace in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        if trace.get("class") == "trace bars":
            boxes = [BOX.fullmatch(path.get("d", "")) for path in trace.iter(f"{SVG}path")]
            sides = [tuple(map(float, box.groups())) for box in boxes if box is not None]
            found.append(
                [abs(x2 - x) if orientation == "h" else abs(y2 - y) for x, y, y2, x2 in sides]
            )
    return found


def check_bars(name: str, fig: Any, svg: str) -> None:
    """Bars have one scale, and it turns them into the numbers of the table."""
    table = figure_table(name)
    numbers = table[list(BAR_COLUMNS[name])].to_numpy(dtype=float).ravel()
    bars = [trace for trace in fig.data if trace.type == "bar"]
    lengths = drawn_lengths(svg, bars[0].orientation or "v")
    assert len(lengths) == len(bars) > 0
    for trace, drawn in zip(bars, lengths, strict=True):
        values = trace.x if trace.orientation == "h" else trace.y
        expected = [abs(float(v)) for v in values if v is not None and np.isfinite(float(v)) and v]
        assert all(np.isclose(numbers, value).any() for value in expected), name
        seen = [length for length in drawn if length > 0]
        assert len(seen) == len(expected), name
        scale = sum(seen) / sum(expected)
        assert np.allclose(seen, [scale * value for value in expected], atol=0.6), name


def test_every_figure_has_a_table_to_be_drawn_from() -> None:
    assert set(GRIDS) == set(FIGURES)
    assert all(len(figure_table(name)) > 3 for name in GRIDS)


def test_figures_that_were_cut_off_are_whole() -> None:
    drawn = draw(QUICK, "icml")
    assert faults(drawn) == {}
    check_bars("item_parts", *drawn["item_parts"])


@pytest.mark.soak
@pytest.mark.parametrize("preset", PRESETS)
def test_no_texts_cross_all_ink_is_on_the_page_and_bars_are_the_table(preset: str) -> None:
    drawn = draw(FIGURES, preset)
    assert faults(drawn) == {}
    assert early_breaks(drawn) == {}
    for name in BAR_COLUMNS:
        check_bars(name, *drawn[name])


@pytest.mark.soak
def test_texts_on_a_screen_cross_nothing_and_have_their_width() -> None:
    with Chrome() as chrome:
        figures = {name: FIGURES[name](figure_table(name)) for name in FIGURES}
        drawn = {
            name: (fig.update_layout(width=700), chrome.draw(fig, "svg").decode())
            for name, fig in figures.items()
        }
    assert faults(drawn) == {}


def test_the_measurement_sees_a_crossing_and_a_cut() -> None:
    fault = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="200" height="60">'
        '<text x="10" y="30" font-size="12">one text</text>'
        '<text x="30" y="33" font-size="12">another</text>'
        '<text x="170" y="50" font-size="12">beyond the edge</text>'
        '<text x="40" y="50" font-size="12" transform="rotate(-90 40 50)">up</text></svg>'
    )
    with layout_page() as page:
        ink = measure_ink(page, fault)
    assert crossing_texts(ink)[0] == ("one text", "another")
    assert ink_outside(ink) == ["beyond the edge"]
