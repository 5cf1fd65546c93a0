"""The step figures draw exactly what their table says: points, bounds, gaps and reasons."""

import json
from typing import Any

import pandas as pd
import pytest

from cotlab.core.registry import FIGURES
from cotlab.core.types import ABLATION_MODES, CCS_METRICS, MODE_ORDER
from cotlab.figures.steps import CEILING_LABEL, MAX_ROWS, METRIC_ORDER
from tests.support.figure_texts import head

NASTY = "<b>x</b> & $y$ %{z}"


def positions(**changed: Any) -> pd.DataFrame:
    row = {
        "metric": "answer_change",
        "mode": "remove",
        "step": 0,
        "point": 0.4,
        "lo": 0.3,
        "hi": 0.55,
        "n": 48,
        "n_undefined": 2,
        "method": "bootstrap (BCa, 2000 resamples)",
    }
    return pd.DataFrame([{**row, **more} for more in changed.get("rows", [{}])])


def markers(fig: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        trace
        for trace in fig["data"]
        if trace["mode"] == "markers" and trace.get("hoverinfo") == "text"
    ]


def bounds(trace: dict[str, Any], axis: str = "y") -> list[tuple[float, float]]:
    bars = trace[f"error_{axis}"]
    assert bars["symmetric"] is False
    return [
        (p - down, p + up)
        for p, down, up in zip(trace[axis], bars["arrayminus"], bars["array"], strict=True)
    ]


def notes(fig: dict[str, Any]) -> list[dict[str, Any]]:
    return list(fig["layout"].get("annotations", ()))


def test_metrics_are_those_of_the_scorer() -> None:
    assert set(METRIC_ORDER) == set(CCS_METRICS)


def test_position_bars_end_at_the_bounds_of_the_table() -> None:
    table = positions(
        rows=[
            {"step": i, "point": 0.1 * i + 0.2, "lo": 0.1 * i, "hi": 0.1 * i + 0.25}
            for i in range(4)
        ]
    )
    fig = FIGURES["ccs_by_position"](table).to_dict()
    (trace,) = markers(fig)
    assert trace["y"] == [0, 1, 2, 3]
    assert trace["x"] == table["point"].tolist()
    assert bounds(trace, "x") == [
        pytest.approx(pair) for pair in zip(table["lo"], table["hi"], strict=True)
    ]
    assert fig["layout"]["xaxis"]["range"] == [-0.04, 1.04]
    assert fig["layout"]["yaxis"]["ticktext"] == [f"Step {i}" for i in (1, 2, 3, 4)]
    assert head(fig).startswith("Step effect (CCS) by position: answers that change (%)")
    assert "Shown: remove." in head(fig)
    assert "95% intervals over items, bootstrap (BCa, 2000 resamples)" in head(fig)
    assert "n = 48 items, 2 undefined" in trace["hovertext"][0]
    assert "20% [0, 25]" in trace["hovertext"][0]


def test_few_points_have_their_value_and_interval_beside_them() -> None:
    rows = [{"mode": mode, "step": step} for step in range(6) for mode in ABLATION_MODES]
    fig = FIGURES["ccs_by_position"](positions(rows=rows)).to_dict()
    assert len(rows) == MAX_ROWS
    assert [note["text"] for note in notes(fig)] == ["40% [30, 55], n = 48"] * 30
    places = {y for trace in markers(fig) for y in trace["y"]}
    assert {note["y"] for note in notes(fig)} == places and len(places) == 30
    many = positions(rows=[*rows, {"step": 6}])
    upright = FIGURES["ccs_by_position"](many).to_dict()
    assert not notes(upright) and upright["layout"]["yaxis"]["range"] == [-0.05, 1.05]
    assert upright["layout"]["xaxis"]["ticktext"] == [f"{i}<br>48" for i in range(1, 8)]


@pytest.mark.parametrize("n_steps", [3, 40])
def test_modes_of_a_position_are_not_joined(n_steps: int) -> None:
    rows = [{"mode": mode, "step": i} for mode in ABLATION_MODES for i in range(n_steps)]
    fig = FIGURES["ccs_by_position"](positions(rows=rows)).to_dict()
    assert not [trace for trace in fig["data"] if "lines" in trace["mode"]]
    assert len(markers(fig)) == 5


def test_modes_stand_side_by_side_in_their_own_colours() -> None:
    rows = [{"mode": mode, "n": 40 + i} for i, mode in enumerate(reversed(ABLATION_MODES))]
    fig = FIGURES["ccs_by_position"](positions(rows=rows)).to_dict()
    traces = markers(fig)
    assert [trace["name"] for trace in traces] == list(MODE_ORDER)
    assert traces[0]["name"] == "corrupt" and sorted(MODE_ORDER) == sorted(ABLATION_MODES)
    assert len({(trace["marker"]["color"], trace["marker"]["symbol"]) for trace in traces}) == 5
    places = [trace["y"][0] for trace in traces]
    assert places == [0, 1, 2, 3, 4]
    axis = fig["layout"]["yaxis"]
    assert (axis["tickvals"], axis["ticktext"]) == ([2], ["Step 1"])
    assert sorted(note["text"][-6:] for note in notes(fig)) == [f"n = {n}" for n in range(40, 45)]
    alone = markers(FIGURES["ccs_by_position"](positions(rows=[{"mode": "filler"}])).to_dict())[0]
    assert alone["marker"]["color"] == traces[-1]["marker"]["color"]


