"""A backup holds all of a store and comes back exactly, over a killed store too."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from cotlab.core.errors import StoreBusy, StoreError, UnknownName
from cotlab.store import read, write
from cotlab.store.backup import back_up, find_backup, list_backups, restore
from cotlab.store.database import Store
from cotlab.store.live import LiveRunStore, RunProgress
from cotlab.store.responses import ResponseLog
from tests.store.test_processes import killed_after, start
from tests.support.command import cotlab
from tests.support.running import own_suite, replies
from tests.support.store_worker import ended, reply, request


def n_replies(store: Store) -> int:
    return replies(store.folder)


def items(store: Store) -> set[str]:
    return set(read.run_scores(store, "r")["item_id"])


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store with one item, one reply, a report and a suite."""
    store = Store(tmp_path / "store")
    with store.writing() as connection:
        write.add_ended(connection, "r", [ended("kept")])
    with closing(ResponseLog(store.log_path)) as log:
        log.put([(request("kept"), reply(request("kept")))], "r")
    for name in ("reports/r/report.md", "suites/0/own.jsonl"):
        (store.folder / name).parent.mkdir(parents=True)
        (store.folder / name).write_text("kept")
    return store


def test_a_backup_over_a_killed_store_leaves_no_newer_row(store: Store) -> None:
    backup = back_up(store)
    assert backup.totals == {"runs": 0, "scores": 3, "labels": 0, "replies": 1}
    assert len(killed_after(start(store, "write"), 3)) >= 3
    assert len(killed_after(start(store, "log"), 21)) >= 21
    assert (store.folder / "log.sqlite-wal").stat().st_size
    (store.folder / "reports" / "r" / "report.md").write_text("newer")
    (store.folder / "mine.txt").write_text("no part of a store")

    restored = restore(Store(store.folder), backup.folder)
    assert restored.totals == backup.totals
    assert not list(store.folder.glob("*.wal")) and not list(store.folder.glob("*-wal"))
    assert (items(Store(store.folder)), n_replies(store)) == ({"kept"}, 1)
    assert (store.folder / "reports" / "r" / "report.md").read_text() == "kept"
    assert (store.folder / "suites" / "0" / "own.jsonl").read_text() == "kept"
    assert (store.folder / "mine.txt").exists()

    assert restored.replaced is not None  # the way back from the way back
    restore(Store(store.folder), restored.replaced)
    assert len(items(Store(store.folder))) >= 4 and n_replies(store) >= 10


def test_a_backup_is_made_beside_writers(store: Store) -> None:
    writer, logger = start(store, "write"), start(store, "log")
    for process in (writer, logger):
        assert process.stdout is not None
        process.stdout.readline()
    backup = back_up(store)
    for process in (writer, logger):
        process.kill()
        process.communicate()
    restore(Store(store.folder), backup.folder)
    found = read.run_scores(Store(store.folder), "r").groupby("item_id").size()
    assert set(found) == {3} and len(found) >= 2 and n_replies(store) >= 1


@pytest.mark.parametrize("name", ["log.sqlite", "reports/r/report.md"])
def test_a_backup_that_was_changed_is_not_restored(store: Store, name: str) -> None:
    backup = back_up(store)
    content = bytearray((backup.folder / name).read_bytes())
    content[-3] ^= 1
    (backup.folder / name).write_bytes(content)
    with pytest.raises(StoreError, match=f"{name}: was changed after the backup was made"):
        restore(store, backup.folder)
    (backup.folder / name).unlink()
    with pytest.raises(StoreError, match="is missing in the backup|has neither"):
        restore(store, backup.folder)
    assert items(store) == {"kept"} and n_replies(store) == 1


def test_a_damaged_store_is_not_backed_up_as_if_it_were_whole(store: Store) -> None:
    with store.log_path.open("rb+") as file:
        file.seek(4096 * 2)
        file.write(b"\xa5" * 4096)
    with pytest.raises(StoreError, match="damaged"):
        back_up(store)
    assert list_backups(store) == [] and not (store.folder / "backups").exists()


def test_a_store_whose_run_goes_on_is_not_replaced(store: Store) -> None:
    backup = back_up(store)
    with closing(LiveRunStore(store.log_path)) as live_runs:
        live_runs.begin_run("r", RunProgress())
        with pytest.raises(StoreBusy, match="run r"):
            restore(store, backup.folder)
        live_runs.write_heartbeat("r", RunProgress(status="done"))
    assert restore(store, backup.folder).totals == backup.totals


RESTORE = """
import sys
from pathlib import Path
from cotlab.store.backup import restore
from cotlab.store.database import Store
print("begin", flush=True)
restore(Store(Path(sys.argv[1])), Path(sys.argv[2]))
"""


@pytest.mark.parametrize("wait_s", [0, 0.02, 0.05, 0.1, 0.2, 0.4])
def test_a_restore_that_is_killed_loses_neither_store(store: Store, wait_s: float) -> None:
    backup = back_up(store)
    with store.writing() as connection:
        write.add_ended(connection, "r", [ended("newer")])
    words = [sys.executable, "-c", RESTORE, store.folder, backup.folder]
    process = subprocess.Popen(words, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline()
    time.sleep(wait_s)
    process.kill()
    process.communicate()
    assert items(Store(store.folder)) in ({"kept"}, {"kept", "newer"})
    restore(Store(store.folder), backup.folder)
    assert items(Store(store.folder)) == {"kept"} and n_replies(store) == 1
    assert not [path for path in store.folder.rglob(".*") if path.is_dir()]


@pytest.mark.parametrize(
    "manifest",
    [
        "[]",
        "null",
        '{"files": null}',
        '{"files": ["log.sqlite"]}',
        '{"files": {"/etc/passwd": "0"}}',
        '{"files": {"backups/evil/x": "0"}}',
        '{"files": {"reports/../../x": "0"}}',
        '{"files": {"log.sqlite": null}}',
        '{"files": {"": "0"}}',
    ],
)
def test_an_odd_list_of_files_is_one_message(store: Store, manifest: str) -> None:
    backup = back_up(store)
    (backup.folder / "backup.json").write_text(manifest)
    with pytest.raises(StoreError, match=r"backup\.json: is damaged"):
        restore(store, backup.folder)
    assert items(store) == {"kept"}


def test_the_commands(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    words = (*own_suite(tmp_path), "--provider=echo", "--model=echo", "--scorer=ablation")
    cotlab("run", *words, "--run-id=r", store=folder)
    report = cotlab("report", "r", store=folder).stdout
    told = cotlab("backup", store=folder).stdout
    name = told.rsplit(maxsplit=1)[-1]
    assert "1 runs, " in told and cotlab("restore", store=folder).stdout == f"{name}\n"
    cotlab("run", *words, "--run-id=s", store=folder)
    told = cotlab("restore", name, store=folder).stdout
    assert "Restored" in told and "replaced-" in told
    assert cotlab("report", "r", store=folder).stdout == report
    assert "'s'" in cotlab("report", "s", store=folder, code=2).stderr
    elsewhere = tmp_path / "elsewhere"
    cotlab("backup", "--output", elsewhere, store=folder)
    cotlab("restore", elsewhere, store=tmp_path / "other")
    assert cotlab("report", "r", store=tmp_path / "other").stdout == report
    assert "exists already" in cotlab("backup", "--output", elsewhere, store=folder, code=3).stderr
    with pytest.raises(UnknownName):
        find_backup(Store(folder), "no such backup")
    assert "holds nothing" in cotlab("backup", store=tmp_path / "empty", code=3).stderr
    assert not (tmp_path / "empty").exists()
