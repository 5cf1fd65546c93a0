"""Putting other files in the place of a store's, so that a kill at any moment loses neither.

``restoring/new`` holds the files to come, ``restoring/old`` those that were moved away. While
``restoring`` exists the store is not opened.
"""

from __future__ import annotations

import fcntl
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from cotlab.core.errors import StoreBusy, StoreError

DATABASE, LOG = "cotlab.duckdb", "log.sqlite"
SIDE_FILES = (f"{DATABASE}.wal", f"{DATABASE}.blocks", f"{LOG}-wal", f"{LOG}-shm", f"{LOG}-journal")
"""Files that belong to one of the two while it is open, and after its process was killed."""
STORE_ENTRIES = (
    *(DATABASE, LOG, *SIDE_FILES, "reports", "suites", "processes", "validation"),
    "guidelines.txt",
)
"""What of a store's folder is backed up and replaced; other files in it stay as they are."""
BACKUPS, RESTORING = "backups", "restoring"
LOCK_WAIT_S = 5.0
"""Seconds to wait for other processes before StoreBusy."""


def check_integrity(folder: Path) -> None:
    """Raise StoreError where a restore was interrupted half way."""
    if (folder / RESTORING).exists():
        raise StoreError(
            f"{folder}: files of this store are being replaced. If that was interrupted, finish it"
            " with: cotlab restore"
        )


def swap_in(folder: Path, staged: Path, name: str = "replaced") -> Path | None:
    """Replace a store's files by those in ``staged / "new"``; finish an interrupted swap before.

    Returns
    -------
    Path or None
        The folder under ``backups``, ``NAME-TIME``, that now holds the old files; None where there
        were none.
    """
    finish_swap(folder)
    staged.rename(folder / RESTORING)
    return finish_swap(folder, name)


def finish_swap(folder: Path, name: str = "replaced") -> Path | None:
    """Finish a swap that was begun, from wherever it was interrupted; return as ``swap_in``."""
    new, old = folder / RESTORING / "new", folder / RESTORING / "old"
    if new.exists() and not old.exists():
        partial = folder / RESTORING / "old.partial"
        partial.mkdir(exist_ok=True)
        for entry in STORE_ENTRIES:
            if (folder / entry).exists():
                (folder / entry).rename(partial / entry)
        partial.rename(old)
    if new.exists():
        for path in sorted(new.iterdir()):
            path.rename(folder / path.name)
        new.rmdir()
    replaced = None
    if old.exists() and any(old.iterdir()):
        (folder / BACKUPS).mkdir(exist_ok=True)
        replaced = folder / BACKUPS / f"{name}-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"[:-3]
        old.rename(replaced)
    shutil.rmtree(folder / RESTORING, ignore_errors=True)
    return replaced


@contextmanager
def take_locks(folder: Path) -> Iterator[None]:
    """Lock both files of a store for the block, as far as they are there and undamaged.

    Raises
    ------
    StoreBusy
        If another process has one of them open.
    """
    with ExitStack() as stack:
        if (folder / DATABASE).exists():
            file = stack.enter_context((folder / DATABASE).open("rb+"))
            for is_last in _attempts():
                try:
                    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError as error:
                    if is_last:
                        raise StoreBusy(LOCK_WAIT_S, f"a process that uses {DATABASE}") from error
        if (folder / LOG).exists():
            log = sqlite3.connect(folder / LOG, timeout=0.1, isolation_level=None)
            stack.callback(log.close)
            for is_last in _attempts():
                try:
                    # it takes all rows into the file, and fails while any other process has it open
                    log.execute("PRAGMA journal_mode=DELETE")
                    log.execute("BEGIN EXCLUSIVE")
                    break
                except sqlite3.DatabaseError as error:
                    if "locked" not in str(error):
                        break  # it is damaged
                    if is_last:
                        raise StoreBusy(LOCK_WAIT_S, f"a process that uses {LOG}") from error
        yield


def _attempts() -> Iterator[bool]:
    """Wait between attempts to lock; yield whether an attempt is the last one."""
    end = time.monotonic() + LOCK_WAIT_S
    while time.monotonic() < end:
        yield False
        time.sleep(0.1)
    yield True
