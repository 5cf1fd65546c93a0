"""A consistent copy of the store's two files."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from cotlab.core.errors import StoreError
from cotlab.store.database import Store


def back_up(store: Store) -> Path:
    """Copy database and response log into a new folder under ``backups`` and return it. Writers wait meanwhile."""
    folder = store.folder / "backups" / f"{datetime.now(UTC):%Y%m%d-%H%M%S}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with store.writing():
            pass  # the file is current and checkpointed once a writer has closed it
        with store.reading():
            shutil.copy2(store.path, folder / store.path.name)
        with (
            closing(sqlite3.connect(store.log_path)) as source,
            closing(sqlite3.connect(folder / store.log_path.name)) as copy,
        ):
            source.backup(copy)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"{folder}: the backup could not be written: {error}") from error
    return folder
