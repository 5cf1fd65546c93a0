"""Carry out a plan: drive every item's program, flush what ended to the store, stop cleanly, resume by replay."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cotlab.core.errors import BudgetReached, CotlabError, ProviderError, StoreError
from cotlab.core.program import Params, Peers, Scorer
from cotlab.core.provider import AnyProvider
from cotlab.core.registry import SCORERS
from cotlab.core.types import Item, ModelRef, Plan, ScorerSpec, Suite
from cotlab.run.plan import params_digest, params_of
from cotlab.run.transport.budget import Price
from cotlab.run.transport.dispatcher import Dispatcher, drive
from cotlab.run.transport.journal import Journal
from cotlab.run.transport.limits import Limits
from cotlab.store import read, write
from cotlab.store.database import Store
from cotlab.store.live import LiveState, Progress
from cotlab.store.pending import withdraw_outdated
from cotlab.store.responses import ResponseLog
from cotlab.store.write import Ended

log = logging.getLogger(__name__)
FLUSH_S, BEAT_S = 2.0, 0.5
ITEMS_IN_FLIGHT = 256
ITEMS_IN_BATCHES = 100_000
"""With batches every item is begun at once, so that one batch holds all that can be asked."""


@dataclass(slots=True)
class Outcome:
    """How a run ended: done, stopped, budget or failed, and the message that goes with it."""

    status: str
    note: str | None
    progress: Progress


@dataclass(slots=True)
class Run:
    """One run of a plan in this process. ``tell`` is called with the progress, twice a second and at the end."""

    id: str
    plan: Plan
    suite: Suite
    store: Store
    providers: Mapping[ModelRef, AnyProvider]
    prices: Mapping[ModelRef, Price]
    limits: Limits
    redact: bool = False
    retry_refused: bool = False
    on_progress: Callable[[Progress], None] = lambda progress: None
    journal: Journal = field(default_factory=Journal)
    batch: bool = False
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    _ended: list[Ended] = field(default_factory=list)
    _flushing: asyncio.Task[None] | None = None

    async def go(self) -> Outcome:
        """Run to the end, or until ``stop`` is set, the budget is reached or the provider refuses the key."""
        replies = ResponseLog(
            self.store.log_path, redact=self.redact, retry_refused=self.retry_refused
        )
        live = LiveState(self.store.log_path)
        progress = Progress(
            items_total=len(self._items()) * len(self.plan.scorers), started_at=time.time()
        )
        progress.cap_micro = (
            None if all(price.free for price in self.prices.values()) else self.limits.cap_micro
        )
        progress.per_minute = self.limits.per_minute
        dispatcher = Dispatcher(
            self.id,
            self.providers,
            self.prices,
            replies,
            self.limits,
            progress,
            self.journal,
            batch=self.batch,
        )
        if live.beat(self.id, progress):  # somebody asked for that while the model was loaded
            self.stop.set()
        self.journal.note(
            "run",
            run=self.id,
            plan=self.plan.digest,
            items=progress.items_total,
            batch=self.batch or None,
        )
        with self.store.writing() as connection:
            write.set_status(connection, self.id, "running")
        beat = asyncio.create_task(self._beat(live, progress))
        flush = asyncio.create_task(self._flush_often())
        try:
            outcome = await self._work(dispatcher, progress)
        finally:
            flush.cancel()
            await asyncio.gather(flush, return_exceptions=True)
            await dispatcher.drain()
            if self._flushing is not None:
                await asyncio.gather(self._flushing, return_exceptions=True)
            await self._flush()
            beat.cancel()
            await asyncio.gather(beat, return_exceptions=True)
            for provider in self.providers.values():
                await provider.close()
        if outcome.status == "done":
            self._forget_batches(replies)
        spent, counts = replies.spend(self.id), replies.counts(self.id)
        with self.store.writing() as connection:
            write.set_counts(
                connection,
                self.id,
                sent=counts["calls"],
                hits=progress.hits,
                failed=progress.failed,
                spent=sum(spent),
                saved=dispatcher.job.saved_micro,
            )
            write.set_status(connection, self.id, outcome.status, outcome.note)
        progress.status, progress.spent_micro, progress.reserved_micro = (
            outcome.status,
            sum(spent),
            spent.reserved,
        )
        self.journal.note(
            "end", status=outcome.status, hits=progress.hits, spent_micro=sum(spent), counts=counts
        )
        self.journal.close()
        live.beat(self.id, progress)
        self.on_progress(progress)
        live.close()
        replies.close()
        return outcome

    def _forget_batches(self, replies: ResponseLog) -> None:
        """Close what nobody waits for any more: its replies came another way, and it keeps its reserve."""
        for ref in self.providers:
            for batch in replies.open_batches(self.id, str(ref)):
                for call in batch.calls.values():
                    replies.settle(call, None, "unclaimed")
                replies.set_batch(batch.name, ended=True)

    def _items(self) -> tuple[Item, ...]:
        return self.suite.items[: self.plan.limit]

    async def _work(self, dispatcher: Dispatcher, progress: Progress) -> Outcome:
        peers = Peers.of(self.suite, self.plan.seed)
        chosen = {item.id for item in self._items()}
        ordered = [item for item in peers.donor_order if item.id in chosen]
        work = asyncio.create_task(self._all(dispatcher, progress, peers, ordered))
        stop = asyncio.create_task(self.stop.wait())
        await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not work.done():
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            at_vendor = (
                f"; {progress.waiting_for}, which a resumed run picks up"
                if progress.waiting_for
                else ""
            )
            return Outcome("stopped", f"stopped on request{at_vendor}", progress)
        try:
            await work
        except (ExceptionGroup, CotlabError) as raised:
            error = _cause(raised) if isinstance(raised, ExceptionGroup) else raised
            redacted = self.redact and isinstance(error, ProviderError)
            message = f"{type(error).__name__} (its words are redacted)" if redacted else str(error)
            return Outcome(
                "budget" if isinstance(error, BudgetReached) else "failed", message, progress
            )
        return Outcome("done", None, progress)

    async def _all(
        self, dispatcher: Dispatcher, progress: Progress, peers: Peers, ordered: Sequence[Item]
    ) -> None:
        slots = asyncio.Semaphore(ITEMS_IN_BATCHES if self.batch else ITEMS_IN_FLIGHT)
        jobs: list[tuple[Scorer, ScorerSpec, Params, str, Item]] = []
        for spec in self.plan.scorers:
            scorer: Scorer = SCORERS[spec.name]
            constants = await self._constants(dispatcher, scorer, spec)
            params, params_id = (
                params_of(self.plan, spec, constants),
                params_digest(self.plan, spec, constants),
            )
            done = self._done(spec, params_id)
            progress.items_done += sum(item.id in done for item in ordered)
            remaining = [item for item in ordered if item.id not in done]
            if self.redact:
                progress.asked_again += sum(
                    dispatcher.was_started(scorer(item, params, peers)) for item in remaining
                )
            jobs += [(scorer, spec, params, params_id, item) for item in remaining]
        if progress.asked_again:
            self.journal.note("asked again", items=progress.asked_again)

        async def score_item(
            scorer: Scorer, spec: ScorerSpec, params: Params, params_id: str, item: Item
        ) -> None:
            try:
                scores = await drive(scorer(item, params, peers), dispatcher)
            finally:
                slots.release()
            self._ended.append(Ended(spec.name, spec.version, params_id, item.id, scores))
            progress.items_done += 1

        async with asyncio.TaskGroup() as group:
            for started, job in enumerate(jobs, start=1):
                await slots.acquire()
                group.create_task(score_item(*job))
                progress.expected = round(dispatcher.requested / started * len(jobs))
            await asyncio.sleep(0)
            progress.expected = dispatcher.requested

    async def _constants(
        self, dispatcher: Dispatcher, scorer: Scorer, spec: ScorerSpec
    ) -> Mapping[str, Any]:
        """What ``prepare`` gives, made once a run and kept."""
        if scorer.prepare is None:
            return {}
        without = params_digest(self.plan, spec, {})
        constants = read.constants(self.store, self.id, spec.name, without)
        if constants is None:
            constants = await drive(
                scorer.prepare(self.suite, params_of(self.plan, spec)), dispatcher
            )
            with self.store.writing() as connection:
                write.set_constants(connection, self.id, spec.name, without, constants)
            self.journal.note("prepared", scorer=spec.name, **constants)
        return constants

    def _done(self, spec: ScorerSpec, params_id: str) -> set[str]:
        rows = read.ended_pairs(self.store, self.id)
        same = (
            (rows["scorer"] == spec.name)
            & (rows["version"] == spec.version)
            & (rows["params_digest"] == params_id)
        )
        settled = rows["errors"] == 0
        if self.retry_refused:
            settled &= rows["refusals"] == 0
        return set(rows[same & settled]["item"])

    async def _flush(self) -> None:
        """Store what ended since the last time, in one transaction; kept for the next time if that fails."""
        batch, self._ended = self._ended, []
        try:
            await asyncio.to_thread(self._write, batch)
        except BaseException:
            self._ended = batch + self._ended
            raise

    def _write(self, batch: Sequence[Ended]) -> None:
        if batch:
            with self.store.writing() as connection:
                write.add_ended(connection, self.id, batch)
                withdraw_outdated(
                    connection, self.store.log_path, self.id, {entry.item_id for entry in batch}
                )

    async def _flush_often(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_S)
            self._flushing = asyncio.create_task(self._flush())
            try:
                await asyncio.shield(self._flushing)
            except StoreError as error:
                log.warning("scores are kept for the next try: %s", error)

    async def _beat(self, live: LiveState, progress: Progress) -> None:
        before, since = progress.replies, time.monotonic()
        while True:
            self.on_progress(progress)
            if live.beat(self.id, progress):
                self.stop.set()
            await asyncio.sleep(BEAT_S)
            elapsed = time.monotonic() - since
            progress.rate = (progress.replies - before) / elapsed
            left = max(0, progress.expected - progress.replies)
            progress.eta_s = left / progress.rate if progress.rate > 0 else None


def _cause(group: ExceptionGroup[Exception]) -> CotlabError:
    """The house's error in a group of failed items; anything else is a bug and is raised as it is."""
    first: CotlabError | None = None
    for error in group.exceptions:
        inner = _cause(error) if isinstance(error, ExceptionGroup) else error
        if not isinstance(inner, CotlabError):
            raise inner
        first = first or inner
    assert first is not None
    return first
