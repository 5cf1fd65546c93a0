"""A chat-completions server in its own process, scripted by the test that starts it."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SERVER = Path(__file__).with_name("server.py")


@dataclass(frozen=True)
class Loopback:
    """A running server. ``base_url`` is what a client is given."""

    port: int

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def script(self, *turns: Mapping[str, Any], then: Mapping[str, Any] | None = None) -> None:
        """What the next calls get, one turn each, and ``then`` every later one. Forgets the calls so far."""
        body = json.dumps({"turns": turns, "then": then or {}}).encode()
        urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{self.port}/script", body), timeout=10).close()

    def seen(self) -> list[dict[str, Any]]:
        """Every call since the script: ``headers`` (names in lower case), ``body`` and ``at`` (seconds)."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/seen", timeout=10) as reply:
            calls: list[dict[str, Any]] = json.load(reply)
        return calls

    def count(self) -> int:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/count", timeout=10) as reply:
            return int(reply.read())


@contextmanager
def serving() -> Iterator[Loopback]:
    process = subprocess.Popen([sys.executable, str(SERVER)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield Loopback(int(process.stdout.readline()))
    finally:
        process.kill()
        process.communicate()
