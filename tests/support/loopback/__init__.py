"""OpenAI, Anthropic and Google on this machine: a server in its own process, scripted by the test
that starts it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

SERVER = Path(__file__).with_name("server.py")


@dataclass(frozen=True)
class Loopback:
    """A running server; what a script may hold is told in ``server.py``."""

    port: int

    @property
    def root(self) -> str:
        """The address that clients of Anthropic and Google are given."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        """The address that clients of OpenAI are given."""
        return f"{self.root}/v1"

    def script(
        self, *turns: Mapping[str, Any], then: Mapping[str, Any] | None = None, **more: Any
    ) -> None:
        """What the next calls get, one turn each, and ``then`` every later one. Forgets all that
        was before."""
        body = json.dumps({"turns": turns, "then": then or {}, **more}).encode()
        urllib.request.urlopen(
            urllib.request.Request(f"{self.root}/script", body), timeout=60
        ).close()

    def seen(self) -> list[dict[str, Any]]:
        """Every call of a vendor's address since the script, lists and polls of batches too.

        Each has ``method``, ``path``, ``headers`` (names in lower case), ``body``, ``at``
        (time.time()) and ``monotonic``.
        """
        calls: list[dict[str, Any]] = self._told("seen")
        return calls

    def release(self) -> None:
        """Let the replies go that the script holds, now and from now on."""
        urllib.request.urlopen(
            urllib.request.Request(f"{self.root}/release", b""), timeout=60
        ).close()

    async def arrived(self, n: int, limit_s: float = 60) -> None:
        """Wait until a model was asked ``n`` times since the script."""

        def poll() -> None:
            until = time.monotonic() + limit_s
            while (count := self.count()) < n:
                if time.monotonic() > until:
                    raise TimeoutError(f"{count} of {n} requests arrived in {limit_s} s")
                time.sleep(0.01)

        await asyncio.to_thread(poll)

    def count(self) -> int:
        """How often a model was asked, each request of a batch counted once."""
        return int(self._told("count"))

    def spend(self) -> Fraction:
        """The bill so far in micro-dollars, exact."""
        return Fraction(self._told("spend")["micro"])

    def asked_most(self) -> int:
        """How often the request that was asked most was asked."""
        return max(self._told("keys_count").values(), default=0)

    def cpu_s(self) -> float:
        """Processor time of the server so far."""
        return float(self._told("cpu"))

    def _told(self, what: str) -> Any:
        with urllib.request.urlopen(f"{self.root}/{what}", timeout=60) as reply:
            return json.load(reply)


@contextmanager
def serving() -> Iterator[Loopback]:
    """A server of its own; it ends with the block, and with this process however that ends."""
    command = [sys.executable, str(SERVER), "--until-stdin-ends"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield Loopback(int(process.stdout.readline()))
    finally:
        process.kill()
        process.communicate()


@asynccontextmanager
async def raw_server(
    answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[str]:
    """The address of a server, in this process, that does to each connection what it is told."""
    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    finally:
        listening.close()
