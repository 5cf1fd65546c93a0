"""Without a choice Compare opens on two runs whose comparison can tell something."""

from __future__ import annotations

from pathlib import Path

import pytest

import cotlab
from tests.support.linked import linked_view
from tests.ui.test_pages import open_page


def test_the_proposed_pair_is_of_two_models_with_enough_items(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path / "store"))
    run_ids = {}
    for name, model, limit, mode in (
        ("one", "echo", 30, "remove"),
        ("other-mode", "latency_s=0", 30, "truncate"),
        ("two", "latency_s=0", 30, "remove"),
        ("few", "echo", 8, "remove"),
    ):
        run_ids[name] = cotlab.run_suite(
            "wordproblems",
            store=tmp_path / "store",
            provider="echo",
            model=model,
            limit=limit,
            mode=[mode],
        ).run_id
    app = open_page("compare")
    assert not app.exception
    chosen = {app.selectbox(key="pick-base").value, *app.multiselect(key="pick-other").value}
    assert chosen == {run_ids["one"], run_ids["two"]}


def test_the_proposed_pair_shares_a_measure_of_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest run shares its equations with all, and its change of numbers with none."""
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path / "store"))
    run_ids = {}
    for name, model, scorer in (
        ("bypass", "bypass-a", "ablation"),
        ("faithful", "faithful-a", "ablation"),
        ("newest", "faithful-b", "robustness"),
    ):
        run_ids[name] = cotlab.run_suite(
            "wordproblems",
            store=tmp_path / "store",
            model=model,
            limit=30,
            chain="own",
            scorer=[scorer, "verification"],
            **({"mode": ["corrupt", "paraphrase"]} if scorer == "ablation" else {}),
        ).run_id
    app = open_page("compare")
    assert not app.exception
    chosen = {app.selectbox(key="pick-base").value, *app.multiselect(key="pick-other").value}
    assert chosen == {run_ids["bypass"], run_ids["faithful"]}
    home = open_page("home")
    rows = linked_view(home, "table")["rows"]
    cells = {row[0]["small"]: row[-1].get("text") or row[-1]["small"] for row in rows}
    assert cells == {
        run_ids["newest"]: "shown above",
        run_ids["faithful"]: "other settings",
        run_ids["bypass"]: "other settings",
    }
