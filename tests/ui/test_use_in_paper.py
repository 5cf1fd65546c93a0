"""What "Use in paper" opens has the numbers of the figure below which it stands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest

from cotlab.analysis.tables.catalogue import make_figure_table
from cotlab.analysis.tables.declare import FigureData
from cotlab.analysis.view import RunView
from cotlab.review.release.calibrate import calibrate_runs
from cotlab.store.calibrators import list_drift_checks
from cotlab.store.database import Store
from cotlab.store.labels import add_labels
from cotlab.ui import charts
from tests.analysis.tables.test_several_runs import ELSEWHERE, RUNS, SUITE, N, add
from tests.analysis.test_one_road import rows_of
from tests.support.pages import app_at, opened
from tests.support.stores import decided, drifted, labelled

pytestmark = pytest.mark.soak


class Drawn(NamedTuple):
    """A figure as a page draws it."""

    name: str
    table: pd.DataFrame
    paper: charts.PaperFigure | None


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Drawn]:
    """What pages draw from now on."""
    seen: list[Drawn] = []
    show = charts.show_figure

    def show_figure(name: str, table: pd.DataFrame, **given: Any) -> None:
        seen.append(Drawn(name, table, given.get("paper")))
        show(name, table, **given)

    monkeypatch.setattr(charts, "show_figure", show_figure)
    return seen


def check_printed(store: Store, drawn: list[Drawn]) -> set[str]:
    """Compare each figure with its printed form; return the names of those that have one."""
    names = set()
    for name, page_table, paper in drawn:
        if paper is None:
            continue
        result = make_figure_table(RunView.read(store, paper.run), paper.name, paper.choice)
        assert isinstance(result, FigureData), (name, result)
        assert rows_of(page_table, name) == rows_of(result.table, name), name
        printed = opened("figures", **paper.query())
        warnings = [warning.value for warning in printed.warning]
        assert not [text for text in warnings if not text.startswith("Partial")], warnings
        names.add(paper.name)
    return names


def calibrate(store: Store) -> None:
    calibrate_runs(store, ["run-1"], author="bo", method="platt")


@pytest.mark.parametrize("query", [{}, {"thresholds": "0.3,0.7"}, {"domain": "maths"}])
def test_decisions_at_any_thresholds_of_any_domain(
    query: dict[str, str], drawn: list[Drawn], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = decided.fill(tmp_path / "decided", 60, labelled=50)
    monkeypatch.setenv("COTLAB_STORE", str(store.folder))
    opened("policy", run=decided.RUN, **query)
    assert check_printed(store, drawn) == {"threshold_volumes"}


@pytest.mark.parametrize("fits", [lambda store: None, calibrate], ids=["before", "after"])
def test_calibration_before_and_after_a_fit(
    fits: Callable[[Store], None], drawn: list[Drawn]
) -> None:
    store = Store()
    labelled.fill(store.folder, labels=40)
    fits(store)
    opened("calibrate", run="run-1", more="true", scores="true")
    expected = {"score_histogram"}
    if fits is calibrate:
        expected |= {"reliability_diagram", "calibrator_comparison", "calibrator_curves"}
    assert check_printed(store, drawn) == expected


def test_an_earlier_calibrator_or_another_score_has_no_printed_form(drawn: list[Drawn]) -> None:
    """Printed figures are of the calibrator in use, and of one run."""
    store = Store()
    labelled.fill(store.folder, labels=40)
    calibrate(store)
    with store.writing() as connection:
        add_labels(connection, [labelled.label("run-1", k) for k in range(40, 50)])
    calibrate(store)
    query = {"run": "run-1", "more": "true", "scores": "true"}
    opened("calibrate", **query, version="1")
    opened("calibrate", run="run-1", score="r_raw")
    named = {entry.name for entry in drawn if entry.paper is not None}
    assert named == {"reliability_diagram"}
    assert check_printed(store, drawn) == named


def test_drift_once_its_check_is_stored(drawn: list[Drawn]) -> None:
    store = Store()
    drifted.add_run(store, "ref", drifted.vectors(60, 1))
    drifted.add_run(store, "low", drifted.vectors(60, 3, shift=0.3), first=200)
    query = {"reference": "ref", "current": "low", "more": "true"}
    app = opened("drift", **query)
    assert {entry.paper for entry in drawn} == {None}
    assert any("store the check" in caption.value for caption in app.caption)
    app.button(key="keep-check").click().run()
    assert len(list_drift_checks(store)) == 1
    drawn.clear()
    opened("drift", **query)
    assert check_printed(store, drawn) == {"drift_scores", "feature_distributions"}
    drawn.clear()
    opened("drift", **query, ks="0.5")
    assert {entry.paper for entry in drawn} == {None}  # another check than the stored one


@pytest.mark.parametrize("runs", [("bare",), ("bare", "one"), ("two", "elsewhere"), ("bare", "x")])
def test_unfaithfulness_of_any_runs(
    runs: tuple[str, ...], drawn: list[Drawn], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Runs that no tag joins, of one suite or of two; only the scores of x have a threshold."""
    store = Store(tmp_path / "several")
    for run, (tags, values) in RUNS.items():
        add(store, run, SUITE, tags, values)
    add(store, "x", SUITE, {}, [0.25, 0.75] * (N // 2))
    add(store, "elsewhere", ELSEWHERE, {"epoch": "9"}, [1.0])
    monkeypatch.setenv("COTLAB_STORE", str(store.folder))
    run, *also = runs
    app = app_at("unfaithfulness", more="true", run=run)
    app.query_params["also"] = also
    app.run()
    assert not app.exception, [error.value for error in app.exception]
    expected = {
        "unfaithful_rates",
        "classifier_agreement",
        "chain_size",
        "process_result",
    }
    is_graded = "x" in runs
    expected |= {"threshold_sweep"} if is_graded else set()
    assert ("threshold_sweep" in {entry.name for entry in drawn}) is is_graded
    notes = [caption.value for caption in app.caption if "there is no threshold" in caption.value]
    assert len(notes) == 1 and ("early_answer" in notes[0].replace("\\", "")) is not is_graded
    assert check_printed(store, drawn) >= expected
    assert len([entry for entry in drawn if entry.paper is None and entry.name in expected]) == 0
