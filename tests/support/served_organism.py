"""An organism behind llama.cpp's own HTTP server, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cotlab.core.resources import ORGANISMS_FOLDER

SERVER = Path(__file__).parent / "loopback" / "llama_cpp.py"


@contextmanager
def serving_llama_cpp(organism: str, *words: str) -> Iterator[str]:
    """The address of the server; the test is skipped where llama.cpp is not installed."""
    for package in ("xllamacpp", "gguf"):
        pytest.importorskip(package, reason=f"needs llama.cpp's own server: pip install {package}")
    process = subprocess.Popen(
        [sys.executable, str(SERVER), str(ORGANISMS_FOLDER / organism), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield next(line.strip() for line in process.stdout if line.startswith("http"))
    finally:
        process.kill()
        process.communicate()
