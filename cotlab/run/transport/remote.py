"""Send requests to one remote provider, retrying each within its limits and the budget."""

from __future__ import annotations

import asyncio
import random
import sys
import time
from dataclasses import dataclass, replace
from typing import NamedTuple

from cotlab.core.errors import (
    BadReply,
    ProviderError,
    RateLimited,
    TimedOut,
    Unauthorised,
)
from cotlab.core.provider import Provider, ReportsServerLimits
from cotlab.core.requests import Reply, Request, Response
from cotlab.run.transport.context import RequestContext
from cotlab.run.transport.limits import WINDOW_S, ConcurrencyLimit, Limits, SendLimit, TokenLimit
from cotlab.run.transport.reserve import Reserve

MAX_429, MAX_429_UNANSWERED = 50, 10
"""Maximum 429s of a request in all, and since another request was last answered."""
MAX_PAUSE_S = 3600.0
"""Longest wait that a server may request; a longer one ends the run, as the quota is exhausted."""
MAX_BAD_REPLIES = 5
"""Maximum unreadable replies to one request."""
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

    limits: Limits
    """Limits of the run."""
    n_failures: int = 0
    """Errors that may pass."""
    n_bad_replies: int = 0
    """Replies that could not be read."""
    n_rate_limited: int = 0
    """429s since another request was last answered: a slow server still serves."""
    n_rate_limited_total: int = 0
    """All 429s."""
    n_answered: int = 0
    """Requests of the run that had been answered at the last 429."""
    sent_at: float = 0.0
    """Monotonic time of the last try."""

    @property
    def n_tries(self) -> int:
        """All tries."""
        return self.n_failures + self.n_rate_limited_total

    def pause_after(self, error: ProviderError, n_answered: int) -> float | None:
        """Seconds to wait before the next try, before jitter; None where there is none.

        ``n_answered`` is how many requests of the run have been answered so far.
        """
        if isinstance(error, RateLimited):
            self.n_rate_limited = 1 if n_answered > self.n_answered else self.n_rate_limited + 1
            self.n_rate_limited_total, self.n_answered = self.n_rate_limited_total + 1, n_answered
            if self.n_rate_limited >= MAX_429_UNANSWERED or self.n_rate_limited_total >= MAX_429:
                return None
            return self._wait_s(error, self.n_rate_limited)
        self.n_failures += 1
        self.n_bad_replies += isinstance(error, BadReply)
        if (
            not error.is_retryable
            or self.n_failures >= self.limits.max_tries
            or self.n_bad_replies >= MAX_BAD_REPLIES
        ):
            return None
        return self._wait_s(error, self.n_failures)

    def _wait_s(self, error: ProviderError, n_errors: int) -> float:
        """Return the wait that the server requests, or the backoff where that is longer."""
        return max(
            error.retry_wait_s or 0.0,
            self._backoff_s(n_errors) * (1.0 if error.retry_wait_s is None else 0.25),
        )

    def _backoff_s(self, n_errors: int) -> float:
        return min(self.limits.first_wait_s * 2.0 ** (n_errors - 1), MAX_BACKOFF_S)


class Reservation(NamedTuple):
    """The right to send: row of the reservation, and slots in the windows of tokens and sends."""

    call_id: int
    """Row of the reservation in the log."""
    token_entry: list[float]
    """Entry in the window of tokens."""
    send_slot: float
    """Slot in the window of sends."""


