"""Of two runs that are started with one id, whoever starts them and when, one goes on and the other
asks nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from cotlab.core.errors import ConfigError
from cotlab.run import launch
from cotlab.run.config import read_config
from cotlab.run.resolved import ResolvedRun
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.store.live import LiveRunStore
from tests.support.forked import Forking, printed
from tests.support.params import soak
from tests.support.running import STEPS, own_suite, row, scores

ECHO = ("--provider", "echo", "--model", "latency_s=0.02", "--max-concurrent", "4")


def calls(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "log.sqlite", timeout=30)) as log:
        return int(log.execute("SELECT count(*) FROM calls").fetchone()[0])


@pytest.mark.parametrize("rounds", [2, soak(40)])
def test_two_processes_that_start_one_run_at_once_make_one_run(
    tmp_path: Path, runs: Forking, rounds: int
) -> None:
    suite = own_suite(tmp_path)
    alone = {}
    for mode in ("remove", "filler"):
        assert runs.run(tmp_path / mode, *suite, *ECHO, "--mode", mode, "--run-id", "r") == 0
        alone[mode] = calls(tmp_path / mode)
    for number in range(rounds):
        folder = tmp_path / f"round-{number}"
        both = {
            mode: runs.start(folder, *suite, *ECHO, "--mode", mode, "--run-id", "r")
            for mode in alone
        }
        codes = {mode: runs.wait(pid) for mode, pid in both.items()}
        assert sorted(codes.values()) == [0, 2], printed(folder)
        assert "There is a run 'r' already" in printed(folder) and "Traceback" not in printed(
            folder
        )
        assert list(read.list_runs(Store(folder))["id"]) == ["r"]
        winner = next(mode for mode, code in codes.items() if code == 0)
        assert (
            calls(folder) == row(folder, "r")["asked"] == alone[winner]
        )  # the other one asked nothing
        facets = set(scores(folder, "r")["facet"])
        assert all(winner in facet for facet in facets if "mode" in facet)
        assert (
            scores(folder, "r").equals(scores(tmp_path / winner, "r"))
            and len(scores(folder, "r")) >= 6 * STEPS
        )


def test_an_id_that_is_taken_while_a_model_is_opened_is_turned_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = read_config(
        {
            "task_suite": own_suite(tmp_path)[1],
            "provider": "echo",
            "model": "echo",
            "mode": ["remove"],
        }
    )
    store, opened = Store(tmp_path), ResolvedRun.open_providers
    ends: list[launch.FinishedRun] = []

    def slowly(*given: object) -> object:
        """Another start with the same id comes first."""
        monkeypatch.setattr(ResolvedRun, "open_providers", opened)
        ends.append(launch.start_run(config, store, run_id="r"))
        return opened(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(ResolvedRun, "open_providers", slowly)
    with pytest.raises(ConfigError, match="There is a run 'r' already: --resume goes on with it"):
        launch.start_run(config, store, run_id="r")
    assert [end.status for end in ends] == ["done"] and list(read.list_runs(store)["id"]) == ["r"]


def test_a_run_is_claimed_with_its_row(tmp_path: Path) -> None:
    """No moment passes in which a run is known to the store and could be resumed beside the process
    that began it."""
    words = {
        "task_suite": own_suite(tmp_path)[1],
        "provider": "echo",
        "model": "latency_s=0.05",
        "mode": ["remove"],
    }
    config = read_config(words | {"max_concurrent": 2})
    seen: list[bool | None] = []

    def look(run_id: str) -> None:
        live = LiveRunStore(Store(tmp_path).log_path)
        found = live.get(run_id)
        seen.append(found and found.is_running)
        assert live.request_stop(run_id) is True  # before it has begun to ask
        live.close()

    end = launch.start_run(config, Store(tmp_path), run_id="r", announce=look)
    assert seen == [True]
    assert end.status == "stopped" and row(tmp_path, "r")["asked"] <= 2


def test_a_run_that_could_not_begin_is_free_for_any_machine(tmp_path: Path) -> None:
    config = read_config(
        {
            "task_suite": own_suite(tmp_path)[1],
            "provider": "echo",
            "model": "echo",
            "mode": ["remove"],
        }
    )

    def fail(run_id: str) -> None:
        raise OSError(f"no room to announce {run_id}")

    for begin in (
        lambda: launch.start_run(config, Store(tmp_path), run_id="r", announce=fail),
        lambda: launch.resume_run("r", {}, Store(tmp_path), announce=fail),
    ):
        with pytest.raises(OSError, match="no room"):
            begin()
        live = LiveRunStore(Store(tmp_path).log_path)
        found = live.get("r")
        live.close()
        assert found is not None and not found.is_running and found.free_in_s == 0
    assert launch.resume_run("r", {}, Store(tmp_path)).status == "done"
