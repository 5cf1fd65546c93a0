"""Damaged files of a store: one message and no traceback, and a damaged reply costs that reply."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cotlab.core.errors import StoreError
from cotlab.core.requests import Complete, Message, Response, Usage
from cotlab.core.types import ModelRef
from cotlab.store.log import open_log
from cotlab.store.responses import ResponseLog
from tests.support.command import cotlab
from tests.support.running import own_suite

REQUEST = Complete(ModelRef("openai_compat", "m"), (Message("user", "Why?"),))
OTHER = Complete(ModelRef("openai_compat", "m"), (Message("user", "How?"),))
REPLY = Response(REQUEST.key, "Because.", usage=Usage(3, 2))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a finished run."""
    folder = tmp_path_factory.mktemp("finished")
    words = (*own_suite(folder), "--provider", "echo", "--model", "echo", "--run-id", "r")
    cotlab("run", *words, store=folder)
    with closing(sqlite3.connect(folder / "log.sqlite")) as rows:
        rows.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return folder


@pytest.fixture
def store(finished: Path, tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "store"
    shutil.copytree(finished, folder)
    yield folder


def overwrite(path: Path, start: int, n_bytes: int) -> None:
    content = bytearray(path.read_bytes())
    content[start : start + n_bytes] = b"\xa5" * len(content[start : start + n_bytes])
    path.write_bytes(content)


@pytest.mark.parametrize("words", [("report", "r"), ("run", "--resume", "r")], ids=" ".join)
@pytest.mark.parametrize("start", [0, 100, 4096])
def test_a_damaged_log_is_one_message(store: Path, words: tuple[str, ...], start: int) -> None:
    overwrite(store / "log.sqlite", start, 20_000)
    told = cotlab(*words, store=store, code=3)
    assert "log.sqlite: the response log can" in told.stderr and "backup" in told.stderr


@pytest.mark.parametrize("start", [0, 3 * 4096])
def test_a_copy_that_cannot_be_opened_is_made_again(store: Path, start: int) -> None:
    before = cotlab("report", "r", store=store).stdout
    overwrite(store / "cotlab.duckdb", start, 2_000_000)
    assert cotlab("report", "r", store=store).stdout == before


@pytest.mark.parametrize("damaged", ["'{' || response", "CAST(x'7bff7d' AS TEXT)", "NULL", "'[]'"])
def test_a_damaged_reply_is_asked_for_again_and_replaced(tmp_path: Path, damaged: str) -> None:
    path = tmp_path / "log.sqlite"
    with closing(ResponseLog(path)) as log:
        log.put([(REQUEST, REPLY), (OTHER, Response(OTHER.key, "So."))], "r")
        with closing(sqlite3.connect(path, isolation_level=None)) as rows:
            rows.execute(f"UPDATE replies SET response = {damaged} WHERE key = ?", (REQUEST.key,))
        assert log.get(REQUEST.key) is None and log.get(OTHER.key) is not None
        exchanges = log.load_exchanges([REQUEST.key, OTHER.key])
        assert exchanges[REQUEST.key][1] in (None, {}) and exchanges[OTHER.key][1] is not None
        assert OTHER.key in log.reply_time_by_key([REQUEST.key, OTHER.key])
        assert log.list_overshoots("r") == []
        claim = log.reserve(REQUEST, "r", 10, 100)
        assert claim.call_id is not None
        log.settle(claim.call_id, 5, "ok", (REQUEST, REPLY))
        assert log.get(REQUEST.key) == REPLY


def test_errors_of_sqlite_are_errors_of_the_store(tmp_path: Path) -> None:
    with (
        closing(open_log(tmp_path / "log.sqlite")) as connection,
        pytest.raises(StoreError, match=r"log\.sqlite: .* no such table: nowhere"),
    ):
        connection.execute("SELECT * FROM nowhere")
