"""Runs that start in milliseconds, for tests that need hundreds of them: each is a child of a warm
process (``zygote.py``)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

ZYGOTE = Path(__file__).with_name("zygote.py")


@dataclass
class Forking:
    """Starts, kills and awaits runs of the real command."""

    told: TextIO
    heard: TextIO

    def start(self, folder: Path, *words: str, **environment: str) -> int:
        """``cotlab run`` with the store in ``folder``; what it prints goes to ``output.txt`` there.
        The process's number."""
        folder.mkdir(parents=True, exist_ok=True)
        env = {"COTLAB_STORE": str(folder), **environment}
        return self._start(folder / "output.txt", folder / "output.txt", words, env)

    def wait(self, pid: int) -> int:
        return int(self._ask({"wait": pid}))

    def kill(self, pid: int) -> int:
        os.kill(pid, signal.SIGKILL)
        return self.wait(pid)

    def run(self, folder: Path, *words: str, **environment: str) -> int:
        return self.wait(self.start(folder, *words, **environment))

    def outcome(self, folder: Path, *words: str, **environment: str) -> tuple[int, str, str]:
        """Exit code of a run, and what it wrote to stdout and to stderr."""
        with tempfile.TemporaryDirectory() as place:
            out, err = Path(place, "out"), Path(place, "err")
            code = self.wait(
                self._start(out, err, words, {"COTLAB_STORE": str(folder), **environment})
            )
            return code, out.read_text("utf-8"), err.read_text("utf-8")

    def _start(
        self, output: Path, errors: Path, words: Sequence[str], env: Mapping[str, str]
    ) -> int:
        return int(
            self._ask(
                {"words": ["run", *words], "env": env, "output": str(output), "errors": str(errors)}
            )
        )

    def _ask(self, job: dict[str, Any]) -> str:
        self.told.write(json.dumps(job) + "\n")
        self.told.flush()
        return self.heard.readline()


@contextmanager
def forking() -> Iterator[Forking]:
    process = subprocess.Popen(
        [sys.executable, str(ZYGOTE)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            "OPENAI_API_KEY": "k",
            "ANTHROPIC_API_KEY": "k",
            "GOOGLE_API_KEY": "k",
            "OMP_NUM_THREADS": "1",
            "COTLAB_PROBE": "never",
            "COTLAB_SEND_KEY_TO": "127.0.0.1",
        },
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield Forking(process.stdin, process.stdout)
    finally:
        process.stdin.close()
        process.wait(timeout=120)
        process.stdout.close()


def printed(folder: Path) -> str:
    return (folder / "output.txt").read_text("utf-8")
