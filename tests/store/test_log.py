"""The response log's file: older ones are migrated, newer ones and other files are refused."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cotlab.core.errors import SchemaMismatch, StoreError
from cotlab.core.requests import Usage
from cotlab.store import log as log_file
from cotlab.store.responses import ResponseLog, RunSpend
from tests.support.store_worker import reply, request


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.sqlite"


@pytest.fixture
def log(path: Path) -> Iterator[ResponseLog]:
    log = ResponseLog(path)
    yield log
    log.close()


def test_a_log_of_before_batches_keeps_its_sums_and_counts_its_calls(path: Path) -> None:
    old = sqlite3.connect(path)
    for step in log_file.SCHEMA_STEPS[:2]:
        for statement in step:
            old.execute(statement)
    old.executescript(
        "INSERT INTO calls VALUES (1, 'k', 'r', 1, 100, 30, 'ok', ''), (2, 'l', 'r', 1, 100, NULL,"
        " NULL, ''), (3, 'l', 'r', 1, 100, 0, 'RateLimited', ''), (4, 'm', 'r', 1, 9, NULL, 'ok',"
        " ''), (5, 'k', 's', 1, 5, 5, 'ok', '');INSERT INTO spends VALUES ('r', 30, 109), ('s', 5,"
        " 0);PRAGMA user_version = 2;"
    )
    old.close()
    log = ResponseLog(path)
    assert log.get_spend("r") == RunSpend(30, 109) and log.get_spend("s") == RunSpend(5, 0)
    before = log.get_call_counts("r")
    # four calls, two of them with a reply; how many tokens those had was not summed then
    assert (before["calls"], before["uncounted"], before["tokens_in"], before["tokens_out"]) == (
        4,
        2,
        0,
        0,
    )
    assert (log.get_call_counts("s")["calls"], log.get_call_counts("s")["uncounted"]) == (1, 1)
    assert log.list_open_batches("r", "m") == [] and log.was_sent("r", "l")
    log.settle(2, 40, "ok", (request("a"), replace(reply(request("a")), usage=Usage(10, 5))))
    assert log.get_spend("r") == RunSpend(70, 9)
    assert log.get_call_counts("r") == before | {
        "replies": before["replies"] + 1,
        "tokens_in": 10,
        "tokens_out": 5,
    }
    log.close()


def test_a_newer_log_is_refused_by_name(path: Path, log: ResponseLog) -> None:
    newer = sqlite3.connect(path)
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    with pytest.raises(SchemaMismatch, match="schema 99"):
        ResponseLog(path)


def test_what_is_no_log_is_told(tmp_path: Path) -> None:
    (tmp_path / "log.sqlite").write_bytes(b"not a database" * 999)
    with pytest.raises(StoreError, match="cannot be opened"):
        ResponseLog(tmp_path / "log.sqlite")
    with pytest.raises(StoreError, match="cannot be opened"):
        ResponseLog(tmp_path / "log.sqlite" / "below a file")
