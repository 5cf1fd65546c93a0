"""The folder of a run's reports: that it can be written, and the configuration in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from cotlab.core.errors import ConfigError, StoreError
from cotlab.run.config import RunConfig, config_to_yaml


def check_writable(folder: Path) -> None:
    """Raise ConfigError before the first request where the reports cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.md").touch()
    except OSError as error:
        raise ConfigError(
            f"--output {folder}: reports cannot be written there: {error.strerror}."
        ) from error


@contextmanager
def explained_write_errors(folder: Path) -> Iterator[None]:
    """Raise StoreError where a file of a run's reports cannot be written, as on a full disk."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{folder}: the run's reports cannot be written: {error.strerror}. What is in the store"
            " stays; write them later with cotlab report RUN."
        ) from error


@contextmanager
def atomic_file(path: Path) -> Iterator[TextIO]:
    """Write a text file in pieces; it takes its name at the end, and leaves nothing on an error."""
    temporary_path = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary_path.open("w", encoding="utf-8") as file:
            yield file
        temporary_path.replace(path)
    finally:
        temporary_path.unlink(missing_ok=True)


def write_run_yaml(config: RunConfig, folder: Path) -> None:
    """Write the configuration that repeats a run, without the folder of its reports."""
    stored_config = config.model_dump(mode="json") | {"output": None}
    with explained_write_errors(folder):
        (folder / "run.yaml").write_text(config_to_yaml(stored_config), "utf-8")
