"""Send requests to a model in this process, in batches of one kind of about two seconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from cotlab.core.errors import ProviderError, Unsupported
from cotlab.core.placeholders import SOLVER_PROVIDER
from cotlab.core.provider import InProcessProvider
from cotlab.core.requests import (
    RECORDED_ERROR,
    Complete,
    Embed,
    Patched,
    Reply,
    Request,
    Response,
)
from cotlab.run.transport.context import RequestContext

MAX_BATCH_SIZE, MAX_BATCH_TOKENS = 384, 49_152
"""Maximum requests and tokens of a batch, which can neither be stopped nor stored in part."""
TARGET_BATCH_S = 2.0
"""Target duration of a batch, which bounds the work that is lost when the process stops."""
FIRST_BATCH_DIVISOR, MAX_BATCH_GROWTH = 32, 6
MIN_SOLVER_BATCH_SIZE = 32
"""Least requests of a batch of symbolic checks, or a slow one would leave workers without any."""
QueuedRequest = tuple[Request, asyncio.Future[Reply]]


@dataclass(slots=True)
class BatchPace:
    """Size of the batches of one kind of request: small at first, then of the target duration."""

    max_tokens: int = MAX_BATCH_TOKENS // FIRST_BATCH_DIVISOR

    def update_from_batch(self, tokens: int, seconds: float) -> None:
        """Learn from a batch of ``tokens`` that took ``seconds``; only a full one may grow it."""
        target_tokens = round(tokens * TARGET_BATCH_S / max(seconds, 1e-6))
        if seconds > TARGET_BATCH_S:
            self.max_tokens = max(1, min(self.max_tokens, target_tokens))
        elif 2 * tokens > self.max_tokens:
            self.max_tokens = max(
                self.max_tokens,
                min(MAX_BATCH_TOKENS, MAX_BATCH_GROWTH * self.max_tokens, target_tokens),
            )


class LocalQueue:
    """Queue of the requests to one local model."""

    def __init__(self, context: RequestContext, provider: InProcessProvider) -> None:
        self._context, self._provider = context, provider
        self._waiting: list[QueuedRequest] = []
        self._worker: asyncio.Task[None] | None = None
        self._paces: dict[str, BatchPace] = {}

    def send(self, request: Request) -> asyncio.Future[Reply]:
        """Queue a request for the next batch; return its future reply."""
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, future))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._run_batches())
        return future

    async def drain(self) -> None:
        """Drop what waits; the batch that is being worked on is waited for."""
        for _, future in self._waiting:
            future.cancel()
        self._waiting.clear()
        if self._worker is not None:
            await asyncio.gather(self._worker, return_exceptions=True)

    async def _run_batches(self) -> None:
        """Send batches to the model until the queue is empty."""
        context = self._context
        while self._waiting:
            await asyncio.sleep(0)  # let every item that is ready add its requests
            if not self._waiting:
                return
            batch, pace = self._next_batch()
            context.progress.in_flight += len(batch)
            try:
                started_at = time.monotonic()
                replies = await asyncio.to_thread(
                    self._provider.send_batch, [request for request, _ in batch]
                )
                pace.update_from_batch(
                    sum(_request_tokens(request) for request, _ in batch),
                    time.monotonic() - started_at,
                )
                is_solver = self._provider.ref.provider == SOLVER_PROVIDER
                answered_pairs = [
                    (request, reply if isinstance(reply, Response) else _undecided(request, reply))
                    for (request, _), reply in zip(batch, replies, strict=True)
                    if isinstance(reply, Response) or (is_solver and isinstance(reply, Unsupported))
                ]
                context.response_log.put(answered_pairs, context.run_id)
            except BaseException as broken:
                for _, future in (*batch, *self._waiting):
                    if not future.done():
                        future.set_exception(broken)
                self._waiting.clear()
                raise
            finally:
                context.progress.in_flight -= len(batch)
            context.n_sent += len(batch)
            if not is_solver:
                context.progress.answered = (context.progress.answered or 0) + len(answered_pairs)
            context.journal.note("batch", requests=len(batch))
            for (request, future), reply in zip(batch, replies, strict=True):
                if not future.done():
                    n_tries = 0 if isinstance(reply, Unsupported) else 1
                    future.set_result(
                        reply
                        if isinstance(reply, Response)
                        else context.failed_reply(request, reply, n_tries)
                    )

    def _next_batch(self) -> tuple[list[QueuedRequest], BatchPace]:
        """Take the next batch: of the kind that has waited longest, in the order of asking."""
        kind = self._waiting[0][0].kind
        pace = self._paces.setdefault(kind, BatchPace())
        same_kind_entries = [entry for entry in self._waiting if entry[0].kind == kind]
        n_requests = _batch_size((request for request, _ in same_kind_entries), pace.max_tokens)
        if self._provider.ref.provider == SOLVER_PROVIDER:
            n_requests = max(n_requests, MIN_SOLVER_BATCH_SIZE)
        batch = same_kind_entries[:n_requests]
        batch_future_ids = {id(future) for _, future in batch}
        self._waiting[:] = [
            entry for entry in self._waiting if id(entry[1]) not in batch_future_ids
        ]
        return batch, pace


def _undecided(request: Request, error: ProviderError) -> Response:
    """Return what the log keeps of a check that is undecided, so that it is not computed again."""
    now = datetime.now(UTC).isoformat()
    sent = {"error": str(error), "unsupported": True}
    return Response(request.key, finish=RECORDED_ERROR, sent=sent, received_at=now)


def _request_tokens(request: Request) -> int:
    """Return the work of a request in generated tokens.

    A patched row is about six, four letters to embed about one, anything else a share of a batch.
    """
    if isinstance(request, Complete):
        return request.max_tokens
    if isinstance(request, Embed):
        return sum(len(text) // 4 + 1 for text in request.texts)
    return (
        6 * len(request.rows)
        if isinstance(request, Patched)
        else MAX_BATCH_TOKENS // MAX_BATCH_SIZE
    )


def _batch_size(requests: Iterable[Request], max_tokens: int) -> int:
    """Return how many of the waiting requests make one batch, at least one."""
    n_requests = n_tokens = 0
    for request in requests:
        n_tokens += _request_tokens(request)
        if n_requests == MAX_BATCH_SIZE or (n_requests and n_tokens > max_tokens):
            break
        n_requests += 1
    return n_requests
