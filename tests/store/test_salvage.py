"""Damage of a store is found and named, and what can be read is kept."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from pandas.testing import assert_frame_equal

from cotlab.core.errors import SchemaMismatch, StoreError
from cotlab.store import read, write
from cotlab.store.database import Store
from cotlab.store.salvage import find_damage, salvage
from tests.support.command import cotlab
from tests.support.running import own_suite, replies
from tests.support.store_worker import ended

DUCKDB_BLOCK, FIRST_BLOCK = 262_144, 12_288


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a finished run, and one of many items."""
    folder = tmp_path_factory.mktemp("finished")
    words = (*own_suite(folder), "--provider=echo", "--model=echo", "--scorer=ablation")
    cotlab("run", *words, "--run-id=r", store=folder)
    with Store(folder).writing() as connection:
        # written twice: the row ids of what was replaced are free
        write.add_ended(connection, "many", [ended(f"i{i}-{i * i}") for i in range(20_000)])
    with Store(folder).writing() as connection:
        write.add_ended(connection, "many", [ended(f"i{i}-{i * i}") for i in range(20_000)])
    with closing(sqlite3.connect(folder / "log.sqlite")) as rows:
        rows.execute("PRAGMA journal_mode=DELETE")
    return folder


@pytest.fixture
def store(finished: Path, tmp_path: Path) -> Store:
    return Store(shutil.copytree(finished, tmp_path / "store"))


def flip(path: Path, offset: int) -> None:
    with path.open("rb+") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 0x10]))


def test_an_undamaged_store_is_ok(store: Store) -> None:
    assert "every row can be read" in cotlab("doctor", "--store", store=store.folder).stdout


@pytest.mark.soak
def test_one_byte_of_the_scores_costs_the_rows_of_its_block(store: Store) -> None:
    runs = ("many", "r")
    scores = [read.run_scores(store, run) for run in runs]
    n_blocks = (store.path.stat().st_size - FIRST_BLOCK) // DUCKDB_BLOCK
    for block in reversed(range(n_blocks)):
        flip(store.path, FIRST_BLOCK + block * DUCKDB_BLOCK + 5000)
        damages = find_damage(store)
        if [damage.table for damage in damages] == ["scores"]:
            break
        flip(store.path, FIRST_BLOCK + block * DUCKDB_BLOCK + 5000)
    else:
        pytest.fail("no block holds scores alone")
    with pytest.raises(StoreError, match="cannot be read: Corrupt database"):
        read.run_scores(store, "many")
    told = cotlab("doctor", "--store", store=store.folder, code=3).stdout
    assert f"{damages[0].n_lost:,} rows of scores cannot be read" in told
    told = cotlab("doctor", "--store", "--salvage", store=store.folder).stdout
    assert all(f"cotlab run --resume {run}" in told for run in runs) and "damaged-" in told
    assert find_damage(store) == []
    after = read.run_scores(Store(store.folder), "many")
    assert 0 < len(after) <= sum(map(len, scores)) - (damages[0].n_lost or 0)
    assert set(after.groupby("item_id").size()) == {3}  # no item in part
    assert set(after["item_id"]) == set(read.list_ended_pairs(store, "many")["item"])
    n_replies = replies(store.folder)
    cotlab("run", "--resume", "r", store=store.folder)
    assert replies(store.folder) == n_replies  # what was paid for is not asked again
    again = read.run_scores(Store(store.folder), "r")
    columns = ["metric", "item_id", "facet", "step", "sample", "value", "status"]
    assert_frame_equal(
        *(
            frame[columns].sort_values(columns[:5], ignore_index=True)
            for frame in (again, scores[1])
        )
    )


SALVAGED_IN_A_CHILD = """
import sys
from pathlib import Path
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.store.salvage import find_damage, salvage
for folder in map(Path, sys.argv[1:]):
    store = Store(folder)
    named = {(damage.table, damage.n_lost) for damage in find_damage(store)}
    assert {(damage.table, damage.n_lost) for damage in salvage(store).damages} <= named
    assert find_damage(Store(folder)) == []
    print(len(named), len(read.list_ended_pairs(Store(folder), "few")))
"""
N_ENDED = 300


