"""The figures of reliability draw exactly what their tables say: points, bounds, counts, gaps and
reasons."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
import pytest

from cotlab.core.registry import FIGURES
from cotlab.figures.style import MISSING_COLOUR, SOFT_TEXT_COLOUR, diverging_colour, viridis_colour
from tests.support.figure_texts import head

NASTY = "<b>x</b> & $y$ %{z}"


def means(key: str, *changed: dict[str, Any]) -> pd.DataFrame:
    row = {
        key: "C",
        "point": 0.6,
        "lo": 0.5,
        "hi": 0.75,
        "n": 98,
        "n_undefined": 2,
        "reason": None,
        "method": "Wilson",
    }
    return pd.DataFrame([{**row, **more} for more in changed or ({},)])


def gap(**more: Any) -> dict[str, Any]:
    return {
        "point": None,
        "lo": None,
        "hi": None,
        "n": 0,
        "n_undefined": 100,
        "reason": f"no link {NASTY}",
        **more,
    }


def pairs(*changed: dict[str, Any]) -> pd.DataFrame:
    row = {"one": "C", "other": "R", "point": -0.25, "lo": -0.5, "hi": 0.1, "n": 30, "reason": None}
    return pd.DataFrame([{**row, **more} for more in changed or ({},)])


def links(*changed: dict[str, Any]) -> pd.DataFrame:
    row = {
        "link": "reverse",
        "step": 1,
        "value": 1.0,
        "verifier": "arithmetic",
        "reason": None,
        "quote": "",
        "text": "two",
        "before": "one",
    }
    return pd.DataFrame([{**row, **more} for more in changed or ({},)])


def plain(text: str) -> str:
    return " ".join(re.sub("<[^>]+>", " ", text).split())


def notes(fig: dict[str, Any]) -> list[str]:
    return [plain(note["text"]) for note in fig["layout"].get("annotations", ())]


def test_parts_stand_in_the_source_s_order_with_their_bounds() -> None:
    table = means(
        "part", {"part": "r_raw"}, {"part": "F", "point": 0.9, "lo": 0.8, "hi": 1.0}, {"part": "C"}
    )
    fig = FIGURES["reliability_parts"](table).to_dict()
    (trace,) = [t for t in fig["data"] if t.get("hoverinfo") == "text" and len(t["x"])]
    assert trace["x"] == [0.6, 0.9, 0.6] and fig["layout"]["yaxis"]["ticktext"] == [
        "C consistency",
        "F flags",
        "r_raw",
    ]
    bars = trace["error_x"]
    assert [
        p - down for p, down in zip(trace["x"], bars["arrayminus"], strict=True)
    ] == pytest.approx([0.5, 0.8, 0.5])
    assert [p + up for p, up in zip(trace["x"], bars["array"], strict=True)] == pytest.approx(
        [0.75, 1.0, 0.75]
    )
    assert notes(fig)[0] == "0.600 [0.500, 0.750] n = 98 items, 2 undefined"


@pytest.mark.parametrize(
    ("name", "key"), [("reliability_parts", "part"), ("diagnosis_rates", "rule")]
)
def test_a_part_without_a_value_says_why(name: str, key: str) -> None:
    fig = FIGURES[name](means(key, {key: "V", **gap()})).to_dict()
    assert notes(fig) == ["n/a"]
    assert "n/a (no link &lt;b&gt;x&lt;/b&gt; &amp; &#36;y&#36; &#37;{z})" in head(fig)
    assert not [t for t in fig["data"] if t.get("hoverinfo") == "text" and len(t["x"])]


def test_the_bars_of_an_item_leave_no_bar_where_a_part_is_undefined() -> None:
    rows = [("V", None, 0.7, f"no link {NASTY}"), ("C", 0.9, 0.8, None), ("R", -0.2, None, None)]
    fig = FIGURES["item_parts"](
        pd.DataFrame(rows, columns=["part", "value", "mean", "reason"])
    ).to_dict()
    assert fig["data"][0]["x"] == [0.9, -0.2] and fig["data"][0]["y"] == [0, 1]
    assert notes(fig) == [
        "0.900 (suite 0.800)",
        "−0.200",
        "n/a",
    ]
    assert "n/a (no link &lt;b&gt;x&lt;/b&gt;" in head(fig)
    assert [(s["x0"], s["y0"]) for s in fig["layout"]["shapes"]] == [(0.8, -0.4)]
    assert fig["layout"]["xaxis"]["range"][0] < -0.2


def test_correlations_fill_one_triangle_with_rho_and_n() -> None:
    table = pairs(
        {},
        {"other": "V", "point": 1.0, "lo": None, "hi": None, "reason": "perfect"},
        {"one": "R", "other": "V", "point": None, "n": 3, "reason": "fewer than 5 pairs"},
    )
    fig = FIGURES["signal_correlation"](table).to_dict()
    (cells,) = fig["data"]
    assert cells["text"] == ["−0.25<br>n = 30", "1.00<br>n = 30", "n/a<br>n = 3"]
    assert list(zip(cells["x"], cells["base"], strict=True)) == [(0, -0.47), (0, 0.53), (1, 0.53)]
    assert cells["marker"]["color"] == [
        diverging_colour(-0.25),
        diverging_colour(1.0),
        MISSING_COLOUR,
    ]
    assert "−0.250 [−0.500, 0.100]" in cells["hovertext"][0] and "perfect" in cells["hovertext"][1]
    assert "n/a (fewer than 5 pairs): R–V" in head(fig)
    assert fig["layout"]["xaxis"]["ticktext"] == ["C", "R"] and fig["layout"]["yaxis"][
        "ticktext"
    ] == ["R", "V"]


def test_cosines_have_no_n() -> None:
    table = pairs({"one": "as asked", "other": NASTY, "point": 0.5}).drop(columns=["lo", "hi", "n"])
    fig = FIGURES["chain_cosines"](table).to_dict()
    assert (
        fig["data"][0]["text"] == ["0.50"] and "<b>x" not in fig["layout"]["yaxis"]["ticktext"][0]
    )


def test_an_arrow_ends_at_the_step_that_is_supported() -> None:
    for link, end in (("reverse", 0), ("forward", 1)):
        fig = FIGURES["verification_links"](links({"link": link})).to_dict()
        edge, arc, head, label = fig["data"][1:]
        assert abs(head["y"][0] - end) < 0.25 and arc["y"][-1] == head["y"][0]
        assert (
            arc["line"]["color"] == viridis_colour(1.0)
            and edge["line"]["width"] > arc["line"]["width"]
            and label["text"] == ["1.00"]
        )
        assert fig["layout"]["yaxis"]["ticktext"] == ["one", "two"]


def test_an_undecided_link_is_dashed_and_says_why() -> None:
    table = links(
        {"value": None, "verifier": "none", "reason": f"no equation {NASTY}"},
        {"link": "forward", "quote": NASTY},
    )
    fig = FIGURES["verification_links"](table).to_dict()
    arcs = [t for t in fig["data"] if t["mode"] == "lines" and t["line"]["width"] < 6]
    assert [a["line"]["dash"] for a in arcs] == ["dash", "solid"] and arcs[0]["line"][
        "color"
    ] == SOFT_TEXT_COLOUR
    undecided, decided = (t["hovertext"][0] for t in fig["data"] if t["mode"] == "text")
    assert (
        "support n/a" in undecided
        and "no equation &lt;b&gt;" in undecided
        and "decided by" not in undecided
    )
    assert "decided by arithmetic" in decided and "&lt;b&gt;x" in decided


def test_a_second_column_holds_the_other_direction() -> None:
    fig = FIGURES["verification_links"](links({}, {"step": 2}, {"link": "forward"})).to_dict()
    circles = [t for t in fig["data"] if t["mode"] == "markers+text"]
    assert [(set(t["x"]), list(t["text"])) for t in circles] == [
        ({0}, ["1", "2", "3"]),
        ({1}, ["1", "2", "3"]),
    ]
    assert [plain(t).split(":")[0] for t in fig["layout"]["xaxis"]["ticktext"]] == [
        "reverse",
        "forward",
    ]
