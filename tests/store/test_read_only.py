"""A store that may not be written is read: its reports, a killed run's last rows, an older log."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from cotlab.store.log import SCHEMA_STEPS
from tests.support.command import cotlab
from tests.support.running import own_suite

AS_OTHERS = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if not os.getuid() else []
"""Root may write whatever the permissions say, unless it gives that up."""


WORKER = Path(__file__).parents[1] / "support" / "store_worker.py"
SPENT = (
    "import sys; from pathlib import Path; from cotlab.store.responses import ResponseLog;"
    " print(ResponseLog(Path(sys.argv[1])).get_spend('r').paid_micro)"
)


def read_as_others(folder: Path, *words: str) -> tuple[int, str, str]:
    """Run Python where nobody may write the folder; exit code, stdout and stderr."""
    before = sorted(folder.rglob("*"))
    for path in [*before, folder]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        done = subprocess.run(
            [*AS_OTHERS, sys.executable, *words],
            env={**os.environ, "COTLAB_STORE": str(folder)},
            capture_output=True,
            text=True,
        )
    finally:
        for path in [folder, *before]:
            path.chmod(0o755)
    assert sorted(folder.rglob("*")) == before
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    suite = own_suite(tmp_path)
    cotlab(
        "run",
        *suite,
        "--provider=echo",
        "--model=echo",
        "--scorer=ablation",
        "--run-id=r",
        store=folder,
    )
    return folder


def test_a_report_is_made_of_a_read_only_store(store: Path) -> None:
    expected = cotlab("report", "r", "--format=json", store=store).stdout
    code, out, err = read_as_others(store, "-m", "cotlab", "report", "r", "--format=json")
    assert (code, out) == (0, expected), err


def test_rows_that_a_killed_process_left_in_the_write_ahead_log_are_read(tmp_path: Path) -> None:
    worker = subprocess.Popen(
        [sys.executable, str(WORKER), str(tmp_path), "log", "r"], stdout=subprocess.PIPE, text=True
    )
    assert worker.stdout is not None
    while worker.stdout.readline() != "settled 5\n":
        pass
    worker.kill()
    worker.communicate()
    assert (tmp_path / "log.sqlite-wal").stat().st_size
    code, out, _ = read_as_others(tmp_path, "-c", SPENT, str(tmp_path / "log.sqlite"))
    assert code == 0 and int(out) >= 6 * 7
    (tmp_path / "log.sqlite-shm").unlink()
    code, _, err = read_as_others(tmp_path, "-c", SPENT, str(tmp_path / "log.sqlite"))
    assert code == 1 and "log.sqlite-wal: holds rows that cannot be read" in err


def test_no_log_is_read_and_an_older_one_is_one_message(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    assert read_as_others(tmp_path, "-c", SPENT, str(path))[:2] == (0, "0\n")
    with closing(sqlite3.connect(path, isolation_level=None)) as log:
        for statement in (*SCHEMA_STEPS[0], *SCHEMA_STEPS[1], "PRAGMA user_version = 2"):
            log.execute(statement)
        log.execute("INSERT INTO spends VALUES ('r', 70, 0)")
    code, _, err = read_as_others(tmp_path, "-c", SPENT, str(path))
    assert code == 1 and "copy the store to a folder that can be written" in err
    with closing(sqlite3.connect(path)) as log:
        assert log.execute("PRAGMA user_version").fetchone() == (2,)