def test_a_database_that_is_damaged_anywhere_is_named_and_salvaged(tmp_path: Path) -> None:
    """In a process of its own, which a crash of the database would end."""
    whole = Store(tmp_path / "whole")
    with whole.writing() as connection:
        write.add_ended(connection, "few", [ended(f"i{i}") for i in range(N_ENDED)])
    content, random = whole.path.read_bytes(), Random(7)
    folders = []
    for number in range(4):
        offset, start = random.randrange(len(content)), random.randrange(len(content))
        flipped = bytearray(content)
        flipped[number * 4096 + 16 if number < 3 else offset] ^= 1 << random.randrange(8)
        zeroed = content[:start] + bytes(DUCKDB_BLOCK) + content[start + DUCKDB_BLOCK :]
        for damaged in (flipped, zeroed, content[:offset]):
            folders.append(tmp_path / f"{len(folders)}")
            folders[-1].mkdir()
            (folders[-1] / "cotlab.duckdb").write_bytes(damaged)
    done = subprocess.run(
        [sys.executable, "-c", SALVAGED_IN_A_CHILD, *map(str, folders)],
        capture_output=True,
        check=False,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    found = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert len(found) == len(folders)
    # what is lost is always named
    assert all(n_damaged or n_kept == N_ENDED for n_damaged, n_kept in found)
    assert sum(n_damaged > 0 for n_damaged, _ in found) >= 8


def test_a_database_that_cannot_be_opened_leaves_the_replies(store: Store) -> None:
    flip(store.path, FIRST_BLOCK + 100)
    n_replies = replies(store.folder)
    told = cotlab("doctor", "--store", store=store.folder, code=3).stdout
    assert "cotlab.duckdb: all rows cannot be read" in told
    cotlab("doctor", "--store", "--salvage", store=store.folder)
    assert replies(store.folder) == n_replies
    assert read.list_runs(Store(store.folder)).empty


def test_a_damaged_page_of_the_log_costs_its_rows(store: Store) -> None:
    n_replies = replies(store.folder)
    with closing(sqlite3.connect(store.log_path)) as rows:
        pages = (
            rows.execute(
                "SELECT pageno FROM dbstat WHERE name = 'replies' AND pagetype = 'leaf'"
            ).fetchall()
            if _has_dbstat(rows)
            else [(4,)]
        )
    with store.log_path.open("rb+") as file:
        file.seek((pages[len(pages) // 2][0] - 1) * 4096)
        file.write(b"\xa5" * 4096)
    damages = find_damage(store)
    assert [damage.table for damage in damages] == ["replies"]
    told = cotlab("doctor", "--store", "--salvage", store=store.folder).stdout
    assert f"{damages[0].n_lost:,} rows of replies cannot be read" in told
    assert find_damage(store) == []
    assert 0 < replies(store.folder) == n_replies - (damages[0].n_lost or 0)
    cotlab("run", "--resume", "r", store=store.folder)


def _has_dbstat(rows: sqlite3.Connection) -> bool:
    try:
        rows.execute("SELECT 1 FROM dbstat LIMIT 1")
    except sqlite3.OperationalError:
        return False
    return True


@pytest.mark.parametrize("damaged", ["'#' || response", "CAST(x'7b22ff223a317d' AS TEXT)"])
def test_a_reply_that_is_no_json_is_named_and_dropped(store: Store, damaged: str) -> None:
    n_replies = replies(store.folder)
    with closing(sqlite3.connect(store.log_path, isolation_level=None)) as rows:
        rows.execute(f"UPDATE replies SET response = {damaged} WHERE rowid = 3")
    assert "1 rows of replies" in cotlab("doctor", "--store", store=store.folder, code=3).stdout
    cotlab("doctor", "--store", "--salvage", store=store.folder)
    assert replies(store.folder) == n_replies - 1 and find_damage(store) == []


def test_a_damaged_page_of_a_long_reply_costs_that_reply(store: Store) -> None:
    with closing(sqlite3.connect(store.log_path, isolation_level=None)) as rows:
        (n_pages,) = rows.execute("PRAGMA page_count").fetchone()
        rows.execute(
            "UPDATE replies SET response = json_set(response, '$.text', printf('%.40000c', 'x'))"
            " WHERE rowid = 3"
        )
        rows.execute("PRAGMA journal_mode=DELETE").fetchall()
    with store.log_path.open("rb+") as file:
        file.seek((n_pages + 3) * 4096)
        file.write(b"\xa5" * 4096)
    n_replies = replies(store.folder)
    assert "1 rows of replies" in cotlab("doctor", "--store", store=store.folder, code=3).stdout
    cotlab("doctor", "--store", "--salvage", store=store.folder)
    assert replies(store.folder) == n_replies - 1 and find_damage(store) == []


def test_a_log_that_is_none_is_replaced_by_an_empty_one(store: Store) -> None:
    store.log_path.write_bytes(b"\xa5" * 20_000)
    assert "log.sqlite: all rows cannot be read" in (
        cotlab("doctor", "--store", store=store.folder, code=3).stdout
    )
    assert salvage(store).replaced is not None
    assert find_damage(store) == [] and "r" in set(read.list_runs(store)["id"])
    assert cotlab("report", "r", store=store.folder).stdout
    assert "--store" in cotlab("doctor", "--salvage", store=store.folder, code=2).stderr


@pytest.mark.parametrize("path", ["path", "log_path"])
def test_a_store_of_a_newer_version_is_not_salvaged(store: Store, path: str) -> None:
    if path == "path":
        with store.writing() as connection:
            connection.execute("INSERT INTO schema_version VALUES (99)")
    else:
        with closing(sqlite3.connect(store.log_path)) as rows:
            rows.execute("PRAGMA user_version = 99")
    with pytest.raises(SchemaMismatch):
        salvage(store)
    assert getattr(store, path).exists()


def test_labels_keep_their_order_after_a_salvage(store: Store) -> None:
    with store.writing() as connection:
        connection.execute("INSERT INTO audit (who) SELECT 'ann' FROM range(5)")
    assert salvage(store).damages == []
    with Store(store.folder).writing() as connection:
        connection.execute("INSERT INTO audit (who) VALUES ('bob')")
        rows = connection.execute("SELECT who FROM audit ORDER BY seq DESC").fetchall()
    assert len(rows) >= 6 and rows[0] == ("bob",)
