"""What holds for every builder: a title with a unit, a white card, bars that end at lo and hi, n,
and raw points."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cotlab.analysis.tables.catalogue import FIGURE_TABLES
from cotlab.core.registry import FIGURES
from cotlab.figures.style import BACKGROUND_COLOUR
from tests.support.figure_tables import figure_table

ROOT = Path(__file__).parents[2]
POINT, LO, HI = 0.4375, 0.25, 0.875
"""Exact in binary, and not in the middle: bars that are drawn symmetrically, or from other numbers,
are seen."""
VALUES: dict[str, Any] = {
    "metric": "answer_change",
    "mode": "remove",
    "step": 0,
    "point": POINT,
    "lo": LO,
    "hi": HI,
    "n": 7,
    "n_undefined": 0,
    "reason": None,
    "method": "Wilson",
    "confidence": 0.95,
    "draws": 7,
    "text": "a",
    "ceiling": 0.9,
    "keep": 1.0,
    "source": "filler",
    "span": "0",
    "part": "C",
    "rule": "brittle",
    "one": "C",
    "other": "R",
    "value": POINT,
    "mean": 0.5,
    "peak": 0.9,
    "flag": "",
    "link": "reverse",
    "verifier": "symbolic",
    "perturbation": "numeric",
    "item_id": "i-1",
    "n_steps": 3,
    "count": 7,
    "donor": "d",
    "sample": 0,
    "organism": "r50",
    "group": "dose",
    "dose": 0.5,
    "control": "other",
    "at": "epoch 1",
    "label": "answer_change",
    "unit": "no unit",
    "threshold": 0.5,
    "chosen": 0.5,
    "measure": "steps",
    "n_zero": 0,
    "feature": "C",
    "share": 0.5,
    "band": 0.1,
    "psi": 0.3,
    "psi_hi": 0.1,
    "psi_limit": 0.2,
    "ks": 0.3,
    "ks_hi": 0.1,
    "ks_limit": 0.2,
    "alert": True,
    "n_reference": 40,
    "n_current": 30,
    "predicted": 0.5,
    "place": 0,
    "left": 0.4,
    "right": 0.5,
    "calibrator": "platt",
    "kind": "curve",
    "r_raw": 0.5,
    "r_cal": 0.5,
}
OWN: dict[str, dict[str, Any]] = {
    "layer_profile": {"metric": "drop_cot"},
    "span_heatmap": {"metric": "cmi"},
    "mediation_indices": {"metric": "cmi"},
    "robustness_by_perturbation": {"metric": "robustness"},
    "answer_changes_by_perturbation": {"metric": "perturbed_answer_change"},
    "perturbation_cells": {"metric": "divergence"},
    "item_cells": {"metric": "divergence"},
    "drops_by_donor": {"part": "cot"},
    "validation_doses": {"lowest": 0, "highest": 1},
    "answer_change_scale": {"group": "run"},
    "calibrator_comparison": {"metric": "brier"},
    "feature_distributions": {"sample": "reference"},
}
UNIT = re.compile(
    r"\([^)]*(?:\d to \+?\d|0 or 1|no unit|nats|cosine|share|1 − |mean, steps|ratio|%)|number of"
)
"""A title names its range, its unit, or says that there is none."""


def table(name: str, **more: Any) -> pd.DataFrame:
    own = VALUES | OWN.get(name, {}) | more
    return pd.DataFrame(
        [
            {
                column: own.get(column)
                for column in {
                    *FIGURES[name].columns,
                    "method",
                    "confidence",
                    *more,
                    *OWN.get(name, {}),
                }
            }
        ]
    )


def has(name: str, *columns: str) -> bool:
    return set(columns) <= set(FIGURES[name].columns)


@pytest.mark.parametrize("name", FIGURES)
def test_a_title_has_a_unit_and_the_card_is_white(name: str) -> None:
    fig = FIGURES[name](table(name))
    assert UNIT.search(fig.layout.meta["title"]), fig.layout.meta["title"]
    assert (
        fig.layout.template.layout.paper_bgcolor
        == fig.layout.template.layout.plot_bgcolor
        == BACKGROUND_COLOUR
        == "#ffffff"
    )
    assert FIGURES[name].caption.endswith(".")


@pytest.mark.parametrize("name", [n for n in FIGURES if has(n, "point", "lo", "hi")])
def test_bars_end_at_the_bounds_of_the_table_and_n_stands_on_each_point(name: str) -> None:
    fig = FIGURES[name](table(name, values=[POINT] * 7))
    ends = [
        (value - bars.arrayminus[i], value + bars.array[i])
        for trace in fig.data
        if trace.type == "scatter"
        for bars, along in ((trace.error_y, trace.y), (trace.error_x, trace.x))
        if bars.array is not None
        for i, value in enumerate(along)
    ]
    told = [text for trace in fig.data for text in trace.hovertext or ()]
    drawn = " ".join(
        map(str, [*told, *(n.text for n in fig.layout.annotations), *(t.text for t in fig.data)])
    )
    assert ends == [(LO, HI)] or (
        "0.250, 0.875" in drawn and not ends
    )  # cells say their bounds in words
    assert re.search(r"(?:n = |draws: )7\b", drawn)


@pytest.mark.parametrize(
    "name",
    [
        "ccs_by_position",
        "modes_by_metric",
        "rrr_by_mode",
        "cmi_density",
        "layer_profile",
        "mediation_indices",
        "reliability_parts",
        "reliability_diagram",
    ],
)
@pytest.mark.parametrize(("n", "drawn"), [(20, True), (21, False)])
def test_raw_points_are_drawn_up_to_twenty(name: str, n: int, drawn: bool) -> None:
    values = [0.001 * i for i in range(n)]
    fig = FIGURES[name](pd.concat([table(name, values=values).assign(n=n)]))
    lists = [list(axis) for trace in fig.data for axis in (trace.x, trace.y) if axis is not None]
    assert (values in lists) is drawn


def test_every_figure_has_a_table_of_a_run() -> None:
    assert {FIGURE_TABLES[name].figure for name in FIGURE_TABLES} == set(FIGURES)


def test_pages_draw_nothing_that_is_not_in_the_registry() -> None:
    """A page shows a builder of the registry by its name; no file of it builds a figure or names
    one that is unknown."""
    named = re.compile(
        r"""\bshow(?:_figure)?\((?:\s*[\w.\[\]]+,)?\s*["'](\w+)["']|FIGURES\[["'](\w+)["']\]"""
    )
    built = (
        r"\b(?:plotly\.|graph_objects|go\.Figure|px\.\w+\(|altair|vega_lite|line_chart"
        r"|bar_chart|pyplot)"
    )
    seen = set()
    for path in [*(ROOT / "cotlab" / "ui").rglob("*.py"), *(ROOT / "pages").glob("*.py")]:
        text = path.read_text("utf-8")
        assert not re.search(built, text), path
        seen |= {one or other for one, other in named.findall(text)}
    assert len(seen) > 15 and seen <= set(FIGURES)


JOINED = {
    "entropy_by_step",  # one series, each step at its own place
    "verification_links",  # the lines are the links
    "threshold_sweep",
    "threshold_volumes",
    "reliability_diagram",
    "calibrator_curves",
    "validation_doses",
    "feature_distributions",
    "drift_over_time",
    "ccs_ranking",  # from 0 to the point of a row
    "cmi_density",
    "drop_density",
    "item_density",
}
"""Figures with lines between points: curves over a number, or lines that are data themselves."""


def test_only_curves_join_their_points() -> None:
    joined = {
        name
        for name in FIGURES
        for trace in FIGURES[name](figure_table(name)).data
        if trace.type == "scatter" and "lines" in (trace.mode or "") and len(trace.x or ()) > 1
    }
    assert joined == JOINED
