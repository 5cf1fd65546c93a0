"""The histogram of chain lengths."""

import pandas as pd
import pytest

from cotlab.core.registry import FIGURES


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
    assert "n = 1,254 chains" in fig["layout"]["title"]["text"]
    assert "number of chains" in fig["layout"]["title"]["text"]


@pytest.mark.parametrize("longest", [1, 7, 40, 900])
def test_ticks_are_whole(longest: int) -> None:
    table = pd.DataFrame({"n_steps": range(longest + 1), "count": [longest] * (longest + 1)})
    layout = FIGURES["chain_lengths"](table).to_dict()["layout"]
    for axis in (layout["xaxis"], layout["yaxis"]):
        assert isinstance(axis["dtick"], int) and longest / axis["dtick"] <= 15
    assert "0 steps" in layout["title"]["text"]


def test_many_bars_have_their_counts_on_hover_alone() -> None:
    (bars,) = FIGURES["chain_lengths"](
        pd.DataFrame({"n_steps": range(1, 61), "count": [5] * 60})
    ).to_dict()["data"]
    assert "text" not in bars
    assert bars["hovertext"][59] == "steps: 60<br>chains: 5"


def test_a_missing_length_is_said() -> None:
    fig = FIGURES["chain_lengths"](pd.DataFrame({"n_steps": [3, None], "count": [2, 1]})).to_dict()
    assert fig["data"][0]["x"] == [3]
    assert "n/a: 1 rows" in fig["layout"]["title"]["text"]
