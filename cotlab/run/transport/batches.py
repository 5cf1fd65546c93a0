"""Use a vendor's batch interface: hand in requests of many items, poll, recover on restart.

A batch is noted in the log before it is handed in, its vendor's id the moment that is known. What a
killed process had handed in is found again by that id, or by the name of the batch where the vendor
can look it up; where neither is possible, its calls stay at their full reserve and its requests are
asked anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar
from uuid import uuid4

from cotlab.core.errors import (
    BadReply,
    NotFound,
    ProviderError,
    RateLimited,
    Unauthorised,
    Unavailable,
)
from cotlab.core.provider import BatchState, SupportsBatches
from cotlab.core.requests import Reply, Request, Response
from cotlab.core.types import ModelRef
from cotlab.run.transport.context import RequestContext

MAX_BATCH_REQUESTS, MAX_BATCH_BYTES = 20_000, 90_000_000
"""Maximum requests and bytes of a batch, below the limits of both vendors."""
QUIET_PERIOD_S = 0.25
"""Seconds without a new request after which a batch is submitted."""
MAX_POLL_INTERVAL_S = 60.0
MAX_POLL_FAILURES = 30
"""Maximum consecutive failed polls; a resumed run recovers the batch."""
MAX_RESULT_READS = 3
"""Maximum reads of the results where some are missing, as after a truncated stream."""
ResultT = TypeVar("ResultT")


@dataclass(slots=True)
class _WaitingRequest:
    """A request and the future of its reply."""

    request: Request
    future: asyncio.Future[Reply]
    n_tries: int = 0


@dataclass(slots=True)
class _OpenBatch:
    """A submitted batch: its calls and its waiting requests by key."""

    name: str
    vendor_id: str
    call_id_by_key: dict[str, int]
    waiting_by_key: dict[str, _WaitingRequest] = field(default_factory=dict)
    state: BatchState = BatchState(False, 0, 0)


class BatchQueue:
    """Queue of the requests to one vendor's batch interface."""

    def __init__(self, context: RequestContext, provider: SupportsBatches, ref: ModelRef) -> None:
        self._context, self._provider, self._ref = context, provider, ref
        self._queue: list[_WaitingRequest] = []
        self._open_batches: dict[str, _OpenBatch] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._collector: asyncio.Task[None] | None = None
        self._queue_grew, self._closing = asyncio.Event(), asyncio.Event()
        self._submit_lock = asyncio.Lock()
        self._recovered = False

    def send(self, request: Request) -> asyncio.Future[Reply]:
        """Queue a request for the next batch; return its future reply."""
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._enqueue(_WaitingRequest(request, future))
        return future

    async def drain(self) -> None:
        """Stop waiting: open batches stay with the vendor, and a resumed run recovers them."""
        self._closing.set()
        async with self._submit_lock:
            for task in self._tasks:
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for entry in self._waiting_requests():
            entry.future.cancel()

    def _enqueue(self, entry: _WaitingRequest) -> None:
        key = entry.request.key
        # a batch of an earlier process may contain it already
        for batch in self._open_batches.values():
            is_unclaimed = key in batch.call_id_by_key and key not in batch.waiting_by_key
            if is_unclaimed and not batch.state.has_ended:
                batch.waiting_by_key[key] = entry
                return
        self._queue.append(entry)
        self._queue_grew.set()
        if self._collector is None or self._collector.done():
            self._collector = self._spawn(self._submit_queued())

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)
        return task

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        """Give the exception of a failed task to all waiting requests, which cannot succeed."""
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is None:
            return
        for entry in self._waiting_requests():
            if not entry.future.done():
                entry.future.set_exception(error)
        self._queue.clear()

    def _waiting_requests(self) -> list[_WaitingRequest]:
        batches = self._open_batches.values()
        waiting = (entry for batch in batches for entry in batch.waiting_by_key.values())
        return [*self._queue, *waiting]

    async def _submit_queued(self) -> None:
        """Submit batches, each after a quiet period, until the queue is empty."""
        n_failures, reserve = 0, self._context.reserve_by_model[self._ref]
        while self._queue:
            self._queue_grew.clear()
            await asyncio.sleep(QUIET_PERIOD_S)
            if self._queue_grew.is_set():
                continue
            if not self._recovered:
                await self._recover_batches()
            while reserve.n_unproven_replies and self._open_batches:
                await self._context.wait_for_call_end()
            async with self._submit_lock:
                chosen_entries, call_id_by_key, is_sent_elsewhere = self._reserve_requests()
                try:
                    is_done = not chosen_entries or await self._submit_batch(
                        chosen_entries, call_id_by_key
                    )
                    n_failures = 0 if is_done else n_failures + 1
                except BaseException:
                    self._queue += chosen_entries  # so that they get the error
                    raise
            if n_failures:
                await asyncio.sleep(self._retry_wait_s(n_failures - 1))
            elif chosen_entries:
                continue
            elif is_sent_elsewhere:
                await asyncio.sleep(self._context.limits.poll_interval_s)
            elif self._queue:
                max_cost = reserve.max_cost(self._queue[0].request)
                await self._context.wait_for_budget(max_cost)

    async def _recover_batches(self) -> None:
        """Find the batches of an earlier process of this run, and wait for their requests."""
        context, recovered_batches = self._context, list[_OpenBatch]()
        for (
            batch_name,
            vendor_id,
            started_at,
            call_id_by_key,
        ) in context.response_log.list_open_batches(context.run_id, str(self._ref)):
            batch_id = vendor_id or await self._find_batch(
                batch_name, tuple(call_id_by_key), started_at
            )
            context.journal.note(
                "batch found again",
                batch=batch_name,
                vendor_id=batch_id,
                requests=len(call_id_by_key),
            )
            if batch_id is None:
                for call_id in call_id_by_key.values():
                    context.response_log.settle(call_id, None, "lost")
            context.response_log.update_batch(batch_name, batch_id, is_ended=batch_id is None)
            if batch_id is not None:
                recovered_batches.append(_OpenBatch(batch_name, batch_id, call_id_by_key))
        for batch in recovered_batches:
            batch.waiting_by_key = {
                entry.request.key: entry
                for entry in self._queue
                if entry.request.key in batch.call_id_by_key
            }
            self._queue = [
                entry for entry in self._queue if entry.request.key not in batch.call_id_by_key
            ]
            self._start_polling(batch)
        self._recovered = True

    def _reserve_requests(self) -> tuple[list[_WaitingRequest], dict[str, int], bool]:
        """Reserve the waiting requests that budget and batch take; return them and their calls."""
        context, reserve = self._context, self._context.reserve_by_model[self._ref]
        chosen_entries, remaining_entries = list[_WaitingRequest](), list[_WaitingRequest]()
        call_id_by_key: dict[str, int] = {}
        n_bytes, is_sent_elsewhere = 0, False
        for entry in self._queue:
            n_bytes += len(entry.request.json_bytes)
            is_too_large = bool(chosen_entries) and n_bytes > MAX_BATCH_BYTES
            if len(chosen_entries) == MAX_BATCH_REQUESTS or is_too_large:
                remaining_entries.append(entry)
                continue
            max_cost = reserve.max_cost(entry.request)
            claim = context.response_log.reserve(
                entry.request, context.run_id, max_cost, context.limits.cap_micro
            )
            if claim.reply is not None:
                entry.future.set_result(context.count_cache_hit(entry.request, claim.reply))
            elif claim.call_id is not None:
                chosen_entries.append(entry)
                call_id_by_key[entry.request.key] = claim.call_id
            else:
                remaining_entries.append(entry)
                is_sent_elsewhere = is_sent_elsewhere or claim.is_in_flight
        self._queue = remaining_entries
        return chosen_entries, call_id_by_key, is_sent_elsewhere

    async def _submit_batch(
        self, chosen_entries: Sequence[_WaitingRequest], call_id_by_key: dict[str, int]
    ) -> bool:
        """Submit one batch; return False where it may succeed later."""
        context, batch_name = self._context, f"{self._context.run_id}-{uuid4().hex[:8]}"
        context.response_log.add_batch(
            batch_name, context.run_id, str(self._ref), call_id_by_key.values()
        )
        requests = [entry.request for entry in chosen_entries]
        started_at = datetime.now(UTC).isoformat()
        vendor_id: str | None
        try:
            vendor_id = await self._call_with_retries(
                lambda: self._provider.submit(batch_name, requests), RateLimited
            )
        except ProviderError as error:
            may_have_arrived = error.is_retryable and not isinstance(error, RateLimited)
            vendor_id = None
            if may_have_arrived:
                vendor_id = await self._find_batch(batch_name, tuple(call_id_by_key), started_at)
            if vendor_id is None:
                context.response_log.update_batch(batch_name, is_ended=True)
                for entry in chosen_entries:
                    self._settle_call(
                        entry,
                        call_id_by_key[entry.request.key],
                        error,
                        is_free=isinstance(error, RateLimited) or not error.is_retryable,
                    )
                if isinstance(error, Unauthorised):
                    raise
                return not error.is_retryable
        context.response_log.update_batch(batch_name, vendor_id)
        context.n_sent += len(chosen_entries)
        context.journal.note(
            "batch submitted", batch=batch_name, vendor_id=vendor_id, requests=len(chosen_entries)
        )
        waiting_by_key = {entry.request.key: entry for entry in chosen_entries}
        self._start_polling(_OpenBatch(batch_name, vendor_id, call_id_by_key, waiting_by_key))
        return True

    async def _find_batch(
        self, batch_name: str, keys: Sequence[str], started_at: str
    ) -> str | None:
        """Return the vendor's id of a batch whose submission was not answered."""
        for wait_s in (0.0, 2 * self._context.limits.first_wait_s):
            await self._sleep_unless_closing(wait_s)
            batch_id = await self._call_with_retries(
                lambda: self._provider.find(batch_name, keys, started_at)
            )
            if batch_id is not None and not self._context.response_log.has_batch(batch_id):
                return batch_id
        return None

    def _start_polling(self, batch: _OpenBatch) -> None:
        self._open_batches[batch.name] = batch
        self._context.in_flight_keys |= batch.call_id_by_key.keys()
        self._context.progress.in_flight += len(batch.call_id_by_key)
        self._spawn(self._poll_until_ended(batch))

    async def _poll_until_ended(self, batch: _OpenBatch) -> None:
        """Poll until the batch has ended, then settle each request or queue it again."""
        context, wait_s = self._context, self._context.limits.poll_interval_s
        result_by_key: dict[str, Response | ProviderError] = {}
        try:
            while not batch.state.has_ended:
                self._report_progress()
                await asyncio.sleep(wait_s)
                wait_s = max(context.limits.poll_interval_s, min(wait_s * 1.5, MAX_POLL_INTERVAL_S))
                batch.state = await self._call_with_retries(
                    lambda: self._provider.poll(batch.vendor_id)
                )
            requests = [entry.request for entry in batch.waiting_by_key.values()]
            for _ in range(MAX_RESULT_READS):
                missing_requests = [
                    request for request in requests if request.key not in result_by_key
                ]
                if not missing_requests:
                    break
                if result_by_key:
                    await asyncio.sleep(context.limits.poll_interval_s)
                read_results = partial(self._provider.results, batch.vendor_id, missing_requests)
                result_by_key |= await self._call_with_retries(read_results)
        except NotFound:
            # the vendor has deleted it: its calls stay reserved, its requests are sent again
            requests = []
        for key, entry in batch.waiting_by_key.items():
            result = result_by_key.get(key, _MISSING_REPLY_ERROR)
            self._settle_call(
                entry,
                batch.call_id_by_key[key],
                result,
                is_free=not isinstance(result, BadReply) and result is not _MISSING_REPLY_ERROR,
            )
        # no request waits for these any more
        for key in batch.call_id_by_key.keys() - batch.waiting_by_key.keys():
            context.response_log.settle(batch.call_id_by_key[key], None, "unclaimed")
        context.response_log.update_batch(batch.name, is_ended=True)
        context.journal.note(
            "batch ended", batch=batch.name, replies=len(result_by_key), waited_for=len(requests)
        )
        del self._open_batches[batch.name]
        context.progress.in_flight -= len(batch.call_id_by_key)
        context.release_calls(*batch.call_id_by_key)
        self._report_progress()

    def _settle_call(
        self,
        entry: _WaitingRequest,
        call_id: int,
        result: Response | ProviderError,
        *,
        is_free: bool,
    ) -> None:
        """Close a call; a request that failed in a batch (``is_free``) was not billed."""
        context = self._context
        if isinstance(result, Response):
            entry.future.set_result(context.settle_reply(entry.request, call_id, result))
            return
        entry.n_tries += 1
        context.record_failure(
            entry.request, call_id, result, type(result).__name__, is_free=is_free
        )
        if isinstance(result, Unauthorised):
            entry.future.set_exception(result)
        elif result.is_retryable and entry.n_tries < context.limits.max_tries:
            self._enqueue(entry)
        else:
            entry.future.set_result(context.failed_reply(entry.request, result, entry.n_tries))

    async def _call_with_retries(
        self, operation: Callable[[], Awaitable[ResultT]], *error_types: type[ProviderError]
    ) -> ResultT:
        """Return what ``operation`` returns, retrying passing errors of ``error_types``."""
        for n_earlier_tries in range(MAX_POLL_FAILURES):
            try:
                async with asyncio.timeout(self._context.limits.timeout_s):
                    return await operation()
            except TimeoutError as late:
                error: ProviderError = Unavailable("the vendor's batch interface does not answer")
                error.__cause__ = late
            except ProviderError as raised:
                error = raised
            if (
                not error.is_retryable
                or self._closing.is_set()
                or n_earlier_tries == MAX_POLL_FAILURES - 1
                or not isinstance(error, error_types or ProviderError)
            ):
                raise error
            await self._sleep_unless_closing(
                max(error.retry_wait_s or 0.0, self._retry_wait_s(n_earlier_tries))
            )
            if self._closing.is_set():
                raise error
        raise AssertionError("unreachable")

    def _retry_wait_s(self, n_earlier_tries: int) -> float:
        return min(self._context.limits.first_wait_s * 2.0**n_earlier_tries, MAX_POLL_INTERVAL_S)

    async def _sleep_unless_closing(self, wait_s: float) -> None:
        """Sleep, but wake when the run stops."""
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._closing.wait()

    def _report_progress(self) -> None:
        open_batches = self._open_batches.values()
        n_done = sum(batch.state.n_done for batch in open_batches)
        n_total = sum(batch.state.n_total or len(batch.call_id_by_key) for batch in open_batches)
        progress_text = f"{len(open_batches)} at the vendor, {n_done:,} of {n_total:,} replies"
        self._context.progress.waiting_for = progress_text if open_batches else ""


_MISSING_REPLY_ERROR = Unavailable("the batch ended without this reply")
