"""Send requests to one remote provider, retrying each within its limits and the budget."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from functools import partial

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, wait_exponential

from cotlab.core.errors import (
    BadReply,
    ProviderError,
    RateLimited,
    TimedOut,
    Unauthorised,
)
from cotlab.core.provider import OpensLate, Provider, ReportsServerLimits
from cotlab.core.requests import Reply, Request, Response
from cotlab.run.transport.context import RequestContext
from cotlab.run.transport.limits import WINDOW_S, Pace
from cotlab.run.transport.reserve import Reserve

MAX_429_UNANSWERED = 10
"""Maximum 429s of a request since another request was last answered."""
MAX_PAUSE_S = 3600.0
"""Longest wait that a server may request; a longer one ends the run, as the quota is exhausted."""
MAX_BAD_REPLIES = 5
"""Tries of a request whose last reply could not be read."""
MAX_TRIES_UNANSWERED = 4
"""Tries of a request while the server has never answered anything."""
MAX_CONSECUTIVE_FAILURES = 3
"""Consecutive failed requests after which the run stops."""
MAX_BACKOFF_S = 60.0
RECHECK_INTERVAL_S = 0.2
"""Seconds between two look-ups of a request that another process has sent."""


@dataclass(slots=True)
class RequestTries:
    """The tries of one request; a 429 is no failure."""

    max_tries: int
    """Maximum failures."""
    n: int = 0
    """All tries."""
    n_failures: int = 0
    """Errors that may pass."""
    n_rate_limited: int = 0
    """429s since another request was last answered: a slow server still serves."""
    n_answered: int = 0
    """Requests of the run that had been answered at the last 429."""

    def may_succeed(self, error: ProviderError, n_answered: int) -> bool:
        """Count an error; return whether the request is to be sent again.

        ``n_answered`` is how many requests of the run have been answered so far.
        """
        self.n += 1
        if isinstance(error, RateLimited):
            self.n_rate_limited = 1 if n_answered > self.n_answered else self.n_rate_limited + 1
            self.n_answered = n_answered
            return self.n_rate_limited < MAX_429_UNANSWERED
        self.n_failures += 1
        max_tries = MAX_BAD_REPLIES if isinstance(error, BadReply) else self.max_tries
        return error.is_retryable and self.n_failures < min(max_tries, self.max_tries)


class Sender:
    """Sends requests to one provider; one that is tried again keeps its place meanwhile."""

    def __init__(self, context: RequestContext, provider: Provider, reserve: Reserve) -> None:
        limits = context.limits
        self._context, self._provider, self._reserve = context, provider, reserve
        self._n_in_flight = 0
        self._slots = asyncio.Semaphore(limits.concurrency)
        self._backoff = wait_exponential(limits.first_wait_s, MAX_BACKOFF_S)
        self._pace = Pace(
            limits.sends_per_minute(provider.ref),
            limits.tokens_per_minute,
            context.response_log.list_recent_tokens(context.run_id, WINDOW_S),
        )
        context.progress.concurrency = limits.concurrency
        context.progress.per_minute = self._pace.max_requests

    async def send(self, request: Request, max_tries: int | None = None) -> Reply:
        """Send a request with retries; return its reply or its failure.

        It is tried ``max_tries`` times, by default as often as the run's limits say.

        Raises BudgetReached, Unauthorised, or the error of a server that answers nobody.
        """
        if isinstance(self._provider, OpensLate):
            self._provider.open()  # before the time of its first request begins to run
        most_tries = self._context.limits.max_tries
        tries = RequestTries(min(max_tries or most_tries, most_tries))
        try:
            async with self._slots:
                retrying = AsyncRetrying(
                    retry=retry_if_exception(partial(self._is_tried_again, tries)),
                    wait=self._wait_s,
                    reraise=True,
                )
                return await retrying(self._send_once, request)
        except ProviderError as error:
            if self._context.fatal_error is not None:
                raise self._context.fatal_error from error
            return self._context.failed_reply(request, error, tries.n)

    def _is_tried_again(self, tries: RequestTries, error: BaseException) -> bool:
        """React to an error; return whether its request is to be sent again."""
        context = self._context
        if not isinstance(error, ProviderError) or context.fatal_error is not None:
            return False
        may_succeed = tries.may_succeed(error, context.n_answered)
        is_limited = isinstance(error, RateLimited)
        if is_limited or error.retry_wait_s is not None:
            wait_s = error.retry_wait_s
            self._pace.pause(context.limits.first_wait_s if wait_s is None else wait_s)
            context.progress.paused_until = time.time() + self._pace.resume_at - time.monotonic()
        context.progress.limited += is_limited
        if is_limited:
            context.journal.note("429", pause_s=error.retry_wait_s)
        if error.is_retryable and not may_succeed:
            context.n_consecutive_failures += 1
        never_answered = not context.n_answered and tries.n_failures >= min(
            MAX_TRIES_UNANSWERED, tries.max_tries
        )
        if (
            isinstance(error, Unauthorised)
            or (error.retry_wait_s or 0.0) > MAX_PAUSE_S
            or (
                error.is_retryable
                and (never_answered or context.n_consecutive_failures >= MAX_CONSECUTIVE_FAILURES)
            )
        ):
            context.fatal_error = error
        is_tried_again = may_succeed and context.fatal_error is None and not context.is_closing
        if not is_limited:
            context.progress.retried_error = context.error_text(error) if is_tried_again else ""
        return is_tried_again

    def _wait_s(self, state: RetryCallState) -> float:
        """Return the wait that the server requests, or the backoff where it requests none."""
        error = state.outcome.exception() if state.outcome else None
        wait_s, backoff_s = getattr(error, "retry_wait_s", None), self._backoff(state)
        least_s = backoff_s if wait_s is None else max(wait_s, backoff_s / 4)
        return least_s * random.uniform(1, 1.5)  # noqa: S311 - jitter, not a result

    async def _send_once(self, request: Request) -> Response:
        """Reserve a call and make it, or return the reply that another process got."""
        context = self._context
        while True:
            while self._must_wait_for_call() and context.fatal_error is None:
                await context.wait_for_call_end()
            max_tokens = self._reserve.max_tokens(request)
            await self._pace.wait(max_tokens)
            if context.fatal_error is not None:
                raise context.fatal_error
            if self._must_wait_for_call():
                continue
            max_cost = self._reserve.max_cost(request)
            claim = context.response_log.reserve(
                request, context.run_id, max_cost, context.limits.cap_micro, max_tokens
            )
            if claim.call_id is not None:
                return await self._call_provider(request, claim.call_id, max_tokens)
            if claim.reply is not None:
                return context.count_cache_hit(request, claim.reply)
            if claim.is_in_flight:
                await asyncio.sleep(RECHECK_INTERVAL_S)
            else:
                await context.wait_for_budget(max_cost)

    def _must_wait_for_call(self) -> bool:
        """Return whether a call in flight has to end first, since the next cost depends on it."""
        return self._n_in_flight > 0 and self._reserve.is_exclusive

    async def _call_provider(self, request: Request, call_id: int, max_tokens: int) -> Response:
        """Send a request once and settle its call with the reply in one commit."""
        context = self._context
        context.in_flight_keys.add(request.key)
        context.progress.in_flight += 1
        context.n_sent += 1
        self._n_in_flight += 1
        sent_at = time.monotonic()
        try:
            async with asyncio.timeout(context.limits.timeout_s):
                response = await self._provider.send(request)
            response = context.settle_reply(request, call_id, response, time.monotonic() - sent_at)
            usage = response.usage
            if usage.tokens_in is not None and usage.tokens_out is not None:
                self._pace.learn_tokens(max_tokens, usage.tokens_in + usage.tokens_out)
            return response
        except TimeoutError as late:
            error = TimedOut(f"no reply within {context.limits.timeout_s:g} s")
            elapsed_s = time.monotonic() - sent_at
            context.record_lost_call(request, call_id, error, "timed out", elapsed_s)
            raise error from late
        except ProviderError as error:
            outcome = type(error).__name__
            if error.may_be_billed:
                elapsed_s = time.monotonic() - sent_at
                context.record_lost_call(request, call_id, error, outcome, elapsed_s)
            else:
                context.record_failure(request, call_id, error, outcome, is_free=True)
            raise
        except BaseException:
            context.record_failure(request, call_id, None, "cancelled", is_free=False)
            raise
        finally:
            context.progress.in_flight -= 1
            self._n_in_flight, self._reserve.was_tried = self._n_in_flight - 1, True
            self._follow_server()
            context.release_calls(request.key)

    def _follow_server(self) -> None:
        """Take over the rate limits of the latest reply, where they are to be followed."""
        provider = self._provider
        if (
            self._context.limits.requests_per_minute == "auto"
            and isinstance(provider, ReportsServerLimits)
            and provider.server_limits is not None
        ):
            self._pace.follow_server(provider.server_limits, self._n_in_flight)
            self._context.progress.per_minute = self._pace.max_requests
            provider.server_limits = None
