"""How fast a provider may be asked."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress

WINDOW_S = 60.0


class SendLimit:
    """No window of 60 seconds ever holds more than ``most`` sends; None is no limit."""

    def __init__(self, most: int | None, window_s: float = WINDOW_S) -> None:
        self._most, self._window_s = most, window_s
        self._sent: deque[float] = deque()
        self._turn = asyncio.Lock()

    async def acquire(self) -> float:
        """Wait for a free place in the window and take it; its time in seconds. Waiters are served in order."""
        if self._most is None:
            return time.monotonic()
        async with self._turn:
            while len(self._sent) >= self._most:
                wait = self._sent[0] + self._window_s - time.monotonic()
                if wait <= 0:
                    self._sent.popleft()
                else:
                    await asyncio.sleep(wait)
            self._sent.append(time.monotonic())
            return self._sent[-1]

    def give_back(self, place: float) -> None:
        """Free a place that was taken for a send that is not made after all."""
        with suppress(ValueError):
            self._sent.remove(place)
