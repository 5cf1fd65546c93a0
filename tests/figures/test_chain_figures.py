"""Figures of chains: token entropy with its flags and gaps, and the histogram of lengths."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from cotlab.core.registry import FIGURES
from tests.support.figure_texts import head

COLUMNS = list(FIGURES["entropy_by_step"].columns)


def drawn(*rows: tuple[Any, ...], **more: str) -> dict[str, Any]:
    found: dict[str, Any] = FIGURES["entropy_by_step"](
        pd.DataFrame(list(rows), columns=COLUMNS), **more
    ).to_dict()
    return found


def traces(fig: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {trace["name"]: trace for trace in fig["data"] if trace.get("name")}


def test_flags_have_marks_of_their_own() -> None:
    fig = drawn((0, 0.2, 0.9, "", None), (1, 0.8, 1.0, "jump", None), (2, 1.9, 2.5, "rise", None))
    found = traces(fig)
    assert {name: (list(t["x"]), list(t["y"])) for name, t in found.items()} == {
        "mean": ([1], [0.2]),
        "mean, a jump": ([2], [0.8]),
        "mean, a jump after a rise": ([3], [1.9]),
        "largest token": ([1, 2, 3], [0.9, 1.0, 2.5]),
    }
    marks = [(t["marker"]["symbol"], t["marker"]["color"]) for t in found.values()]
    assert len(set(marks)) == 4 and len({symbol for symbol, _ in marks}) == 4
    assert "jump after a rise" in found["mean, a jump after a rise"]["hovertext"][0]
    assert fig["layout"]["yaxis"]["title"]["text"] == "Entropy (nats)" and "nats" in head(fig)
    low, high = fig["layout"]["yaxis"]["range"]
    assert low < 0 < 2.5 < high


@pytest.mark.parametrize("none", [None, math.nan])
def test_a_step_without_entropy_is_a_gap_with_its_reason(none: float | None) -> None:
    fig = drawn(
        (0, 0.5, 0.6, "", None),
        (1, none, none, "", "a <token> has no list"),
        (2, 0.4, 0.4, "", None),
        note="partial",
    )
    line = next(trace for trace in fig["data"] if trace["mode"] == "lines")
    assert [y is None for y in line["y"]] == [False, True, False]
    assert [(note["x"], note["text"]) for note in fig["layout"]["annotations"]] == [(2, "n/a")]
    told = head(fig)
    assert (
        "n = 2 of 3 steps" in told
        and "n/a (a &lt;token&gt; has no list): step 2" in told
        and "partial" in told
    )
    assert "a &lt;token&gt; has no list" in fig["layout"]["annotations"][0]["hovertext"]


def test_a_long_chain_has_few_ticks() -> None:
    fig = drawn(*((step, 0.1, 0.1, "", None) for step in range(60)))
    assert len(fig["layout"]["xaxis"]["tickvals"]) <= 14


def test_zero_everywhere_is_drawn_at_zero() -> None:
    fig = drawn((0, 0.0, 0.0, "", None), (1, 0.0, 0.0, "", None))
    assert list(traces(fig)["mean"]["y"]) == [0, 0] and fig["layout"]["yaxis"]["range"][1] > 0


def test_bars_carry_their_counts() -> None:
    fig = FIGURES["chain_lengths"](
        pd.DataFrame({"n_steps": [4, 2, 3], "count": [1200, 10, 44]})
    ).to_dict()
    (bars,) = fig["data"]
    assert (bars["x"], bars["y"], bars["text"]) == (
        [2, 3, 4],
        [10, 44, 1200],
        ["10", "44", "1,200"],
    )
    assert "n = 1,254 chains" in head(fig)
    assert "number of chains" in head(fig)


@pytest.mark.parametrize("longest", [1, 7, 40, 900])
def test_ticks_are_whole(longest: int) -> None:
    table = pd.DataFrame({"n_steps": range(longest + 1), "count": [longest] * (longest + 1)})
    fig = FIGURES["chain_lengths"](table).to_dict()
    layout = fig["layout"]
    for axis in (layout["xaxis"], layout["yaxis"]):
        assert isinstance(axis["dtick"], int) and longest / axis["dtick"] <= 15
    assert "0 steps" in head(fig)


def test_many_bars_have_their_counts_on_hover_alone() -> None:
    (bars,) = FIGURES["chain_lengths"](
        pd.DataFrame({"n_steps": range(1, 61), "count": [5] * 60})
    ).to_dict()["data"]
    assert "text" not in bars
    assert bars["hovertext"][59] == "steps: 60<br>chains: 5"


def test_a_missing_length_is_said() -> None:
    fig = FIGURES["chain_lengths"](pd.DataFrame({"n_steps": [3, None], "count": [2, 1]})).to_dict()
    assert fig["data"][0]["x"] == [3]
    assert "n/a: 1 rows" in head(fig)
