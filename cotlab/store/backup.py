"""Backups of a store: ``back_up`` copies all of it, ``restore`` puts one in its place.

A backup is a folder with the files of a store and ``backup.json``, which holds their digests. It is
complete once it has its name: a process that is killed leaves a folder that starts with a dot,
which the next one removes. The DuckDB file is no part of it: it is made again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cotlab.core.errors import StoreBusy, StoreError, UnknownName
from cotlab.store.attached import DATABASE
from cotlab.store.database import BACKUPS, Store, remove_leftovers
from cotlab.store.live import LiveRunStore
from cotlab.store.log import LOG, LogConnection, open_log
from cotlab.store.read import get_store_totals

MANIFEST = "backup.json"
"""File of a backup with the digests of the others."""
_FOLDERS = ("reports", "suites", "processes", "validation")
_FILES = ("guidelines.txt",)
"""What of a store's folder is backed up and replaced beside its databases; other files stay."""
_DATABASES = tuple(
    f"{name}{ending}"
    for name in (LOG, DATABASE)
    for ending in ("", "-wal", "-shm", "-journal", ".wal")
)


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup of a store."""

    folder: Path
    """Where it is."""
    totals: dict[str, int]
    """Rows of some tables."""


@dataclass(frozen=True, slots=True)
class Restored:
    """A store after a restore."""

    totals: dict[str, int]
    """Rows of some tables that it holds now."""
    replaced: Path | None
    """Where what it held before was copied, itself a backup; None where it was empty."""


def back_up(store: Store, folder: Path | None = None, *, name: str = "") -> Backup:
    """Copy a store (database, suites, reports) into a new folder, by default under ``backups``.

    Runs may go on meanwhile.

    Raises
    ------
    StoreError
        If the store is damaged, or the backup cannot be written.
    """
    time = f"{name}{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"[:-3]
    folder = (folder or store.folder / BACKUPS / time).resolve()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise StoreError(f"{folder}: exists already: name a new folder for the backup")
    if folder.is_relative_to(store.folder) and folder.parent != store.folder / BACKUPS:
        raise StoreError(f"{folder}: is in the store: name a folder outside of it")
    if not _list_files(store.folder) and not store.log_path.exists() and not store.path.exists():
        raise StoreError(f"{store.folder}: holds nothing that could be backed up")
    totals = count_rows(store)
    with _new_folder(folder) as new:
        # what an earlier copy refers to is in a later one: reports are made from the database
        for path in _list_files(store.folder):
            copy = new / path.relative_to(store.folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):  # replaced at this moment
                shutil.copy2(path, copy)
        for path in (store.log_path, store.folder / "validation" / LOG):
            if path.exists():
                with closing(open_log(path)) as log:
                    _copy_log(log, new / path.relative_to(store.folder))
        files = {
            path.relative_to(new).as_posix(): _file_digest(path)
            for path in sorted(new.rglob("*"))
            if path.is_file()
        }
        manifest = json.dumps({"totals": totals, "files": files}, indent=1)
        (new / MANIFEST).write_text(manifest + "\n", "utf-8")
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
    """Check a backup and put it in the place of what the store holds, which is backed up before.

    The database is replaced in one transaction, so that a process that is killed leaves either.

    Raises
    ------
    StoreError
        If the backup is damaged or none, or a run of the store goes on.
    """
    if not (backup / LOG).exists() and not (backup / DATABASE).exists():
        raise StoreError(f"{backup}: is no backup: it has neither {LOG} nor {DATABASE}")
    store.folder.mkdir(parents=True, exist_ok=True)
    with _new_folder(store.folder / "restoring", is_kept=False) as staged:
        _copy_backup(backup, staged)
        totals = count_rows(Store(staged))  # brings one of an older version forward
        replaced = _put_aside(store)
        for name in (*_FOLDERS, *_FILES):
            _remove(store.folder / name)
            if (staged / name).exists():
                shutil.move(staged / name, store.folder / name)
        with closing(open_log(staged / LOG)) as log, closing(open_log(store.log_path)) as target:
            _remove_copy(store)
            log.backup(target)
            _remove_copy(store)
    return Restored(totals, replaced)


def _put_aside(store: Store) -> Path | None:
    """Back up what a store holds, or move it where it is damaged; None where it is empty."""
    if not store.log_path.exists() and not store.path.exists():
        return None
    try:
        with closing(LiveRunStore(store.log_path)) as live_runs:
            for run in live_runs.list_live_runs():
                if run.is_running:
                    raise StoreBusy(0.0, f"run {run.run}: stop it first")
        return back_up(store, name="replaced-").folder
    except StoreBusy:
        raise
    except StoreError:
        damaged = store.folder / BACKUPS / f"damaged-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"[:-3]
        damaged.mkdir(parents=True)
        for name in _DATABASES:
            with suppress(FileNotFoundError):
                (store.folder / name).rename(damaged / name)
        return damaged


@contextmanager
def _new_folder(folder: Path, *, is_kept: bool = True) -> Iterator[Path]:
    """Fill a folder under another name, which is removed where that fails or it is not kept."""
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(folder.parent, folder.name)
        _remove(temporary)
        temporary.mkdir()
        yield temporary
        if is_kept:
            temporary.rename(folder)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"{folder}: cannot be written: {error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def count_rows(store: Store) -> dict[str, int]:
    """Return how many rows some tables have, of a store whose log SQLite finds intact."""
    with closing(open_log(store.log_path)) as log:
        faults = [str(row[0]) for row in log.execute("PRAGMA integrity_check(20)").fetchall()]
        if faults != ["ok"]:
            raise StoreError(f"{log.path}: the response log is damaged: {faults[0][:300]}")
        counts = {
            name: int(log.execute(f"SELECT count(*) FROM {name}").fetchone()[0])
            for name in ("labels", "replies")
        }
    totals = get_store_totals(store)
    return {"runs": totals["runs"], "scores": totals["scores"], **counts}


def _list_files(folder: Path) -> list[Path]:
    """Return the files of a store beside its databases."""
    paths = [folder / name for name in _FILES]
    for name in _FOLDERS:
        paths += sorted((folder / name).rglob("*"))
    return [path for path in paths if path.is_file() and path.name not in _DATABASES]


def _copy_log(log: LogConnection, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(target)) as copy:
        log.backup(copy)
        copy.execute("PRAGMA journal_mode=DELETE").fetchall()  # one file


def _copy_backup(backup: Path, target: Path) -> None:
    """Copy the files of a backup, and compare them with the digests that it holds.

    Raises
    ------
    StoreError
        If a file is missing or was changed, or its list of files is damaged.
    """
    for name, expected_digest in _read_digests(backup).items():
        path, copy = backup / name, target / name
        if not path.is_file() or not path.resolve().is_relative_to(backup.resolve()):
            raise StoreError(f"{path}: is missing in the backup, so nothing was restored")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)
        if expected_digest not in (None, _file_digest(copy)):
            raise StoreError(
                f"{path}: was changed after the backup was made, so nothing was restored"
            )


def _read_digests(backup: Path) -> dict[str, str | None]:
    """Return the digest of each file of a backup by name; None where it holds none.

    A copy of a store's folder holds none; its write-ahead logs are part of it.
    """
    path = backup / MANIFEST
    if not path.exists():
        databases = [f"{folder}{name}" for folder in ("", "validation/") for name in _DATABASES]
        paths = [*(backup / name for name in databases), *_list_files(backup)]
        return {
            path.relative_to(backup).as_posix(): None
            for path in paths
            if path.is_file() and path.name != f"{LOG}-shm"  # an index that SQLite makes again
        }
    try:
        files = json.loads(path.read_text("utf-8"))["files"]
        for name, file_digest in files.items():
            place = Path(name)
            is_known = place.parts[0] in (*_FOLDERS, *_FILES, *_DATABASES)
            if not is_known or ".." in place.parts or not isinstance(file_digest, str):
                raise ValueError(f"{name!r} is no file of a backup")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise StoreError(f"{path}: is damaged, so nothing was restored: {error}") from error
    return dict(files)


def _remove_copy(store: Store) -> None:
    for path in (store.path, Path(f"{store.path}.wal")):
        path.unlink(missing_ok=True)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
