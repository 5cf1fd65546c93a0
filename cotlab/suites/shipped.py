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

SUITES_FOLDER = data_path("suites")
MAX_FILE_BYTES = 2**30


def shipped_suites() -> dict[str, Path]:
    """Return the shipped suites, name → file, sorted by name; empty without the data folder."""
    return {path.stem: path for path in sorted(SUITES_FOLDER.glob("*.jsonl"))}


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
    suite_paths = shipped_suites()
    if isinstance(name_or_path, str) and name_or_path in suite_paths:
        return suite_paths[name_or_path]
    text, path = str(name_or_path), Path(name_or_path)
    try:
        if text and path.exists():
            return path
        looks_like_path = isinstance(name_or_path, Path) or os.sep in text or path.suffix != ""
        sibling_names = (
            [sibling.name for sibling in path.parent.glob("*.jsonl")] if looks_like_path else []
        )
    except (OSError, ValueError) as exc:
        raise SuiteError(printable_text(text), None, "", f"cannot be looked up: {exc}") from exc
    if not looks_like_path:
        raise UnknownName("suite", printable_text(text, 200), tuple(suite_paths))
    close_names = get_close_matches(path.name, sibling_names, n=1, cutoff=0.5)
    hint = (
        f"; did you mean {printable_text(str(path.with_name(close_names[0])))}?"
        if close_names
        else ""
    )
    raise SuiteError(printable_text(text), None, "", f"no such file{hint}")


@contextmanager
def open_suite_file(path: str | Path) -> Iterator[io.BufferedReader]:
    """Open a regular file of at most ``MAX_FILE_BYTES`` bytes for reading.

    Raises
    ------
    SuiteErrors
        If there is none, or reading fails.
    """
    try:
        status = Path(path).stat()
        if stat.S_ISDIR(status.st_mode):
            raise unusable_file_error(path, "is a directory; name a file")
        if not stat.S_ISREG(status.st_mode):
            raise unusable_file_error(path, "is not a regular file; save it to a file first")
        if status.st_size > MAX_FILE_BYTES:
            size = f"has {status.st_size:,} bytes, more than the {MAX_FILE_BYTES:,} that are read"
            raise unusable_file_error(path, f"{size}; split the file")
        with Path(path).open("rb") as stream:
            yield stream
    except FileNotFoundError as exc:
        raise unusable_file_error(path, "no such file") from exc
    except OSError as exc:
        raise unusable_file_error(path, f"cannot be read: {exc.strerror or exc}") from exc
    except ValueError as exc:
        if "null byte" not in str(exc):
            raise
        raise unusable_file_error(path, "is no file name: it holds a NUL character") from exc


def file_sha256(path: str | Path) -> str:
    """Return the SHA-256 of a file as 64 hexadecimal digits; SuiteErrors if unreadable."""
    with open_suite_file(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def unusable_file_error(
    path: str | Path, message: str, field: str = "", line: int | None = None
) -> SuiteErrors:
    """Return the error of a file of which nothing can be used."""
    return SuiteErrors([SuiteError(printable_text(str(path)), line, field, message)], 0)


def printable_text(text: str, max_characters: int | None = None) -> str:
    """Return ``text`` for a message: cut to ``max_characters``, unprintable ones escaped."""
    visible_text = "".join(
        character if character.isprintable() else ascii(character)[1:-1]
        for character in text[:max_characters]
    )
    if max_characters is not None and max(len(visible_text), len(text)) > max_characters:
        return visible_text[: max_characters - 1] + "…"
    return visible_text
