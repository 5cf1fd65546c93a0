"""Use a vendor's batch interface: hand in requests of many items, poll, recover on restart.

A batch is noted in the log before it is handed in, its vendor's id the moment that is known. What a
killed process had handed in is found again by that id, or by the name of the batch where the vendor
can look it up; where neither is possible, its calls stay at their full reserve and its requests are
asked anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
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
from cotlab.core.provider import Batching, BatchState
from cotlab.core.requests import Reply, Request, Response
from cotlab.core.types import ModelRef
from cotlab.run.transport.context import RequestContext

MAX_REQUESTS, MAX_BYTES = 20_000, 90_000_000
"""Of one batch: below what either vendor takes."""
QUIET_S = 0.25
"""After so long without a new request, everything that is ready has asked."""
MAX_POLL_S = 60.0
PATIENCE = 30
"""Polls that may fail one after the other; what is at the vendor stays there for a resumed run."""
READS = 3
"""How often results are read where some are missing: a stream may have been cut."""
ResultT = TypeVar("ResultT")


@dataclass(slots=True)
class _Waiting:
    """One request that somebody waits for."""

    request: Request
    future: asyncio.Future[Reply]
    tries: int = 0


@dataclass(slots=True)
class _OpenBatch:
    """A batch that is at the vendor: its calls by key, and who waits for which of them."""

    name: str
    vendor_id: str
    calls: dict[str, int]
    waiting: dict[str, _Waiting] = field(default_factory=dict)
    state: BatchState = BatchState(False, 0, 0)


class BatchQueue:
    """The queue before one vendor's batch interface."""

    def __init__(self, job: RequestContext, provider: Batching, ref: ModelRef) -> None:
        self._job, self._provider, self._ref = job, provider, ref
        self._queue: list[_Waiting] = []
        self._out: dict[str, _OpenBatch] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._collector: asyncio.Task[None] | None = None
        self._grew, self._leaving, self._handing_in = (
            asyncio.Event(),
            asyncio.Event(),
            asyncio.Lock(),
        )
        self._recovered = False

    def send(self, request: Request) -> asyncio.Future[Reply]:
        """Queue a request for the next batch; return its future reply."""
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._add(_Waiting(request, future))
        return future

    async def drain(self) -> None:
        """Stop waiting: open batches stay with the vendor, and a resumed run recovers them."""
        self._leaving.set()
        async with self._handing_in:
            for task in self._tasks:
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for entry in self._all_waiting():
            entry.future.cancel()

    def _add(self, entry: _Waiting) -> None:
        key = entry.request.key
        for batch in self._out.values():  # one of an earlier process may hold it already
            if key in batch.calls and key not in batch.waiting and not batch.state.ended:
                batch.waiting[key] = entry
                return
        self._queue.append(entry)
        self._grew.set()
        if self._collector is None or self._collector.done():
            self._collector = self._spawn(self._collect())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Where a task broke, no request can succeed any more: whoever waits is told why."""
        self._tasks.discard(task)
        broken = None if task.cancelled() else task.exception()
        if broken is None:
            return
        for entry in self._all_waiting():
            if not entry.future.done():
                entry.future.set_exception(broken)
        self._queue.clear()

    def _all_waiting(self) -> list[_Waiting]:
        return [
            *self._queue,
            *(entry for batch in self._out.values() for entry in batch.waiting.values()),
        ]

    async def _collect(self) -> None:
        """Wait until nothing new comes, then hand in what waits; again until nothing does."""
        failures = 0
        while self._queue:
            self._grew.clear()
            await asyncio.sleep(QUIET_S)
            if self._grew.is_set():
                continue
            if not self._recovered:
                await self._recover_batches()
            while self._job.reserves[self._ref].unproven and self._out:
                await self._job.wait_for_landing()
            async with self._handing_in:
                chosen, calls, elsewhere = self._reserve()
                try:
                    failures = (
                        0 if not chosen or await self._submit(chosen, calls) else failures + 1
                    )
                except BaseException:
                    self._queue += chosen  # so that they are told
                    raise
            if failures:
                await asyncio.sleep(
                    min(self._job.limits.first_wait_s * 2.0 ** (failures - 1), MAX_POLL_S)
                )
            elif chosen:
                continue
            elif elsewhere:
                await asyncio.sleep(self._job.limits.poll_s)
            elif self._queue:
                await self._job.wait_for_money()

    async def _recover_batches(self) -> None:
        """Find the batches of an earlier process of this run, and wait for their requests."""
        job, recovered = self._job, list[_OpenBatch]()
        for name, vendor_id, at, calls in job.log.open_batches(job.run, str(self._ref)):
            known = vendor_id or await self._find(name, tuple(calls), at)
            job.journal.note("batch found again", batch=name, vendor_id=known, requests=len(calls))
            if known is None:
                for call in calls.values():
                    job.log.settle(call, None, "lost")
            job.log.set_batch(name, known, ended=known is None)
            if known is not None:
                recovered.append(_OpenBatch(name, known, calls))
        for batch in recovered:
            batch.waiting = {
                entry.request.key: entry
                for entry in self._queue
                if entry.request.key in batch.calls
            }
            self._queue = [entry for entry in self._queue if entry.request.key not in batch.calls]
            self._follow_up(batch)
        self._recovered = True

    def _reserve(self) -> tuple[list[_Waiting], dict[str, int], bool]:
        """Reserve the waiting requests that budget and batch take; return them and their calls."""
        job, reserve = self._job, self._job.reserves[self._ref]
        chosen, calls, later, size, elsewhere = (
            list[_Waiting](),
            dict[str, int](),
            list[_Waiting](),
            0,
            False,
        )
        for entry in self._queue:
            size += len(entry.request.json_bytes)
            if len(chosen) == MAX_REQUESTS or (chosen and size > MAX_BYTES):
                later.append(entry)
                continue
            claim = job.log.reserve(
                entry.request, job.run, reserve.most(entry.request), job.limits.cap_micro
            )
            if claim.reply is not None:
                entry.future.set_result(job.count_hit(entry.request, claim.reply))
            elif claim.call is not None:
                chosen.append(entry)
                calls[entry.request.key] = claim.call
            else:
                later.append(entry)
                elsewhere = elsewhere or claim.elsewhere
        self._queue = later
        return chosen, calls, elsewhere

    async def _submit(self, chosen: Sequence[_Waiting], calls: dict[str, int]) -> bool:
        """Hand in one batch; return False where the vendor says that it did not arrive."""
        job, name = self._job, f"{self._job.run}-{uuid4().hex[:8]}"
        job.log.add_batch(name, job.run, str(self._ref), calls.values())
        requests, started_at = [entry.request for entry in chosen], datetime.now(UTC).isoformat()
        vendor_id: str | None
        try:
            vendor_id = await self._with_retries(
                lambda: self._provider.submit(name, requests), RateLimited
            )
        except ProviderError as error:
            unclear = error.retry and not isinstance(error, RateLimited)
            vendor_id = await self._find(name, tuple(calls), started_at) if unclear else None
            if vendor_id is None:
                job.log.set_batch(name, ended=True)
                for entry in chosen:
                    self._settle(
                        entry,
                        calls[entry.request.key],
                        error,
                        free=isinstance(error, RateLimited) or not error.retry,
                    )
                if isinstance(error, Unauthorised):
                    raise
                return not error.retry
        job.log.set_batch(name, vendor_id)
        job.sent += len(chosen)
        job.journal.note("batch submitted", batch=name, vendor_id=vendor_id, requests=len(chosen))
        self._follow_up(
            _OpenBatch(name, vendor_id, calls, {entry.request.key: entry for entry in chosen})
        )
        return True

    async def _find(self, name: str, keys: Sequence[str], since: str) -> str | None:
        """Return the vendor's id of a batch whose hand-in was not answered."""
        for wait in (0.0, 2 * self._job.limits.first_wait_s):
            await self._sleep(wait)
            batch_id = await self._with_retries(lambda: self._provider.find(name, keys, since))
            if batch_id is not None and not self._job.log.knows_batch(batch_id):
                return batch_id
        return None

    def _follow_up(self, batch: _OpenBatch) -> None:
        self._out[batch.name] = batch
        self._job.in_flight_keys |= batch.calls.keys()
        self._job.progress.in_flight += len(batch.calls)
        self._spawn(self._follow(batch))

    async def _follow(self, batch: _OpenBatch) -> None:
        """Poll until the batch ended, then give everybody their reply, or another try."""
        job, wait = self._job, self._job.limits.poll_s
        results: dict[str, Response | ProviderError] = {}
        try:
            while not batch.state.ended:
                self._report_progress()
                await asyncio.sleep(wait)
                wait = max(job.limits.poll_s, min(wait * 1.5, MAX_POLL_S))
                batch.state = await self._with_retries(lambda: self._provider.poll(batch.vendor_id))
            requests = [entry.request for entry in batch.waiting.values()]
            for _ in range(READS):
                missing = [request for request in requests if request.key not in results]
                if not missing:
                    break
                if results:
                    await asyncio.sleep(job.limits.poll_s)
                results |= await self._results(batch.vendor_id, missing)
        except (
            NotFound
        ):  # the vendor has forgotten it: its calls keep their reserve, and are asked anew
            requests = []
        for key, entry in batch.waiting.items():
            result = results.get(key, _MISSING)
            self._settle(
                entry,
                batch.calls[key],
                result,
                free=not isinstance(result, BadReply) and result is not _MISSING,
            )
        for key in batch.calls.keys() - batch.waiting.keys():  # nobody asks for these any more
            job.log.settle(batch.calls[key], None, "unclaimed")
        job.log.set_batch(batch.name, ended=True)
        job.journal.note(
            "batch ended", batch=batch.name, replies=len(results), waited_for=len(requests)
        )
        del self._out[batch.name]
        job.progress.in_flight -= len(batch.calls)
        job.release(*batch.calls)
        self._report_progress()

    async def _results(
        self, vendor_id: str, requests: Sequence[Request]
    ) -> Mapping[str, Response | ProviderError]:
        return await self._with_retries(lambda: self._provider.results(vendor_id, requests))

    def _settle(
        self, entry: _Waiting, call: int, result: Response | ProviderError, *, free: bool
    ) -> None:
        """Close a call; a request that failed in a batch (``free``) was not billed."""
        job = self._job
        if isinstance(result, Response):
            entry.future.set_result(job.received(entry.request, call, result))
            return
        entry.tries += 1
        job.record_failure(entry.request, call, result, type(result).__name__, free=free)
        if isinstance(result, Unauthorised):
            entry.future.set_exception(result)
        elif result.retry and entry.tries < job.limits.tries:
            self._add(entry)
        else:
            entry.future.set_result(job.failed(entry.request, result, entry.tries))

    async def _with_retries(
        self, call: Callable[[], Awaitable[ResultT]], *kinds: type[ProviderError]
    ) -> ResultT:
        """Return what ``call`` returns, retrying errors (of these ``kinds``) that may pass."""
        for tried in range(PATIENCE):
            try:
                async with asyncio.timeout(self._job.limits.timeout_s):
                    return await call()
            except TimeoutError as late:
                error: ProviderError = Unavailable("the vendor's batch interface does not answer")
                error.__cause__ = late
            except ProviderError as raised:
                error = raised
            if (
                not error.retry
                or self._leaving.is_set()
                or tried == PATIENCE - 1
                or not isinstance(error, kinds or ProviderError)
            ):
                raise error
            wait_s = error.after_s if isinstance(error, RateLimited) else None
            await self._sleep(
                max(wait_s or 0.0, min(self._job.limits.first_wait_s * 2**tried, MAX_POLL_S))
            )
            if self._leaving.is_set():
                raise error
        raise AssertionError("unreachable")

    async def _sleep(self, seconds: float) -> None:
        """Sleep, but not longer than the run goes on."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._leaving.wait()

    def _report_progress(self) -> None:
        out = self._out.values()
        done, total = (
            sum(b.state.done for b in out),
            sum(b.state.total or len(b.calls) for b in out),
        )
        self._job.progress.waiting_for = (
            f"{len(out)} at the vendor, {done:,} of {total:,} replies" if out else ""
        )


_MISSING = Unavailable("the batch ended without this reply")
