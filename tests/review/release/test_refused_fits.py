"""Fits of which no version is kept: no better than the base rate, or on unchanged labels."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from cotlab.cli.main import app
from cotlab.review.release.calibrate import calibrate_runs
from cotlab.store.calibrators import current_calibrator, list_calibrators
from cotlab.store.database import Store
from tests.support.stores.composed import fill


def test_no_version_is_kept_of_a_fit_that_is_no_better_than_the_base_rate(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    fill(store, n=120, slope=2.5)
    found = calibrate_runs(store, ["run-1"], author="ann")
    gain = next(one for one in found.report["methods"] if one["method"] == found.calibrator.method)
    assert gain["gained"]["lo"] < 0 < gain["gained"]["hi"]
    assert found.version is None and found.refusal.startswith(
        f"{found.calibrator.method} does not predict 119 labels better than their base rate 0."
    )
    assert "minus that of the base rate −0.00518 [−0.0196, 0.0109]" in found.refusal
    assert list_calibrators(store).empty and current_calibrator(store) is None
    assert calibrate_runs(store, None, author="ann", weights="combined").version is None


@pytest.mark.soak
def test_a_second_version_needs_other_labels_or_another_kind(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    fill(store)
    assert calibrate_runs(store, ["run-1"], author="ann").version == 1
    again = calibrate_runs(store, ["run-1"], author="ann", seed=1)
    assert again.version is None and again.refusal == (
        "version 1 is platt too, fitted on the same 59 labels. Label more items, or put it into use"
        " with cotlab calibrate --rollback 1."
    )
    assert calibrate_runs(store, ["run-1"], author="ann", weights="combined").version == 2
    fill(store, "run-2", 12, seed=9)
    assert calibrate_runs(store, None, author="ann").version == 3


def test_the_command_shows_the_report_of_a_fit_that_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path / "store"))
    fill(Store(tmp_path / "store"), n=120, slope=2.5)
    found = CliRunner().invoke(app, ["calibrate", "run-1"])
    assert found.exit_code == 1
    assert "Brier − base rate's" in found.output and "Nothing was written." in found.output
    assert "error: No version is kept: " in found.output
    assert CliRunner().invoke(app, ["calibrate", "run-1", "--dry-run"]).exit_code == 0
