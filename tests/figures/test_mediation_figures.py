"""The figures of mediation draw exactly what their tables say: points, bounds, counts, gaps and
reasons."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
import pytest

from cotlab.core.registry import FIGURES
from cotlab.core.types import MEDIATION_SOURCES
from cotlab.figures.mediation import MIN_INTERVAL_N, PATCH_TARGETS, span_sort_key
from cotlab.figures.style import (
    BLUE,
    MISSING_COLOUR,
    NEUTRAL_COLOUR,
    VERMILLION,
    diverging_colour,
    text_colour_on,
    viridis_colour,
)
from tests.support.figure_texts import head

NAMES = ("cmi_density", "layer_profile", "span_heatmap", "mediation_indices")
NASTY = "<b>x</b> & $y$ %{z}"


def rows(*changed: dict[str, Any]) -> pd.DataFrame:
    row = {
        "metric": "cmi",
        "source": "filler",
        "control": "other",
        "span": "all",
        "keep": 1.0,
        "point": 0.6,
        "lo": 0.5,
        "hi": 0.75,
        "n": 98,
        "n_undefined": 2,
        "reason": None,
        "method": "t interval",
        "confidence": 0.95,
    }
    return pd.DataFrame([{**row, **more} for more in changed or ({},)])


def gap(**more: Any) -> dict[str, Any]:
    return {
        "point": None,
        "lo": None,
        "hi": None,
        "n": 0,
        "n_undefined": 100,
        "reason": f"no signal {NASTY}",
        **more,
    }


def markers(fig: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        t
        for t in fig["data"]
        if t.get("mode") == "markers" and t.get("hoverinfo") == "text" and len(t["x"])
    ]


def bounds(trace: dict[str, Any], axis: str = "y") -> list[tuple[float, float]]:
    bars = trace[f"error_{axis}"]
    assert bars["symmetric"] is False
    return [
        (p - down, p + up)
        for p, down, up in zip(trace[axis], bars["arrayminus"], bars["array"], strict=True)
    ]


def notes(fig: dict[str, Any]) -> list[str]:
    return [
        " ".join(re.sub("<[^>]+>", " ", note["text"]).split())
        for note in fig["layout"].get("annotations", ())
    ]


def test_density_bars_end_at_the_bounds_of_the_table() -> None:
    table = rows(
        *(
            {"keep": k, "point": k / 2, "lo": k / 3, "hi": k, "n": 90 + i}
            for i, k in enumerate((0.4, 0.6, 0.8, 1.0))
        )
    )
    fig = FIGURES["cmi_density"](table).to_dict()
    (trace,) = markers(fig)
    assert trace["x"] == [0.4, 0.6, 0.8, 1.0] and trace["y"] == [0.2, 0.3, 0.4, 0.5]
    assert bounds(trace) == [pytest.approx((k / 3, k)) for k in (0.4, 0.6, 0.8, 1.0)]
    assert fig["layout"]["xaxis"]["ticktext"] == [
        "40%<br>n = 90",
        "60%<br>n = 91",
        "80%<br>n = 92",
        "100%<br>n = 93",
    ]
    (line,) = [t for t in fig["data"] if t["mode"] == "lines" and t.get("fill") is None]
    assert (line["x"], line["y"]) == (trace["x"], trace["y"])
    (band,) = [t for t in fig["data"] if t.get("fill") == "toself"]
    assert band["x"] == [0.4, 0.6, 0.8, 1.0, 1.0, 0.8, 0.6, 0.4, None]
    assert band["y"][:8] == pytest.approx([0.4, 0.6, 0.8, 1.0, 1 / 3, 0.8 / 3, 0.2, 0.4 / 3])
    assert "95% intervals over items, t interval" in head(fig)
    assert "n = 93 items, 2 undefined" in trace["hovertext"][3]


def test_few_items_have_no_interval_and_no_band_spans_them() -> None:
    counts = (98, MIN_INTERVAL_N - 1, 98)
    table = rows(*({"keep": k, "n": n} for k, n in zip((0.4, 0.6, 1.0), counts, strict=True)))
    fig = FIGURES["cmi_density"](table).to_dict()
    closed, still_open = markers(fig)
    assert (closed["x"], still_open["x"]) == ([0.4, 1.0], [0.6])
    assert "fewer than 5 items" in head(fig)
    (band,) = [t for t in fig["data"] if t.get("fill") == "toself"]
    assert 0.6 not in band["x"] and band["x"].count(None) == 2


def test_sources_keep_their_codes_and_stand_side_by_side() -> None:
    fig = FIGURES["cmi_density"](
        rows(*({"source": s} for s in reversed(MEDIATION_SOURCES)))
    ).to_dict()
    assert [t["name"] for t in markers(fig)] == list(MEDIATION_SOURCES)
    assert (
        len({t["x"][0] for t in markers(fig)})
        == len({t["marker"]["color"] for t in markers(fig)})
        == 5
    )
    alone = markers(FIGURES["cmi_density"](rows({"source": "literal"})).to_dict())[0]
    assert (
        alone["marker"]["color"] == markers(fig)[-1]["marker"]["color"] and not alone["showlegend"]
    )


def test_single_items_are_drawn_up_to_twenty() -> None:
    few, many = (
        {"n": n, "values": [0.1 + i / 100 for i in range(n)] + [float("nan")]} for n in (20, 21)
    )
    drawn = [
        t
        for t in FIGURES["cmi_density"](rows(few)).to_dict()["data"]
        if t.get("hoverinfo") == "skip" and t["mode"] == "markers"
    ]
    assert len(drawn[0]["y"]) == 20 and drawn[0]["marker"]["color"].endswith("0.3)")
    assert all(
        t["mode"] != "markers" or t["hoverinfo"] == "text"
        for t in FIGURES["cmi_density"](rows(many)).to_dict()["data"]
    )


def test_a_missing_point_is_said_and_a_missing_interval_is_open() -> None:
    fig = FIGURES["cmi_density"](rows({"lo": None, "hi": None, "n": 3}, gap(keep=0.4))).to_dict()
    (still_open,) = markers(fig)
    assert still_open["marker"]["symbol"] == "circle-open" and "error_y" not in still_open
    assert notes(fig) == ["n/a"]
    assert "Open marker: no interval, fewer than 5 items." in head(fig)
    assert (
        "n/a (no signal &lt;b&gt;x&lt;/b&gt; &amp; &#36;y&#36; &#37;{z}): 40% of positions"
        in head(fig)
    )


def test_the_profile_takes_single_layers_only_and_shows_drops_in_nats() -> None:
    spans = ("0", "1", "2", "0-1", "all")
    fig = FIGURES["layer_profile"](
        rows(
            *({"metric": m, "span": s} for m in ("drop_cot", "drop_control", "cmi") for s in spans)
        )
    )
    cot, control = markers(fig.to_dict())
    assert (cot["name"], control["name"]) == ("drop, chain patched", "drop, control patched")
    assert [round(x) for x in cot["x"]] == [0, 1, 2] and bounds(cot) == [
        pytest.approx((0.5, 0.75))
    ] * 3
    assert all(a < b for a, b in zip(cot["x"], control["x"], strict=True))
    assert "nats" in head(fig.to_dict()) and "nats" in fig.layout.yaxis.title.text
    assert list(fig.layout.xaxis.ticktext) == ["0<br>98", "1<br>98", "2<br>98"]


def test_a_profile_without_single_layers_still_draws() -> None:
    assert markers(FIGURES["layer_profile"](rows({"metric": "drop_cot"})).to_dict()) == []


def test_cells_are_bars_with_value_and_n() -> None:
    spans = ("all", "2-3", "10", "2", "0-1")
    table = rows(
        *({"metric": m, "span": s} for m in ("share", "cmi") for s in spans),
        {"metric": "mass_lost", **gap()},
    )
    fig = FIGURES["span_heatmap"](table).to_dict()
    (bars,) = fig["data"]
    assert bars["type"] == "bar"
    assert fig["layout"]["xaxis"]["ticktext"] == ["2", "10", "0–1", "2–3", "all"]
    assert fig["layout"]["yaxis"]["ticktext"] == ["CMI", "share", "mass lost"]
    assert bars["text"] == ["0.600<br>n = 98"] * 10 + ["n/a"] * 4 + ["n/a<br>n = 0"]
    assert (
        bars["marker"]["color"]
        == [viridis_colour(0.6)] * 5 + [diverging_colour(0.6)] * 5 + [MISSING_COLOUR] * 5
    )
    assert list(bars["insidetextfont"]["color"]) == [
        text_colour_on(fill) for fill in bars["marker"]["color"]
    ]
    assert (
        "0.600 [0.500, 0.750]" in bars["hovertext"][0]
        and "n = 98 items, 2 undefined" in bars["hovertext"][0]
    )
    assert "n/a (not requested): 2, 10, 0–1, 2–3" in head(fig) and "): all" in head(fig)


def test_names_that_no_order_knows_stay_in_that_of_the_table() -> None:
    sources = [f"source {letter}" for letter in "hbgaecdf"]
    spans = ["0-9", "0-3", "0-7", "0-1", "0-5", "0-2"]
    cells = rows(*({"source": s, "span": span} for s in sources for span in spans))
    layout = FIGURES["span_heatmap"](cells).to_dict()["layout"]
    assert layout["yaxis"]["ticktext"] == sources
    assert layout["xaxis"]["ticktext"] == [span.replace("-", "–") for span in spans]


def test_rows_of_cells_are_sources_where_there_is_one_metric() -> None:
    fig = FIGURES["span_heatmap"](
        rows(*({"source": s} for s in reversed(MEDIATION_SOURCES)))
    ).to_dict()
    assert fig["layout"]["yaxis"]["ticktext"] == list(MEDIATION_SOURCES)
    assert head(fig).startswith("CMI by span")


def test_a_negative_share_has_a_colour_of_its_own() -> None:
    assert (diverging_colour(-1), diverging_colour(0), diverging_colour(1)) == (
        VERMILLION.lower(),
        NEUTRAL_COLOUR,
        BLUE.lower(),
    )
    assert (
        diverging_colour(-2)
        == diverging_colour(-1)
        != diverging_colour(-0.5)
        != diverging_colour(0.5)
    )
    assert (
        diverging_colour(0.5) == "#7cb4d4"
    )  # halfway from f7f7f7 to 0072b2: (247 + 0) / 2, (247 + 114) / 2, (247 + 178) / 2
    assert diverging_colour(None) == MISSING_COLOUR
    fig = FIGURES["span_heatmap"](
        rows({"metric": "share", "point": -0.4}, {"metric": "cmi", "point": 0.4})
    ).to_dict()
    assert fig["data"][0]["marker"]["color"] == [viridis_colour(0.4), diverging_colour(-0.4)]
    assert "0 to 1; share −1 to 1" in head(fig) and "orange below" in head(fig)
    alone = FIGURES["span_heatmap"](rows({"metric": "share", "point": -0.4})).to_dict()
    assert "layers (−1 to 1)" in head(alone) and "Dark is 0" not in head(alone)


def test_a_tiny_value_fits_its_cell() -> None:
    bars = FIGURES["span_heatmap"](rows({"point": 4e-5})).to_dict()["data"][0]
    below = FIGURES["span_heatmap"](rows({"point": -4e-5})).to_dict()["data"][0]
    assert below["text"] == ["&gt; −0.001<br>n = 98"]
    assert bars["text"] == ["&lt; 0.001<br>n = 98"] and "4.00e−5" in bars["hovertext"][0]


def test_many_spans_turn_the_text_of_the_cells() -> None:
    fig = FIGURES["span_heatmap"](rows(*({"span": str(i)} for i in range(28)))).to_dict()
    assert fig["data"][0]["textangle"] == -90 and fig["data"][0]["text"][0] == "0.600, n = 98"
    assert sorted(("all", "3", "0-1", "12"), key=span_sort_key) == ["3", "12", "0-1", "all"]


def test_a_dense_figure_names_every_other_column_and_marks_what_is_missing() -> None:
    fig = FIGURES["span_heatmap"](
        rows(*({"span": str(i)} for i in range(35)), gap(span="35"))
    ).to_dict()
    assert (
        fig["data"][0]["text"][34:] == ["0.600, n = 98", "×"]
        and fig["data"][0]["marker"]["color"][35] == MISSING_COLOUR
    )
    assert fig["layout"]["xaxis"]["ticktext"] == [str(i) for i in range(0, 36, 2)]
    assert "): 35" in head(fig)


def test_one_item_has_its_own_density_over_draws() -> None:
    table = rows(
        {"draws": 9, "confidence": 0.95},
        {"keep": 0.4, "lo": None, "hi": None, "reason": f"why {NASTY}", "draws": 3},
    )
    fig = FIGURES["item_density"](table).to_dict()
    closed, still_open = markers(fig)
    assert bounds(closed) == [pytest.approx((0.5, 0.75))] and still_open["y"] == [0.6]
    assert fig["layout"]["xaxis"]["ticktext"] == ["40%<br>n = 3", "100%<br>n = 9"]
    assert "intervals over draws" in head(
        fig
    ) and "Open marker: no interval, fewer than 5 draws" in head(fig)
    assert "draws: 9" in closed["hovertext"][0]
    faint = FIGURES["item_density"](table.assign(values=[[0.25, 0.5], []])).to_dict()["data"]
    assert [t["y"] for t in faint if t.get("marker", {}).get("size") == 5] == [[0.25, 0.5]]


def test_indices_write_interval_and_n_and_the_reason_of_a_gap() -> None:
    table = rows(
        {},
        {"metric": "share", "lo": None, "hi": None, "n": 2},
        {"metric": "validity", **gap()},
        {"metric": "x", "point": -0.5, "lo": -0.7, "hi": 2},
    )
    fig = FIGURES["mediation_indices"](table).to_dict()
    closed, still_open = markers(fig)
    assert closed["y"] == [0, 3] and bounds(closed, "x") == [
        pytest.approx((0.5, 0.75)),
        pytest.approx((-0.7, 2)),
    ]
    assert still_open["y"] == [1]
    told = notes(fig)
    assert told[0] == "0.600 [0.500, 0.750] n = 98 items, 2 undefined"
    assert told[1].startswith("0.600 [no interval] n = 2 items")
    assert told[2] == "n/a" and "n/a (no signal &lt;b&gt;x&lt;/b&gt;" in head(fig)
    assert fig["layout"]["yaxis"]["ticktext"] == ["CMI", "share", "validity", "x"]
    low, high = fig["layout"]["xaxis"]["range"]
    assert low < -0.7 and high > 2


def test_drops_are_dots_by_donor_with_the_mean_of_all() -> None:
    draws = [
        ("cot", "a", 1.0),
        ("cot", "a", 2.0),
        ("cot", NASTY, 6.0),
        ("control", "a", 0.5),
        ("placebo", None, None),
    ]
    table = pd.DataFrame(
        [
            {"part": p, "donor": d, "sample": i, "value": v}
            for i, (p, d, v) in enumerate(reversed(draws))
        ]
    )
    fig = FIGURES["drops_by_donor"](table).to_dict()
    assert fig["layout"]["yaxis"]["ticktext"] == ["chain", "control", "placebo"]
    assert notes(fig) == ["3.00 (n = 3)", "0.500 (n = 1)", "n/a"]
    lines = [s for s in fig["layout"]["shapes"] if s["line"]["width"] == 2]
    assert [(s["x0"], s["x1"]) for s in lines] == [(3.0, 3.0), (0.5, 0.5)]
    assert sum(len(t["y"]) for t in fig["data"]) == 4
    assert len({(t["marker"]["color"], t["marker"]["symbol"]) for t in fig["data"]}) == 3
    assert all("<b>x" not in t["name"] for t in fig["data"])
    assert "n/a: 1 draw." in head(fig)
    assert PATCH_TARGETS.index("cot") < PATCH_TARGETS.index("control")


@pytest.mark.parametrize("name", NAMES)
def test_no_figure_is_a_bitmap_and_none_changes_its_table(name: str) -> None:
    table = rows({"metric": "drop_cot", "span": "0"}, gap(metric="drop_control", span="0"))
    before = table.copy()
    assert not {t["type"] for t in FIGURES[name](table).to_dict()["data"]} - {"scatter", "bar"}
    pd.testing.assert_frame_equal(table, before)


def test_a_drop_in_nats_has_no_range_of_a_ratio() -> None:
    table = rows(
        {"metric": "drop_cot", "point": 4.2, "lo": 3.9, "hi": 4.6},
        {"metric": "drop_kept", "keep": 0.4, "point": -0.3, "lo": -0.4, "hi": -0.1},
    )
    fig = FIGURES["drop_density"](table).to_dict()
    assert "range" not in fig["layout"]["yaxis"]
    assert fig["layout"]["yaxis"]["title"]["text"] == "Mean drop (nats)"
    assert {4.2, -0.3} <= {
        y for t in fig["data"] for y in (t["y"] if t.get("y") is not None else ())
    }
