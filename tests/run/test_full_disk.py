"""A run whose disk fills says so in one message, keeps what was stored, and goes on with room."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cotlab.store import read
from cotlab.store.database import Store
from tests.support.running import (
    assert_same_scores,
    planned,
    replies,
    run,
    scores,
    step_scores,
)

RUN = (
    *("--task-suite", "wordproblems", "--limit", "40", "--model", "echo", "--provider", "echo"),
    *("--mode", "remove", "--mode", "filler", "--repeats", "2"),
)


class SmallDisk:
    """A file system in memory whose size can be changed."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder

    def mount(self, size: int, *more: str) -> subprocess.CompletedProcess[str]:
        """Mount it with room for ``size`` bytes; ``more`` goes before the size."""
        options = ",".join((*more, f"size={size}"))
        return subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self.folder)],
            capture_output=True,
            check=False,
            text=True,
            timeout=60,
        )

    def grow(self, size: int) -> None:
        """Give it more room; what it holds stays."""
        assert self.mount(size, "remount").returncode == 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    disk = SmallDisk(tmp_path / "disk")
    try:
        tried = disk.mount(2**20)
    except FileNotFoundError:
        pytest.skip("there is no mount command here")
    if tried.returncode:
        pytest.skip(f"file systems may not be mounted here: {tried.stderr.strip()}")
    yield disk
    subprocess.run(["umount", "-l", str(disk.folder)], check=True, timeout=60)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unbroken")
    code, _, error = run(folder, *RUN, "--run-id", "r")
    assert code == 0, error
    return folder


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@pytest.mark.soak
@pytest.mark.parametrize("share", [0.02, 0.1, 0.3, 0.5, 0.8, 0.9])
def test_a_run_on_a_disk_that_fills_goes_on_with_room_as_if_there_had_been_some(
    disk: SmallDisk, unbroken: Path, share: float
) -> None:
    disk.grow(int(share * size_of(unbroken)))
    code, _, error = run(disk.folder, *RUN, "--run-id", "r")
    assert code == 3, error
    assert "Traceback" not in error
    message = [line for line in error.splitlines() if line.startswith("error:")]
    assert len(message) == 1 and "space left" in message[0], error
    disk.grow(2**30)
    n_replies = replies(disk.folder)
    if planned(disk.folder):
        stored = read.run_scores(Store(disk.folder), "r")
        code, _, error = run(disk.folder, "--resume", "r")
    else:
        stored, n_replies = None, 0
        code, _, error = run(disk.folder, *RUN, "--run-id", "r")
    assert code == 0, error
    assert replies(disk.folder) == replies(unbroken) >= n_replies
    if stored is not None:
        assert len(stored) <= len(scores(disk.folder, "r"))
    assert_same_scores(scores(disk.folder, "r"), scores(unbroken, "r"))
    assert step_scores(disk.folder, "r") == step_scores(unbroken, "r")