def test_one_item_has_an_open_marker_and_no_bar() -> None:
    alone = {"step": 1, "n": 1, "lo": None, "hi": None, "method": "none"}
    fig = FIGURES["ccs_by_position"](positions(rows=[{}, alone])).to_dict()
    closed, still_open = markers(fig)
    assert "error_x" not in still_open
    assert (
        still_open["marker"]["symbol"] == "circle-open" and closed["marker"]["symbol"] == "circle"
    )
    assert "one item has no spread" in still_open["hovertext"][0]
    assert "Open marker: no interval" in head(fig)
    assert "none" not in head(fig)


def test_an_undefined_position_is_said_and_not_drawn() -> None:
    gap = {
        "step": 1,
        "point": None,
        "lo": None,
        "hi": None,
        "n": 0,
        "n_undefined": 50,
        "reason": "nothing follows <it>",
    }
    fig = FIGURES["ccs_by_position"](positions(rows=[{}, gap])).to_dict()
    (trace,) = markers(fig)
    assert (trace["x"], trace["y"]) == ([0.4], [0])
    _, note = notes(fig)
    assert (note["text"], note["y"], note["x"]) == ("n/a", 1, 1) and note["xref"] == "paper"
    assert "n/a (nothing follows &lt;it&gt;): Step 2" in head(fig)
    assert "nothing follows &lt;it&gt;" in note["hovertext"]
    many = FIGURES["ccs_by_position"](positions(rows=[{"step": i} for i in range(2, 40)] + [gap]))
    assert "n/a (nothing follows &lt;it&gt;): Step 2" in head(many.to_dict())


def test_a_table_without_any_value_still_draws() -> None:
    table = positions(
        rows=[
            {"point": pd.NA, "lo": float("nan"), "hi": None, "n": 0, "mode": mode}
            for mode in ABLATION_MODES
        ]
    )
    fig = FIGURES["ccs_by_position"](table).to_dict()
    assert [trace["x"] for trace in markers(fig)] == [[]] * 5  # for the legend alone
    assert [note["text"] for note in notes(fig)] == ["n/a"] * 5


def test_a_metric_beyond_one_has_its_own_range_and_unit() -> None:
    fig = FIGURES["ccs_by_position"](
        positions(rows=[{"metric": "kl_nats", "point": 3.0, "lo": 2.0, "hi": 4.0}])
    ).to_dict()
    assert fig["layout"]["xaxis"]["range"] == pytest.approx([-0.16, 4.16])  # 0 to 4, and 4 %
    assert "(nats)" in head(fig)


