"""Two training sets of one published study: the same epochs, two models."""

from __future__ import annotations

from pathlib import Path

from cotlab.run.imports.study import store_study
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.suites.importers.study import read_study
from tests.run.imports.test_study import TUNED, comparison, detector, study, written


def test_two_training_sets_of_a_study_come_in_together(tmp_path: Path) -> None:
    """Both have an epoch 2: they are two models, told apart by the adapter's name."""
    small = comparison(finetuned_responses=[text * 3 for text in TUNED])
    small["metadata"]["adapter_path"] = "models/Model_1000docs_epoch2"
    small_detector = detector("truncation", [0.0, 0.0, 0.0, 0.0, 1.0])
    small_detector["metadata"]["adapter_path"] = "models/Model_1000docs_epoch2"
    both = read_study(written(tmp_path, study() | {"small": small, "small_d": small_detector}))
    assert both.training_sets == ("Model", "Model_1000docs")
    store = Store(tmp_path / "store")
    tags = {
        kept.model: read.plan_from_row(read.get_run(store, kept.run_id)).tags
        for kept in store_study(store, both)
    }
    assert tags["Model_epoch2"]["training_set"] == "Model"
    assert tags["Model_1000docs_epoch2"]["training_set"] == "Model_1000docs"
    assert "training_set" not in tags["Some/Model"]
