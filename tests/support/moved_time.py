"""Time that passes only while nobody has anything to do.

Of tests in one process that are about limits, waits and latencies: a minute takes no time, and no
machine is too slow for what is to happen within .02 s. Not for tests with a server: while its reply
is on the way nothing happens here.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class MovedTime:
    """Stands in for ``time.monotonic``."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s

    def move(self, seconds: float) -> None:
        self.now_s += seconds


class _Selector(selectors.DefaultSelector):
    """Moves the time where a loop would wait for it; a thread that works is waited for."""

    n_working = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if ready := super().select(0):
            return ready
        if timeout is None or self.n_working:
            return super().select(timeout if timeout is None else 0.001)
        assert isinstance(time.monotonic, MovedTime), "the fixture moved_time is missing"
        time.monotonic.move(max(0.0, timeout))
        return []


class MovedTimeLoop(asyncio.SelectorEventLoop):
    """An event loop on a ``MovedTime``."""

    def __init__(self) -> None:
        self._waits = _Selector()
        super().__init__(self._waits)

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:
        self._waits.n_working += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._note_end)
        return future

    def _note_end(self, _: Future[Any]) -> None:
        self._waits.n_working -= 1


def run_in_moved_time(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, as ``asyncio.run`` does."""
    with asyncio.Runner(loop_factory=MovedTimeLoop) as runner:
        return runner.run(work)
