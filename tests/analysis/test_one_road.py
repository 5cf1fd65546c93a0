"""A number of a run is the same to the last digit on its page, in its report, in a CSV and in the
table of its figure."""

from __future__ import annotations

import io
import json
import numbers
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from cotlab.analysis.report import report_run
from cotlab.analysis.tables.catalogue import FIGURE_TABLES, make_figure_table
from cotlab.analysis.tables.declare import FigureChoice, FigureData
from cotlab.analysis.view import RunView
from cotlab.core.registry import FIGURES
from cotlab.export.tabular import table_to_csv
from cotlab.figures.style import interval_text
from cotlab.metrics.ablation import position_table
from cotlab.run import launch
from cotlab.run.config import read_config
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.ui import charts
from cotlab.ui.item.evidence import ITEM_TAB_LABEL
from cotlab.ui.metric_names import metric_name
from cotlab.ui.steps import CHAIN_TAB_LABEL
from tests.support.pages import components, opened, opened_run
from tests.support.whole_report import build_whole_report

SEED = 7
"""Not the default of the configuration, nor of any function: a number with another seed differs."""
NUMBERS = ("point", "lo", "hi", "n", "n_undefined", "variance")
RUNS: dict[str, dict[str, Any]] = {
    "steps": {"scorer": ["ablation", "mediation"], "mode": ["remove", "filler"], "repeats": 2},
    "profile": {"profile": "phase3"},
}


class Drawn(NamedTuple):
    """A figure as a page draws it."""

    name: str
    table: pd.DataFrame
    paper: charts.PaperFigure | None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a run of ablation and mediation, and one of the reliability profile."""
    at = tmp_path_factory.mktemp("one-road") / "store"
    for name, settings in RUNS.items():
        config = {"task_suite": "wordproblems", "model": "faithful-a", "limit": 8, "seed": SEED}
        done = launch.start_run(read_config({**config, **settings}), Store(at), run_id=name)
        report_run(Store(at), done)
    return at


@pytest.fixture
def drawn(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Drawn]]:
    """What pages draw from now on."""
    seen: list[Drawn] = []
    show = charts.show_figure

    def show_figure(name: str, table: pd.DataFrame, **given: Any) -> None:
        seen.append(Drawn(name, table, given.get("paper")))
        show(name, table, **given)

    monkeypatch.setenv("COTLAB_STORE", str(folder))
    monkeypatch.setattr(charts, "show_figure", show_figure)
    yield seen


def is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def rows_of(table: pd.DataFrame, figure: str) -> list[tuple[Any, ...]]:
    """The columns that a figure draws, in a form that can be compared exactly."""
    columns = [name for name in FIGURES[figure].columns if name in table.columns]
    rows = table[columns].itertuples(index=False, name=None)
    return sorted((tuple(map(plain, row)) for row in rows), key=repr)


def numbers_of(table: pd.DataFrame) -> list[tuple[Any, ...]]:
    """The numbers of a table by what they are of, in a form that can be compared exactly."""
    labels = [c for c in ("metric", "facet", "part", "step", "span") if c in table.columns]
    columns = [*labels, *(c for c in NUMBERS if c in table.columns)]
    rows = table[columns].itertuples(index=False, name=None)
    return sorted((tuple(map(plain, row)) for row in rows), key=repr)


def plain(value: Any) -> Any:
    """A number as a float, a list as its text, and what is missing as None."""
    if isinstance(value, list | tuple | np.ndarray):
        return repr([plain(v) for v in value])
    if pd.isna(value):
        return None
    return float(value) if is_number(value) else value


def read_csv(text: str) -> pd.DataFrame:
    """A CSV with its numbers as they stand there, not rounded by a parser."""
    table = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    values = {
        name: [float(text) if text not in ("n/a", "") else None for text in table[name]]
        for name in (*NUMBERS, "step")
        if name in table.columns
    }
    return table.assign(**values).replace({"n/a": None})


def report_of(folder: Path, run: str) -> dict[str, Any]:
    """report.json as it was written when the run ended."""
    loaded: dict[str, Any] = json.loads((folder / "reports" / run / "report.json").read_text())
    return loaded


PAGES: dict[str, tuple[tuple[str, str, dict[str, str]], ...]] = {
    "steps": (
        ("steps", "Steps", {"more": "true"}),
        ("steps", "Steps", {"view": CHAIN_TAB_LABEL, "mode": "filler"}),
        ("mediation", "Mediation", {"more": "true"}),
        ("mediation", "Mediation", {"view": ITEM_TAB_LABEL}),
    ),
    "profile": (
        ("reliability", "Reliability", {"more": "true", "parts": "true"}),
        ("reliability", "Reliability", {"view": ITEM_TAB_LABEL}),
        ("robustness", "Robustness", {"more": "true"}),
    ),
}
"""Pages of each run with figures, and their addresses."""
FIGURES_BY_RUN = {
    "steps": {
        "ccs_by_position",
        "ccs_ranking",
        "rrr_by_mode",
        "modes_by_metric",
        "cmi_density",
        "mediation_indices",
        "drops_by_donor",
        "item_density",
    },
    "profile": {
        "reliability_parts",
        "diagnosis_rates",
        "perturbation_cells",
        "signal_correlation",
        "item_parts",
        "verification_links",
        "item_cells",
    },
}
"""Figures that a run has at least."""


@pytest.mark.soak
@pytest.mark.parametrize("run", RUNS)
def test_a_page_draws_the_table_of_the_figure_and_of_its_csv(
    run: str, folder: Path, drawn: list[Drawn]
) -> None:
    """What "Use in paper" opens has the numbers of the figure below which the link stands."""
    for page, title, query in PAGES[run]:
        opened(page, title, run=run, **query)
    names, compared = set(), 0
    for name, page_table, paper in drawn:
        if paper is None:
            continue
        names.add(paper.name)
        source = RunView.read(Store(folder), paper.run)
        result = make_figure_table(source, paper.name, paper.choice)
        assert isinstance(result, FigureData), name
        expected = rows_of(result.table, name)
        assert rows_of(page_table, name) == expected, name
        if set(NUMBERS) & set(result.table.columns):
            csv_rows = numbers_of(read_csv(table_to_csv(result.table)))
            assert csv_rows == numbers_of(result.table), name
        compared += len(expected)
    assert names >= FIGURES_BY_RUN[run]
    assert compared >= 40


@pytest.mark.parametrize("run", RUNS)
def test_the_run_page_and_every_figure_have_the_estimates_of_the_report(
    run: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each estimate of report.json is in the table of findings, and each row of a figure that is
    an estimate is that one."""
    monkeypatch.setenv("COTLAB_STORE", str(folder))
    report, view = report_of(folder, run), RunView.read(Store(folder), run)
    assert report == json.loads(json.dumps(build_whole_report(Store(folder), run)))
    estimates = {
        (e["metric"], json.dumps(e["facet"], sort_keys=True)): e for e in report["estimates"]
    }
    assert len(estimates) == len(report["estimates"]) >= 20
    page = opened_run(run, estimates="true")
    (findings,) = [data for data in components(page) if data.get("title") == "Estimates"]
    texts = sorted(
        (row[0]["text"], f"{row[2]['text']} {row[2]['small']}".strip()) for row in findings["rows"]
    )
    assert texts == sorted(
        (
            metric_name(e["metric"]),
            "n/a" if e["point"] is None else interval_text(e["point"], e["lo"], e["hi"]),
        )
        for e in report["estimates"]
    )
    compared = 0
    for name in FIGURE_TABLES:
        result = make_figure_table(view, name)
        if not isinstance(result, FigureData) or "facet" not in result.table.columns:
            continue
        for row in result.table.to_dict("records"):
            facet = json.dumps(json.loads(row["facet"]), sort_keys=True)
            estimate = estimates.get((row["metric"], facet))
            if estimate is None or not pd.isna(row.get("step")):
                continue
            for number in ("point", "lo", "hi"):
                value = None if pd.isna(row[number]) else row[number]
                assert value == estimate[number], (name, row["metric"], facet, number)
            compared += 1
    assert compared >= 10


