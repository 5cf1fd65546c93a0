"""Start runs in processes that outlive the page, the browser and the app; read their output."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cotlab.core.resources import checkout_root
from cotlab.core.types import Suite
from cotlab.run.claims import RUN_ID_PATTERN
from cotlab.run.config import FORMER_VARIABLES, config_to_yaml, read_config, run_fields
from cotlab.store import write
from cotlab.store.database import Store
from cotlab.suites.jsonl import write_suite

_PROCESS_BY_RUN: dict[str, subprocess.Popen[bytes]] = {}


_CLEARED_VARIABLES = {
    name: ""
    for names in (FORMER_VARIABLES, *(field.env_variables for field in run_fields().values()))
    for name in names
}
"""Options of the environment do not reach a run that the page starts: its form has them all."""


def new_run_id() -> str:
    """Return an id for a run, made from the time."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"[:-3]


def save_suite(store: Store, suite: Suite) -> Path:
    """Save a suite in the store, and as a file from which a run can be started."""
    path = suite_file_path(store, suite)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_suite(suite, path)
    with store.writing() as connection:
        write.add_suite(connection, suite)
    return path


def suite_file_path(store: Store, suite: Suite) -> Path:
    """Return the path of a stored suite's file."""
    return store.folder / "suites" / suite.digest[:16] / f"{suite.name}.jsonl"


def spawn_run(store: Store, run_id: str, config: Mapping[str, Any]) -> None:
    """Start ``cotlab run`` with these settings, from a file that repeats it, in a new session."""
    folder = _run_folder(store, run_id)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.yaml").write_text(config_to_yaml(config), "utf-8")
    arguments = ["run", "--config", str(folder / "run.yaml"), "--run-id", run_id]
    if config.get("base_url"):  # named by whoever pressed the button
        arguments += ["--base-url", str(config["base_url"])]
    from_files = read_config({})
    for entry, value in (config.get("role") or {}).items():
        if not from_files.file_of(f"role.{entry}") or from_files.role[entry] != value:
            arguments += [run_fields()["role"].flag, f"{entry}={value}"]
    _start_process(store, run_id, arguments)


def spawn_resume(
    store: Store, run_id: str, *, retry_refused: bool = False, max_cost: float | None = None
) -> None:
    """``cotlab run --resume`` for a run that was stopped."""
    arguments = ["run", "--resume", run_id, *["--retry-refused"] * retry_refused]
    if max_cost is not None:
        arguments += ["--max-cost", str(max_cost)]
    _start_process(store, run_id, arguments)


def process_output(store: Store, run_id: str, n_lines: int = 6) -> str:
    """Return the end of the output of the run's process, for when it ended early."""
    path = _run_folder(store, run_id) / "output.log"
    if not path.exists():
        return ""
    output_lines = [
        line for line in path.read_text("utf-8", "replace").splitlines() if line.strip()
    ]
    first_line_index = next(
        (i for i, line in enumerate(output_lines) if line.startswith("error:")),
        max(0, len(output_lines) - n_lines),
    )
    return "\n".join(output_lines[first_line_index : first_line_index + 40])


def has_started(store: Store, run_id: str) -> bool:
    """Return whether a process was started here for a run of this id."""
    return RUN_ID_PATTERN.fullmatch(run_id) is not None and _run_folder(store, run_id).exists()


def has_ended(run_id: str) -> bool:
    """Return whether the process that this server started for a run has ended."""
    process = _PROCESS_BY_RUN.get(run_id)
    return process is not None and process.poll() is not None


def is_running(run_id: str) -> bool:
    """Return whether the process that this server started for a run is still running."""
    process = _PROCESS_BY_RUN.get(run_id)
    return process is not None and process.poll() is None


def _run_folder(store: Store, run_id: str) -> Path:
    return store.folder / "processes" / Path(run_id).name


def _start_process(store: Store, run_id: str, arguments: list[str]) -> None:
    folder = _run_folder(store, run_id)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "output.log").open("wb") as log_file:
        _PROCESS_BY_RUN[run_id] = subprocess.Popen(
            [sys.executable, "-m", "cotlab", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log_file,
            stderr=subprocess.STDOUT,
            cwd=checkout_root(),
            env={
                **os.environ,
                **_CLEARED_VARIABLES,
                "COTLAB_STORE": str(store.folder),
                "TERM": "dumb",
            },
            start_new_session=True,
        )
