"""Backups of a store: ``back_up`` copies all of it, ``restore`` puts one in its place.

A backup is a folder with the files of a store and ``backup.json``, which holds their digests. It is
complete once it has its name: a process that is killed leaves a folder that starts with a dot.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cotlab.core.errors import StoreError, UnknownName
from cotlab.store.database import Store, quoted_name
from cotlab.store.log import open_log
from cotlab.store.log_connection import LogConnection
from cotlab.store.swap import (
    BACKUPS,
    DATABASE,
    LOG,
    RESTORING,
    SIDE_FILES,
    STORE_ENTRIES,
    finish_swap,
    swap_in,
    take_locks,
)

MANIFEST = "backup.json"
"""File of a backup with the digests of the others."""
COUNTED_TABLES = ("runs", "scores", "labels", "replies")
"""Tables whose rows are counted in a backup."""


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup of a store."""

    folder: Path
    """Where it is."""
    totals: dict[str, int]
    """Rows of ``COUNTED_TABLES``."""


@dataclass(frozen=True, slots=True)
class Restored:
    """A store after a restore."""

    totals: dict[str, int]
    """Rows of ``COUNTED_TABLES`` that it holds now."""
    replaced: Path | None
    """Where what it held before was moved, itself a backup; None where it was empty."""


def back_up(store: Store, folder: Path | None = None) -> Backup:
    """Copy a store (databases, suites, reports) into a new folder, by default under ``backups``.

    Runs may go on meanwhile; writers of the database wait while it is copied.

    Raises
    ------
    StoreError
        If the store is damaged, or the backup cannot be written.
    """
    time = f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"[:-3]
    folder = (folder or store.folder / BACKUPS / time).resolve()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise StoreError(f"{folder}: exists already: name a new folder for the backup")
    if folder.is_relative_to(store.folder) and folder.parent != store.folder / BACKUPS:
        raise StoreError(f"{folder}: is in the store: name a folder outside of it")
    if not _list_files(store.folder):
        raise StoreError(f"{store.folder}: holds nothing that could be backed up")
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        temporary.mkdir(parents=True)
        # What an earlier copy refers to is in a later one: reports and suites are made from the
        # database, and its scores from replies of the log.
        for path in _list_files(store.folder):
            copy = temporary / path.relative_to(store.folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            if path.name not in (DATABASE, LOG, *SIDE_FILES):
                with suppress(FileNotFoundError):  # replaced at this moment
                    shutil.copy2(path, copy)
        for folder_of_files in (store.folder, store.folder / "validation"):
            target = temporary / folder_of_files.relative_to(store.folder)
            if (folder_of_files / DATABASE).exists():
                _copy_database(Store(folder_of_files), target)
            if (folder_of_files / LOG).exists():
                _copy_log(folder_of_files / LOG, target / LOG)
        totals = check_files(temporary)
        manifest = {
            "totals": totals,
            "files": {
                path.relative_to(temporary).as_posix(): _file_digest(path)
                for path in sorted(temporary.rglob("*"))
                if path.is_file()
            },
        }
        (temporary / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", "utf-8")
        temporary.rename(folder)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"{folder}: the backup could not be written: {error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return Backup(folder, totals)


def find_backup(store: Store, name: str) -> Path:
    """Return the folder of a backup: a path, or the name of one under ``backups``.

    Raises
    ------
    UnknownName
        If there is none.
    """
    known_names = list_backups(store)
    if name in known_names:
        return store.folder / BACKUPS / name
    if (path := Path(name)).is_dir():
        return path.resolve()
    raise UnknownName("backup", name, known_names)


def list_backups(store: Store) -> list[str]:
    """Return the names of the backups under ``backups``, oldest first."""
    with suppress(FileNotFoundError):
        return sorted(
            path.name
            for path in (store.folder / BACKUPS).iterdir()
            if path.is_dir() and not path.name.startswith(".")
        )
    return []


def restore(store: Store, backup: Path) -> Restored:
    """Check a backup and put it in the place of what the store holds, which is kept.

    Nothing of the old files stays beside the new ones, a write-ahead log least of all. A process
    that is killed leaves either the old store or one that says that its restore must be finished.

    Raises
    ------
    StoreError
        If the backup is damaged or none, or another process uses the store.
    """
    if not (backup / DATABASE).exists() and not (backup / LOG).exists():
        raise StoreError(f"{backup}: is no backup: it has neither {DATABASE} nor {LOG}")
    staged = store.folder / f".{RESTORING}.{os.getpid()}"
    try:
        (staged / "new").mkdir(parents=True)
        _copy_backup(backup, staged / "new")
        totals = check_files(staged / "new")
        with take_locks(store.folder):
            replaced = swap_in(store.folder, staged)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"{store.folder}: {backup} cannot be restored: {error}") from error
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return Restored(totals, replaced)


def finish_restore(store: Store) -> bool:
    """Finish a restore that was interrupted; return whether there was one."""
    if not (store.folder / RESTORING).exists():
        return False
    with take_locks(store.folder):
        finish_swap(store.folder)
    return True


def check_files(folder: Path) -> dict[str, int]:
    """Read every row of the databases of a folder, which become one file each; count the rows.

    Raises
    ------
    StoreError
        If one is damaged.
    """
    totals: dict[str, int] = {}
    for sub_folder in (folder, folder / "validation"):
        counts = {}
        if (sub_folder / DATABASE).exists():
            counts = read_all_tables(Store(sub_folder))
            with Store(sub_folder).writing():
                pass  # brings the rows of a write-ahead log into the file
        if (sub_folder / LOG).exists():
            with closing(open_log(sub_folder / LOG)) as connection:
                require_intact(connection)
                connection.execute("PRAGMA journal_mode=DELETE").fetchall()
                counts["replies"] = _count_rows(connection, "replies")
        if sub_folder == folder:
            totals = {name: counts[name] for name in COUNTED_TABLES if name in counts}
    return totals


def read_all_tables(store: Store) -> dict[str, int]:
    """Read each value of the database, and return how many rows each table has."""
    with store.reading() as connection:
        names = [
            name
            for (name,) in connection.execute(
                "SELECT table_name FROM duckdb_tables() WHERE database_name = 'cotlab'"
            ).fetchall()
        ]
        counts: dict[str, int] = {}
        for name in names:
            [(counts[name], _)] = connection.execute(
                f"SELECT count(*), bit_xor(hash(t)) FROM {quoted_name(name)} AS t"
            ).fetchall()
    return counts


def require_intact(connection: LogConnection) -> None:
    """Raise StoreError where SQLite finds the response log damaged."""
    faults = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(20)").fetchall()]
    if faults != ["ok"]:
        raise StoreError(f"{connection.path}: the response log is damaged: {faults[0][:300]}")


def _count_rows(connection: LogConnection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def _list_files(folder: Path) -> list[Path]:
    """Return the files of a store or of a backup."""
    paths: list[Path] = []
    for entry in STORE_ENTRIES:
        path = folder / entry
        paths += sorted(path.rglob("*")) if path.is_dir() else [path]
    return [path for path in paths if path.is_file()]


def _copy_database(store: Store, target: Path) -> None:
    """Copy the file with its write-ahead log, while no process writes them."""
    with store.reading():
        # in this order: closing the file here ends the lock that keeps writers waiting
        with suppress(FileNotFoundError):
            shutil.copy2(f"{store.path}.wal", target / f"{DATABASE}.wal")
        shutil.copy2(store.path, target / DATABASE)


def _copy_log(path: Path, target: Path) -> None:
    with closing(open_log(path)) as log, closing(sqlite3.connect(target)) as copy:
        log.backup(copy)


def _copy_backup(backup: Path, target: Path) -> None:
    """Copy the files of a backup, and compare them with the digests that it holds.

    One without digests is copied with the write-ahead logs beside its files.

    Raises
    ------
    StoreError
        If a file is missing or was changed.
    """
    digests: dict[str, str] = {}
    if (backup / MANIFEST).exists():
        try:
            digests = json.loads((backup / MANIFEST).read_text("utf-8"))["files"]
        except (ValueError, LookupError, TypeError) as error:
            raise StoreError(f"{backup / MANIFEST}: is damaged: {error}") from error
    for path in [backup / name for name in digests] or _list_files(backup):
        name = path.relative_to(backup).as_posix()
        if path.name == f"{LOG}-shm":
            continue  # an index of the write-ahead log, which SQLite makes again
        if not path.is_file() or not path.resolve().is_relative_to(backup.resolve()):
            raise StoreError(f"{path}: is missing in the backup, so nothing was restored")
        copy = target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)
        if digests and _file_digest(copy) != digests[name]:
            raise StoreError(
                f"{path}: was changed after the backup was made, so nothing was restored"
            )


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
