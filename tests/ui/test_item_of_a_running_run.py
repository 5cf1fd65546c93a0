"""An item of a run that goes on: what is not measured yet is not called unmeasured."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

import cotlab
from cotlab.store import write
from cotlab.store.database import Store
from cotlab.store.live import LiveRunStore, RunProgress
from tests.support.pages import app_at

SENTENCES = {
    "ablation": "is not measured yet: the run goes on",
    "flags": "was not measured in this run",
}


@pytest.mark.parametrize("scorer", SENTENCES)
def test_an_item_that_has_not_ended_is_not_measured_yet(
    scorer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path))
    store = Store(tmp_path)
    run = cotlab.run_suite(
        "wordproblems", store=tmp_path, model="faithful-a", scorer=[scorer], limit=2
    ).run_id
    with store.writing() as connection:
        connection.execute("DELETE FROM scores WHERE run = ?", [run])
        write.set_status(connection, run, "running")
    with closing(LiveRunStore(store.log_path)) as live:
        live.write_heartbeat(run, RunProgress(status="running", items_done=0, items_total=2))
        page = app_at("items", run=run, item="wp-0-0000").run()
    assert not page.exception
    notes = [info.value for info in page.info]
    assert any(SENTENCES[scorer] in note for note in notes), notes
