"""Suite files: those that are shipped, finding one by name or path, and opening one."""

from __future__ import annotations

import hashlib
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

from cotlab.core.errors import SuiteError, SuiteErrors, UnknownName
from cotlab.core.resources import data_path

FOLDER = data_path("suites")
MAX_FILE_BYTES = 2**30


def shipped_suites() -> dict[str, Path]:
    """Return the shipped suites, name → file, sorted by name; empty without the data folder."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.jsonl"))}


def find_suite(name_or_path: str | Path) -> Path:
    """Return the file of a suite, given the name of a shipped one or a path.

    A shipped name comes first: a local file of the same name is reached as ``./name``.

    Raises
    ------
    UnknownName
        For a bare name that is neither shipped nor a file.
    SuiteError
        For a path that leads nowhere, with the closest file name beside it.
    """
    known = shipped_suites()
    if isinstance(name_or_path, str) and name_or_path in known:
        return known[name_or_path]
    text, path = str(name_or_path), Path(name_or_path)
    try:
        if text and path.exists():
            return path
        looks_like_path = isinstance(name_or_path, Path) or os.sep in text or path.suffix != ""
        neighbours = [p.name for p in path.parent.glob("*.jsonl")] if looks_like_path else []
    except (OSError, ValueError) as exc:
        raise SuiteError(printable(text), None, "", f"cannot be looked up: {exc}") from exc
    if not looks_like_path:
        raise UnknownName("suite", printable(text, 200), tuple(known))
    close = get_close_matches(path.name, neighbours, n=1, cutoff=0.5)
    hint = f"; did you mean {printable(str(path.with_name(close[0])))}?" if close else ""
    raise SuiteError(printable(text), None, "", f"no such file{hint}")


@contextmanager
def open_suite_file(
    path: str | Path, *, limit: int = MAX_FILE_BYTES
) -> Iterator[io.BufferedReader]:
    """Open a regular file of at most ``limit`` bytes for reading.

    Raises
    ------
    SuiteErrors
        If there is none, or reading fails.
    """
    try:
        status = Path(path).stat()
        if stat.S_ISDIR(status.st_mode):
            raise unusable_file(path, "is a directory; name a file")
        if not stat.S_ISREG(status.st_mode):
            raise unusable_file(path, "is not a regular file; save it to a file first")
        if status.st_size > limit:
            raise unusable_file(
                path,
                f"has {status.st_size:,} bytes, more than the {limit:,} that are read; split the"
                " file",
            )
        with Path(path).open("rb") as stream:
            yield stream
    except FileNotFoundError as exc:
        raise unusable_file(path, "no such file") from exc
    except OSError as exc:
        raise unusable_file(path, f"cannot be read: {exc.strerror or exc}") from exc
    except ValueError as exc:
        if "null byte" not in str(exc):
            raise
        raise unusable_file(path, "is no file name: it holds a NUL character") from exc


def file_sha256(path: str | Path) -> str:
    """Return the SHA-256 of a file as 64 hexadecimal digits; SuiteErrors if unreadable."""
    with open_suite_file(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def unusable_file(
    path: str | Path, message: str, field: str = "", line: int | None = None
) -> SuiteErrors:
    """Return the error of a file of which nothing can be used."""
    return SuiteErrors([SuiteError(printable(str(path)), line, field, message)], 0)


def printable(text: str, limit: int | None = None) -> str:
    """Return ``text`` for a message: cut to ``limit`` characters, unprintable ones escaped."""
    visible = text[:limit]
    visible = (
        visible
        if visible.isprintable()
        else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in visible)
    )
    return (
        visible
        if limit is None or max(len(visible), len(text)) <= limit
        else visible[: limit - 1] + "…"
    )
