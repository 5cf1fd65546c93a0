"""A kill in the middle of a checkpoint: every state that the files can be in is opened again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest

from cotlab.core.errors import StoreError
from cotlab.store import database
from cotlab.store.checkpoint import checkpoint, copy_path
from cotlab.store.database import Store

HEADERS, BLOCK = 3 * 4096, 256 * 1024
"""Bytes of a DuckDB file's headers and of one of its blocks, by its documentation of storage."""


class Photographing:
    """The real connection; copies the store's folder right before and right after a checkpoint."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, store: Path, to: Path) -> None:
        self.connection, self.store, self.to = connection, store, to

    def execute(self, query: str) -> Any:
        if query.startswith("CHECKPOINT"):
            shutil.copytree(self.store, self.to / "before")
        result = self.connection.execute(query)
        if query.startswith("CHECKPOINT"):
            shutil.copytree(self.store, self.to / "after")
        return result


@pytest.fixture
def photographs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders ``before`` and ``after`` of the checkpoint that takes in a second row."""
    store = Store(tmp_path / "store")
    with store.writing() as connection:
        connection.execute("CREATE TABLE probe (n INTEGER)")
        connection.execute("INSERT INTO probe VALUES (1)")

    def photograph(connection: Any, path: Path, file: Any) -> None:
        checkpoint(Photographing(connection, store.folder, tmp_path), path, file)  # type: ignore[arg-type]

    monkeypatch.setattr(database, "checkpoint", photograph)
    with store.writing() as connection:
        connection.execute("INSERT INTO probe VALUES (2)")
    monkeypatch.undo()
    assert not copy_path(store.path).exists()
    return tmp_path


def rows_of(folder: Path) -> list[tuple[int]]:
    store = Store(folder)
    rows = store.query_rows("SELECT n FROM probe ORDER BY n")
    assert not copy_path(store.path).exists()
    return rows


def tear(photographs: Path, block: int, n_bytes: int) -> Path:
    """The state of a kill when that many bytes of a block had been written, the header not."""
    folder = photographs / f"{block}-{n_bytes}"
    shutil.copytree(photographs / "before", folder)
    offset = HEADERS + block * BLOCK
    new = (photographs / "after" / "cotlab.duckdb").read_bytes()[offset : offset + n_bytes]
    with (folder / "cotlab.duckdb").open("rb+") as file:
        file.seek(offset)
        file.write(new)
    return folder


def test_a_block_that_was_half_written_is_put_back(photographs: Path) -> None:
    size = (photographs / "before" / "cotlab.duckdb").stat().st_size
    n_unreadable = 0
    for block in range((size - HEADERS) // BLOCK):
        for n_bytes in (8, 4096, 8192, BLOCK // 2, BLOCK - 4096, BLOCK):
            folder = tear(photographs, block, n_bytes)
            bare = shutil.copytree(folder, folder.with_name("bare"), dirs_exist_ok=True)
            copy_path(Store(bare).path).unlink()
            try:
                rows_of(bare)
            except StoreError as error:
                n_unreadable += "Corrupt database" in str(error)
            assert rows_of(folder) == [(1,), (2,)]
    assert n_unreadable >= 2, "no state here needed the copy: this test shows nothing"


def test_an_ended_checkpoint_is_not_undone(photographs: Path) -> None:
    assert copy_path(photographs / "after" / "cotlab.duckdb").exists()
    assert rows_of(photographs / "after") == [(1,), (2,)]


def test_a_copy_that_was_half_written_is_not_used(photographs: Path) -> None:
    copy = copy_path(photographs / "before" / "cotlab.duckdb")
    for n_bytes in (0, 20, copy.stat().st_size - 1):
        folder = shutil.copytree(photographs / "before", photographs / f"copy-{n_bytes}")
        with copy_path(folder / "cotlab.duckdb").open("rb+") as file:
            file.truncate(n_bytes)
        assert rows_of(folder) == [(1,), (2,)]
