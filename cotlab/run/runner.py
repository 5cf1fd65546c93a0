"""Carry out a plan: drive every item's program, store what ended, stop cleanly, resume."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from cotlab.core.errors import BudgetReached, CotlabError, ProviderError, StoreError
from cotlab.core.program import Params, Peers, Scorer
from cotlab.core.provider import AnyProvider
from cotlab.core.registry import SCORERS
from cotlab.core.types import Item, ModelRef, Plan, ScorerSpec, Suite
from cotlab.metrics.asked_answers import program_of
from cotlab.run.plan import params_digest, params_of
from cotlab.run.resolved import ResolvedRun
from cotlab.run.server_check import check_servers, count_check_requests, store_check
from cotlab.run.transport.budget import Price
from cotlab.run.transport.context import Journal
from cotlab.run.transport.dispatcher import Dispatcher, drive
from cotlab.store import read, write
from cotlab.store.check import record_replies
from cotlab.store.database import Store
from cotlab.store.live import LiveRunStore, RunProgress
from cotlab.store.pending import withdraw_outdated_labels
from cotlab.store.responses import ResponseLog
from cotlab.store.write import EndedItem

logger = logging.getLogger(__name__)
FLUSH_INTERVAL_S, HEARTBEAT_INTERVAL_S = 2.0, 0.5
MAX_ITEMS_IN_FLIGHT = 256
MAX_ITEMS_WITH_BATCHES = 100_000
"""With batches all items start at once, so that one batch holds all first requests."""


@dataclass(slots=True)
class Outcome:
    """How a run ended: done, stopped, budget or failed, and the message that goes with it."""

    status: str
    """done, stopped, budget or failed."""
    note: str | None
    """Message that goes with it."""
    progress: RunProgress
    """Counts at the end."""


@dataclass(slots=True)
class Run:
    """One run of a plan in this process."""

    id: str
    """Name of the run."""
    resolved: ResolvedRun
    """What its configuration decides."""
    plan: Plan
    """What it does."""
    suite: Suite
    """All items of its suite, also those beyond the plan's limit."""
    store: Store
    """Store that keeps its scores and its log."""
    providers: Mapping[ModelRef, AnyProvider]
    """Opened provider of each model."""
    prices: Mapping[ModelRef, Price]
    """Price of each model."""
    output: Path
    """Folder of its reports."""
    on_progress: Callable[[RunProgress], None]
    """Called with the progress, twice a second and at the end."""
    retry_refused: bool = False
    """Whether refused requests are sent again."""
    raw_text_command: str = ""
    """Command of the same run by raw text, for the message of one that is refused."""
    journal: Journal = field(init=False)
    """run.log."""
    stop_event: asyncio.Event = field(default_factory=asyncio.Event)
    """Set to stop the run cleanly."""
    _ended_items: list[EndedItem] = field(default_factory=list)
    _flush_task: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self.journal = Journal(self.output, redact=self._redact)

    async def execute(self) -> Outcome:
        """Run to the end, or until it is stopped, the budget is reached or the key is refused."""
        config, limits = self.resolved.config, self.resolved.limits
        response_log = ResponseLog(
            self.store.log_path, redact=self._redact, retry_refused=self.retry_refused
        )
        live_runs = LiveRunStore(self.store.log_path)
        progress = RunProgress(
            items_total=len(self._planned_items()) * len(self.plan.scorers),
            n_scorers=len(self.plan.scorers),
            started_at=time.time(),
        )
        progress.cap_micro = (
            None if all(price.is_free for price in self.prices.values()) else limits.cap_micro
        )
        dispatcher = Dispatcher(
            self.id,
            self.providers,
            self.prices,
            response_log,
            limits,
            progress,
            self.journal,
            batch=config.batch,
        )
        dispatcher.before_first_send = partial(
            check_servers,
            self.plan,
            self.suite,
            config.probe,
            dispatcher,
            keep=partial(store_check, self.store, self.id, redact=self._redact),
            raw_text_command=self.raw_text_command,
        )
        if live_runs.write_heartbeat(
            self.id, progress
        ):  # a stop was requested while the model was loaded
            self.stop_event.set()
        self.journal.note(
            "run",
            run=self.id,
            plan=self.plan.digest,
            items=progress.items_total,
            batch=config.batch or None,
        )
        with self.store.writing() as connection:
            write.set_status(connection, self.id, "running")
        heartbeat_task = asyncio.create_task(self._send_heartbeats(live_runs, progress))
        flush_task = asyncio.create_task(self._flush_periodically())
        try:
            outcome = await self._run_until_stopped(dispatcher, progress)
        finally:
            flush_task.cancel()
            await asyncio.gather(flush_task, return_exceptions=True)
            await dispatcher.drain()
            if self._flush_task is not None:
                await asyncio.gather(self._flush_task, return_exceptions=True)
            await self._flush()
            heartbeat_task.cancel()
            await asyncio.gather(heartbeat_task, return_exceptions=True)
            for provider in self.providers.values():
                await provider.close()
        if outcome.status == "done":
            self._close_unclaimed_batches(response_log)
        n_check_requests = count_check_requests(self.store, self.id)
        spend, call_counts = response_log.get_spend(self.id), response_log.get_call_counts(self.id)
        with self.store.writing() as connection:
            write.set_counts(
                connection,
                self.id,
                n_sent=call_counts["calls"] - n_check_requests,
                n_hits=progress.hits,
                n_failed=progress.failed,
                spent_micro=sum(spend),
                saved_micro=dispatcher.job.saved_micro,
            )
            write.set_status(connection, self.id, outcome.status, outcome.note)
        record_replies(self.store, self.id)
        progress.status, progress.spent_micro, progress.reserved_micro = (
            outcome.status,
            sum(spend),
            spend.reserved_micro,
        )
        self.journal.note(
            "end",
            status=outcome.status,
            hits=progress.hits,
            spent_micro=sum(spend),
            counts=call_counts,
        )
        self.journal.close()
        live_runs.write_heartbeat(self.id, progress)
        self.on_progress(progress)
        live_runs.close()
        response_log.close()
        return outcome

    def _close_unclaimed_batches(self, response_log: ResponseLog) -> None:
        """Close batches that no request waits for any more."""
        for ref in self.providers:
            for batch in response_log.list_open_batches(self.id, str(ref)):
                for call_id in batch.calls_by_key.values():
                    response_log.settle(call_id, None, "unclaimed")
                response_log.update_batch(batch.name, is_ended=True)

    @property
    def _redact(self) -> bool:
        return self.resolved.config.redact_prompts

    def _planned_items(self) -> tuple[Item, ...]:
        return self.plan.items_of(self.suite)

    async def _run_until_stopped(self, dispatcher: Dispatcher, progress: RunProgress) -> Outcome:
        donor_ring = Peers.from_suite(self.suite, self.plan.seed)
        planned_ids = {item.id for item in self._planned_items()}
        ordered_items = [item for item in donor_ring.ring_items if item.id in planned_ids]
        work_task = asyncio.create_task(
            self._score_all_items(dispatcher, progress, donor_ring, ordered_items)
        )
        stop_task = asyncio.create_task(self.stop_event.wait())
        await asyncio.wait({work_task, stop_task}, return_when=asyncio.FIRST_COMPLETED)
        stop_task.cancel()
        if not work_task.done():
            work_task.cancel()
            await asyncio.gather(work_task, return_exceptions=True)
            vendor_note = (
                f"; {progress.waiting_for}, which a resumed run picks up"
                if progress.waiting_for
                else ""
            )
            return Outcome("stopped", f"stopped on request{vendor_note}", progress)
        try:
            await work_task
        except (ExceptionGroup, CotlabError) as raised:
            error = _first_cotlab_error(raised) if isinstance(raised, ExceptionGroup) else raised
            is_redacted = self._redact and isinstance(error, ProviderError)
            message = (
                f"{type(error).__name__} (its words are redacted)" if is_redacted else str(error)
            )
            return Outcome(
                "budget" if isinstance(error, BudgetReached) else "failed", message, progress
            )
        return Outcome("done", None, progress)

    async def _score_all_items(
        self,
        dispatcher: Dispatcher,
        progress: RunProgress,
        donor_ring: Peers,
        ordered_items: Sequence[Item],
    ) -> None:
        item_slots = asyncio.Semaphore(
            MAX_ITEMS_WITH_BATCHES if self.resolved.config.batch else MAX_ITEMS_IN_FLIGHT
        )
        item_jobs: list[tuple[Scorer, ScorerSpec, Params, str, Item]] = []
        for spec in self.plan.scorers:
            scorer: Scorer = SCORERS[spec.name]
            constants = await self._prepare_constants(dispatcher, scorer, spec)
            params = params_of(self.plan, spec, constants)
            params_id = params_digest(self.plan, spec, constants)
            done_ids = self._done_item_ids(spec, params_id)
            progress.items_done += sum(item.id in done_ids for item in ordered_items)
            remaining_items = [item for item in ordered_items if item.id not in done_ids]
            if self._redact:
                progress.asked_again += sum(
                    dispatcher.was_started(program_of(scorer, item, params, donor_ring))
                    for item in remaining_items
                )
            item_jobs += [(scorer, spec, params, params_id, item) for item in remaining_items]
        if progress.asked_again:
            self.journal.note("asked again", items=progress.asked_again)

        async def score_item(
            scorer: Scorer, spec: ScorerSpec, params: Params, params_id: str, item: Item
        ) -> None:
            try:
                scores = await drive(program_of(scorer, item, params, donor_ring), dispatcher)
            finally:
                item_slots.release()
            self._ended_items.append(EndedItem(spec.name, spec.version, params_id, item.id, scores))
            progress.items_done += 1

        async with asyncio.TaskGroup() as task_group:
            for n_started_items, item_job in enumerate(item_jobs, start=1):
                await item_slots.acquire()
                task_group.create_task(score_item(*item_job))
                progress.expected = round(dispatcher.requested / n_started_items * len(item_jobs))
            await asyncio.sleep(0)
            progress.expected = dispatcher.requested

    async def _prepare_constants(
        self, dispatcher: Dispatcher, scorer: Scorer, spec: ScorerSpec
    ) -> Mapping[str, Any]:
        """Return the constants of ``prepare``, computed once in a run and stored."""
        if scorer.prepare is None:
            return {}
        unprepared_digest = params_digest(self.plan, spec, {})
        constants = read.get_constants(self.store, self.id, spec.name, unprepared_digest)
        if constants is None:
            constants = await drive(
                scorer.prepare(self.suite, params_of(self.plan, spec)), dispatcher
            )
            with self.store.writing() as connection:
                write.set_constants(connection, self.id, spec.name, unprepared_digest, constants)
            self.journal.note("prepared", scorer=spec.name, **constants)
        return constants

    def _done_item_ids(self, spec: ScorerSpec, params_id: str) -> set[str]:
        rows = read.list_ended_pairs(self.store, self.id)
        has_same_params = (
            (rows["scorer"] == spec.name)
            & (rows["version"] == spec.version)
            & (rows["params_digest"] == params_id)
        )
        is_settled = rows["errors"] == 0
        if self.retry_refused:
            is_settled &= rows["refusals"] == 0
        return set(rows[has_same_params & is_settled]["item"])

    async def _flush(self) -> None:
        """Store what ended since the last time, in one transaction; retry later if that fails."""
        ended_items, self._ended_items = self._ended_items, []
        try:
            await asyncio.to_thread(self._write_items, ended_items)
        except BaseException:
            self._ended_items = ended_items + self._ended_items
            raise

    def _write_items(self, ended_items: Sequence[EndedItem]) -> None:
        if ended_items:
            with self.store.writing() as connection:
                write.add_ended(connection, self.id, ended_items)
                withdraw_outdated_labels(
                    connection,
                    self.store.log_path,
                    self.id,
                    {entry.item_id for entry in ended_items},
                )

    async def _flush_periodically(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_INTERVAL_S)
            self._flush_task = asyncio.create_task(self._flush())
            try:
                await asyncio.shield(self._flush_task)
            except StoreError as error:
                logger.warning("scores are kept for the next try: %s", error)

    async def _send_heartbeats(self, live_runs: LiveRunStore, progress: RunProgress) -> None:
        n_replies_before, started_at = progress.replies, time.monotonic()
        while True:
            self.on_progress(progress)
            if live_runs.write_heartbeat(self.id, progress):
                self.stop_event.set()
            await asyncio.sleep(HEARTBEAT_INTERVAL_S)
            progress.estimate_time_left(
                progress.replies - n_replies_before, time.monotonic() - started_at
            )


def _first_cotlab_error(group: ExceptionGroup[Exception]) -> CotlabError:
    """Return the CotlabError of a group of failed items; raise anything else, which is a bug."""
    first_error: CotlabError | None = None
    for error in group.exceptions:
        cause = _first_cotlab_error(error) if isinstance(error, ExceptionGroup) else error
        if not isinstance(cause, CotlabError):
            raise cause
        first_error = first_error or cause
    assert first_error is not None
    return first_error
