"""Send requests to a model in this process, in batches of one kind of about two seconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass

from cotlab.core.errors import Unsupported
from cotlab.core.provider import BatchProvider
from cotlab.core.requests import Complete, Embed, Patched, Reply, Request, Response
from cotlab.run.transport.context import RequestContext

BATCH, BATCH_TOKENS = 384, 24_576
"""Requests handed over at once, and the most tokens of work in them: a batch cannot be stopped, nor
kept in part."""
BATCH_S = 2.0
"""How long a batch should take: whatever stops the process, no more than about this much work is
lost."""
FIRST_SHARE, GROWTH = 16, 4
Waiting = tuple[Request, asyncio.Future[Reply]]


@dataclass(slots=True)
class Pace:
    """How much work of one kind makes a batch: little at first, then ``BATCH_S`` of it."""

    tokens: int = BATCH_TOKENS // FIRST_SHARE

    def learn(self, tokens: int, seconds: float) -> None:
        """Learn from a batch of ``tokens`` that took ``seconds``; only a full one may grow it."""
        target = round(tokens * BATCH_S / max(seconds, 1e-6))
        if seconds > BATCH_S:
            self.tokens = max(1, min(self.tokens, target))
        elif 2 * tokens > self.tokens:
            self.tokens = max(self.tokens, min(BATCH_TOKENS, GROWTH * self.tokens, target))


class LocalQueue:
    """The queue before one local model."""

    def __init__(self, job: RequestContext, provider: BatchProvider) -> None:
        self._job, self._provider = job, provider
        self._waiting: list[Waiting] = []
        self._worker: asyncio.Task[None] | None = None
        self._paces: dict[str, Pace] = {}

    def send(self, request: Request) -> asyncio.Future[Reply]:
        """Queue a request for the next batch; return its future reply."""
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, future))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        return future

    async def drain(self) -> None:
        """Drop what waits; the batch that is being worked on is waited for."""
        for _, future in self._waiting:
            future.cancel()
        self._waiting.clear()
        if self._worker is not None:
            await asyncio.gather(self._worker, return_exceptions=True)

    async def _work(self) -> None:
        """Hand the model what waits, until nothing does."""
        job = self._job
        while self._waiting:
            await asyncio.sleep(0)  # let every item that is ready add its requests
            if not self._waiting:
                return
            batch, pace = self._next()
            job.progress.in_flight += len(batch)
            try:
                started = time.monotonic()
                replies = await asyncio.to_thread(
                    self._provider.send_batch, [request for request, _ in batch]
                )
                pace.learn(
                    sum(_weight(request) for request, _ in batch), time.monotonic() - started
                )
                answered = [
                    (q, r)
                    for (q, _), r in zip(batch, replies, strict=True)
                    if isinstance(r, Response)
                ]
                job.log.put(answered, job.run)
            except BaseException as broken:
                for _, future in (*batch, *self._waiting):
                    if not future.done():
                        future.set_exception(broken)
                self._waiting.clear()
                raise
            finally:
                job.progress.in_flight -= len(batch)
            job.sent += len(batch)
            job.journal.note("batch", requests=len(batch))
            for (request, future), reply in zip(batch, replies, strict=True):
                if not future.done():
                    tries = 0 if isinstance(reply, Unsupported) else 1
                    future.set_result(
                        reply if isinstance(reply, Response) else job.failed(request, reply, tries)
                    )

    def _next(self) -> tuple[list[Waiting], Pace]:
        """Take the next batch: of the kind that has waited longest, in the order of asking."""
        kind = self._waiting[0][0].kind
        pace = self._paces.setdefault(kind, Pace())
        same_kind = [entry for entry in self._waiting if entry[0].kind == kind]
        batch = same_kind[: _batch_size((request for request, _ in same_kind), pace.tokens)]
        taken_ids = {id(future) for _, future in batch}
        self._waiting[:] = [entry for entry in self._waiting if id(entry[1]) not in taken_ids]
        return batch, pace


def _weight(request: Request) -> int:
    """Return the work of a request in generated tokens.

    A patched row is about six, four letters to embed about one, anything else a share of a batch.
    """
    if isinstance(request, Complete):
        return request.max_tokens
    if isinstance(request, Embed):
        return sum(len(text) // 4 + 1 for text in request.texts)
    return 6 * len(request.rows) if isinstance(request, Patched) else BATCH_TOKENS // BATCH


def _batch_size(waiting: Iterable[Request], max_tokens: int) -> int:
    """Return how many of the waiting requests make one batch, at least one."""
    size = tokens = 0
    for request in waiting:
        tokens += _weight(request)
        if size == BATCH or (size and tokens > max_tokens):
            break
        size += 1
    return size
