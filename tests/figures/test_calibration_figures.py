"""What the figures of calibration draw, from hand-written tables."""

from __future__ import annotations

from typing import Any

import pandas as pd

from cotlab.core.registry import FIGURES


def bins(**more: Any) -> pd.DataFrame:
    """Two bins; 3 of 4 and 1 of 4 with Wilson's intervals (statsmodels 0.15: proportion_confint(3,
    4, method="wilson"))."""
    rows = [
        {
            "predicted": 0.8,
            "point": 0.75,
            "lo": 0.30064,
            "hi": 0.95441,
            "n": 4,
            "values": [1, 1, 1, 0],
            "scores": [0.7, 0.8, 0.9, 0.8],
        },
        {
            "predicted": 0.2,
            "point": 0.25,
            "lo": 0.04559,
            "hi": 0.69936,
            "n": 4,
            "values": [0, 0, 1, 0],
        },
    ]
    return pd.DataFrame([{**row, "method": "Wilson", **more} for row in rows])


def subtitle(fig: Any) -> str:
    return " ".join(fig.layout.meta["subtitle"])


def lines(fig: Any) -> list[tuple[float, float]]:
    return [(shape.x0, shape.x1) for shape in fig.layout.shapes if shape.x0 == shape.x1]


def test_the_diagram_has_the_diagonal_the_outcomes_and_n_of_each_bin() -> None:
    fig = FIGURES["reliability_diagram"](bins())
    assert [(s.x0, s.y0, s.x1, s.y1) for s in fig.layout.shapes] == [(0, 0, 1, 1)]
    assert [note.text for note in fig.layout.annotations] == ["n = 4", "n = 4"]
    points = next(t for t in fig.data if t.error_y.array is not None)
    assert list(points.x) == [0.2, 0.8] and list(points.y) == [
        0.25,
        0.75,
    ]  # sorted by what was predicted
    assert [list(t.x) for t in fig.data if list(t.y) == [1, 1, 1, 0]] == [[0.7, 0.8, 0.9, 0.8]]
    assert "n = 8 labelled chains in 2 bins" in subtitle(fig) and "Shade" not in subtitle(fig)


def test_thresholds_and_the_band_are_drawn_where_the_table_has_them() -> None:
    fig = FIGURES["reliability_diagram"](bins(low=0.4, high=0.9, band_lo=0.1, band_hi=0.7))
    assert lines(fig) == [(0.4, 0.4), (0.9, 0.9)]
    band = next(t for t in fig.data if t.fill == "toself")
    assert list(band.x) == [0.2, 0.8, 0.8, 0.2] and list(band.y) == [0.7, 0.7, 0.1, 0.1]
    assert "below 0.4 escalate, from 0.9 on release" in subtitle(fig) and "Shade" in subtitle(fig)


def test_many_bins_tell_their_n_on_hover_only() -> None:
    rows = [
        {"predicted": k / 20, "point": 0.5, "lo": 0.4, "hi": 0.6, "n": 30 + k} for k in range(13)
    ]
    fig = FIGURES["reliability_diagram"](pd.DataFrame(rows))
    assert not fig.layout.annotations
    assert [
        k
        for t in fig.data
        for text in t.hovertext or ()
        for k in range(13)
        if f"n = {30 + k} " in text
    ] == list(range(13))


def test_the_histogram_stacks_what_people_said_and_counts_each_bar() -> None:
    good, bad, none = "acceptable", "not acceptable", "no label"
    rows = [(good, 0.5, 3), (bad, 0.5, 2), (good, 0.9, 0), (bad, 0.9, 0), (none, 0.9, 4)]
    table = pd.DataFrame(
        [
            {
                "group": g,
                "left": a,
                "right": a + 0.1,
                "count": n,
                "score": "r_cal",
                "low": 0.3,
                "high": 0.8,
                "missing": 2,
            }
            for g, a, n in rows
        ]
    )
    fig = FIGURES["score_histogram"](table)
    assert {t.name: list(t.y) for t in fig.data} == {
        "acceptable (n = 3)": [3, 0],
        "not acceptable (n = 2)": [2, 0],
        "no label (n = 4)": [0, 4],
    }
    assert [note.text for note in fig.layout.annotations] == ["5", "4"] and lines(fig) == [
        (0.3, 0.3),
        (0.8, 0.8),
    ]
    assert fig.layout.barmode == "stack" and len({t.marker.color for t in fig.data}) == 3
    assert "2 chains have no score" in subtitle(fig) and fig.layout.xaxis.title.text == "r_cal"


