"""Start runs in processes that outlive the page, the browser and the app; read their output."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cotlab.core.resources import checkout
from cotlab.core.types import Suite
from cotlab.run.config import as_yaml, run_fields
from cotlab.run.launch import RUN_ID
from cotlab.store import write
from cotlab.store.database import Store
from cotlab.suites.jsonl import write_suite

_STARTED: dict[str, subprocess.Popen[bytes]] = {}


_CLEARED_VARIABLES = {name: "" for field in run_fields().values() for name in field.variables}
"""Options of the environment do not reach a run that the page starts: its form has them all."""


def new_run_id() -> str:
    """Return an id for a run, made from the time."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"[:-3]


def keep_suite(store: Store, suite: Suite) -> Path:
    """Keep a suite in the store, and as a file that a run can be started from."""
    path = suite_path(store, suite)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_suite(suite, path)
    with store.writing() as connection:
        write.add_suite(connection, suite)
    return path


def suite_path(store: Store, suite: Suite) -> Path:
    """Return the file that a suite is kept in."""
    return store.folder / "suites" / suite.digest[:16] / f"{suite.name}.jsonl"


def spawn(store: Store, run_id: str, config: Mapping[str, Any]) -> None:
    """Start ``cotlab run`` with these settings, from a file that repeats it, in a new session."""
    folder = _folder(store, run_id)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.yaml").write_text(as_yaml(config), "utf-8")
    server = (
        ["--base-url", str(config["base_url"])] if config.get("base_url") else []
    )  # named by whoever pressed the button
    _start(
        store, run_id, ["run", "--config", str(folder / "run.yaml"), "--run-id", run_id, *server]
    )


def spawn_resume(
    store: Store, run_id: str, *, retry_refused: bool = False, max_cost: float | None = None
) -> None:
    """``cotlab run --resume`` for a run that was stopped."""
    more = (["--retry-refused"] if retry_refused else []) + (
        ["--max-cost", str(max_cost)] if max_cost is not None else []
    )
    _start(store, run_id, ["run", "--resume", run_id, *more])


def process_output(store: Store, run_id: str, lines: int = 6) -> str:
    """Return the end of the output of the run's process, for when it ended early."""
    path = _folder(store, run_id) / "output.log"
    if not path.exists():
        return ""
    output_lines = [
        line for line in path.read_text("utf-8", "replace").splitlines() if line.strip()
    ]
    start = next(
        (i for i, line in enumerate(output_lines) if line.startswith("error:")),
        max(0, len(output_lines) - lines),
    )
    return "\n".join(output_lines[start : start + 40])


def has_started(store: Store, run_id: str) -> bool:
    """Return whether a process was started here for a run of this id."""
    return RUN_ID.fullmatch(run_id) is not None and _folder(store, run_id).exists()


def has_ended(run_id: str) -> bool:
    """Whether the process that this server started for a run is gone."""
    process = _STARTED.get(run_id)
    return process is not None and process.poll() is not None


def is_going(run_id: str) -> bool:
    """Whether the process that this server started for a run is there."""
    process = _STARTED.get(run_id)
    return process is not None and process.poll() is None


def _folder(store: Store, run_id: str) -> Path:
    return store.folder / "processes" / Path(run_id).name


def _start(store: Store, run_id: str, arguments: list[str]) -> None:
    folder = _folder(store, run_id)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "output.log").open("wb") as log:
        _STARTED[run_id] = subprocess.Popen(
            [sys.executable, "-m", "cotlab", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=checkout(),
            env={
                **os.environ,
                **_CLEARED_VARIABLES,
                "COTLAB_STORE": str(store.folder),
                "TERM": "dumb",
            },
            start_new_session=True,
        )
