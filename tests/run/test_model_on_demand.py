"""A model is loaded, and a vendor's package imported, when the log does not answer a request."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cotlab.core.registry import PROVIDERS
from cotlab.core.types import ModelRef
from cotlab.providers.local.provider import open_organism
from tests.support.loopback import serving

WITHOUT_MODEL_PACKAGES = """
import atexit, os, runpy, sys
heavy = {"torch", "transformers", "openai", "anthropic", "google.genai", "aiohttp"}
atexit.register(lambda: os._exit(9) if heavy & sys.modules.keys() else None)
runpy.run_module("cotlab", None, "__main__")
"""


@pytest.mark.parametrize("provider", ["organism", "openai_compat", "anthropic", "google"])
def test_a_run_whose_replies_are_all_there_imports_no_package_of_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    words = ["run", "--task-suite", "wordproblems", "--limit", "2"]
    with serving() as server:
        server.script(then={"text": "The answer is 18."})
        if provider == "organism":
            words += ["--model", "r100"]
        else:
            words += ["--provider", provider, "--model", "m", "--base-url", server.base_url]
            words += ["--send-key-to", "127.0.0.1", "--role", "subject.price=0/0"]
            monkeypatch.setenv(f"{provider.upper()}_API_KEY", "key-of-a-test")
        compare_runs(tmp_path, words)


def compare_runs(tmp_path: Path, words: list[str]) -> None:
    environment = {**os.environ, "COTLAB_STORE": str(tmp_path / "store")}

    def run(*python: str, to: str) -> str:
        command = [sys.executable, *python, *words, "--output", str(tmp_path / to)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return (tmp_path / to / "report.md").read_text("utf-8")

    asked, replayed = run("-m", "cotlab", to="a"), run("-c", WITHOUT_MODEL_PACKAGES, to="b")
    assert asked.count("\n") == replayed.count("\n") > 10


def test_the_files_tell_what_the_loaded_model_is() -> None:
    ref = ModelRef("organism", "hint", form="continuation")
    assert PROVIDERS["organism"](ref).ref == open_organism(ref).ref
