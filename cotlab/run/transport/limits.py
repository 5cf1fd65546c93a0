"""Limit how a provider is used: sends and tokens a minute, and calls in flight."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from cotlab.core.provider import ServerLimits
from cotlab.core.types import ModelRef
from cotlab.providers.capabilities import provider_info
from cotlab.providers.keys import is_private

DEFAULT_REQUESTS_PER_MINUTE = 60
"""Calls a minute to a vendor, unless told otherwise."""
WINDOW_S = 60.0
WINDOW_SLACK_S = 0.25
"""The windows are this much longer than a minute: what is sent evenly may arrive unevenly."""
MAX_SLOT_DELAY_S = 0.02
MAX_LIMIT_SLEEP_S = 0.5
"""Longest sleep before a limit is looked at again, as a reply may have changed it."""
_MIN_LIMIT_SLEEP_S = 1e-6
"""Shortest such sleep: one of less than a clock's last digit would leave the time where it is, and
the limit would be looked at for ever."""
_NOT_SENT_TIME, _EXPIRED_TIME = float("inf"), float("-inf")
"""The times of a call that is not sent so far, and of one that has left the window."""
GROWTH_PAUSE_S = 10.0
"""How long a server error keeps the concurrency from growing."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Rate limits, budget and retries of a run."""

    concurrency: int = 10
    """Calls in flight at once."""
    requests_per_minute: int | Literal["auto", "default"] | None = 60
    """Calls a minute; None is no limit. For default see ``sends_per_minute``; auto begins with it
    and follows what the server states."""
    tokens_per_minute: int | None = None
    """Tokens a minute, input and output; None is no limit."""
    cap_micro: int = 10_000_000
    """Most that the run may spend, in micro-dollars."""
    max_tries: int = 10
    """Maximum failures of one request; a 429 does not count and has a separate limit."""
    timeout_s: float = 120.0
    """Seconds to wait for a reply."""
    first_wait_s: float = 1.0
    """Seconds before the second try, doubled before every further one."""
    poll_interval_s: float = 5.0
    """Seconds between two looks at a batch."""

    def sends_per_minute(self, ref: ModelRef) -> int | None:
        """Return the calls a minute of one model; None is no limit.

        Without a number it is ``DEFAULT_REQUESTS_PER_MINUTE``, and no limit for a server on this
        machine or in a private network. A model in this process has none in any case.
        """
        if provider_info(ref.provider).in_process:
            return None
        if isinstance(self.requests_per_minute, str):
            return None if is_private(ref.base_url) else DEFAULT_REQUESTS_PER_MINUTE
        return self.requests_per_minute


