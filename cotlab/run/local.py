"""Requests for a model in this process: everything that waits goes to it together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from cotlab.core.errors import Unsupported
from cotlab.core.provider import BatchProvider
from cotlab.core.requests import Complete, Patched, Reply, Request, Response
from cotlab.run.job import Job

BATCH, BATCH_TOKENS = 384, 24_576
"""Requests handed over at once, and the most they may generate: a batch cannot be stopped, nor kept in part."""


class LocalQueue:
    """The queue before one local model."""

    def __init__(self, job: Job, provider: BatchProvider) -> None:
        self._job, self._provider = job, provider
        self._waiting: list[tuple[Request, asyncio.Future[Reply]]] = []
        self._worker: asyncio.Task[None] | None = None

    def send(self, request: Request) -> asyncio.Future[Reply]:
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
        """Hand the model everything that waits, until nothing does."""
        job, waiting = self._job, self._waiting
        while waiting:
            await asyncio.sleep(0)  # let every item that is ready add its requests
            batch = waiting[: _batch_size(request for request, _ in waiting)]
            del waiting[: len(batch)]
            job.progress.in_flight += len(batch)
            try:
                replies = await asyncio.to_thread(self._provider.send_batch, [request for request, _ in batch])
                answered = [(q, r) for (q, _), r in zip(batch, replies, strict=True) if isinstance(r, Response)]
                job.log.put(answered, job.run)
            except BaseException as broken:
                for _, future in (*batch, *waiting):
                    if not future.done():
                        future.set_exception(broken)
                waiting.clear()
                raise
            finally:
                job.progress.in_flight -= len(batch)
            job.asked += len(batch)
            job.journal.note("batch", requests=len(batch))
            for (request, future), reply in zip(batch, replies, strict=True):
                if not future.done():
                    tries = 0 if isinstance(reply, Unsupported) else 1
                    future.set_result(reply if isinstance(reply, Response) else job.failed(request, reply, tries))


def _weight(request: Request) -> int:
    """What a request takes, in generated tokens; a patched row is about six of them."""
    if isinstance(request, Complete):
        return request.max_tokens
    return 6 * len(request.rows) if isinstance(request, Patched) else 1


def _batch_size(waiting: Iterable[Request]) -> int:
    """How many of the requests that wait make one batch, at least one."""
    size = tokens = 0
    for request in waiting:
        tokens += _weight(request)
        if size == BATCH or (size and tokens > BATCH_TOKENS):
            break
        size += 1
    return size