class Sender:
    """Sends requests to one provider."""

    def __init__(self, context: RequestContext, provider: Provider, reserve: Reserve) -> None:
        limits = context.limits
        self._context, self._provider, self._reserve, self._in_flight = (
            context,
            provider,
            reserve,
            0,
        )
        self._slots = ConcurrencyLimit(limits.concurrency)
        earlier_sends = context.response_log.list_recent_calls(context.run_id, WINDOW_S)
        self._sends = SendLimit(
            limits.sends_per_minute(provider.ref), [age_s for age_s, _ in earlier_sends]
        )
        self._follows_server = limits.requests_per_minute == "auto"
        max_tokens = limits.tokens_per_minute or (sys.maxsize if self._follows_server else None)
        self._tokens = TokenLimit(max_tokens, age_token_pairs=earlier_sends)
        context.progress.concurrency = self._slots.limit
        context.progress.per_minute = self._sends.max_sends

    async def send(self, request: Request, max_tries: int | None = None) -> Reply:
        """Send a request with retries; return its reply or its failure.

        It is tried ``max_tries`` times, by default as often as the run's limits say.

        Raises BudgetReached, Unauthorised, or the error of a server that answers nobody.
        """
        limits = self._context.limits
        if max_tries is not None:
            limits = replace(limits, max_tries=min(max_tries, limits.max_tries))
        tries = RequestTries(limits)
        while True:
            await self._slots.acquire(is_retry=tries.n_tries > 0)
            try:
                claim = await self._reserve_send(request)
                if isinstance(claim, Response):
                    return self._context.count_cache_hit(request, claim)
                return await self._call_provider(request, claim, tries)
            except ProviderError as error:
                pause_s = self._handle_error(error, tries)
                if self._context.fatal_error is not None:
                    raise self._context.fatal_error from error
                if pause_s is None or self._context.is_closing:
                    return self._context.failed_reply(
                        request, error, max(1, tries.n_failures + tries.n_rate_limited)
                    )
            finally:
                self._slots.release()
                self._context.progress.concurrency = self._slots.limit
            await asyncio.sleep(pause_s * random.uniform(1, 1.5))  # noqa: S311 - jitter, not a result

    def _handle_error(self, error: ProviderError, tries: RequestTries) -> float | None:
        """React to an error; return the pause before the next try, None where there is none."""
        context = self._context
        pause_s = tries.pause_after(error, context.n_answered)
        requests_wait = isinstance(error, RateLimited) or error.retry_wait_s is not None
        if requests_wait and pause_s is not None and pause_s > MAX_PAUSE_S:
            context.fatal_error = context.fatal_error or error
        if isinstance(error, RateLimited):
            context.progress.limited += 1
            self._slots.record_rate_limit(tries.sent_at, pause_s or 0.0)
            context.journal.note("429", pause_s=pause_s, concurrency=self._slots.limit)
        elif error.is_retryable:
            self._slots.record_server_error(error.retry_wait_s or 0.0)
        if requests_wait:
            context.progress.paused_until = time.time() + max(
                0.0, self._slots.resume_at - time.monotonic()
            )
        never_answered = not context.n_answered and tries.n_failures >= min(
            MAX_TRIES_UNANSWERED, context.limits.max_tries
        )
        if pause_s is None and error.is_retryable:
            context.n_consecutive_failures += 1
        if isinstance(error, Unauthorised) or (
            error.is_retryable
            and (never_answered or context.n_consecutive_failures >= MAX_CONSECUTIVE_FAILURES)
        ):
            context.fatal_error = context.fatal_error or error
        if not isinstance(error, RateLimited):
            is_tried_again = pause_s is not None and context.fatal_error is None
            context.progress.retried_error = context.error_text(error) if is_tried_again else ""
        return pause_s

    async def _reserve_send(self, request: Request) -> Reservation | Response:
        """Reserve the right to send ``request``, or return the reply that another process got."""
        context = self._context
        while True:
            while self._must_wait_for_call() and context.fatal_error is None:
                await context.wait_for_call_end()
            max_tokens = self._reserve.max_tokens(request)
            token_entry = await self._tokens.acquire(max_tokens)
            send_slot = await self._sends.acquire()
            claim = None
            if (
                context.fatal_error is None
                and self._slots.resume_at <= time.monotonic()
                and not self._must_wait_for_call()
            ):
                max_cost = self._reserve.max_cost(request)
                claim = context.response_log.reserve(
                    request, context.run_id, max_cost, context.limits.cap_micro, max_tokens
                )
                if claim.call_id is not None:
                    return Reservation(claim.call_id, token_entry, send_slot)
            self._sends.release(send_slot)
            self._tokens.correct_tokens(token_entry, 0)
            if context.fatal_error is not None:
                raise context.fatal_error
            if claim is None:
                await asyncio.sleep(max(0.0, self._slots.resume_at - time.monotonic()))
            elif claim.reply is not None:
                return claim.reply
            elif claim.is_in_flight:
                await asyncio.sleep(RECHECK_INTERVAL_S)
            else:
                await context.wait_for_budget(self._reserve.max_cost(request))

    def _must_wait_for_call(self) -> bool:
        """Return whether a call in flight has to end first, since the next cost depends on it."""
        return self._in_flight > 0 and self._reserve.is_exclusive

    async def _call_provider(
        self, request: Request, reservation: Reservation, tries: RequestTries
    ) -> Response:
        """Send a request once and settle its call with the reply in one commit."""
        context, call_id = self._context, reservation.call_id
        context.in_flight_keys.add(request.key)
        context.progress.in_flight += 1
        context.n_sent += 1
        self._in_flight += 1
        tries.sent_at = time.monotonic()
        self._sends.mark_sent(reservation.send_slot)
        self._tokens.mark_sent(reservation.token_entry)
        try:
            async with asyncio.timeout(context.limits.timeout_s):
                response = await self._provider.send(request)
            response = context.settle_reply(
                request, call_id, response, time.monotonic() - tries.sent_at
            )
            self._slots.record_success()
            self._tokens.correct_tokens(reservation.token_entry, _used_tokens(response))
            return response
        except TimeoutError as late:
            error = TimedOut(f"no reply within {context.limits.timeout_s:g} s")
            context.record_lost_call(
                request, call_id, error, "timed out", time.monotonic() - tries.sent_at
            )
            raise error from late
        except ProviderError as error:
            if error.may_be_billed:
                elapsed_s = time.monotonic() - tries.sent_at
                context.record_lost_call(request, call_id, error, type(error).__name__, elapsed_s)
            else:
                context.record_failure(request, call_id, error, type(error).__name__, is_free=True)
                self._tokens.correct_tokens(reservation.token_entry, 0)
            raise
        except BaseException:
            context.record_failure(request, call_id, None, "cancelled", is_free=False)
            raise
        finally:
            context.progress.in_flight -= 1
            self._in_flight, self._reserve.was_tried = self._in_flight - 1, True
            self._follow_server()
            context.release_calls(request.key)

    def _follow_server(self) -> None:
        """Take over the rate limits of the latest reply, where they are to be followed."""
        provider = self._provider
        if not self._follows_server or not isinstance(provider, ReportsServerLimits):
            return
        if provider.server_limits is not None:
            self._sends.follow_server(provider.server_limits, self._in_flight)
            self._tokens.follow_server(provider.server_limits)
            self._context.progress.per_minute = self._sends.max_sends
            provider.server_limits = None


def _used_tokens(response: Response) -> int | None:
    usage = response.usage
    return (
        None
        if usage.tokens_in is None or usage.tokens_out is None
        else usage.tokens_in + usage.tokens_out
    )
