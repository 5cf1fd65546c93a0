"""From a request to its reply: the log first, then the provider, within limits and budget, each request once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
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
from cotlab.core.requests import Failed, Reply, Request, Response
from cotlab.core.types import ModelRef
from cotlab.run.budget import Price
from cotlab.run.limits import SendLimit
from cotlab.store.live import Progress
from cotlab.store.responses import ResponseLog

BATCH = 384
"""Requests handed to a local model at once: small enough to show progress and to stop between two."""
KEPT_ERRORS = 5
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0


@dataclass(frozen=True, slots=True)
class Limits:
    """How hard a run may press a provider. Costs in micro-dollars, times in seconds."""

    concurrency: int = 10
    per_minute: int | None = 60
    cap_micro: int = 10_000_000
    tries: int = 5
    timeout_s: float = 180.0


class Dispatcher:
    """Asks every request once, whoever wants it: hits from the log, coalesced in flight, batched where local."""

    def __init__(
        self, run: str, providers: Mapping[ModelRef, AnyProvider], prices: Mapping[ModelRef, Price], log: ResponseLog,
        limits: Limits, progress: Progress,
    ) -> None:  # fmt: skip
        self._run, self._log, self._limits, self.progress = run, log, limits, progress
        self._providers, self._prices = providers, prices
        self._flying: dict[str, asyncio.Future[Reply]] = {}
        self._slots = asyncio.Semaphore(limits.concurrency)
        self._rate = SendLimit(limits.per_minute)
        self._settled = asyncio.Event()
        self._paid_in_flight = 0
        self._waiting: dict[ModelRef, list[tuple[Request, asyncio.Future[Reply]]]] = {}
        self._workers: dict[ModelRef, asyncio.Task[None]] = {}
        self.wanted = self.asked = self.saved_micro = 0

    async def ask(self, request: Request) -> Reply:
        """The reply to ``request``. Raises BudgetReached or Unauthorised: after those no request can succeed."""
        key = request.key
        self.wanted += 1
        flying = self._flying.get(key)
        if flying is None:
            stored = self._log.get(key)
            if stored is not None:
                self._note_hit(request, stored)
                return stored
            flying = self._start(request, key)
            self._flying[key] = flying
            flying.add_done_callback(lambda done: self._landed(key, done))
        reply = await asyncio.shield(flying)
        self.progress.replies += 1
        return reply

    async def drain(self) -> None:
        """Wait for what is in flight: it is paid for. Requests still in a queue are dropped."""
        for waiting in self._waiting.values():
            for _, future in waiting:
                future.cancel()
            waiting.clear()
        await asyncio.gather(*list(self._flying.values()), return_exceptions=True)
        for worker in self._workers.values():
            worker.cancel()
        await asyncio.gather(*self._workers.values(), return_exceptions=True)

    def _landed(self, key: str, done: asyncio.Future[Reply]) -> None:
        self._flying.pop(key, None)
        if not done.cancelled():
            done.exception()  # looked at here, so that one nobody waits for any more is not reported as lost

    def _note_hit(self, request: Request, stored: Response) -> None:
        self.progress.replies += 1
        self.progress.hits += 1
        self.saved_micro += self._prices[request.model].cost(stored.usage) or 0

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
            batch = waiting[:BATCH]
            del waiting[:BATCH]
            self.progress.in_flight += len(batch)
            try:
                replies = await asyncio.to_thread(provider.send_batch, [request for request, _ in batch])
            except BaseException as broken:
                for _, future in batch:
                    future.set_exception(broken)
                raise
            finally:
                self.progress.in_flight -= len(batch)
            self.asked += len(batch)
            self._log.put((q, r) for (q, _), r in zip(batch, replies, strict=True) if isinstance(r, Response))
            for (request, future), reply in zip(batch, replies, strict=True):
                if not future.done():
                    future.set_result(reply if isinstance(reply, Response) else self._failed(request, reply, 1))

    async def _send(self, provider: Provider, request: Request) -> Reply:
        async with self._slots:
            key = request.key
            while self._log.in_flight_elsewhere(key):
                await asyncio.sleep(0.2)
            stored = self._log.get(key)
            if stored is not None:
                self.progress.hits += 1
                return stored
            wait = FIRST_WAIT_S
            for attempt in range(1, self._limits.tries + 1):
                try:
                    return await self._call(provider, request)
                except Unauthorised:
                    raise
                except ProviderError as error:
                    if not error.retry or attempt == self._limits.tries:
                        return self._failed(request, error, attempt)
                    if isinstance(error, RateLimited):
                        self.progress.limited += 1
                        wait = max(wait, error.after_s or 0.0)
                    await asyncio.sleep(wait * random.uniform(0.75, 1.25))  # noqa: S311 - jitter, not a result
                    wait = min(wait * 2, LONGEST_WAIT_S)
            raise AssertionError("a loop over at least one try returns")

    async def _call(self, provider: Provider, request: Request) -> Response:
        """One paid try: reserve, send, settle with the reply in one commit."""
        await self._rate.acquire()
        call = await self._reserve(request)
        self._paid_in_flight += 1
        self.progress.in_flight += 1
        self.asked += 1
        try:
            response = await asyncio.wait_for(provider.send(request), self._limits.timeout_s)
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
            return response
        finally:
            self._paid_in_flight -= 1
            self.progress.in_flight -= 1
            self.progress.spent_micro = sum(self._log.spend(self._run))
            self._settled.set()

    async def _reserve(self, request: Request) -> int:
        """A reservation row. Where it does not fit, wait for calls in flight to cost less than they might have."""
        most = self._prices[request.model].most(request)
        while True:
            self._settled.clear()
            call = self._log.reserve(request, self._run, most, self._limits.cap_micro)
            if call is not None:
                return call
            if not self._paid_in_flight:
                left = max(0, self.progress.expected - self.progress.replies)
                raise BudgetReached(sum(self._log.spend(self._run)), self._limits.cap_micro, left)
            await self._settled.wait()

    def _failed(self, request: Request, error: ProviderError, tries: int) -> Failed:
        unsupported = isinstance(error, Unsupported)
        if not unsupported:
            self.progress.failed += 1
            self.progress.last_errors = [*self.progress.last_errors, str(error)][-KEPT_ERRORS:]
        return Failed(request.key, str(error), tries, unsupported)

