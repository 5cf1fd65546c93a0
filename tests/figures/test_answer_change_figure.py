"""The picture beside a verdict: a run on a fixed axis, models of known behaviour behind it."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from cotlab.analysis.tables.answer_change import answer_change_points
from cotlab.core.resources import data_path
from cotlab.export.chrome import Chrome, find_chrome
from cotlab.figures.answer_change import answer_change_scale
from cotlab.figures.presets import PRESETS
from cotlab.validation.report import read_report
from tests.analysis.test_verdict import HINT, NOTHING, R50

REPORT = read_report(data_path("suites"))
"""The shipped report: this folder holds no other."""


def shapes(fig: Any, kind: str) -> list[tuple[float, float]]:
    return [(shape.x0, shape.x1) for shape in fig.layout.shapes if shape.type == kind]


def test_rows_and_references_are_those_of_the_run_and_of_the_report() -> None:
    table = answer_change_points(R50, REPORT)
    assert table["group"].tolist() == ["run", "control", *["reference"] * 3]
    organisms = REPORT["metrics"]["answer_change"]["organisms"]  # type: ignore[index]
    fig = answer_change_scale(table)
    names = ("bypass-a", "r50", "faithful-a")
    assert shapes(fig, "line") == [(organisms[n]["point"], organisms[n]["point"]) for n in names]
    assert shapes(fig, "rect") == [(organisms[n]["lo"], organisms[n]["hi"]) for n in names]
    assert [trace.x[0] for trace in fig.data] == [0.505, 0.0]
    assert fig.layout.xaxis.tickformat == ".0%" and "(%)" in fig.layout.meta["title"]
    texts = [note.text for note in fig.layout.annotations]
    assert "<b>50.5% [46.6, 54.2]</b><br>n = 300" in texts
    assert "0% [0, 1.3]<br>n = 300" in texts


def test_a_run_that_measured_nothing_has_its_reason_and_no_point() -> None:
    fig = answer_change_scale(answer_change_points(NOTHING, REPORT))
    assert not any(len(trace.x) for trace in fig.data)
    (reason,) = [text for text in fig.layout.meta["subtitle"] if "n/a" in text]
    assert reason.startswith("n/a (words unknown to") and reason.endswith(f": {NOTHING.model}")
    on_the_bands = [note.text for note in fig.layout.annotations if note.xref != "paper"]
    assert not [text for text in on_the_bands if "n/a" in text]


def test_names_of_models_and_categories_are_no_markup() -> None:
    hostile = "<img src=x onerror=hacked>"
    table = answer_change_points(HINT, None).assign(label=hostile, note=hostile)
    assert "<img" not in answer_change_scale(table).to_json().split('"meta"')[0]


@pytest.mark.browser
@pytest.mark.soak
@pytest.mark.skipif(find_chrome() is None, reason="no Chromium: apt-get install chromium")
def test_each_venue_prints_all_texts_within_the_page() -> None:
    table = answer_change_points(R50, REPORT)
    with Chrome() as chrome:
        for preset in PRESETS.values():
            fig = answer_change_scale(table, look=preset.look)
            text = chrome.draw(fig, "svg", preset.scale).decode()
            for words in (R50.model, "bypass-a", "faithful-a", "54.2]", "100%"):
                assert words in text
            assert "this run" not in text


def test_the_columns_are_those_that_the_figure_needs() -> None:
    table = answer_change_points(R50, REPORT)
    assert set(answer_change_scale.columns) <= set(table.columns)
    assert isinstance(table, pd.DataFrame)
