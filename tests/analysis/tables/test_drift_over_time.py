"""The figure of drift over time holds the kept checks of one reference, oldest first, and says what
it leaves out."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cotlab.analysis.tables.catalogue import FIGURE_TABLES
from cotlab.analysis.tables.declare import FigureData, MissingFigure
from cotlab.analysis.tables.drift import (
    MAX_CHECKS,
    charted_features,
    drift_over_time_note,
    drift_over_time_rows,
    stored_checks,
)
from cotlab.analysis.view import RunView
from cotlab.core.registry import FIGURES
from cotlab.review.release.drift import DriftCheck, FeatureCheck, measure_drift, store_drift_check
from cotlab.store.database import Store
from tests.support.stores.drifted import add_run, vectors


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    made = Store(tmp_path_factory.mktemp("time") / "store")
    for k, (run, shift) in enumerate({"ref": 0.0, "one": 0.0, "two": 0.3, "lone": 0.0}.items()):
        add_run(made, run, vectors(40, k + 1, shift), first=100 * k)
    for reference, current in (("ref", "one"), ("ref", "two"), ("one", "two")):
        check = measure_drift(made, [reference], [current], author="bo", permutations=199)
        store_drift_check(made, check)
    return made


def test_checks_of_the_same_reference_stand_in_their_order(store: Store) -> None:
    checks = stored_checks(store, ["ref"])
    assert [one.current for one in checks] == [("one",), ("two",)]
    table = drift_over_time_rows(checks)
    assert set(table["feature"]) == {"r_raw", "C", "V", "D"} and table[
        "place"
    ].value_counts().to_dict() == {0: 4, 1: 4}
    v = table[table["feature"] == "V"]
    found = [next(one for one in check.features if one.name == "V").drift for check in checks]
    assert v["psi"].tolist() == [one.psi.value for one in found] and v["n_current"].tolist() == [
        one.n_current for one in found
    ]
    assert v["alert"].tolist() == [False, True] and charted_features(checks)[0] in ("V", "r_raw")
    told = FIGURE_TABLES["drift_over_time"](RunView.read(store, "one"))
    assert isinstance(told, FigureData) and "Reference: ref." in told.note and len(told.table) == 8
    assert (
        FIGURES["drift_over_time"](told.table)
        .layout.meta["title"]
        .startswith("Drift, check by check")
    )
    assert isinstance(FIGURE_TABLES["drift_over_time"](RunView.read(store, "lone")), MissingFigure)


def test_what_is_left_out_is_said(store: Store) -> None:
    (check,) = stored_checks(store, ["one"])
    many = replace(
        check, features=tuple(FeatureCheck(f"f{k}", check.features[0].drift) for k in range(9))
    )
    assert (
        drift_over_time_note([many]) == "Not drawn: f6, f7, f8."
        and drift_over_time_note([check]) == ""
    )
    assert (
        drift_over_time_note([check] * 50).startswith(f"The last {MAX_CHECKS} of 50")
        and len(drift_over_time_rows([check] * 50)) == 160
    )


def test_a_part_of_a_series_goes_by_its_label(tmp_path: Path, store: Store) -> None:
    (check,) = stored_checks(store, ["one"])
    own, at = Store(tmp_path / "own"), datetime(2026, 1, 1, 12, tzinfo=UTC)
    for k, label in enumerate(["epoch 2", ""]):
        made: DriftCheck = replace(check, id=f"c{k}", at=at + timedelta(hours=k), label=label)
        store_drift_check(own, made)
    assert list(dict.fromkeys(drift_over_time_rows(stored_checks(own, ["one"]))["at"])) == [
        "epoch 2",
        "2026-01-01 13:00",
    ]
