"""Limit how a provider is used: requests and tokens a minute, and pauses that it asks for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from aiolimiter import AsyncLimiter

from cotlab.core.provider import ServerLimits
from cotlab.core.types import ModelRef
from cotlab.providers.capabilities import provider_info
from cotlab.providers.keys import is_private

DEFAULT_REQUESTS_PER_MINUTE = 60
"""Calls a minute to a vendor, unless told otherwise."""
WINDOW_S = 60.0
BURST_SHARE = 10
"""A tenth of the requests of a minute may be sent at once, the others follow evenly."""
LEARNING_RATE = 0.1
"""Weight of one reply in the share of their reserved tokens that calls use."""


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


class Pace:
    """Requests and tokens a minute of one provider, by a leaky bucket each; None is no limit.

    No minute holds more than ``max_requests`` requests. A call takes the tokens that such calls
    have used so far, at first all that it may use, so that the limit on tokens is kept on average.
    ``earlier_tokens`` are the tokens of each call of the last minute that an earlier process of the
    run made.
    """

    def __init__(
        self,
        max_requests: int | None,
        max_tokens: int | None,
        earlier_tokens: Sequence[int] = (),
    ) -> None:
        self.max_requests = max_requests
        self.resume_at = 0.0
        self._requests = None if max_requests is None else _request_bucket(max_requests)
        self._tokens = None if max_tokens is None else AsyncLimiter(max_tokens, WINDOW_S)
        self._token_share = 1.0
        self._earlier_tokens = earlier_tokens

    async def wait(self, tokens: int) -> None:
        """Wait until a call that may use so many tokens can be sent."""
        earlier_tokens, self._earlier_tokens = self._earlier_tokens, ()
        if earlier_tokens:
            await self._acquire(len(earlier_tokens), sum(earlier_tokens))
        while True:
            if (pause_s := self.resume_at - time.monotonic()) > 0:
                await asyncio.sleep(pause_s)
            await self._acquire(1, tokens * self._token_share)
            if self.resume_at <= time.monotonic():  # else a pause began meanwhile
                return

    def pause(self, seconds: float) -> None:
        """Send nothing for so many seconds."""
        self.resume_at = max(self.resume_at, time.monotonic() + seconds)

    def learn_tokens(self, max_tokens: int, tokens: int) -> None:
        """Learn from a reply how much of what a call may use it does use."""
        self._token_share += LEARNING_RATE * (tokens / max_tokens - self._token_share)

    def follow_server(self, server_limits: ServerLimits, n_in_flight: int) -> None:
        """Take over the limits of a reply, which may not count the ``n_in_flight`` calls so far."""
        max_requests, n_left = server_limits.max_requests, server_limits.requests_left
        if max_requests and max_requests != self.max_requests:
            if self._requests is not None:
                self._requests.max_rate = max_requests  # so that nobody waits for the old pace
            self.max_requests, self._requests = max_requests, _request_bucket(max_requests)
        max_tokens = server_limits.max_tokens
        if max_tokens and (self._tokens is None or max_tokens < self._tokens.max_rate):
            self._tokens = AsyncLimiter(max_tokens, WINDOW_S)
        if n_left is not None and n_left <= n_in_flight:
            n_used = max(1, (max_requests or 0) - n_left)
            reset_s = WINDOW_S if server_limits.reset_s is None else server_limits.reset_s
            self.pause(reset_s / n_used)

    async def _acquire(self, n_requests: int, tokens: float) -> None:
        for limiter, amount in ((self._requests, n_requests), (self._tokens, tokens)):
            if limiter is not None:
                await limiter.acquire(min(amount, limiter.max_rate))


def _request_bucket(max_requests: int) -> AsyncLimiter:
    """Return a bucket that never lets more than ``max_requests`` through in a minute."""
    burst = max(1, max_requests // BURST_SHARE)
    return AsyncLimiter(burst, WINDOW_S * burst / (max_requests - burst + 1))