def test_positions_have_one_interval_on_the_page_in_the_report_and_in_the_figure(
    folder: Path, drawn: list[Drawn]
) -> None:
    report = report_of(folder, "steps")
    opened("steps", "Steps", run="steps", metric=report["metric"])
    (page_table,) = [table for name, table, _ in drawn if name == "ccs_by_position"]
    view = RunView.read(Store(folder), "steps")
    figure = make_figure_table(view, "ccs_by_position", FigureChoice(metric=report["metric"]))
    assert isinstance(figure, FigureData)
    expected = [
        (p["step_index"], p["mean_ccs"], p["ci_lower"], p["ci_upper"], p["count"])
        for p in sorted(report["step_position_rankings"], key=lambda p: p["step_index"])
    ]
    assert sum(lo is not None for _, _, lo, _, _ in expected) >= 2

    def bounds(metric: str, seed: int) -> list[tuple[float, float]]:
        scores = read.run_scores(Store(folder), "steps", metrics=[metric])
        is_mode = scores["facet"].map(lambda text: json.loads(text)["mode"] == report["mode"])
        table = position_table(scores[is_mode], seed)
        return [(row.lo, row.hi) for row in table.dropna(subset=["lo"]).itertuples()]

    assert bounds(report["metric"], SEED) == [
        (lo, hi) for _, _, lo, hi, _ in expected if lo is not None
    ]
    # an interval of graded values is drawn, with the seed of the plan
    graded = make_figure_table(view, "ccs_by_position", FigureChoice(metric="token_delta"))
    assert isinstance(graded, FigureData)
    is_mode = graded.table["facet"].map(lambda text: json.loads(text)["mode"] == report["mode"])
    rows = graded.table[is_mode].dropna(subset=["lo"]).itertuples()
    assert [(row.lo, row.hi) for row in rows] == bounds("token_delta", SEED)
    assert any(bounds("token_delta", seed) != bounds("token_delta", SEED) for seed in range(60))
    for table in (page_table, figure.table, read_csv(table_to_csv(figure.table))):
        chosen = table[
            (table["metric"] == report["metric"])
            & table["facet"].map(lambda text: json.loads(text)["mode"] == report["mode"])
        ]
        rows = chosen[["step", "point", "lo", "hi", "n"]].itertuples(index=False, name=None)
        assert [tuple(None if pd.isna(v) else v for v in row) for row in rows] == expected
