"""The tables of the figures of calibration, against counts by hand and against the calibrator
itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cotlab.analysis.tables import calibration as tables
from cotlab.analysis.tables.catalogue import make_figure_table
from cotlab.analysis.tables.declare import FigureData, MissingFigure
from cotlab.analysis.view import RunView
from cotlab.reliability.maps import Calibrator
from cotlab.review.release.calibrate import calibrate_runs
from cotlab.store.calibrators import current_calibrator
from cotlab.store.database import Store
from cotlab.store.decisions import add_policy
from cotlab.store.labels import add_labels
from tests.support.stores.labelled import accepted, fill, label, score_of


def counts(table: pd.DataFrame, group: str) -> dict[float, int]:
    own = table[(table["group"] == group) & (table["count"] > 0)]
    return dict(zip(own["left"], own["count"], strict=True))


def test_chains_are_counted_by_score_and_by_what_people_said() -> None:
    scores = pd.Series([0.0, 0.05, 0.1, 0.95, 1.0, np.nan, 0.5])
    said = pd.Series([True, False, np.bool_(False), True, None, True, None], dtype=object)
    table = tables.histogram_table(scores, said, "r_raw")
    assert counts(table, "acceptable") == {0.0: 1, 0.9: 1}
    assert counts(table, "not acceptable") == {0.0: 1, 0.1: 1}
    assert counts(table, "no label") == {0.5: 1, 0.9: 1}  # 1 belongs to the last bar
    assert set(table["missing"]) == {1} and "low" not in table


def test_scores_in_a_narrow_range_have_narrow_bars_unless_thresholds_are_drawn() -> None:
    scores = pd.Series(np.linspace(0.9, 0.95, 40))
    said = pd.Series([None] * 40, dtype=object)
    table = tables.histogram_table(scores, said, "r_raw")
    assert (table["left"].min(), table["right"].max()) == (0.9, 0.95) and table["count"].sum() == 40
    whole = tables.histogram_table(scores, said, "r_cal", (0.2, 0.8))
    assert (whole["left"].min(), whole["right"].max(), whole["high"].iloc[0]) == (0.0, 1.0, 0.8)
    assert tables.histogram_table(pd.Series([np.nan]), said[:1], "r_cal").empty


def test_the_band_is_the_binomials() -> None:
    """Of 10 fair coins P(at most 1) = 11/1024 < .025 <= P(at most 2) = 56/1024, and the same from
    the other end."""
    assert tables.perfect_bin_band(0.5, 10) == (0.2, 0.8)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A version fitted on run-1; run-2 has labels that it did not see, run-3 none."""
    store = fill(tmp_path_factory.mktemp("fitted"), labels=54)
    calibrate_runs(store, ["run-1"], author="ana", method="platt")
    fill(store.folder, "run-2", n=24, labels=24)
    fill(store.folder, "run-3", n=4)
    limits = {"default": (0.3, 0.6), "sums": (0.4, 0.7)}
    with store.writing() as connection:
        add_policy(
            connection, thresholds=limits, capacity=None, params={}, author="ana", reason="test"
        )
    return store


def drawn(store: Store, name: str, run: str) -> FigureData:
    found = make_figure_table(RunView.read(store, run), name)
    assert isinstance(found, FigureData), found
    return found


def test_a_run_of_the_fit_is_drawn_out_of_fold_and_another_one_as_it_is_predicted(
    fitted: Store,
) -> None:
    row = current_calibrator(fitted)
    assert row is not None
    seen = drawn(fitted, "reliability_diagram", "run-1")
    fresh = drawn(fitted, "reliability_diagram", "run-2")
    assert "without its fold" in seen.note and "saw none of these labels" in fresh.note
    assert list(seen.table["point"]) == [one["observed"] for one in row["report"]["diagram"]]
    assert (
        seen.table["n"].sum() == 53 and fresh.table["n"].sum() == 23
    )  # one chain of each has no score
    assert set(fresh.table["low"]) == {0.3} and tables.current_thresholds(fitted, "sums") == (
        0.4,
        0.7,
    )
    best = Calibrator.from_params(row["params"]["all"])
    predicted = best.predict([score_of(k) for k in range(23)])
    sizes, good = fresh.table["n"], [accepted(k) for k in range(23)]
    assert np.average(fresh.table["predicted"], weights=sizes) == pytest.approx(predicted.mean())
    assert np.average(fresh.table["point"], weights=sizes) == pytest.approx(np.mean(good))
    none = make_figure_table(RunView.read(fitted, "run-3"), "reliability_diagram")
    assert isinstance(none, MissingFigure) and "both a label and a calibrated score" in none.reason


def test_the_curve_in_use_is_the_stored_one_and_refused_methods_have_none(fitted: Store) -> None:
    row = current_calibrator(fitted)
    assert row is not None
    table = drawn(fitted, "calibrator_curves", "run-3").table
    curves = table[table["kind"] == "curve"]
    assert dict(curves.groupby("calibrator")["chosen"].first()) == {"platt": True, "beta": False}
    own = curves[curves["chosen"]]
    assert np.array_equal(
        own["r_cal"], Calibrator.from_params(row["params"]["all"]).predict(own["r_raw"])
    )
    assert (table["kind"] == "label").sum() == 53
    numbers = drawn(fitted, "calibrator_comparison", "run-3").table.set_index(
        ["calibrator", "metric"]
    )
    assert numbers.loc[("isotonic", "ece"), "point"] is None or np.isnan(
        numbers.loc[("isotonic", "ece"), "point"]
    )
    assert "200" in numbers.loc[("isotonic", "ece"), "reason"]
    assert numbers.loc[("base rate", "brier"), "point"] == pytest.approx(
        row["report"]["base_brier"]["point"]
    )
    assert list(numbers[numbers["chosen"]].index.get_level_values(0).unique()) == ["platt"]


def test_a_changed_label_is_seen(fitted: Store) -> None:
    row = current_calibrator(fitted)
    assert row is not None
    assert "same scores and verdicts" in tables.calibrator_changes_text(
        tables.with_targets(fitted, ["run-1"]), row
    )
    with fitted.writing() as connection:
        add_labels(connection, [label("run-1", 3, good=not accepted(3))])
    assert "53 labels now, 53 then" in tables.calibrator_changes_text(
        tables.with_targets(fitted, ["run-1"]), row
    )


def test_without_a_calibrator_a_run_has_its_raw_scores_only(tmp_path: Path) -> None:
    store = fill(tmp_path, n=12, labels=6)
    table = drawn(store, "score_histogram", "run-1").table
    assert (
        set(table["score"]) == {"r_raw"}
        and table["count"].sum() == 11
        and set(table["missing"]) == {1}
    )
    assert table.loc[table["group"] == "no label", "count"].sum() == 5
    for name in ("reliability_diagram", "calibrator_curves", "calibrator_comparison"):
        assert isinstance(make_figure_table(RunView.read(store, "run-1"), name), MissingFigure)
