"""Without a choice Compare opens on the last two runs on one suite."""

from __future__ import annotations

from pathlib import Path

import pytest

import cotlab
from tests.support.linked import linked_view
from tests.ui.test_pages import open_page


def test_the_last_two_runs_are_proposed_and_home_says_which_have_other_settings(
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
    assert chosen == {run_ids["newest"], run_ids["faithful"]}
    home = open_page("home")
    rows = linked_view(home, "table")["rows"]
    cells = {row[0]["below"]: row[-1].get("text") or row[-1]["small"] for row in rows}
    assert cells == {
        run_ids["newest"]: "shown above",
        run_ids["faithful"]: "other settings",
        run_ids["bypass"]: "other settings",
    }