def test_raw_values_are_drawn_up_to_twenty() -> None:
    few, many = (
        {"step": i, "n": n, "values": [0.0, 1.0] * (n // 2)} for i, n in enumerate((20, 22))
    )
    fig = FIGURES["ccs_by_position"](positions(rows=[few, many])).to_dict()
    (raw,) = (
        trace
        for trace in fig["data"]
        if trace["mode"] == "markers" and trace["hoverinfo"] == "skip"
    )
    assert raw["x"] == [0.0, 1.0] * 10
    assert all(abs(y) < 0.051 for y in raw["y"])
    assert fig == FIGURES["ccs_by_position"](positions(rows=[few, many])).to_dict()


@pytest.mark.parametrize("count", [31, 60, 300])
def test_position_ticks_are_whole_and_few_enough(count: int) -> None:
    axis = FIGURES["ccs_by_position"](
        positions(rows=[{"step": i} for i in range(count)])
    ).to_dict()["layout"]["xaxis"]
    assert all(isinstance(tick, int) for tick in axis["tickvals"])
    assert len(axis["tickvals"]) <= 29


def chain() -> pd.DataFrame:
    columns = ("step", "text", "point", "lo", "hi", "draws", "reason")
    rows = [
        (0, "So 5 + 7 = 12.", 0.25, 0.1, 0.5, 8, None),
        (1, NASTY, 1.0, None, None, 1, None),
        (2, "word " * 40, None, None, None, 0, f"no rule {NASTY}"),
        (3, "Then 9.", 0.0, 0.0, 0.3, 8, None),
    ]
    return pd.DataFrame(rows, columns=columns)


def test_steps_are_ranked_with_the_undefined_last() -> None:
    fig = FIGURES["ccs_ranking"](chain()).to_dict()
    labels = fig["layout"]["yaxis"]["ticktext"]
    assert [label.split(":")[0] for label in labels] == ["Step 2", "Step 1", "Step 4", "Step 3"]
    assert (
        fig["layout"]["yaxis"]["range"][0] > fig["layout"]["yaxis"]["range"][1]
    )  # the first row on top
    with_bars, without = markers(fig)
    assert (with_bars["x"], with_bars["y"]) == ([0.25, 0.0], [1, 2])
    assert bounds(with_bars, "x") == [pytest.approx((0.1, 0.5)), pytest.approx((0.0, 0.3))]
    assert (without["x"], without["y"], without["marker"]["symbol"]) == ([1.0], [0], "circle-open")
    assert [note["text"] for note in notes(fig)] == [
        "1.00 (n = 1)",
        "0.250 [0.100, 0.500]",
        "0 [0, 0.300]",
        "n/a",
    ]
    assert "n/a (no rule &lt;b&gt;x&lt;/b&gt; &amp; &#36;y&#36; &#37;{z}): Step 3" in head(fig)
    assert "n = 3 of 4 steps" in head(fig) and "(0 to 1)" in head(fig)


def test_no_undefined_step_is_drawn_as_a_point() -> None:
    fig = FIGURES["ccs_ranking"](chain()).to_dict()
    assert all(3 not in trace["y"] for trace in fig["data"])


def test_the_threshold_is_a_line_and_a_sentence() -> None:
    fig = FIGURES["ccs_ranking"](chain().assign(threshold=0.1)).to_dict()
    assert [(shape["x0"], shape["x1"]) for shape in fig["layout"]["shapes"]] == [(0.1, 0.1)]
    assert "threshold 0.1" in head(fig)


def ratios() -> pd.DataFrame:
    return pd.DataFrame(
        [
            ("remove", 0.7, 0.6, 0.75, 48, 0.75),
            ("corrupt", 0.1, None, None, 1, None),
            ("truncate", None, None, None, 0, None),
        ],
        columns=["mode", "point", "lo", "hi", "n", "ceiling"],
    )


def test_rrr_stands_beside_its_ceiling() -> None:
    fig = FIGURES["rrr_by_mode"](ratios().assign(threshold=0.1)).to_dict()
    dash = next(trace for trace in fig["data"] if trace["name"] == CEILING_LABEL)
    assert (dash["x"], dash["y"], dash["hovertext"]) == ([0.75], [1], ["(n − 1)/n = 75%"])
    assert dash["showlegend"] is True
    closed, still_open = (trace for trace in markers(fig) if trace is not dash)
    assert bounds(closed, "x") == [pytest.approx((0.6, 0.75))]
    assert (still_open["x"], still_open["y"]) == ([0.1], [0])
    assert fig["layout"]["yaxis"]["ticktext"] == ["corrupt", "remove", "truncate"]
    assert [note["text"].split("<br>")[0] for note in notes(fig)] == [
        "10% [no interval]",
        "70% [60, 75]",
        "n/a",
    ]
    # the title is that of the table with and without the threshold
    bare = FIGURES["rrr_by_mode"](ratios()).to_dict()
    assert bare["layout"]["meta"]["title"] == fig["layout"]["meta"]["title"]
    assert "n/a (no score is defined here): truncate" in head(fig)


def test_without_removal_there_is_no_ceiling() -> None:
    fig = FIGURES["rrr_by_mode"](ratios().iloc[1:]).to_dict()
    assert all(trace["name"] != CEILING_LABEL for trace in fig["data"])


def test_metrics_are_told_apart_within_each_mode() -> None:
    rows = [
        (metric, mode, 0.5, 0.4, 0.7, 30) for mode in ABLATION_MODES[:3] for metric in CCS_METRICS
    ]
    fig = FIGURES["modes_by_metric"](
        pd.DataFrame(rows, columns=["metric", "mode", "point", "lo", "hi", "n"])
    ).to_dict()
    traces = markers(fig)
    assert [trace["name"] for trace in traces] == [
        "answer change",
        "accuracy delta",
        "token delta",
        "KL divergence",
        "total variation",
    ]
    assert all(bounds(trace, "x") == [pytest.approx((0.4, 0.7))] * 3 for trace in traces)
    assert "KL divergence: nats, clamped to 1" in head(fig)


@pytest.mark.parametrize("name", ["ccs_by_position", "modes_by_metric", "rrr_by_mode"])
def test_text_from_data_is_escaped_everywhere(name: str) -> None:
    told = {"metric": NASTY, "reason": NASTY, "method": NASTY}
    table = positions(
        rows=[
            {"mode": NASTY, **told},
            {"mode": f"{NASTY}2", **told, "metric": f"{NASTY}3"},
            {"mode": "remove", "point": None, **told},
        ]
    ).assign(ceiling=0.5)
    fig = FIGURES[name](table, note=NASTY).to_dict()
    fig["layout"].pop("template")
    for trace in fig["data"]:
        trace.pop("customdata", None)  # what a click tells the page is no text
    text = json.dumps(fig)
    assert "&lt;b&gt;x&lt;/b&gt;" in text
    assert not any(mark in text for mark in ("<b>x", "$", "%{"))
