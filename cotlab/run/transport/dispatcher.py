"""From a request to its reply: the log first, then whoever answers for its model, each request once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from cotlab.core.program import Preparation, Program
from cotlab.core.provider import AnyProvider, Batching, BatchProvider
from cotlab.core.requests import Failed, Reply, Request, Response
from cotlab.core.types import ModelRef
from cotlab.run.transport.batches import BatchQueue
from cotlab.run.transport.budget import Price
from cotlab.run.transport.context import RequestContext
from cotlab.run.transport.in_process import LocalQueue
from cotlab.run.transport.journal import Journal
from cotlab.run.transport.limits import Limits
from cotlab.run.transport.remote import Sender
from cotlab.store.live import Progress
from cotlab.store.responses import ResponseLog

Channel = LocalQueue | Sender | BatchQueue


class Dispatcher:
    """Asks every request once, whoever wants it: hits from the log, coalesced in flight, batched where that is possible.

    ``batch`` hands requests to the vendors' batch interfaces.
    """

    def __init__(
        self,
        run: str,
        providers: Mapping[ModelRef, AnyProvider],
        prices: Mapping[ModelRef, Price],
        log: ResponseLog,
        limits: Limits,
        progress: Progress,
        journal: Journal | None = None,
        *,
        batch: bool = False,
    ) -> None:
        self.job = RequestContext(run, log, limits, prices, progress, journal or Journal())
        self.progress, self._log = progress, log
        self._providers = providers
        self._channels = {
            ref: self._channel_for(ref, provider, batch) for ref, provider in providers.items()
        }
        self._in_flight: dict[str, asyncio.Future[Reply]] = {}
        self._redacted_replies: dict[str, Response] = {}
        """Replies of a redacted run, whose log keeps none: equal requests are asked once a process.
        """
        self.requested = 0

    async def ask(self, request: Request) -> Reply:
        """The reply to ``request``. Raises BudgetReached or what locks the run out: after those no request can succeed."""
        key = request.key
        self.requested += 1
        pending = self._in_flight.get(key)
        if pending is None:
            stored = self._redacted_replies.get(key) or self._log.get(key)
            if stored is not None:
                self.progress.replies += 1
                return self.job.count_hit(request, stored)
            pending = self._start(request, key)
            self._in_flight[key] = pending
            pending.add_done_callback(lambda done: self._landed(key, done))
        reply = await asyncio.shield(pending)
        if self._log.redact and isinstance(reply, Response):
            self._redacted_replies[key] = reply
        self.progress.replies += 1
        return reply

    def was_started(self, program: Program) -> bool:
        """Whether a run has asked what ``program`` asks first."""
        return any(
            self._log.was_sent(self.job.run, request.key) for request in next(program, ())[:1]
        )

    async def drain(self) -> None:
        """Wait for what was sent, for it is paid for, and drop what was not. Nothing is sent any more."""
        self.job.closing = True
        for key, task in list(self._in_flight.items()):
            if isinstance(task, asyncio.Task) and key not in self.job.in_flight_keys:
                task.cancel()
        for channel in self._channels.values():
            if not isinstance(channel, Sender):
                await channel.drain()
        await asyncio.gather(*list(self._in_flight.values()), return_exceptions=True)

    def _landed(self, key: str, done: asyncio.Future[Reply]) -> None:
        self._in_flight.pop(key, None)
        with suppress(asyncio.CancelledError):
            # looked at here, so that one nobody waits for any more is not reported as lost
            done.exception()

    def _channel_for(self, ref: ModelRef, provider: AnyProvider, batch: bool) -> Channel:
        if isinstance(provider, BatchProvider):
            return LocalQueue(self.job, provider)
        if batch and isinstance(provider, Batching):
            return BatchQueue(self.job, provider, ref)
        return Sender(self.job, provider, self.job.reserves[ref])

    def _start(self, request: Request, key: str) -> asyncio.Future[Reply]:
        channel = self._channels[request.model]
        if request.kind not in self._providers[request.model].answers:
            failed: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
            failed.set_result(
                Failed(
                    key,
                    f"{request.model} does not answer {request.kind!r} requests",
                    0,
                    unsupported=True,
                )
            )
            return failed
        if isinstance(channel, Sender):
            return asyncio.create_task(channel.send(request))
        return channel.send(request)


async def drive(program: Program | Preparation, dispatcher: Dispatcher) -> Any:
    """Run one program: ask each round's requests at once, send the replies back in order, return what it returns."""
    try:
        round_ = next(program)
        while True:
            replies: list[Reply] = list(
                await asyncio.gather(*(dispatcher.ask(request) for request in round_))
            )
            round_ = program.send(replies)
    except StopIteration as end:
        return end.value
