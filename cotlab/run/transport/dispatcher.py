"""Find the reply to a request: in the log, else from the provider of its model, once."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from cotlab.core.errors import ProviderError, Unsupported
from cotlab.core.program import Preparation, Program
from cotlab.core.provider import AnyProvider, InProcessProvider, SupportsBatches
from cotlab.core.requests import RECORDED_ERROR, Complete, Failed, Reply, Request, Response
from cotlab.core.types import ModelRef
from cotlab.run.transport.batches import BatchQueue
from cotlab.run.transport.budget import Price
from cotlab.run.transport.context import Journal, RequestContext
from cotlab.run.transport.in_process import LocalQueue
from cotlab.run.transport.limits import Limits
from cotlab.run.transport.remote import Sender
from cotlab.store.live import RunProgress
from cotlab.store.responses import ResponseLog

Channel = LocalQueue | Sender | BatchQueue


class SendCheck(Protocol):
    """Sends a request of a check of a server, with at most ``max_tries`` tries."""

    def __call__(self, request: Complete, max_tries: int | None = None, /) -> Awaitable[Reply]:
        """Return its reply or its failure."""


class Dispatcher:
    """Send each distinct request once: replies come from the log, and equal requests share one.

    With ``batch`` requests go to the vendors' batch interfaces.
    """

    def __init__(
        self,
        run_id: str,
        providers: Mapping[ModelRef, AnyProvider],
        prices: Mapping[ModelRef, Price],
        response_log: ResponseLog,
        limits: Limits,
        progress: RunProgress,
        journal: Journal | None = None,
        *,
        batch: bool = False,
    ) -> None:
        self.job = RequestContext(
            run_id, response_log, limits, prices, progress, journal or Journal()
        )
        self.progress, self._log = progress, response_log
        self.providers = providers
        self._channels = {
            ref: self._channel_for(ref, provider, batch) for ref, provider in providers.items()
        }
        self._in_flight: dict[str, asyncio.Future[Reply]] = {}
        self._redacted_replies: dict[str, Response] = {}
        """Replies of a redacted run, as its log stores none: equal requests are sent once."""
        self.requested = 0
        self.before_first_send: Callable[[], Coroutine[Any, Any, None]] | None = None
        """Called once before the first request is sent to a server; its error is that of each."""
        self._first_send: asyncio.Task[None] | None = None

    async def ask(self, request: Request) -> Reply:
        """Return the reply to ``request``.

        Raises
        ------
        BudgetReached, ProviderError
            If no further request can succeed.
        """
        key = request.key
        self.requested += 1
        pending_reply = self._in_flight.get(key)
        if pending_reply is None:
            stored_response = self._redacted_replies.get(key) or self._log.get(key)
            if stored_response is not None:
                self.progress.replies += 1
                if stored_response.finish == RECORDED_ERROR and stored_response.text is None:
                    sent = stored_response.sent
                    error_type = Unsupported if sent.get("unsupported") else ProviderError
                    error = error_type(str(sent.get("error", "no message")))
                    return self.job.failed_reply(request, error, 0)
                return self.job.count_cache_hit(request, stored_response)
            pending_reply = self._send_request(request, key)
            self._in_flight[key] = pending_reply
            pending_reply.add_done_callback(lambda done: self._on_reply_done(key, done))
        reply = await asyncio.shield(pending_reply)
        if self._log.redact and isinstance(reply, Response):
            self._redacted_replies[key] = reply
        self.progress.replies += 1
        return reply

    async def send_check(self, request: Complete, max_tries: int | None = None) -> Reply:
        """Send a request of a check of the server, which counts for no scorer.

        It is tried ``max_tries`` times, by default as often as the run's limits say.
        """
        if self.job.is_closing:
            raise asyncio.CancelledError
        channel = self._channels[request.model]
        assert isinstance(channel, Sender)
        return await channel.send(request, max_tries)

    def sends_at_once(self, ref: ModelRef) -> bool:
        """Return whether requests to a model go to a server one by one, not in batches."""
        return isinstance(self._channels[ref], Sender)

    def was_started(self, program: Program) -> bool:
        """Return whether the run has sent the first request of ``program``."""
        return any(
            self._log.was_sent(self.job.run_id, request.key) for request in next(program, ())[:1]
        )

    async def drain(self) -> None:
        """Wait for requests that were sent, since they are paid for; cancel all others."""
        self.job.is_closing = True
        for key, task in list(self._in_flight.items()):
            if isinstance(task, asyncio.Task) and key not in self.job.in_flight_keys:
                task.cancel()
        for channel in self._channels.values():
            if not isinstance(channel, Sender):
                await channel.drain()
        first_send = [self._first_send] if self._first_send else []
        await asyncio.gather(*self._in_flight.values(), *first_send, return_exceptions=True)

    def _on_reply_done(self, key: str, future: asyncio.Future[Reply]) -> None:
        self._in_flight.pop(key, None)
        with suppress(asyncio.CancelledError):
            # retrieve the exception, or asyncio reports it where no task waits any more
            future.exception()

    def _channel_for(self, ref: ModelRef, provider: AnyProvider, batch: bool) -> Channel:
        if isinstance(provider, InProcessProvider):
            return LocalQueue(self.job, provider)
        if batch and isinstance(provider, SupportsBatches):
            return BatchQueue(self.job, provider, ref)
        return Sender(self.job, provider, self.job.reserve_by_model[ref])

    def _send_request(self, request: Request, key: str) -> asyncio.Future[Reply]:
        channel = self._channels[request.model]
        if request.kind not in self.providers[request.model].answers:
            failed_future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
            failed_future.set_result(
                Failed(
                    key,
                    f"{request.model} does not answer {request.kind!r} requests",
                    0,
                    unsupported=True,
                )
            )
            return failed_future
        if isinstance(channel, Sender):
            return asyncio.create_task(self._send_after_checks(channel, request))
        return channel.send(request)

    async def _send_after_checks(self, channel: Sender, request: Request) -> Reply:
        if self.before_first_send is not None:
            if self._first_send is None:
                self._first_send = asyncio.create_task(self.before_first_send())
            await asyncio.shield(self._first_send)
        return await channel.send(request)


async def drive(program: Program | Preparation, dispatcher: Dispatcher) -> Any:
    """Run a program: send the requests of each round together, return the replies in order."""
    try:
        round_requests = next(program)
        while True:
            replies = await asyncio.gather(*map(dispatcher.ask, round_requests))
            round_requests = program.send(replies)
    except StopIteration as end:
        return end.value


def run_coroutine(coroutine_function: Callable[[], Any]) -> Any:
    """Run a coroutine function to its end, also where this thread has a running event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine_function())
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(coroutine_function())).result()


@contextmanager
def stopping_on_signals(stop_event: asyncio.Event) -> Iterator[None]:
    """Ctrl-C and SIGTERM set ``stop_event`` once; a second one ends the process the usual way."""
    loop = asyncio.get_running_loop()
    signal_numbers = (
        (signal.SIGINT, signal.SIGTERM)
        if threading.current_thread() is threading.main_thread()
        else ()
    )

    def remove_handlers() -> None:
        for signal_number in signal_numbers:
            loop.remove_signal_handler(signal_number)

    def stop_once() -> None:
        print(
            "Stopping: what was sent is waited for, for it is paid for. Once more ends at once.",
            file=sys.stderr,
        )
        stop_event.set()
        remove_handlers()

    for signal_number in signal_numbers:
        loop.add_signal_handler(signal_number, stop_once)
    try:
        yield
    finally:
        remove_handlers()