class SendLimit:
    """No window of 60 seconds ever holds more than ``max_sends`` sends; None is no limit.

    ``send_ages_s`` are the sends of the last minute that an earlier process of the same run made,
    in seconds before now. After ``follow_server`` no more is sent than the server says is left.
    """

    def __init__(
        self,
        max_sends: int | None,
        send_ages_s: Iterable[float] = (),
        window_s: float = WINDOW_S + WINDOW_SLACK_S,
    ) -> None:
        self._max_sends, self._window_s = max_sends, window_s
        now = time.monotonic()
        self._sent: deque[float] = deque(sorted(now - age_s for age_s in send_ages_s))
        self._turn = asyncio.Lock()
        self._n_unsent = 0
        self._n_left: int | None = None
        self._refill_s = self._refilled_at = 0.0

    @property
    def max_sends(self) -> int | None:
        """Sends that a window may hold now; None is no limit."""
        return self._max_sends

    async def acquire(self) -> float:
        """Wait for a free slot in the window and take it, in order; return its time in seconds."""
        if self._max_sends is None and self._n_left is None:
            self._n_unsent += 1
            return time.monotonic()
        async with self._turn:
            while True:
                wait_s = max(self._window_wait_s(), self._refill_wait_s())
                if wait_s <= 0:
                    break
                await asyncio.sleep(min(max(wait_s, _MIN_LIMIT_SLEEP_S), MAX_LIMIT_SLEEP_S))
            self._n_unsent += 1
            if self._n_left is not None:
                self._n_left -= 1
            self._sent.append(time.monotonic())
            return self._sent[-1]

    def mark_sent(self, slot: float) -> None:
        """Mark a slot as sent; where it had to wait meanwhile, the window counts from now."""
        now = time.monotonic()
        self._n_unsent -= 1
        if self._max_sends is not None and now - slot > MAX_SLOT_DELAY_S:
            self._remove(slot)
            self._sent.append(now)

    def release(self, slot: float) -> None:
        """Release a slot whose request is not sent."""
        self._n_unsent -= 1
        if self._n_left is not None:
            self._n_left += 1
        self._remove(slot)

    def follow_server(self, server_limits: ServerLimits, n_in_flight: int) -> None:
        """Take over the limit of a reply, which may not count the ``n_in_flight`` calls so far."""
        if server_limits.max_requests:
            self._max_sends = server_limits.max_requests
        if server_limits.requests_left is not None:
            self._n_left = server_limits.requests_left - n_in_flight - self._n_unsent
            n_used = max(1, (server_limits.max_requests or 0) - server_limits.requests_left)
            reset_s = self._window_s if server_limits.reset_s is None else server_limits.reset_s
            self._refill_s, self._refilled_at = reset_s / n_used, time.monotonic()

    def _window_wait_s(self) -> float:
        """Return the seconds until the window has a free slot, 0 where it has one."""
        expired_before = time.monotonic() - self._window_s
        while self._sent and self._sent[0] <= expired_before:
            self._sent.popleft()
        if self._max_sends is None or len(self._sent) < self._max_sends:
            return 0.0
        return self._sent[len(self._sent) - self._max_sends] - expired_before

    def _refill_wait_s(self) -> float:
        """Return the seconds until the server takes another call, 0 where it takes one now."""
        if self._n_left is None:
            return 0.0
        elapsed_s = time.monotonic() - self._refilled_at
        if self._n_left < 1 and elapsed_s >= self._refill_s:
            n_refilled = int(elapsed_s / self._refill_s) if self._refill_s else 1 - self._n_left
            self._n_left += n_refilled
            self._refilled_at += n_refilled * self._refill_s
        return max(0.0, self._refill_s - elapsed_s) if self._n_left < 1 else 0.0

    def _remove(self, slot: float) -> None:
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
        window_s: float = WINDOW_S + WINDOW_SLACK_S,
        age_token_pairs: Iterable[tuple[float, int]] = (),
    ) -> None:
        self._max_tokens, self._window_s = max_tokens, window_s
        now = time.monotonic()
        self._used = deque(
            [now - age_s, float(tokens)] for age_s, tokens in sorted(age_token_pairs, reverse=True)
        )
        self._total = sum(tokens for _, tokens in self._used)
        self._turn = asyncio.Lock()

    def follow_server(self, server_limits: ServerLimits) -> None:
        """Take over the limit of a reply, where it states a lower one."""
        if server_limits.max_tokens and self._max_tokens is not None:
            self._max_tokens = min(self._max_tokens, server_limits.max_tokens)

    async def acquire(self, tokens: int) -> list[float]:
        """Wait until ``tokens`` fit, take them; return the entry for ``sent`` and ``correct``."""
        entry = [_NOT_SENT_TIME, float(tokens)]
        if self._max_tokens is None:
            return entry
        async with self._turn:
            self._drop_expired()
            while self._total and self._total + tokens > self._max_tokens:
                oldest_sent_at = self._used[0][0] if self._used else _NOT_SENT_TIME
                await asyncio.sleep(
                    max(0.01, min(oldest_sent_at + self._window_s - time.monotonic(), 0.5))
                )
                self._drop_expired()
            self._total += tokens
        return entry

    def mark_sent(self, entry: list[float]) -> None:
        """Mark the call of ``entry`` as sent: its window begins."""
        entry[0] = time.monotonic()
        if self._max_tokens is not None:
            self._used.append(entry)

    def correct_tokens(self, entry: list[float], tokens: int | None) -> None:
        """Correct an entry to the tokens that were used, 0 for no call; None where not reported."""
        if self._max_tokens is not None and tokens is not None and entry[0] > _EXPIRED_TIME:
            self._total += tokens - entry[1]
            entry[1] = float(tokens)

    def _drop_expired(self) -> None:
        expired_before = time.monotonic() - self._window_s
        while self._used and self._used[0][0] <= expired_before:
            expired_entry = self._used.popleft()
            self._total, expired_entry[0] = self._total - expired_entry[1], _EXPIRED_TIME


class ConcurrencyLimit:
    """How many calls may be in flight, between 1 and ``most``.

    It starts at ``most``, falls by a fifth on a 429 (once for all calls that were sent before the
    fall), grows by one for each full round of replies, and does not grow for a while after a server
    error. Nothing is sent until a wait that the server requests is over.
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

    async def acquire(self, *, is_retry: bool = False) -> None:
        """Wait for a slot; a retry (``is_retry``) is served before what was not sent yet."""
        if self.in_flight < self.limit and (is_retry or not self._waiting):
            self.in_flight += 1
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        (self._waiting.appendleft if is_retry else self._waiting.append)(future)
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.release()
            raise

    def release(self) -> None:
        """Release a slot."""
        self.in_flight -= 1
        self._admit_waiting()

    def record_success(self) -> None:
        """Count a reply: the limit may grow."""
        if self._limit < self.max_in_flight and time.monotonic() >= self._grow_after:
            self._limit = min(float(self.max_in_flight), self._limit + 1 / self._limit)
            self._admit_waiting()

    def record_rate_limit(self, sent_at: float, pause_s: float) -> None:
        """Lower the limit after a 429 of a call sent at ``sent_at``, and pause for ``pause_s``."""
        now = time.monotonic()
        self.resume_at = max(self.resume_at, now + pause_s)
        self._grow_after = max(self._grow_after, self.resume_at)
        if sent_at >= self._fell_at:
            self._limit, self._fell_at = max(1.0, self._limit * 0.8), now

    def record_server_error(self, pause_s: float = 0.0) -> None:
        """Pause growth after a failure of the server, and sends for as long as it requests."""
        now = time.monotonic()
        self.resume_at = max(self.resume_at, now + pause_s)
        self._grow_after = max(self._grow_after, self.resume_at, now + GROWTH_PAUSE_S)

    def _admit_waiting(self) -> None:
        while self._waiting and self.in_flight < self.limit:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)
                self.in_flight += 1
