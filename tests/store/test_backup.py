"""A backup holds all of a store and comes back exactly, over a killed store too."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from cotlab.core.errors import StoreBusy, StoreError, UnknownName
from cotlab.store import read, swap, write
from cotlab.store.backup import back_up, find_backup, finish_restore, list_backups, restore
from cotlab.store.database import Store
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
    assert not [name for name in swap.SIDE_FILES if (store.folder / name).exists()]
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


@pytest.mark.parametrize("name", ["cotlab.duckdb", "log.sqlite", "reports/r/report.md"])
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
    assert list_backups(store) == [] and not list((store.folder / "backups").iterdir())


def test_a_store_in_use_is_not_replaced(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swap, "LOCK_WAIT_S", 0.2)
    backup = back_up(store)
    with closing(ResponseLog(store.log_path)), pytest.raises(StoreBusy, match=r"log\.sqlite"):
        restore(store, backup.folder)
    holder = start(store, "hold")
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    with pytest.raises(StoreBusy, match=r"cotlab\.duckdb"):
        restore(store, backup.folder)
    holder.communicate()
    assert restore(store, backup.folder).totals == backup.totals


KILLED_RENAME = """
import os, signal, sys
from pathlib import Path
from cotlab.store.backup import restore
from cotlab.store.database import Store
rename, left = Path.rename, int(sys.argv[3])
def counted(path, target):
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    return rename(path, target)
Path.rename = counted
restore(Store(Path(sys.argv[1])), Path(sys.argv[2]))
"""


@pytest.mark.parametrize("n_renames", range(11))
def test_a_restore_that_is_killed_loses_neither_store(store: Store, n_renames: int) -> None:
    backup = back_up(store)
    with store.writing() as connection:
        write.add_ended(connection, "r", [ended("newer")])
    done = subprocess.run(
        [sys.executable, "-c", KILLED_RENAME, store.folder, backup.folder, str(n_renames)]
    )
    assert done.returncode == (-signal.SIGKILL if n_renames < 11 else 0)
    if not n_renames:
        assert items(Store(store.folder)) == {"kept", "newer"}
        return
    with pytest.raises(StoreError, match="finish it with: cotlab restore"):
        items(Store(store.folder))
    with pytest.raises(StoreError, match="finish it with: cotlab restore"):
        ResponseLog(store.log_path)
    assert finish_restore(store) and not finish_restore(store)
    assert items(Store(store.folder)) == {"kept"} and n_replies(store) == 1
    replaced = [name for name in list_backups(store) if name.startswith("replaced-")]
    restore(Store(store.folder), find_backup(store, replaced[0]))
    assert items(Store(store.folder)) == {"kept", "newer"}


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
