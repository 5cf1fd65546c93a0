"""The figures of comparison and unfaithfulness draw exactly what their tables say: points, bounds,
n, gaps and reasons."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
import pytest

from cotlab.core.registry import FIGURES
from cotlab.figures.style import MISSING_COLOUR, diverging_colour
from tests.support.figure_texts import head

NASTY = "<b>x</b> & $y$ %{z}"
GROUPED = (
    "unfaithful_rates",
    "unfaithful_by_category",
    "judge_by_epoch",
    "chain_size",
    "process_result",
)


def differences(*changed: dict[str, Any]) -> pd.DataFrame:
    row = {
        "label": "rate",
        "unit": "no unit",
        "point": -0.25,
        "lo": -0.5,
        "hi": -0.125,
        "n": 60,
        "n_undefined": 3,
        "reason": None,
        "method": "bootstrap",
    }
    return pd.DataFrame([{**row, **more} for more in changed or ({},)])


def points(*changed: dict[str, Any]) -> pd.DataFrame:
    row = {
        "group": "m",
        "at": "base",
        "point": 0.5,
        "lo": 0.25,
        "hi": 0.625,
        "n": 300,
        "n_undefined": 0,
        "reason": None,
        "method": "Wilson",
        "measure": "tokens",
        "n_zero": 0,
    }
    return pd.DataFrame([{**row, **more} for more in changed or ({},)])


def gap(**more: Any) -> dict[str, Any]:
    return {
        "point": None,
        "lo": None,
        "hi": None,
        "n": 0,
        "n_undefined": 7,
        "reason": f"no score {NASTY}",
        **more,
    }


def drawn(fig: dict[str, Any]) -> list[dict[str, Any]]:
    """Traces of points: not the raw values, not the lines between points."""
    return [t for t in fig["data"] if t.get("hoverinfo") == "text" and len(t["x"])]


def notes(fig: dict[str, Any]) -> list[str]:
    return [
        " ".join(re.sub("<[^>]+>", " ", a["text"]).split())
        for a in fig["layout"].get("annotations", ())
    ]


def test_a_difference_is_drawn_with_the_table_s_bounds_and_a_line_at_0() -> None:
    table = differences({}, {"label": "tokens", "point": 0.5, "lo": -1.0, "hi": 2.0})
    fig = FIGURES["paired_differences"](table).to_dict()
    (trace,) = drawn(fig)
    assert list(trace["x"]) == [-0.25, 0.5] and list(trace["y"]) == [0, 1]
    bars = trace["error_x"]
    assert list(bars["arrayminus"]) == [0.25, 1.5] and list(bars["array"]) == [0.125, 1.5]
    assert [(s["x0"], s["x1"]) for s in fig["layout"]["shapes"]] == [(0, 0)]
    assert notes(fig)[0] == "−0.250 [−0.500, −0.125] n = 60 items, 3 undefined"
    low, high = fig["layout"]["xaxis"]["range"]
    assert low < -1.0 and high > 2.0


def test_a_difference_that_does_not_exist_says_why() -> None:
    fig = FIGURES["paired_differences"](differences(gap())).to_dict()
    assert not drawn(fig) and notes(fig) == ["n/a"]
    assert "n/a (no score &lt;b&gt;x&lt;/b&gt; &amp; &#36;y&#36; &#37;{z})" in head(fig)


@pytest.mark.parametrize("name", GROUPED)
def test_each_point_by_group_has_its_bounds_and_its_n(name: str) -> None:
    table = points(
        {}, {"at": "epoch 1", "n": 240}, {"at": "epoch 1", "group": "other", "n": 30, "point": 0.6}
    )
    fig = FIGURES[name](table).to_dict()
    first, second = drawn(fig)
    assert list(first["x"]) == [0.5, 0.5] and list(second["x"]) == [0.6]
    bars = first["error_x"]
    assert list(bars["arrayminus"]) == [0.25, 0.25] and list(bars["array"]) == [0.125, 0.125]
    assert first["marker"]["symbol"] != second["marker"]["symbol"]
    counts = sorted(note.split(", ")[-1] for note in notes(fig))
    assert counts == ["n = 240", "n = 30", "n = 300"]
    assert len({*first["y"], *second["y"]}) == 3, "two groups at one place stand side by side"
    axis = fig["layout"]["yaxis"]
    assert axis["ticktext"] == ["base", "epoch 1"] and axis["tickvals"] == pytest.approx([0, 2.3])


@pytest.mark.parametrize("name", GROUPED)
def test_a_group_without_a_value_is_named_with_its_reason_and_never_drawn_at_0(name: str) -> None:
    fig = FIGURES[name](points({}, gap(at="epoch 2"))).to_dict()
    assert [len(t["x"]) for t in drawn(fig)] == [1]
    assert "n/a" in notes(fig)
    told = head(fig)
    assert "no score &lt;b&gt;x&lt;/b&gt;" in told and "epoch 2" in told


@pytest.mark.parametrize("name", GROUPED)
def test_single_values_are_shown_up_to_20_and_not_above(name: str) -> None:
    few, many = (points({"n": n, "values": [0.5] * n}) for n in (20, 21))
    raw = [
        len(t["x"]) for t in FIGURES[name](few).to_dict()["data"] if t.get("hoverinfo") == "skip"
    ]
    assert raw == [20]
    assert not [t for t in FIGURES[name](many).to_dict()["data"] if t.get("hoverinfo") == "skip"]


def test_ratios_have_a_logarithmic_axis() -> None:
    fig = FIGURES["process_result"](
        points({"point": 2.0, "lo": 1.0, "hi": 100.0, "n_zero": 4})
    ).to_dict()
    assert fig["layout"]["xaxis"]["type"] == "log" and "range" not in fig["layout"]["xaxis"]
    assert "m base: 4" in head(fig)


def test_judge_scores_show_the_whole_scale_where_single_scores_are_drawn() -> None:
    whole = FIGURES["judge_by_epoch"](points({"n": 8, "values": [-9.0] * 8})).to_dict()
    assert whole["layout"]["xaxis"]["range"][0] < -10 and whole["layout"]["xaxis"]["range"][1] > 10
    part = FIGURES["judge_by_epoch"](points({"point": 1.2, "lo": 0.9, "hi": 1.5})).to_dict()
    assert part["layout"]["xaxis"]["range"][0] < 0 < 1.5 < part["layout"]["xaxis"]["range"][1] < 10
    assert part["layout"]["shapes"][0]["x0"] == 0


def test_the_sweep_draws_each_threshold_and_marks_the_chosen_one() -> None:
    rows = [
        {"threshold": t, "chosen": 0.25, "point": 1 - t, "lo": 0.0, "hi": 1.0}
        for t in (1.0, 0.0, 0.5)
    ]
    fig = FIGURES["threshold_sweep"](points(*rows)).to_dict()
    (trace,) = drawn(fig)
    assert list(trace["x"]) == [0.0, 0.5, 1.0] and list(trace["y"]) == [1.0, 0.5, 0.0]
    assert (fig["layout"]["shapes"][0]["x0"], fig["layout"]["shapes"][0]["line"]["dash"]) == (
        0.25,
        "dash",
    )
    assert trace["name"] == "m (n = 300)"


def test_kappas_fill_one_triangle_with_their_n() -> None:
    row = {
        "one": "a",
        "other": "b",
        "point": -0.25,
        "lo": -0.5,
        "hi": 0.1,
        "n": 30,
        "reason": None,
        "mcnemar": "p = 0.5",
    }
    table = pd.DataFrame(
        [
            row,
            {
                **row,
                "other": NASTY,
                "point": None,
                "n": 0,
                "reason": "no response was scored by both",
            },
        ]
    )
    fig = FIGURES["classifier_agreement"](table).to_dict()
    (cells,) = fig["data"]
    assert list(cells["text"]) == ["−0.25<br>n = 30", "n/a<br>n = 0"]
    assert list(cells["marker"]["color"]) == [diverging_colour(-0.25), MISSING_COLOUR]
    assert "p = 0.5" in cells["hovertext"][0] and "<b>x</b>" not in head(fig)


@pytest.mark.parametrize(
    "name", [*GROUPED, "paired_differences", "threshold_sweep", "classifier_agreement"]
)
def test_an_empty_table_says_so(name: str) -> None:
    fig = FIGURES[name](pd.DataFrame()).to_dict()
    assert not fig["data"] and "Nothing to draw" in notes(fig)[0]
