"""What pages read of the store is read again after every write, by whichever process, and not in
between."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cotlab.store.database import Store
from cotlab.ui import cached
from tests.support.stores.judged import add_measured_run

OTHER_PROCESS = """
import sys
from pathlib import Path
from cotlab.store.database import Store
with Store(Path(sys.argv[1])).writing() as connection:
    connection.execute("INSERT INTO run_names (run, name) VALUES ('other', '')")
"""
N_READ: list[int] = []


def count_names(store: Store, least: int = 0) -> list[int]:
    """Return a list of one number: how many runs have a name."""
    [(n,)] = store.query_rows("SELECT count(*) FROM run_names")
    N_READ.append(n)
    return [int(n) + least]


def write_name(store: Store, run: str) -> None:
    with store.writing() as connection:
        connection.execute("INSERT INTO run_names (run, name) VALUES (?, '')", [run])


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path))
    N_READ.clear()
    store = Store()
    write_name(store, "first")
    return store


def test_an_unchanged_store_is_read_once_and_each_caller_may_change_its_copy(store: Store) -> None:
    first = cached.read_once(count_names)
    first.append(99)
    assert cached.read_once(count_names) == [1] and N_READ == [1]
    assert cached.read_once(count_names, 5) == [6]  # other arguments are another reading
    assert cached.read_once(count_names, least=7) == [8] and len(N_READ) == 3


def test_every_write_is_seen_at_once_however_fast_they_follow(store: Store) -> None:
    for k in range(40):
        write_name(store, f"run {k}")
        assert cached.read_once(count_names) == [k + 2]
    assert len(N_READ) == 40


def test_a_write_of_another_process_and_another_file_are_seen(store: Store, tmp_path: Path) -> None:
    assert cached.read_once(count_names) == [1]
    copy = tmp_path / "backup"
    shutil.copy2(store.path, copy)
    subprocess.run([sys.executable, "-c", OTHER_PROCESS, str(tmp_path)], check=True)
    assert cached.read_once(count_names) == [2]
    copy.replace(store.path)  # of the same size and times as once before
    assert cached.read_once(count_names) == [1] and N_READ == [1, 2, 1]


def test_a_run_that_measured_nothing_is_known_as_soon_as_it_is_stored(store: Store) -> None:
    assert cached.unmeasured_runs() == frozenset()
    add_measured_run(store, "nothing", {"change": None})
    assert cached.unmeasured_runs() == {"nothing"}


def test_a_store_without_a_file_has_no_state(tmp_path: Path) -> None:
    assert Store(tmp_path / "none").file_state() == ()


def test_one_who_has_the_store_open_and_one_who_waits_for_it_both_read(store: Store) -> None:
    is_reading, may_end = threading.Event(), threading.Event()

    def read_slowly(store: Store) -> list[int]:
        is_reading.set()
        may_end.wait(10)
        return count_names(store)

    other = threading.Thread(target=lambda: cached.read_once(read_slowly), daemon=True)
    with cached.store().reading():
        other.start()
        assert is_reading.wait(10)
        may_end.set()  # it waits for the store, which this thread has
        own = threading.Thread(target=lambda: cached.read_once(read_slowly), daemon=True)
        assert cached.read_once(read_slowly) == [1]
    own.start()
    for thread in (other, own):
        thread.join(20)
        assert not thread.is_alive()


def test_a_folder_below_a_file_has_no_state_and_one_message(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert Store(tmp_path / "file" / "store").file_state() == ()


def test_only_the_newest_state_is_kept(store: Store, tmp_path: Path) -> None:
    for k in range(5):
        write_name(store, f"run {k}")
        cached.read_once(count_names)
        cached.read_once(count_names, 3)
    [(state, kept)] = [entry for key, entry in cached._KEPT_READS.items() if key == str(tmp_path)]
    assert state == store.file_state() and len(kept) == 2
