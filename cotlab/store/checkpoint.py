"""Checkpoints that a kill at any moment survives.

DuckDB writes each block of a checkpoint to an unused place, except the blocks of metadata: those
it writes over the ones that the file still refers to. A process that is killed in the middle of
such a write leaves a block whose checksum is wrong, and a file that cannot be opened. So these
blocks are copied to a file beside the database before a checkpoint, and put back where it did not
end.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import duckdb

_HEADER_BYTES = 3 * 4096
"""Size of the file's three headers; a checkpoint counts once it has replaced one of them."""


def checkpoint(connection: duckdb.DuckDBPyConnection, path: Path, file: BinaryIO | None) -> None:
    """Take what was committed from the write-ahead log into the database file.

    Nothing is done where nothing was committed.

    Parameters
    ----------
    connection : DuckDBPyConnection
        To the file, attached as ``cotlab`` for writing.
    path : Path
        Path of the file.
    file : BinaryIO or None
        The same file, opened for reading before it was attached and closed after it is detached: to
        close it earlier would end this process's lock (POSIX). None where attaching it made it.

    Raises
    ------
    duckdb.Error, OSError
        If the disk fails; what was committed stays in the write-ahead log.
    """
    wal_path = Path(f"{path}.wal")
    if not wal_path.exists() or wal_path.stat().st_size == 0:
        return
    if file is not None:
        (block_bytes,) = connection.execute(
            "SELECT block_size FROM pragma_database_size() WHERE database_name = 'cotlab'"
        ).fetchall()[0]
        blocks = connection.execute("SELECT DISTINCT block_id FROM pragma_metadata_info()")
        _copy_blocks(path, file, [block for (block,) in blocks.fetchall()], block_bytes)
    connection.execute("CHECKPOINT cotlab")
    copy_path(path).unlink(missing_ok=True)


def copy_path(path: Path) -> Path:
    """Return the path of the file that holds the copied blocks."""
    return Path(f"{path}.blocks")


def restore_blocks(path: Path) -> None:
    """Put the copied blocks back where a checkpoint of the file at ``path`` did not end.

    This process must not have the file open. Nothing is done while another process has it open,
    or where the file cannot be written.
    """
    if not copy_path(path).exists():
        return
    with suppress(OSError), path.open("rb+") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        pieces = _read_copy(path)
        if pieces and file.read(_HEADER_BYTES) == pieces[0][1]:
            for offset, content in pieces[1:]:
                file.seek(offset)
                file.write(content)
            file.flush()
            os.fsync(file.fileno())
        copy_path(path).unlink(missing_ok=True)


def _copy_blocks(path: Path, file: BinaryIO, blocks: list[int], block_bytes: int) -> None:
    places = [(0, _HEADER_BYTES)]
    places += [(_HEADER_BYTES + block * block_bytes, block_bytes) for block in sorted(blocks)]
    contents = [os.pread(file.fileno(), n_bytes, offset) for offset, n_bytes in places]
    content = b"".join(contents)
    head = {
        "sha256": hashlib.sha256(content).hexdigest(),
        "places": [
            (offset, len(piece)) for (offset, _), piece in zip(places, contents, strict=True)
        ],
    }
    with copy_path(path).open("wb") as copy:
        copy.write(json.dumps(head).encode() + b"\n" + content)
        copy.flush()
        os.fsync(copy.fileno())


def _read_copy(path: Path) -> list[tuple[int, bytes]]:
    """Return places and contents, the headers first.

    None where the copy was not written to its end: no checkpoint had begun.
    """
    head_line, _, content = copy_path(path).read_bytes().partition(b"\n")
    try:
        head = json.loads(head_line)
    except ValueError:
        return []
    if head["sha256"] != hashlib.sha256(content).hexdigest():
        return []
    pieces, start = [], 0
    for offset, n_bytes in head["places"]:
        pieces.append((offset, content[start : start + n_bytes]))
        start += n_bytes
    return pieces
