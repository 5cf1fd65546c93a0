"""Limit how a provider is used: sends and tokens a minute, and calls in flight."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

WINDOW_S = 60.0
SLACK_S = 0.25
"""The windows are this much longer than a minute: what is sent evenly may arrive unevenly."""
LATE_S = 0.02
_NOT_SENT, _EXPIRED = float("inf"), float("-inf")
"""The times of a call that is not sent so far, and of one that has left the window."""
CALM_S = 10.0
"""How long a server error keeps the concurrency from growing."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How hard a run may use a provider."""

    concurrency: int = 10
    """Calls in flight at once."""
    per_minute: int | None = 60
    """Calls a minute; None is no limit."""
    tokens_per_minute: int | None = None
    """Tokens a minute, input and output; None is no limit."""
    cap_micro: int = 10_000_000
    """Most that the run may spend, in micro-dollars."""
    tries: int = 10
    """Failures of one request; a 429 is no failure and has an allowance of its own."""
    timeout_s: float = 120.0
    """Seconds to wait for a reply."""
    first_wait_s: float = 1.0
    """Seconds before the second try, doubled before every further one."""
    poll_s: float = 5.0
    """Seconds between two looks at a batch."""


class SendLimit:
    """No window of 60 seconds ever holds more than ``most`` sends; None is no limit.

    ``ages_s`` are the sends of the last minute that an earlier process of the same run made, in
    seconds before now.
    """

    def __init__(
        self,
        max_sends: int | None,
        ages_s: Iterable[float] = (),
        window_s: float = WINDOW_S + SLACK_S,
    ) -> None:
        self._max_sends, self._window_s = max_sends, window_s
        now = time.monotonic()
        self._sent: deque[float] = deque(sorted(now - age for age in ages_s))
        self._turn = asyncio.Lock()

    async def acquire(self) -> float:
        """Wait for a free slot in the window and take it, in order; return its time in seconds."""
        if self._max_sends is None:
            return time.monotonic()
        async with self._turn:
            while len(self._sent) >= self._max_sends:
                wait = self._sent[0] + self._window_s - time.monotonic()
                if wait <= 0:
                    self._sent.popleft()
                else:
                    await asyncio.sleep(wait)
            self._sent.append(time.monotonic())
            return self._sent[-1]

    def sent(self, slot: float) -> None:
        """Mark a slot as sent; where it had to wait meanwhile, the window counts from now."""
        now = time.monotonic()
        if self._max_sends is not None and now - slot > LATE_S:
            self.release(slot)
            self._sent.append(now)

    def release(self, slot: float) -> None:
        """Free a place that was taken for a send that is not made after all."""
        with suppress(ValueError):
            self._sent.remove(slot)


class TokenLimit:
    """No window of 60 seconds holds more than ``most`` tokens; None is no limit.

    A call counts at the most tokens it can use until its reply says how many it did, and from the
    time that it is taken: its window begins when it is sent. One that alone is over the limit goes
    when the window is empty. ``used`` holds age in seconds and tokens of the calls that an earlier
    process of the run made.
    """

    def __init__(
        self,
        max_tokens: int | None,
        window_s: float = WINDOW_S + SLACK_S,
        used: Iterable[tuple[float, int]] = (),
    ) -> None:
        self._max_tokens, self._window_s = max_tokens, window_s
        now = time.monotonic()
        self._used = deque([now - age, float(tokens)] for age, tokens in sorted(used, reverse=True))
        self._total = sum(tokens for _, tokens in self._used)
        self._turn = asyncio.Lock()

    async def acquire(self, tokens: int) -> list[float]:
        """Wait until ``tokens`` fit, take them; return the entry for ``sent`` and ``correct``."""
        entry = [_NOT_SENT, float(tokens)]
        if self._max_tokens is None:
            return entry
        async with self._turn:
            self._drop_old()
            while self._total and self._total + tokens > self._max_tokens:
                oldest = self._used[0][0] if self._used else _NOT_SENT
                await asyncio.sleep(max(0.01, min(oldest + self._window_s - time.monotonic(), 0.5)))
                self._drop_old()
            self._total += tokens
        return entry

    def sent(self, entry: list[float]) -> None:
        """Mark the call of ``entry`` as sent: its window begins."""
        entry[0] = time.monotonic()
        if self._max_tokens is not None:
            self._used.append(entry)

    def correct(self, entry: list[float], tokens: int | None) -> None:
        """Correct an entry to the tokens that were used, 0 for no call; None where not reported."""
        if self._max_tokens is not None and tokens is not None and entry[0] > _EXPIRED:
            self._total += tokens - entry[1]
            entry[1] = float(tokens)

    def _drop_old(self) -> None:
        before = time.monotonic() - self._window_s
        while self._used and self._used[0][0] <= before:
            old = self._used.popleft()
            self._total, old[0] = self._total - old[1], _EXPIRED


class Concurrency:
    """How many calls may be in flight, between 1 and ``most``.

    It starts at ``most``, falls by a fifth on a 429 (once for all calls that were sent before the
    fall), grows by one for each full round of replies, and does not grow for a while after a server
    error. After a 429 nothing is sent until the wait that the server asked for is over.
    """

    def __init__(self, max_in_flight: int) -> None:
        self.max_in_flight, self.in_flight = max_in_flight, 0
        self._limit = float(max_in_flight)
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._fell_at = self._grow_after = self.resume_at = 0.0

    @property
    def limit(self) -> int:
        """Calls that may be in flight now."""
        return int(self._limit)

    async def enter(self, *, again: bool = False) -> None:
        """Wait for a slot; a retry (``again``) is served before what was not sent yet."""
        if self.in_flight < self.limit and (again or not self._waiting):
            self.in_flight += 1
            return
        slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        (self._waiting.appendleft if again else self._waiting.append)(slot)
        try:
            await slot
        except asyncio.CancelledError:
            if slot.done() and not slot.cancelled():
                self.leave()
            raise

    def leave(self) -> None:
        """Give a slot back."""
        self.in_flight -= 1
        self._admit()

    def succeeded(self) -> None:
        """Count a reply: the limit may grow."""
        if self._limit < self.max_in_flight and time.monotonic() >= self._grow_after:
            self._limit = min(float(self.max_in_flight), self._limit + 1 / self._limit)
            self._admit()

    def limited(self, sent_at: float, pause_s: float) -> None:
        """Lower the limit after a 429 of a call sent at ``sent_at``, and pause for ``pause_s``."""
        now = time.monotonic()
        self.resume_at = max(self.resume_at, now + pause_s)
        self._grow_after = max(self._grow_after, self.resume_at)
        if sent_at >= self._fell_at:
            self._limit, self._fell_at = max(1.0, self._limit * 0.8), now

    def strained(self) -> None:
        """Pause growth after a failure of the server."""
        self._grow_after = max(self._grow_after, time.monotonic() + CALM_S)

    def _admit(self) -> None:
        while self._waiting and self.in_flight < self.limit:
            slot = self._waiting.popleft()
            if not slot.done():
                slot.set_result(None)
                self.in_flight += 1
