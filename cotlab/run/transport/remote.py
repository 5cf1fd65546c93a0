"""Send requests to one remote provider, retrying each within its limits and the budget."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from dataclasses import dataclass, replace
from typing import NamedTuple

from cotlab.core.errors import (
    BadReply,
    ProviderError,
    RateLimited,
    SelfTestFailed,
    TimedOut,
    Unauthorised,
    Unsupported,
)
from cotlab.core.provider import CheckingPrefix, Provider
from cotlab.core.requests import Complete, Failed, Reply, Request, Response
from cotlab.run.transport.budget import Reserve
from cotlab.run.transport.context import RequestContext
from cotlab.run.transport.limits import WINDOW_S, Concurrency, Limits, SendLimit, TokenLimit

log = logging.getLogger(__name__)
MAX_429, MAX_429_ALONE = 50, 10
"""A request that was turned away so often is given up; the second number while no other request is
answered."""
MAX_PAUSE_S = 3600.0
"""A server that asks for a longer wait is out of quota: the run ends, and is resumed another time.
"""
MAX_BAD_REPLIES = 5
"""A server that speaks another language does so every time; one that stumbled does not."""
MAX_TRIES_UNANSWERED = 4
"""Tries of a request while the server has never answered anything."""
MAX_CONSECUTIVE_FAILURES = 3
"""Requests given up one after the other, with no reply to any other between: the server is gone."""
MAX_WAIT_S = 60.0
ELSEWHERE_S = 0.2
"""How often a request that another process has sent is looked up again."""
_UNKNOWN = (
    "%s: it could not be established that the server continues the assistant's message (--given"
    " prefix). Its scores mean something only if it does; --given user needs no such server."
)


@dataclass(slots=True)
class Tries:
    """The tries of one request; a 429 is no failure."""

    limits: Limits
    """Limits of the run."""
    failures: int = 0
    """Errors that may pass."""
    bad: int = 0
    """Replies that could not be read."""
    limited: int = 0
    """429s since another request was last answered: a slow server still serves."""
    all_limited: int = 0
    """All 429s."""
    answered: int = 0
    """Requests of the run that had been answered at the last 429."""
    sent_at: float = 0.0
    """Monotonic time of the last try."""

    @property
    def total(self) -> int:
        """All tries."""
        return self.failures + self.all_limited

    def pause_after(self, error: ProviderError, answered: int) -> float | None:
        """Seconds to wait before the next try, before jitter; None where there is none.

        ``answered`` is how many requests of the run have been answered so far.
        """
        if isinstance(error, RateLimited):
            self.limited = 1 if answered > self.answered else self.limited + 1
            self.all_limited, self.answered = self.all_limited + 1, answered
            if self.limited >= MAX_429_ALONE or self.all_limited >= MAX_429:
                return None
            return max(
                error.after_s or 0.0,
                self._wait(self.limited) * (1.0 if error.after_s is None else 0.25),
            )
        self.failures += 1
        self.bad += isinstance(error, BadReply)
        if not error.retry or self.failures >= self.limits.tries or self.bad >= MAX_BAD_REPLIES:
            return None
        return self._wait(self.failures)

    def _wait(self, n: int) -> float:
        return min(self.limits.first_wait_s * 2.0 ** (n - 1), MAX_WAIT_S)


class Reservation(NamedTuple):
    """The right to send: row of the reservation, and slots in the windows of tokens and sends."""

    call: int
    """Row of the reservation in the log."""
    tokens: list[float]
    """Entry in the window of tokens."""
    slot: float
    """Slot in the window of sends."""


class Sender:
    """Sends requests to one provider."""

    def __init__(self, job: RequestContext, provider: Provider, reserve: Reserve) -> None:
        limits = job.limits
        self._job, self._provider, self._reserve, self._in_flight = job, provider, reserve, 0
        self._slots = Concurrency(limits.concurrency)
        before = job.log.sends_since(job.run, WINDOW_S)
        self._sends = SendLimit(limits.per_minute, [age for age, _ in before])
        self._tokens = TokenLimit(limits.tokens_per_minute, used=before)
        job.progress.concurrency = self._slots.limit
        self._checking = asyncio.Lock()
        self._checked: bool | SelfTestFailed = not isinstance(provider, CheckingPrefix)

    async def send(self, request: Request) -> Reply:
        """Try until there is a reply, or no further try can help or is allowed.

        Raises BudgetReached, Unauthorised, the error of a server that answers nobody, or
        SelfTestFailed where the request has a prefix and the server does not continue it.
        """
        if self._checked is not True and isinstance(request, Complete) and request.prefix:
            async with self._checking:
                if (failed := await self._check(request)) is not None:
                    return replace(failed, key=request.key)
        return await self._send(request)

    async def _check(self, request: Complete) -> Failed | None:
        """Check once that the server continues a prefix; return Failed where it did not answer."""
        if isinstance(self._checked, SelfTestFailed):
            raise self._checked
        if self._checked or not isinstance(self._provider, CheckingPrefix):
            return None
        program = self._provider.check_prefix(request, time.time_ns() // 1_000_000)
        try:
            probe = next(program)
            while True:
                probe = program.send(await self._send(probe))
        except StopIteration as end:
            if isinstance(end.value, Failed):
                return end.value
            self._checked = True
            self._job.journal.note("prefix", verdict=end.value)
            if end.value == "unknown":
                log.warning(_UNKNOWN, self._provider.ref)
            return None
        except SelfTestFailed as failed:
            self._checked = failed
            raise

    async def _send(self, request: Request) -> Reply:
        tries = Tries(self._job.limits)
        while True:
            await self._slots.enter(again=tries.total > 0)
            try:
                claimed = await self._claim(request)
                if isinstance(claimed, Response):
                    return self._job.count_hit(request, claimed)
                return await self._call(request, claimed, tries)
            except ProviderError as error:
                pause = self._after(error, tries)
                if self._job.locked_out is not None:
                    raise self._job.locked_out from error
                if pause is None or self._job.closing:
                    return self._job.failed(request, error, max(1, tries.failures + tries.limited))
            finally:
                self._slots.leave()
                self._job.progress.concurrency = self._slots.limit
            await asyncio.sleep(pause * random.uniform(1, 1.5))  # noqa: S311 - jitter, not a result

    def _after(self, error: ProviderError, tries: Tries) -> float | None:
        """React to an error; return the pause before the next try, None where there is none."""
        job = self._job
        pause = tries.pause_after(error, job.answered)
        if isinstance(error, RateLimited):
            if pause is not None and pause > MAX_PAUSE_S:
                job.locked_out = job.locked_out or error
            job.progress.limited += 1
            self._slots.limited(tries.sent_at, pause or 0.0)
            job.progress.paused_until = time.time() + max(
                0.0, self._slots.resume_at - time.monotonic()
            )
            job.journal.note("429", pause_s=pause, concurrency=self._slots.limit)
        elif error.retry:
            self._slots.strained()
        never = not job.answered and tries.failures >= min(MAX_TRIES_UNANSWERED, job.limits.tries)
        if pause is None and error.retry:
            job.consecutive_failures += 1
        if isinstance(error, Unauthorised) or (
            error.retry and (never or job.consecutive_failures >= MAX_CONSECUTIVE_FAILURES)
        ):
            job.locked_out = job.locked_out or error
        return pause

    async def _claim(self, request: Request) -> Reservation | Response:
        """Reserve the right to send ``request``, or return the reply that another process got."""
        job = self._job
        while True:
            while self._must_wait() and job.locked_out is None:
                await job.wait_for_landing()
            max_tokens = self._reserve.most_tokens(request)
            tokens = await self._tokens.acquire(max_tokens)
            slot = await self._sends.acquire()
            claim = None
            if (
                job.locked_out is None
                and self._slots.resume_at <= time.monotonic()
                and not self._must_wait()
            ):
                max_cost = self._reserve.most(request)
                claim = job.log.reserve(
                    request, job.run, max_cost, job.limits.cap_micro, max_tokens
                )
                if claim.call is not None:
                    return Reservation(claim.call, tokens, slot)
            self._sends.release(slot)
            self._tokens.correct(tokens, 0)
            if job.locked_out is not None:
                raise job.locked_out
            if claim is None:
                await asyncio.sleep(max(0.0, self._slots.resume_at - time.monotonic()))
            elif claim.reply is not None:
                return claim.reply
            elif claim.elsewhere:
                await asyncio.sleep(ELSEWHERE_S)
            else:
                await job.wait_for_money()

    def _must_wait(self) -> bool:
        """Return whether a call in flight has to end first, since the next cost depends on it."""
        return self._in_flight > 0 and self._reserve.alone

    async def _call(self, request: Request, reservation: Reservation, tries: Tries) -> Response:
        """One paid try: send, and settle with the reply in one commit."""
        job, call = self._job, reservation.call
        job.in_flight_keys.add(request.key)
        job.progress.in_flight += 1
        job.sent += 1
        self._in_flight += 1
        tries.sent_at = time.monotonic()
        self._sends.sent(reservation.slot)
        self._tokens.sent(reservation.tokens)
        try:
            async with asyncio.timeout(job.limits.timeout_s):
                response = await self._provider.send(request)
            response = job.received(request, call, response)
            self._slots.succeeded()
            self._tokens.correct(reservation.tokens, _tokens_of(response))
            return response
        except TimeoutError as late:
            error = TimedOut(f"no reply within {job.limits.timeout_s:g} s")
            job.record_failure(request, call, error, "timed out", free=False)
            raise error from late
        except RateLimited as error:
            job.record_failure(request, call, error, "RateLimited", free=True)
            self._tokens.correct(reservation.tokens, 0)
            raise
        except ProviderError as error:
            free = isinstance(error, Unauthorised | Unsupported)
            job.record_failure(request, call, error, type(error).__name__, free=free)
            raise
        except BaseException:
            job.record_failure(request, call, None, "cancelled", free=False)
            raise
        finally:
            job.progress.in_flight -= 1
            self._in_flight, self._reserve.tried = self._in_flight - 1, True
            job.release(request.key)


def _tokens_of(response: Response) -> int | None:
    used = response.usage
    return (
        None
        if used.tokens_in is None or used.tokens_out is None
        else used.tokens_in + used.tokens_out
    )
