"""A vendor's batch interface: what waits across items is handed in together, polled, and picked up again after a restart.

A batch is noted in the log before it is handed in, its vendor's id the moment that is known. What a killed process had
handed in is found again by that id, or by the name of the batch where the vendor can look it up; where neither is
possible, its calls stay at their full reserve and its requests are asked anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import uuid4

from cotlab.core.errors import BadReply, NotFound, ProviderError, RateLimited, Unauthorised, Unavailable
from cotlab.core.provider import Batching, BatchState
from cotlab.core.requests import Reply, Request, Response
from cotlab.core.types import ModelRef
from cotlab.run.transport.context import Job

MOST_REQUESTS, MOST_BYTES = 20_000, 90_000_000
"""Of one batch: below what either vendor takes."""
QUIET_S = 0.25
"""After so long without a new request, everything that is ready has asked."""
LONGEST_POLL_S = 60.0
PATIENCE = 30
"""Polls that may fail one after the other; what is at the vendor stays there for a resumed run."""
READS = 3
"""How often results are read where some are missing: a stream may have been cut."""
Told = TypeVar("Told")


@dataclass(slots=True)
class _Waiting:
    """One request that somebody waits for."""

    request: Request
    future: asyncio.Future[Reply]
    tries: int = 0


@dataclass(slots=True)
class _Out:
    """A batch that is at the vendor: its calls by key, and who waits for which of them."""

    name: str
    vendor_id: str
    calls: dict[str, int]
    waiting: dict[str, _Waiting] = field(default_factory=dict)
    state: BatchState = BatchState(False, 0, 0)


class BatchQueue:
    """The queue before one vendor's batch interface."""

    def __init__(self, job: Job, provider: Batching, ref: ModelRef) -> None:
        self._job, self._provider, self._ref = job, provider, ref
        self._queue: list[_Waiting] = []
        self._out: dict[str, _Out] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._collector: asyncio.Task[None] | None = None
        self._grew, self._leaving, self._handing_in = asyncio.Event(), asyncio.Event(), asyncio.Lock()
        self._looked_back = False

    def send(self, request: Request) -> asyncio.Future[Reply]:
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._add(_Waiting(request, future))
        return future

    async def drain(self) -> None:
        """Let everything go: batches that are out stay with the vendor, and a resumed run picks them up."""
        self._leaving.set()
        async with self._handing_in:
            for task in self._tasks:
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for one in self._everyone():
            one.future.cancel()

    def _add(self, one: _Waiting) -> None:
        key = one.request.key
        for batch in self._out.values():  # one of an earlier process may hold it already
            if key in batch.calls and key not in batch.waiting and not batch.state.ended:
                batch.waiting[key] = one
                return
        self._queue.append(one)
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
        for one in self._everyone():
            if not one.future.done():
                one.future.set_exception(broken)
        self._queue.clear()

    def _everyone(self) -> list[_Waiting]:
        return [*self._queue, *(one for batch in self._out.values() for one in batch.waiting.values())]

    async def _collect(self) -> None:
        """Wait until nothing new comes, then hand in what waits; again until nothing does."""
        lost = 0
        while self._queue:
            self._grew.clear()
            await asyncio.sleep(QUIET_S)
            if self._grew.is_set():
                continue
            if not self._looked_back:
                await self._look_back()
            while self._job.reserves[self._ref].unproven and self._out:
                await self._job.wait_for_landing()
            async with self._handing_in:
                chosen, calls, elsewhere = self._reserve()
                try:
                    lost = 0 if not chosen or await self._submit(chosen, calls) else lost + 1
                except BaseException:
                    self._queue += chosen  # so that they are told
                    raise
            if lost:
                await asyncio.sleep(min(self._job.limits.first_wait_s * 2.0 ** (lost - 1), LONGEST_POLL_S))
            elif chosen:
                continue
            elif elsewhere:
                await asyncio.sleep(self._job.limits.poll_s)
            elif self._queue:
                await self._job.wait_for_money()

    async def _look_back(self) -> None:
        """Find the batches of an earlier process of this run; requests that are in one of them wait for it."""
        job, found = self._job, list[_Out]()
        for name, vendor_id, at, calls in job.log.open_batches(job.run, str(self._ref)):
            known = vendor_id or await self._find(name, tuple(calls), at)
            job.journal.note("batch found again", batch=name, vendor_id=known, requests=len(calls))
            if known is None:
                for call in calls.values():
                    job.log.settle(call, None, "lost")
            job.log.set_batch(name, known, ended=known is None)
            if known is not None:
                found.append(_Out(name, known, calls))
        for batch in found:
            batch.waiting = {one.request.key: one for one in self._queue if one.request.key in batch.calls}
            self._queue = [one for one in self._queue if one.request.key not in batch.calls]
            self._follow_up(batch)
        self._looked_back = True

    def _reserve(self) -> tuple[list[_Waiting], dict[str, int], bool]:
        """As many of the waiting requests as budget and batch take, with their calls; the rest goes on waiting."""
        job, reserve = self._job, self._job.reserves[self._ref]
        chosen, calls, later, size, elsewhere = list[_Waiting](), dict[str, int](), list[_Waiting](), 0, False
        for one in self._queue:
            size += len(one.request.coded)
            if len(chosen) == MOST_REQUESTS or (chosen and size > MOST_BYTES):
                later.append(one)
                continue
            claim = job.log.reserve(one.request, job.run, reserve.most(one.request), job.limits.cap_micro)
            if claim.reply is not None:
                one.future.set_result(job.hit(one.request, claim.reply))
            elif claim.call is not None:
                chosen.append(one)
                calls[one.request.key] = claim.call
            else:
                later.append(one)
                elsewhere = elsewhere or claim.elsewhere
        self._queue = later
        return chosen, calls, elsewhere

    async def _submit(self, chosen: Sequence[_Waiting], calls: dict[str, int]) -> bool:
        """Hand in one batch; False where it did not arrive, as far as the vendor can tell, and is to be tried again."""
        job, name = self._job, f"{self._job.run}-{uuid4().hex[:8]}"
        job.log.add_batch(name, job.run, str(self._ref), calls.values())
        requests, begun = [one.request for one in chosen], datetime.now(UTC).isoformat()
        vendor_id: str | None
        try:
            vendor_id = await self._patiently(lambda: self._provider.submit(name, requests), RateLimited)
        except ProviderError as error:
            unclear = error.retry and not isinstance(error, RateLimited)
            vendor_id = await self._find(name, tuple(calls), begun) if unclear else None
            if vendor_id is None:
                job.log.set_batch(name, ended=True)
                for one in chosen:
                    self._settle(one, calls[one.request.key], error, free=isinstance(error, RateLimited) or not error.retry)
                if isinstance(error, Unauthorised):
                    raise
                return not error.retry
        job.log.set_batch(name, vendor_id)
        job.asked += len(chosen)
        job.journal.note("batch submitted", batch=name, vendor_id=vendor_id, requests=len(chosen))
        self._follow_up(_Out(name, vendor_id, calls, {one.request.key: one for one in chosen}))
        return True

    async def _find(self, name: str, keys: Sequence[str], since: str) -> str | None:
        """The vendor's id of a batch whose hand-in was not answered; looked for twice, for it may come late."""
        for wait in (0.0, 2 * self._job.limits.first_wait_s):
            await self._nap(wait)
            found = await self._patiently(lambda: self._provider.find(name, keys, since))
            if found is not None and not self._job.log.knows_batch(found):
                return found
        return None

    def _follow_up(self, batch: _Out) -> None:
        self._out[batch.name] = batch
        self._job.out |= batch.calls.keys()
        self._job.progress.in_flight += len(batch.calls)
        self._spawn(self._follow(batch))

    async def _follow(self, batch: _Out) -> None:
        """Poll until the batch ended, then give everybody their reply, or another try."""
        job, wait = self._job, self._job.limits.poll_s
        results: dict[str, Response | ProviderError] = {}
        try:
            while not batch.state.ended:
                self._tell()
                await asyncio.sleep(wait)
                wait = max(job.limits.poll_s, min(wait * 1.5, LONGEST_POLL_S))
                batch.state = await self._patiently(lambda: self._provider.poll(batch.vendor_id))
            asked = [one.request for one in batch.waiting.values()]
            for _ in range(READS):
                left = [request for request in asked if request.key not in results]
                if not left:
                    break
                if results:
                    await asyncio.sleep(job.limits.poll_s)
                results |= await self._results(batch.vendor_id, left)
        except NotFound:  # the vendor has forgotten it: its calls keep their reserve, and are asked anew
            asked = []
        for key, one in batch.waiting.items():
            result = results.get(key, _MISSING)
            self._settle(one, batch.calls[key], result, free=not isinstance(result, BadReply) and result is not _MISSING)
        for key in batch.calls.keys() - batch.waiting.keys():  # nobody asks for these any more
            job.log.settle(batch.calls[key], None, "unclaimed")
        job.log.set_batch(batch.name, ended=True)
        job.journal.note("batch ended", batch=batch.name, replies=len(results), waited_for=len(asked))
        del self._out[batch.name]
        job.progress.in_flight -= len(batch.calls)
        job.landed(*batch.calls)
        self._tell()

    async def _results(self, vendor_id: str, asked: Sequence[Request]) -> Mapping[str, Response | ProviderError]:
        return await self._patiently(lambda: self._provider.results(vendor_id, asked))

    def _settle(self, one: _Waiting, call: int, result: Response | ProviderError, *, free: bool) -> None:
        """Close a call; vendors bill the replies of a batch only, so what failed in it (``free``) cost nothing."""
        job = self._job
        if isinstance(result, Response):
            one.future.set_result(job.received(one.request, call, result))
            return
        one.tries += 1
        job.broke(one.request, call, result, type(result).__name__, free=free)
        if isinstance(result, Unauthorised):
            one.future.set_exception(result)
        elif result.retry and one.tries < job.limits.tries:
            self._add(one)
        else:
            one.future.set_result(job.failed(one.request, result, one.tries))

    async def _patiently(self, call: Callable[[], Awaitable[Told]], *kinds: type[ProviderError]) -> Told:
        """What ``call`` gives, tried again after errors (of these ``kinds``) that may pass."""
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
            asked_s = error.after_s if isinstance(error, RateLimited) else None
            await self._nap(max(asked_s or 0.0, min(self._job.limits.first_wait_s * 2**tried, LONGEST_POLL_S)))
            if self._leaving.is_set():
                raise error
        raise AssertionError("unreachable")

    async def _nap(self, seconds: float) -> None:
        """Sleep, but not longer than the run goes on."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._leaving.wait()

    def _tell(self) -> None:
        out = self._out.values()
        done, total = sum(b.state.done for b in out), sum(b.state.total or len(b.calls) for b in out)
        self._job.progress.waiting_for = f"{len(out)} at the vendor, {done:,} of {total:,} replies" if out else ""


_MISSING = Unavailable("the batch ended without this reply")
