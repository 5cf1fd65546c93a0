"""From a request to its reply: the log first, then the provider, within limits and budget, each request once."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cotlab.core.errors import (
    BudgetReached,
    ProviderError,
    RateLimited,
    TimedOut,
    Unauthorised,
    Unsupported,
)
from cotlab.core.provider import AnyProvider, BatchProvider, Provider
from cotlab.core.requests import Complete, Failed, Reply, Request, Response
from cotlab.core.types import ModelRef
from cotlab.run.budget import Price
from cotlab.run.limits import SendLimit
from cotlab.store.live import Progress
from cotlab.store.responses import ResponseLog

BATCH, BATCH_TOKENS = 384, 24_576
"""Requests handed to a local model at once, and the most they may generate: a batch cannot be stopped, nor kept in part."""
KEPT_ERRORS = 5
LONGEST_WAIT_S = 60.0
ELSEWHERE_S = 0.2
"""How often a request that another process has sent is looked up again."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How hard a run may press a provider. Costs in micro-dollars, times in seconds.

    The wait before a second try doubles with every further one. A 429 counts as the first try again where other requests
    were answered meanwhile: a server that serves slowly is not one that fails.
    """

    concurrency: int = 10
    per_minute: int | None = 60
    cap_micro: int = 10_000_000
    tries: int = 5
    timeout_s: float = 180.0
    first_wait_s: float = 1.0


class Dispatcher:
    """Asks every request once, whoever wants it: hits from the log, coalesced in flight, batched where local."""

    def __init__(
        self, run: str, providers: Mapping[ModelRef, AnyProvider], prices: Mapping[ModelRef, Price], log: ResponseLog,
        limits: Limits, progress: Progress,
    ) -> None:  # fmt: skip
        self._run, self._log, self._limits, self.progress = run, log, limits, progress
        self._providers, self._prices = providers, prices
        self._flying: dict[str, asyncio.Future[Reply]] = {}
        self._on_wire: set[str] = set()
        self._closing = False
        self._locked_out: Unauthorised | None = None
        self._slots = asyncio.Semaphore(limits.concurrency)
        self._rate = SendLimit(limits.per_minute)
        self._resume_at = 0.0
        self._settled = asyncio.Event()
        self._waiting: dict[ModelRef, list[tuple[Request, asyncio.Future[Reply]]]] = {}
        self._workers: dict[ModelRef, asyncio.Task[None]] = {}
        self.wanted = self.asked = self.answered = self.saved_micro = 0

    async def ask(self, request: Request) -> Reply:
        """The reply to ``request``. Raises BudgetReached or Unauthorised: after those no request can succeed."""
        key = request.key
        self.wanted += 1
        flying = self._flying.get(key)
        if flying is None:
            stored = self._log.get(key)
            if stored is not None:
                self.progress.replies += 1
                return self._hit(request, stored)
            flying = self._start(request, key)
            self._flying[key] = flying
            flying.add_done_callback(lambda done: self._landed(key, done))
        reply = await asyncio.shield(flying)
        self.progress.replies += 1
        return reply

    async def drain(self) -> None:
        """Wait for what was sent, for it is paid for, and drop what was not. Nothing is sent any more."""
        self._closing = True
        for waiting in self._waiting.values():
            for _, future in waiting:
                future.cancel()
            waiting.clear()
        for key, task in list(self._flying.items()):
            if isinstance(task, asyncio.Task) and key not in self._on_wire:
                task.cancel()
        await asyncio.gather(*list(self._flying.values()), return_exceptions=True)
        await asyncio.gather(*self._workers.values(), return_exceptions=True)

    def _landed(self, key: str, done: asyncio.Future[Reply]) -> None:
        self._flying.pop(key, None)
        if not done.cancelled():
            done.exception()  # looked at here, so that one nobody waits for any more is not reported as lost

    def _hit(self, request: Request, stored: Response) -> Response:
        self.progress.hits += 1
        self.saved_micro += self._prices[request.model].cost(stored.usage) or 0
        return stored

    def _start(self, request: Request, key: str) -> asyncio.Future[Reply]:
        provider = self._providers[request.model]
        if request.kind not in provider.answers:
            failed: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
            failed.set_result(Failed(key, f"{request.model} does not answer {request.kind!r} requests", 0, unsupported=True))
            return failed
        if isinstance(provider, BatchProvider):
            future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(request.model, []).append((request, future))
            if request.model not in self._workers or self._workers[request.model].done():
                self._workers[request.model] = asyncio.create_task(self._work(request.model, provider))
            return future
        return asyncio.create_task(self._send(provider, request))

    async def _work(self, model: ModelRef, provider: BatchProvider) -> None:
        """Hand a local model everything that waits, until nothing does."""
        waiting = self._waiting[model]
        while waiting:
            await asyncio.sleep(0)  # let every item that is ready add its requests
            batch = waiting[: _batch_size(request for request, _ in waiting)]
            del waiting[: len(batch)]
            self.progress.in_flight += len(batch)
            try:
                replies = await asyncio.to_thread(provider.send_batch, [request for request, _ in batch])
                self._log.put((q, r) for (q, _), r in zip(batch, replies, strict=True) if isinstance(r, Response))
            except BaseException as broken:
                for _, future in (*batch, *waiting):
                    if not future.done():
                        future.set_exception(broken)
                waiting.clear()
                raise
            finally:
                self.progress.in_flight -= len(batch)
            self.asked += len(batch)
            for (request, future), reply in zip(batch, replies, strict=True):
                if not future.done():
                    future.set_result(reply if isinstance(reply, Response) else self._failed(request, reply, 1))

    async def _send(self, provider: Provider, request: Request) -> Reply:
        """Try until there is a reply, or no further try can help or is allowed."""
        async with self._slots:
            wait, tries, answered = self._limits.first_wait_s / 2, 0, self.answered
            while True:
                call = await self._claim(request)
                if isinstance(call, Response):
                    return self._hit(request, call)
                try:
                    return await self._call(provider, request, call)
                except Unauthorised as error:
                    self._locked_out = error
                    raise
                except ProviderError as error:
                    others_got_through = isinstance(error, RateLimited) and self.answered > answered
                    answered = self.answered
                    tries = 0 if others_got_through else tries + 1
                    if not error.retry or tries >= self._limits.tries or self._closing:
                        return self._failed(request, error, max(1, tries))
                    wait = self._limits.first_wait_s if others_got_through else min(wait * 2, LONGEST_WAIT_S)
                    pause = wait
                    if isinstance(error, RateLimited):
                        self.progress.limited += 1
                        pause = max(wait, error.after_s or 0.0)
                        self._resume_at = max(self._resume_at, time.monotonic() + pause)
                    await asyncio.sleep(pause * random.uniform(1, 1.5))  # noqa: S311 - jitter, not a result

    async def _claim(self, request: Request) -> int | Response:
        """The right to send ``request`` now, as a reservation row; or its reply, where another process has got it."""
        most = self._prices[request.model].most(request)
        while True:
            place = await self._rate.acquire()
            if self._locked_out is not None:
                raise self._locked_out
            if (left := self._resume_at - time.monotonic()) > 0:  # a 429 holds everybody back
                self._rate.give_back(place)
                await asyncio.sleep(left)
                continue
            claim = self._log.reserve(request, self._run, most, self._limits.cap_micro)
            if claim.call is not None:
                return claim.call
            self._rate.give_back(place)
            if claim.reply is not None:
                return claim.reply
            if claim.elsewhere:
                await asyncio.sleep(ELSEWHERE_S)
            elif not self._on_wire:
                left_over = max(0, self.progress.expected - self.progress.replies)
                raise BudgetReached(sum(self._log.spend(self._run)), self._limits.cap_micro, left_over)
            else:  # calls in flight may turn out to cost less than they might have
                self._settled.clear()
                await self._settled.wait()

    async def _call(self, provider: Provider, request: Request, call: int) -> Response:
        """One paid try: send, and settle with the reply in one commit."""
        self._on_wire.add(request.key)
        self.progress.in_flight += 1
        self.asked += 1
        try:
            async with asyncio.timeout(self._limits.timeout_s):
                response = await provider.send(request)
        except TimeoutError as late:
            self._log.settle(call, None, "timed out")
            raise TimedOut(f"no reply within {self._limits.timeout_s:.0f} s") from late
        except ProviderError as error:
            rejected = isinstance(error, RateLimited | Unauthorised | Unsupported)
            self._log.settle(call, 0 if rejected else None, type(error).__name__)
            raise
        except BaseException:
            self._log.settle(call, None, "cancelled")
            raise
        else:
            self._log.settle(call, self._prices[request.model].cost(response.usage), "ok", (request, response))
            self.answered += 1
            return response
        finally:
            self._on_wire.discard(request.key)
            self.progress.in_flight -= 1
            self.progress.spent_micro = sum(self._log.spend(self._run))
            self._settled.set()

    def _failed(self, request: Request, error: ProviderError, tries: int) -> Failed:
        said = f"{type(error).__name__} (its words are redacted)" if self._log.redact else str(error)
        unsupported = isinstance(error, Unsupported)
        if not unsupported:
            self.progress.failed += 1
            self.progress.last_errors = [*self.progress.last_errors, said][-KEPT_ERRORS:]
        return Failed(request.key, said, tries, unsupported)


def _batch_size(waiting: Iterable[Request]) -> int:
    """How many of the requests that wait make one batch, at least one."""
    size = tokens = 0
    for request in waiting:
        tokens += request.max_tokens if isinstance(request, Complete) else 1
        if size == BATCH or (size and tokens > BATCH_TOKENS):
            break
        size += 1
    return size
