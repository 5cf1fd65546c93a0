"""The figures of drift draw the table's numbers: nulls as bars, alerts as diamonds, steps that end
at 1."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from cotlab.figures.drift import (
    band_half_width,
    drift_over_time,
    drift_scores,
    feature_distributions,
)

COLUMNS = drift_scores.columns


def score(**more: Any) -> dict[str, Any]:
    return (
        dict.fromkeys(COLUMNS)
        | {
            "feature": "V",
            "psi": 0.5,
            "psi_hi": 0.125,
            "psi_limit": 0.2,
            "psi_p": 0.01,
            "ks": 0.25,
            "ks_hi": 0.15,
            "ks_limit": 0.2,
            "ks_p": 0.02,
            "alert": True,
            "n_reference": 40,
            "n_current": 30,
        }
        | more
    )


def test_markers_stand_at_the_values_and_bars_end_at_the_null() -> None:
    calm = score(feature="C", psi=0.0625, ks=0.05, alert=False)
    gone = score(
        feature="D", psi=None, ks=None, alert=False, reason="all values are 1: <b>nothing</b>"
    )
    fig = drift_scores(pd.DataFrame([score(), calm, gone]))
    bars = [list(trace.x) for trace in fig.data if trace.type == "bar"]
    assert bars == [[0.125, 0.125], [0.15, 0.15]]
    marks = {(trace.marker.symbol, tuple(trace.x)) for trace in fig.data if trace.type == "scatter"}
    assert marks == {
        ("diamond", (0.5,)),
        ("circle", (0.0625,)),
        ("diamond", (0.25,)),
        ("circle", (0.05,)),
    }
    assert [shape.x0 for shape in fig.layout.shapes] == [0.2, 0.2]
    told = " ".join(fig.layout.meta["subtitle"])
    assert "n/a (all values are 1: &lt;b&gt;nothing&lt;/b&gt;): D" in told
    assert sum(note.text == "n = 40 and 30" for note in fig.layout.annotations) == 2


def test_a_value_beyond_the_axis_stands_at_its_end_with_its_number() -> None:
    fig = drift_scores(pd.DataFrame([score(psi=13.8)]))
    (mark,) = [
        trace for trace in fig.data if trace.type == "scatter" and trace.xaxis in (None, "x")
    ]
    assert list(mark.x) == [1.0] and any(
        note.text == "13.8 →" and note.x == 1.0 for note in fig.layout.annotations
    )


@pytest.mark.parametrize(("n", "points"), [(20, 1), (21, 0)])
def test_steps_rise_at_each_value_and_few_values_are_points(n: int, points: int) -> None:
    rows = [
        {
            "feature": "V",
            "sample": side,
            "value": value,
            "share": share,
            "band": band_half_width(n),
            "n": n,
            "reason": None,
        }
        for side, values in (("reference", (0.25, 0.5)), ("current", (0.25,)))
        for value, share in zip(values, (0.75, 1.0) if len(values) == 2 else (1.0,), strict=True)
    ]
    fig = feature_distributions(pd.DataFrame(rows))
    line = next(trace for trace in fig.data if trace.mode == "lines" and trace.name == "reference")
    assert list(line.x)[1:-1] == [0.25, 0.25, 0.5, 0.5] and list(line.y) == [0, 0, 0.75, 0.75, 1, 1]
    assert sum(trace.mode == "markers" for trace in fig.data) == 2 * points
    assert any(f"n = {n} and {n}" in note.text for note in fig.layout.annotations)


def test_the_band_is_that_of_massart() -> None:
    """sqrt(ln(40) / 200) = 0.13581 for 100 values."""
    assert band_half_width(100) == pytest.approx(0.135810, abs=1e-6) and band_half_width(0) is None


def test_checks_follow_each_other_and_alerts_are_filled() -> None:
    rows = [
        score(place=0, at="day 0 <b>", psi=0.25, ks=0.1, alert=False, n_current=30),
        score(place=1, at="day 1", psi=None, ks=None, alert=False, reason="too few <values>"),
        score(place=2, at="day 2", psi=0.75, ks=0.5, psi_hi=0.25, n_current=31),
        score(place=3, at="day 3", psi=3.5, ks=0.6, n_current=32),
        score(
            place=2, at="day 2", feature="C", psi=0.1, ks=0.1, psi_hi=0.5, alert=False, n_current=33
        ),
    ]
    fig = drift_over_time(pd.DataFrame(rows))
    above = [trace for trace in fig.data if trace.yaxis in (None, "y")]
    bars, *above = sorted(above, key=lambda trace: trace.type)
    marks = {trace.name: trace for trace in above if trace.mode == "markers"}
    assert list(marks["V"].x) == [0, 2, 3] and list(marks["V"].y) == [0.25, 0.75, 1.0]
    assert [str(one).endswith("-open") for one in marks["V"].marker.symbol] == [True, False, False]
    line = next(trace for trace in above if trace.mode == "lines" and trace.legendgroup == "V")
    assert list(line.y) == [0.25, None, 0.75, 1.0]  # no line over what could not be compared
    assert dict(zip(bars.x, bars.y, strict=True)) == {0: 0.125, 2: 0.5, 3: 0.125}
    assert [(shape.x0, shape.y0) for shape in fig.layout.shapes if shape.yref == "y"] == [
        (-0.5, 0.2),
        (1.5, 0.2),
        (2.5, 0.2),
    ]
    assert any(note.text == "↑ 3.50" for note in fig.layout.annotations)
    ticks = fig.layout.xaxis2.ticktext
    assert ticks[0] == "day 0 &lt;b&gt;<br>n = 30" and ticks[2].endswith("n = 33")
    assert "too few &lt;values&gt;" in " ".join(fig.layout.meta["subtitle"])
