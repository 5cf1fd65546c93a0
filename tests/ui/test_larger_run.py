"""Home opens on the newest run, and names one of the same model and suite that has more items."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cotlab.run import launch
from cotlab.run.config import read_config
from cotlab.store.database import Store
from tests.support.pages import component, opened
from tests.support.stores.judged import add_measured_run, numbered_suite

CHANGES = {"scorer": ["ablation"], "mode": ["corrupt"], "task_suite": "wordproblems"}
RUNS: tuple[tuple[str, dict[str, object]], ...] = (
    ("large", {**CHANGES, "model": "r100", "limit": 6}),
    ("removal", {**CHANGES, "model": "r100", "limit": 9, "mode": ["remove"]}),
    ("other-model", {**CHANGES, "model": "bypass-b", "limit": 9}),
    ("small", {**CHANGES, "model": "r100", "limit": 3}),
)
"""The runs of the store, oldest first: the second measures no change, the third another model."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    at = tmp_path_factory.mktemp("larger") / "store"
    for run_id, options in RUNS:
        launch.start_run(read_config(options), Store(at), run_id=run_id)
    return at


def larger_runs() -> list[tuple[str, str]]:
    """Return the label and the query of the links of Home to a run with more items."""
    home = opened("home", "Can this model's chain of thought be trusted?")
    links = [link.proto for link in home.get("page_link")]
    return [(link.label, link.query_string) for link in links if "Another run" in link.label]


def test_home_links_to_the_run_with_more_items(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(folder))
    ((label, query),) = larger_runs()
    assert "6 items" in label and query == "run=large"


def test_a_run_that_has_most_items_links_to_no_other(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(folder, tmp_path / "copy"))
    monkeypatch.setenv("COTLAB_STORE", str(folder))
    newest = {**CHANGES, "model": "bypass-b", "limit": 10}
    launch.start_run(read_config(newest), Store(folder), run_id="newest")
    assert larger_runs() == []


def test_home_opens_on_a_run_with_a_verdict_and_names_the_newer_one_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path))
    store, suite = Store(tmp_path), numbered_suite()
    add_measured_run(store, "judged", {"change": 1, "control": 0}, suite=suite)
    add_measured_run(store, "undecided", {"change": 1}, suite=suite)  # without a control
    home = opened("home", "Can this model's chain of thought be trusted?")
    context = component(home, "facts")
    assert context["label"] == "Another run of this model"
    assert context["facts"][0] == "numbers" and "40 of 40 items measured" in context["facts"]
    (note,) = [warning.value for warning in home.warning]
    assert note.startswith("A newer run has no verdict (Cannot say: the control is missing)")