def test_a_hostile_group_or_calibrator_is_escaped() -> None:
    bad = "<b>x</b>$y$"
    table = pd.DataFrame([{"group": bad, "left": 0.1, "right": 0.2, "count": 1}])
    assert all(
        "<b>" not in t.name and "$" not in t.name for t in FIGURES["score_histogram"](table).data
    )
    row = {
        "calibrator": bad,
        "metric": bad,
        "point": 0.2,
        "lo": 0.1,
        "hi": 0.3,
        "n": 9,
        "reason": None,
        "chosen": True,
    }
    fig = FIGURES["calibrator_comparison"](pd.DataFrame([row]))
    drawn = [
        *(text for t in fig.data for text in t.hovertext),
        subtitle(fig),
        *fig.layout.yaxis.ticktext,
        *(note.text for note in fig.layout.annotations),
    ]
    assert all("<b>x" not in text and "$" not in text for text in drawn)


def test_curves_carry_dashes_and_labels_lie_at_the_edges() -> None:
    rows: list[dict[str, Any]] = [
        {
            "calibrator": name,
            "kind": "curve",
            "r_raw": x,
            "r_cal": x * x,
            "chosen": name == "beta",
            "n": 30,
        }
        for name in ("platt", "beta")
        for x in (0.2, 0.5, 0.9)
    ]
    rows += [
        {"calibrator": "", "kind": "label", "r_raw": x, "r_cal": y}
        for x, y in ((0.3, 0), (0.6, 1), (0.7, 1))
    ]
    fig = FIGURES["calibrator_curves"](pd.DataFrame(rows).assign(low=0.4, high=0.8))
    drawn = {t.name: (t.line.dash, t.line.width) for t in fig.data if t.mode == "lines"}
    assert drawn == {"Platt (n = 30)": ("dash", 1.8), "Beta, in use (n = 30)": ("dot", 3.2)}
    ticks = {t.y[0]: list(t.x) for t in fig.data if t.marker.symbol == "line-ns-open"}
    assert ticks == {1.05: [0.6, 0.7], -0.05: [0.3]}
    assert [s.y0 for s in fig.layout.shapes if s.y0 == s.y1] == [0.4, 0.8]
    assert "2 acceptable (top), 1 not (bottom)" in subtitle(fig)


def test_each_number_has_a_panel_and_a_refused_calibrator_says_why() -> None:
    rows = [
        {
            "calibrator": name,
            "metric": metric,
            "point": p,
            "lo": None if p is None else p - 0.05,
            "hi": None if p is None else p + 0.05,
            "n": 40,
            "reason": why,
            "chosen": name == "platt",
            "method": "bootstrap",
        }
        for metric in ("auroc", "brier")
        for name, p, why in (("platt", 0.5, None), ("isotonic", None, "160 labels are missing"))
    ]
    fig = FIGURES["calibrator_comparison"](pd.DataFrame(rows))
    assert [(t.xaxis, list(t.x), list(t.y)) for t in fig.data] == [
        ("x", [0.5], [0]),
        ("x2", [0.5], [0]),
    ]
    heads = [note.text for note in fig.layout.annotations if note.text != "n/a"]
    assert heads == ["<b>Brier score</b>, lower is better", "<b>AUROC</b>, higher is better"]
    assert [note.y for note in fig.layout.annotations if note.text == "n/a"] == [1, 1]
    assert "n/a (160 labels are missing): Isotonic" in subtitle(
        fig
    ) and "In use: Platt" in subtitle(fig)
    assert list(fig.layout.yaxis.ticktext) == ["<b>Platt</b>", "Isotonic"]


def test_bins_that_lie_together_tell_their_n_in_one_place() -> None:
    found = (
        (0.01, 0.0, 10),
        (0.03, 0.02, 11),
        (0.05, 0.0, 12),
        (0.5, 0.5, 13),
        (0.55, 0.9, 14),
        (0.6, 0.2, 15),
    )
    rows = [
        {
            "predicted": at,
            "point": point,
            "lo": max(0.0, point - 0.2),
            "hi": min(1.0, point + 0.2),
            "n": n,
        }
        for at, point, n in found
    ]
    fig = FIGURES["reliability_diagram"](pd.DataFrame(rows))
    assert [note.text for note in fig.layout.annotations] == [
        "n = 10, 11, 12",
        "n = 13",
        "n = 14",
        "n = 15",
    ]
    first = fig.layout.annotations[0]
    assert first.x == sum((0.01, 0.03, 0.05)) / 3 and first.y == 0.22 and first.xanchor == "left"
