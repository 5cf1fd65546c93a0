"""A model is loaded at the first request that the log does not answer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from cotlab.core.registry import PROVIDERS
from cotlab.core.types import ModelRef
from cotlab.providers.local.provider import open_organism

WITHOUT_TORCH = """
import atexit, os, runpy, sys
atexit.register(lambda: os._exit(9) if "torch" in sys.modules else None)
runpy.run_module("cotlab", None, "__main__")
"""


def test_a_run_whose_replies_are_all_there_needs_no_torch(tmp_path: Path) -> None:
    words = ["run", "--model", "r100", "--task-suite", "wordproblems", "--limit", "2"]
    environment = {**os.environ, "COTLAB_STORE": str(tmp_path / "store")}

    def run(*python: str, to: str) -> str:
        command = [sys.executable, *python, *words, "--output", str(tmp_path / to)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return (tmp_path / to / "report.md").read_text("utf-8")

    asked, replayed = run("-m", "cotlab", to="a"), run("-c", WITHOUT_TORCH, to="b")
    assert asked.count("\n") == replayed.count("\n") > 10


def test_the_files_tell_what_the_loaded_model_is() -> None:
    ref = ModelRef("organism", "hint", form="continuation")
    assert PROVIDERS["organism"](ref).ref == open_organism(ref).ref
