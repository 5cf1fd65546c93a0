"""The state that `cotlab runs` prints is the one that the pages show."""

from __future__ import annotations

from pathlib import Path

from cotlab.store import write
from cotlab.store.database import Store
from cotlab.store.live import LiveRunStore, RunProgress
from tests.support.command import cotlab
from tests.support.stores.judged import add_measured_run


def _heartbeat(store: Store, run_id: str, status: str) -> None:
    live = LiveRunStore(store.log_path)  # by this process, which goes on
    live.write_heartbeat(run_id, RunProgress(status=status, items_done=40, items_total=40))
    live.close()


def _delete_estimates(store: Store, run_id: str, status: str) -> None:
    with store.writing() as connection:
        connection.execute("DELETE FROM estimates WHERE run = ?", [run_id])
        write.set_status(connection, run_id, status)


def test_a_run_is_finishing_until_its_estimates_are_stored(tmp_path: Path) -> None:
    store = Store(tmp_path)
    add_measured_run(store, "run-1", {"change": 1, "control": 0})
    _heartbeat(store, "run-1", "done")
    assert "done" in cotlab("runs", store=tmp_path).stdout
    _delete_estimates(store, "run-1", "done")
    listed = cotlab("runs", store=tmp_path).stdout
    assert "finishing" in listed and "done" not in listed
    assert "run-1" in cotlab("runs", "--status", "finishing", store=tmp_path).stdout
    assert "run-1" not in cotlab("runs", "--status", "done", store=tmp_path).stdout


def test_a_run_without_a_process_is_interrupted(tmp_path: Path) -> None:
    store = Store(tmp_path)
    add_measured_run(store, "run-1", {"change": 1, "control": 0})
    _delete_estimates(store, "run-1", "running")
    assert "interrupted" in cotlab("runs", store=tmp_path).stdout
    _heartbeat(store, "run-1", "running")
    assert "running" in cotlab("runs", "--status", "running", store=tmp_path).stdout
