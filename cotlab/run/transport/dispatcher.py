"""From a request to its reply: the log first, then whoever answers for its model, each request once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from cotlab.core.program import Program
from cotlab.core.provider import AnyProvider, Batching, BatchProvider
from cotlab.core.requests import Failed, Reply, Request, Response
from cotlab.core.types import ModelRef
from cotlab.run.transport.batches import BatchQueue
from cotlab.run.transport.budget import Price
from cotlab.run.transport.context import Job
from cotlab.run.transport.in_process import LocalQueue
from cotlab.run.transport.journal import Journal
from cotlab.run.transport.limits import Limits
from cotlab.run.transport.remote import Sender
from cotlab.store.live import Progress
from cotlab.store.responses import ResponseLog

Way = LocalQueue | Sender | BatchQueue


class Dispatcher:
    """Asks every request once, whoever wants it: hits from the log, coalesced in flight, batched where that is possible.

    ``batch`` hands requests to the vendors' batch interfaces.
    """

    def __init__(
        self, run: str, providers: Mapping[ModelRef, AnyProvider], prices: Mapping[ModelRef, Price], log: ResponseLog,
        limits: Limits, progress: Progress, journal: Journal | None = None, *, batch: bool = False,
    ) -> None:  # fmt: skip
        self.job = Job(run, log, limits, prices, progress, journal or Journal())
        self.progress, self._log = progress, log
        self._providers = providers
        self._ways = {ref: self._way(ref, provider, batch) for ref, provider in providers.items()}
        self._flying: dict[str, asyncio.Future[Reply]] = {}
        self._said: dict[str, Response] = {}
        """Replies of a redacted run, whose log keeps none: equal requests are asked once a process."""
        self.wanted = 0

    async def ask(self, request: Request) -> Reply:
        """The reply to ``request``. Raises BudgetReached or what locks the run out: after those no request can succeed."""
        key = request.key
        self.wanted += 1
        flying = self._flying.get(key)
        if flying is None:
            stored = self._said.get(key) or self._log.get(key)
            if stored is not None:
                self.progress.replies += 1
                return self.job.hit(request, stored)
            flying = self._start(request, key)
            self._flying[key] = flying
            flying.add_done_callback(lambda done: self._landed(key, done))
        reply = await asyncio.shield(flying)
        if self._log.redact and isinstance(reply, Response):
            self._said[key] = reply
        self.progress.replies += 1
        return reply

    def was_begun(self, program: Program) -> bool:
        """Whether a run has asked what ``program`` asks first."""
        return any(self._log.was_asked(self.job.run, request.key) for request in next(program, ())[:1])

    async def drain(self) -> None:
        """Wait for what was sent, for it is paid for, and drop what was not. Nothing is sent any more."""
        self.job.closing = True
        for key, task in list(self._flying.items()):
            if isinstance(task, asyncio.Task) and key not in self.job.out:
                task.cancel()
        for way in self._ways.values():
            if not isinstance(way, Sender):
                await way.drain()
        await asyncio.gather(*list(self._flying.values()), return_exceptions=True)

    def _landed(self, key: str, done: asyncio.Future[Reply]) -> None:
        self._flying.pop(key, None)
        with suppress(asyncio.CancelledError):
            done.exception()  # looked at here, so that one nobody waits for any more is not reported as lost

    def _way(self, ref: ModelRef, provider: AnyProvider, batch: bool) -> Way:
        if isinstance(provider, BatchProvider):
            return LocalQueue(self.job, provider)
        if batch and isinstance(provider, Batching):
            return BatchQueue(self.job, provider, ref)
        return Sender(self.job, provider, self.job.reserves[ref])

    def _start(self, request: Request, key: str) -> asyncio.Future[Reply]:
        way = self._ways[request.model]
        if request.kind not in self._providers[request.model].answers:
            failed: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
            failed.set_result(Failed(key, f"{request.model} does not answer {request.kind!r} requests", 0, unsupported=True))
            return failed
        if isinstance(way, Sender):
            return asyncio.create_task(way.send(request))
        return way.send(request)
