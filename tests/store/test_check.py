"""``cotlab doctor`` says what is damaged or missing, and what is rebuilt is as it was."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from cotlab.core.errors import StoreError
from cotlab.core.requests import Complete, Message, Response, Usage
from cotlab.core.types import ModelRef
from cotlab.store import read, write
from cotlab.store.database import Store
from cotlab.store.log import open_log
from cotlab.store.responses import ResponseLog
from tests.store.test_copy import fill, rows
from tests.support.command import cotlab
from tests.support.running import own_suite
from tests.support.store_worker import ended

REQUEST = Complete(ModelRef("openai_compat", "m"), (Message("user", "Why?"),))
OTHER = Complete(ModelRef("openai_compat", "m"), (Message("user", "How?"),))
REPLY = Response(REQUEST.key, "Because.", usage=Usage(3, 2))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a finished run."""
    folder = tmp_path_factory.mktemp("finished")
    words = (*own_suite(folder), "--provider=echo", "--model=echo", "--scorer=ablation")
    cotlab("run", *words, "--run-id=r", store=folder)
    with closing(sqlite3.connect(folder / "log.sqlite")) as log:
        log.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return folder


@pytest.fixture
def store(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "store"))


def change_replies(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / "log.sqlite", isolation_level=None)) as log:
        log.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE replies SET response = replace(response, '7', '5')",
        "DELETE FROM replies WHERE kind = 'complete'",
        "UPDATE replies SET digest = NULL",
    ],
)
def test_a_report_on_fewer_replies_says_so_and_is_no_success(store: Path, statement: str) -> None:
    before = cotlab("report", "r", store=store).stdout
    assert "ok " in cotlab("doctor", "--store", store=store).stdout
    change_replies(store, statement)
    told = cotlab("report", "r", store=store, code=3)
    assert "are missing or changed" in told.stderr and "**Missing replies:**" in told.stdout
    kept = [line for line in told.stdout.splitlines() if "Missing replies" not in line]
    assert kept == before.splitlines()
    assert "damaged" in cotlab("doctor", "--store", store=store, code=3).stdout


def test_a_lost_log_leaves_all_but_the_replies(store: Path) -> None:
    before = rows(Store(store))
    (store / "log.sqlite").unlink()
    assert "was lost or replaced" in cotlab("report", "r", store=store, code=3).stderr
    told = cotlab("doctor", "--rebuild", store=store, code=3).stdout
    assert "its replies are gone" in " ".join(told.split())
    assert {**rows(Store(store)), "run_results": []} == {**before, "run_results": []}
    assert "missing or changed" in cotlab("report", "r", store=store, code=3).stderr


def test_a_flipped_bit_anywhere_in_the_copy_loses_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    fill(store)
    before, content = rows(store), store.path.read_bytes()
    block = 256 * 1024
    for place in (*range(0, 3 * 4096, 4096), *range(3 * 4096, len(content), block)):
        damaged = bytearray(content)
        damaged[place + 40] ^= 4
        store.path.write_bytes(damaged)
        Store(store.folder).rebuild()
        assert rows(store) == before


def test_a_flipped_bit_in_the_log_is_named(store: Path) -> None:
    path = store / "log.sqlite"
    with closing(sqlite3.connect(path)) as log:
        log.execute("PRAGMA journal_mode=DELETE")
    content = path.read_bytes()
    with closing(sqlite3.connect(path)) as log:
        key, text = log.execute("SELECT key, response FROM replies LIMIT 1").fetchone()
    place = content.index(text.encode()) + 30
    damaged = bytearray(content)
    damaged[place] ^= 1
    path.write_bytes(damaged)
    assert f"the reply {key}" in cotlab("doctor", "--store", store=store, code=3).stdout


def test_the_files_of_before_a_migration_come_back(store: Path) -> None:
    from tests.store.test_copy import older

    older(Store(store), 8)
    content = (store / "cotlab.duckdb").read_bytes()
    cotlab("runs", store=store)
    cotlab("doctor", "--use-old", store=store)
    assert (store / "cotlab.duckdb").read_bytes() == content
    cotlab("report", "r", store=store)  # which brings them forward again


WORK = """
import sys
from pathlib import Path
from cotlab.store import write
from cotlab.store.backup import back_up, restore
from cotlab.store.database import Store
from tests.support.store_worker import ended
store, what = Store(Path(sys.argv[1])), sys.argv[2]
print("begin", flush=True)
for k in range(1000):
    if what == "write":
        with store.writing() as connection:
            write.add_ended(connection, "r", [ended(str(k))])
        print(k, flush=True)
    elif what == "rebuild":
        store.rebuild()
    elif what == "backup":
        back_up(store)
"""


@pytest.mark.parametrize("what", ["write", "rebuild", "backup"])
def test_a_kill_at_any_moment_loses_nothing(tmp_path: Path, what: str, n_kills: int = 4) -> None:
    store = Store(tmp_path / "store")
    with store.writing() as connection:
        write.add_ended(connection, "kept", [ended("kept")])
    for k in range(n_kills):
        words = [sys.executable, "-c", WORK, str(store.folder), what]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None and process.stdout.readline()
        time.sleep(0.3 + 0.37 * k)
        process.kill()
        told = process.communicate()[0].split()
        again = Store(store.folder)
        scores = read.run_scores(again, "r").groupby("item_id").size()
        assert set(scores) <= {3} and {str(n) for n in told if n.isdigit()} <= set(scores.index)
        assert len(read.run_scores(again, "kept")) == 3
    with Store(store.folder).writing():
        pass


@pytest.mark.soak
@pytest.mark.parametrize("what", ["write", "rebuild", "backup"])
def test_thirty_kills_lose_nothing(tmp_path: Path, what: str) -> None:
    test_a_kill_at_any_moment_loses_nothing(tmp_path, what, n_kills=30)


def overwrite(path: Path, start: int, n_bytes: int) -> None:
    content = bytearray(path.read_bytes())
    content[start : start + n_bytes] = b"\xa5" * len(content[start : start + n_bytes])
    path.write_bytes(content)


@pytest.mark.parametrize("words", [("report", "r"), ("run", "--resume", "r")], ids=" ".join)
@pytest.mark.parametrize("start", [0, 4096])
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
