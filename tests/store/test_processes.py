"""One store, several processes: shared, killed, held, full."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cotlab.core.errors import StoreBusy
from cotlab.store import read, write
from cotlab.store.database import Store
from cotlab.store.responses import ResponseLog, RunSpend
from tests.support.store_worker import SCORES_AN_ITEM, ended, reply, request

WORKER = Path(__file__).parents[1] / "support" / "store_worker.py"


def start(store: Store, what: str, name: str = "r") -> subprocess.Popen[str]:
    command = [sys.executable, str(WORKER), str(store.folder), what, name]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def said(process: subprocess.Popen[str]) -> list[str]:
    out, _ = process.communicate()
    assert process.returncode == 0
    return out.split("\n")[:-1]


@pytest.mark.soak
def test_two_processes_write_and_read_at_once(store: Store) -> None:
    both = [start(store, "share", name) for name in ("one", "two")]
    counts = [[int(line) for line in said(process)] for process in both]
    assert (
        counts == [[SCORES_AN_ITEM * k for k in range(1, 11)]] * 2
    )  # each sees its own rows grow, none lost on the way
    assert (
        len(read.run_scores(store, "one"))
        == len(read.run_scores(store, "two"))
        == 10 * SCORES_AN_ITEM
    )


def killed_after(process: subprocess.Popen[str], lines: int) -> list[str]:
    """The lines that a process said before kill −9, which comes once it has said so many."""
    assert process.stdout is not None
    got = [process.stdout.readline().strip() for _ in range(lines)]
    process.kill()
    got += [line.strip() for line in process.stdout if line.endswith("\n")]
    process.communicate()
    return got


@pytest.mark.parametrize("lines", [1, 6])
def test_what_was_acknowledged_survives_kill_9(store: Store, lines: int) -> None:
    acknowledged = killed_after(start(store, "write"), lines)
    assert len(acknowledged) >= lines
    found = read.run_scores(store, "r").groupby("item_id").size()
    assert set(acknowledged) <= set(found.index)
    assert set(found) == {SCORES_AN_ITEM}  # no item in part


def test_replies_survive_kill_9_and_open_calls_count_in_full(store: Store) -> None:
    told = [line.split() for line in killed_after(start(store, "log"), 41)]
    reserved = {int(i) for what, i in told if what == "reserved"}
    settled = {int(i) for what, i in told if what == "settled"}
    log = ResponseLog(store.log_path)
    have = {i for i in range(max(reserved) + 3) if log.get(request(f"r {i}").key) is not None}
    assert settled <= have
    spend = log.get_spend("r")
    assert spend.paid_micro == 7 * len(have)
    assert spend.reserved_micro in (0, 100) and spend.reserved_micro >= 100 * len(reserved - have)
    log.close()


@pytest.mark.soak
def test_two_processes_share_one_log(store: Store) -> None:
    for process in [start(store, "sharelog", name) for name in ("one", "two")]:
        said(process)
    log = ResponseLog(store.log_path)
    assert log.get_spend("both") == RunSpend(400, 0)
    for name in ("one", "two"):
        for i in range(200):
            asked = request(f"{name} {i}")
            assert log.get(asked.key) == reply(asked)
    log.close()


def test_a_store_that_stays_locked_is_told_with_its_holder(store: Store) -> None:
    holder = start(store, "hold")
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    waiting = Store(store.folder, lock_timeout_s=0.1)
    for opened in (waiting.reading, waiting.writing):
        with pytest.raises(StoreBusy, match=f"PID {holder.pid}") as caught, opened():
            pass
        assert caught.value.waited_s >= 0.1
    said(holder)
    assert read.run_scores(waiting, "r").empty


def test_a_full_disk_is_told_and_costs_no_row_that_was_there(store: Store) -> None:
    with store.writing() as connection:
        write.add_ended(connection, "r", [ended("kept")])
    message, after = said(start(store, "full"))
    assert "cannot be written" in message
    assert int(after) == SCORES_AN_ITEM  # the same process goes on once there is room
    assert read.run_scores(store, "r").groupby("item_id").size().to_dict() == {
        "kept": SCORES_AN_ITEM
    }
