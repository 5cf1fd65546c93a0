"""The figures of robustness draw what their tables say: cells with value and n, gaps with reasons,
bounds as bars."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from cotlab.core.registry import FIGURES
from cotlab.figures.cells import format_cell_number
from cotlab.figures.robustness import (
    RATE_METRICS,
    colour_scale_maximum,
    format_measure,
    order_perturbations,
    perturbation_label,
)
from cotlab.figures.style import MISSING_COLOUR, text_colour_on, viridis_colour
from tests.support.figure_texts import head

NASTY = "<b>x</b> & $y$ %{z}"


def cells(*changed: dict[str, Any]) -> pd.DataFrame:
    row = {
        "metric": "divergence",
        "perturbation": "numeric",
        "step": 0,
        "point": 0.2,
        "lo": 0.1,
        "hi": 0.3,
        "n": 12,
        "n_undefined": 1,
        "reason": None,
        "method": "bootstrap",
        "item_id": "i-0",
        "value": 0.2,
    }
    return pd.DataFrame([{**row, **more} for more in changed or ({},)])


def gap(**more: Any) -> dict[str, Any]:
    return {
        "point": None,
        "lo": None,
        "hi": None,
        "n": 0,
        "value": None,
        "reason": f"no rule {NASTY}",
        **more,
    }


def test_perturbations_that_keep_the_meaning_come_first_and_groups_last() -> None:
    assert order_perturbations(("none", "all", "mine", "numeric", "order", "paraphrase")) == [
        "paraphrase",
        "order",
        "numeric",
        "mine",
        "all",
        "none",
    ]
    assert [perturbation_label(name) for name in ("unit_swap", "all", "none")] == [
        "unit swap",
        "all chosen",
        "step as it is",
    ]


def test_the_scale_ends_where_no_value_exceeds_it() -> None:
    tops = [
        colour_scale_maximum("divergence", values)
        for values in ([0.03], [0.3, None], [1.7], [None], [])
    ]
    assert tops == [0.05, 0.5, 2, 0.05, 0.05]
    assert colour_scale_maximum(RATE_METRICS[0], [0.1]) == 1


def test_a_value_is_short_and_an_answer_is_a_word() -> None:
    assert [format_measure(RATE_METRICS[0], v) for v in (0.0, 1.0, 0.5)] == [
        "same",
        "changed",
        "0.500",
    ]
    assert [format_measure("divergence", v) for v in (0.0, 1.0, 4e-5)] == ["0", "1.00", "< 0.001"]
    assert [format_cell_number(v) for v in (None, 4e-5, -4e-5, 0.25)] == [
        "n/a",
        "&lt; 0.001",
        "&gt; −0.001",
        "0.250",
    ]


def test_cells_hold_mean_and_n_and_tell_a_click_where_they_are() -> None:
    table = cells(
        {"step": 2}, {"perturbation": "order", "point": 0.4}, gap(perturbation="none", step=2)
    )
    fig = FIGURES["perturbation_cells"](table).to_dict()
    (bars,) = fig["data"]
    assert bars["type"] == "bar"
    assert fig["layout"]["xaxis"]["ticktext"] == ["1", "2", "3"]
    assert fig["layout"]["yaxis"]["ticktext"] == ["order", "numeric", "step as it is"]
    assert list(zip(bars["x"], [round(y + 0.47) for y in bars["base"]], strict=True)) == [
        (2, 1),
        (0, 0),
        (2, 2),
    ]
    assert bars["text"] == ["0.200<br>n = 12", "0.400<br>n = 12", "n/a<br>n = 0"]
    assert bars["marker"]["color"] == [
        viridis_colour(0.2, 0, 0.5),
        viridis_colour(0.4, 0, 0.5),
        MISSING_COLOUR,
    ]
    assert list(bars["insidetextfont"]["color"]) == [
        text_colour_on(fill) for fill in bars["marker"]["color"]
    ]
    assert [list(of) for of in bars["customdata"]] == [[2, "numeric"], [0, "order"], [2, "none"]]
    assert (
        "0.200 [0.100, 0.300]" in bars["hovertext"][0]
        and "n = 12 items, 1 undefined" in bars["hovertext"][0]
    )
    assert (
        "numeric, step 3" in bars["hovertext"][0]
        and "n/a: no rule &lt;b&gt;x" in bars["hovertext"][2]
    )
    assert "bright is 0.5" in head(
        fig
    ) and "Meaning kept: order; meaning changed: numeric." in head(fig)
    assert "): step as it is" in head(fig) and "<b>x" not in head(fig)


def test_a_chosen_cell_is_framed() -> None:
    fig = FIGURES["perturbation_cells"](
        cells({"chosen": False}, {"step": 3, "chosen": True})
    ).to_dict()
    (frame,) = fig["layout"]["shapes"]
    assert (frame["x0"], frame["x1"], frame["y0"], frame["y1"]) == pytest.approx(
        (2.52, 3.48, -0.47, 0.47)
    )
    assert "shapes" not in FIGURES["perturbation_cells"](cells()).to_dict()["layout"]


def test_many_positions_turn_the_text_and_then_leave_it_to_the_hover() -> None:
    turned = FIGURES["perturbation_cells"](cells(*({"step": i} for i in range(10)))).to_dict()
    assert turned["data"][0]["textangle"] == -90 and turned["data"][0]["text"][0] == "0.200, n = 12"
    dense = FIGURES["perturbation_cells"](cells(*({"step": i} for i in range(31)))).to_dict()
    assert set(dense["data"][0]["text"]) == {""} and dense["layout"]["xaxis"]["ticktext"][:2] == [
        "1",
        "3",
    ]


def test_items_stand_in_the_order_of_the_table_with_what_a_click_opens() -> None:
    table = cells(
        {"item_id": NASTY, "step": 1}, {"item_id": "a", "value": 0.00001}, gap(item_id="a", step=1)
    )
    fig = FIGURES["item_cells"](table.assign(top=0.25)).to_dict()
    (bars,) = fig["data"]
    assert fig["layout"]["yaxis"]["ticktext"] == [
        "&lt;b&gt;x&lt;/b&gt; &amp; &#36;y&#36; &#37;{z}",
        "a",
    ]
    assert bars["text"] == ["0.200", "&lt; 0.001", "n/a"]
    assert [list(of) for of in bars["customdata"]] == [[1, NASTY], [0, "a"], [1, "a"]]
    assert bars["marker"]["color"][0] == viridis_colour(0.2, 0, 0.25) and "bright is 0.25" in head(
        fig
    )
    assert "2 items." in head(fig) and "n/a (no rule" in head(fig)


def test_answers_of_items_are_words() -> None:
    rows = (
        {"metric": RATE_METRICS[0], "value": value, "step": step}
        for step, value in enumerate((0.0, 1.0))
    )
    fig = FIGURES["item_cells"](cells(*rows)).to_dict()
    assert fig["data"][0]["text"] == ["same", "changed"]
    assert head(fig).startswith(
        "Answer changes by item and position (0 or 1)"
    ) and "bright is 100%." in head(fig)


def test_robustness_has_its_bounds_and_a_row_without_values_says_so() -> None:
    table = cells(
        {"metric": "robustness", "point": 0.8, "lo": 0.7, "hi": 0.95},
        {"metric": "divergence", "perturbation": "none", "point": 0.0, "lo": None, "hi": None},
        gap(metric="robustness", perturbation="negation"),
    )
    fig = FIGURES["robustness_by_perturbation"](table).to_dict()
    drawn = [t for t in fig["data"] if t.get("hoverinfo") == "text" and len(t["x"])]
    closed, still_open = drawn
    assert closed["x"] == [0.8] and closed["error_x"]["arrayminus"] == pytest.approx([0.1])
    assert closed["error_x"]["array"] == pytest.approx([0.15])
    assert still_open["marker"]["symbol"].endswith("-open")
    assert fig["layout"]["yaxis"]["ticktext"] == ["numeric", "negation", "step as it is"]
    (gap_note,) = [note for note in fig["layout"]["annotations"] if note["text"] == "n/a"]
    assert (gap_note["x"], gap_note["xref"], gap_note["xanchor"]) == (1, "paper", "left")
    assert gap_note["y"] == 1 and "n/a (no rule" in head(fig)


@pytest.mark.parametrize("name", ["answer_changes_by_perturbation", "robustness_by_perturbation"])
def test_perturbations_that_keep_and_that_change_the_meaning_are_never_one_mean(name: str) -> None:
    metric = RATE_METRICS[0] if name.startswith("answer") else "robustness"
    names = ("order", "numeric", "all")
    table = cells(*({"metric": metric, "perturbation": p} for p in names))
    fig = FIGURES[name](table).to_dict()
    assert fig["layout"]["yaxis"]["ticktext"] == ["order", "numeric"]
    assert [t["name"] for t in fig["data"] if t.get("showlegend")] == [
        "meaning kept",
        "meaning changed",
    ]
    one_kind = FIGURES[name](table[table["perturbation"] != "order"]).to_dict()
    assert one_kind["layout"]["yaxis"]["ticktext"] == ["numeric", "all chosen"]


@pytest.mark.parametrize("name", ["perturbation_cells", "item_cells", "robustness_by_perturbation"])
def test_no_figure_is_a_bitmap_and_none_changes_its_table(name: str) -> None:
    table = cells({"metric": "divergence"}, gap(metric="divergence", step=1))
    before = table.copy()
    assert not {t["type"] for t in FIGURES[name](table).to_dict()["data"]} - {"scatter", "bar"}
    pd.testing.assert_frame_equal(table, before)
