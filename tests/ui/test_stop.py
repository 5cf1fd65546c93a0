"""A click on Stop counts before the page is drawn again: leaving the page cannot undo it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

import cotlab
from cotlab.store import write
from cotlab.store.database import Store
from cotlab.store.live import LiveRunStore, RunProgress
from tests.support.pages import app_at


def set_status(store: Store, run: str, status: str) -> None:
    with store.writing() as connection:
        write.set_status(connection, run, status)


def test_a_stop_is_written_though_the_page_no_longer_draws_the_button(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path))
    store = Store(tmp_path)
    run = cotlab.run_suite(
        "wordproblems", store=tmp_path, model="faithful-a", mode=["remove"], limit=3
    ).run_id
    set_status(store, run, "running")
    with closing(LiveRunStore(store.log_path)) as live:
        live.write_heartbeat(run, RunProgress(status="running", items_done=1, items_total=3))
        page = app_at("run", run=run).run()
        (stop,) = [button for button in page.button if button.label == "Stop"]
        before = live.get(run)
        assert before is not None and not before.is_stopping
        set_status(store, run, "done")
        page = stop.click().run()
        assert not page.exception
        after = live.get(run)
        assert after is not None and after.is_stopping
