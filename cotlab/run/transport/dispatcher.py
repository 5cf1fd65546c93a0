"""Find the reply to a request: in the log, else from the provider of its model, once."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

from cotlab.core.program import Preparation, Program
from cotlab.core.provider import AnyProvider, Batching, BatchProvider
from cotlab.core.requests import Failed, Reply, Request, Response
from cotlab.core.types import ModelRef
from cotlab.run.transport.batches import BatchQueue
from cotlab.run.transport.budget import Price
from cotlab.run.transport.context import Journal, RequestContext
from cotlab.run.transport.in_process import LocalQueue
from cotlab.run.transport.limits import Limits
from cotlab.run.transport.remote import Sender
from cotlab.store.live import Progress
from cotlab.store.responses import ResponseLog

Channel = LocalQueue | Sender | BatchQueue


class Dispatcher:
    """Send each distinct request once: replies come from the log, and equal requests share one.

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
        """Return the reply to ``request``.

        Raises
        ------
        BudgetReached, ProviderError
            If no further request can succeed.
        """
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
        """Wait for what was sent, since it is paid for; drop the rest and send nothing more."""
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
    """Run one program: ask each round's requests at once, and send the replies in order."""
    try:
        round_ = next(program)
        while True:
            replies: list[Reply] = list(
                await asyncio.gather(*(dispatcher.ask(request) for request in round_))
            )
            round_ = program.send(replies)
    except StopIteration as end:
        return end.value


def run_anywhere(go: Callable[[], Any]) -> Any:
    """Run a coroutine function to its end, also where this thread has a running event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(go())
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(go())).result()


@contextmanager
def stopping_on_signals(stop: asyncio.Event) -> Iterator[None]:
    """Ctrl-C and SIGTERM set ``stop`` once; a second one ends the process the usual way."""
    loop = asyncio.get_running_loop()
    numbers = (
        (signal.SIGINT, signal.SIGTERM)
        if threading.current_thread() is threading.main_thread()
        else ()
    )

    def give_back() -> None:
        for number in numbers:
            loop.remove_signal_handler(number)

    def once() -> None:
        print(
            "Stopping: what was sent is waited for, for it is paid for. Once more ends at once.",
            file=sys.stderr,
        )
        stop.set()
        give_back()

    for number in numbers:
        loop.add_signal_handler(number, once)
    try:
        yield
    finally:
        give_back()
