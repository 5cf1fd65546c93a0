"""A database in memory is kept; of the store's file nothing is held between two calls."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cotlab.core.errors import StoreError
from cotlab.store import attached, read, write
from cotlab.store.database import Store
from tests.support.store_worker import SCORES_AN_ITEM, ended


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "it's; a store")
    with store.writing() as connection:
        write.add_ended(connection, "r", [ended("i")])
    return store


def handles(store: Store) -> list[str]:
    """Open files of this process that lie in the store's folder."""
    links = [link for link in Path("/proc/self/fd").iterdir() if link.exists()]
    return [
        name
        for name in (str(link.readlink()) for link in links)
        if name.startswith(str(store.folder))
    ]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no list of open files here")
def test_the_file_is_open_in_a_block_only(store: Store) -> None:
    for opened in (store.reading, store.writing):
        with opened():
            assert handles(store)
        assert handles(store) == []
        with pytest.raises(ZeroDivisionError), opened():
            1 / 0  # noqa: B018
        assert handles(store) == []
    # no write-ahead log stays beside them
    assert {path.name for path in store.folder.iterdir()} == {"cotlab.duckdb", "log.sqlite"}


def test_one_database_in_memory_serves_every_call_and_every_store(
    store: Store, tmp_path: Path
) -> None:
    assert len(read.run_scores(store, "r")) == SCORES_AN_ITEM
    (kept,) = attached._SPARE_DATABASES
    assert read.run_scores(Store(tmp_path / "another"), "r").empty
    assert attached._SPARE_DATABASES[0] is kept
    with store.reading() as one, Store(tmp_path / "another").reading() as two:
        assert one.execute("SELECT count(*) FROM scores").fetchone() == (SCORES_AN_ITEM,)
        assert two.execute("SELECT count(*) FROM scores").fetchone() == (0,)
    assert len(attached._SPARE_DATABASES) == 1


def test_a_block_within_a_block_shares_its_opening(store: Store) -> None:
    """And its end does not let go of the file: no other process may write before the outer one
    ends."""
    wants = "import duckdb, sys; duckdb.connect(sys.argv[1])"
    with store.reading() as outer:
        assert len(read.run_scores(store, "r")) == SCORES_AN_ITEM
        assert outer.execute("SELECT count(*) FROM scores").fetchone() == (SCORES_AN_ITEM,)
        told = subprocess.run(
            [sys.executable, "-c", wants, str(store.path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Could not set lock" in told.stderr
        with (
            pytest.raises(StoreError, match="is open for reading in this block already"),
            store.writing(),
        ):
            pass
    with (
        store.writing(),
        pytest.raises(StoreError, match="is open for writing in this block already"),
    ):
        read.run_scores(store, "r")
    assert len(read.run_scores(store, "r")) == SCORES_AN_ITEM


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_makes_a_database_of_its_own(store: Store) -> None:
    assert len(read.run_scores(store, "r")) == SCORES_AN_ITEM and attached._SPARE_DATABASES
    child = os.fork()
    if child == 0:
        os._exit(
            17
            if not attached._SPARE_DATABASES and len(read.run_scores(store, "r")) == SCORES_AN_ITEM
            else 1
        )
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17
    assert len(read.run_scores(store, "r")) == SCORES_AN_ITEM
