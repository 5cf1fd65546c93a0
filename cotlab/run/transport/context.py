"""Share the state of one run among its senders: log, limits, prices, progress and run.log."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from cotlab.core.errors import BudgetReached, ProviderError, Unsupported
from cotlab.core.keys import to_json_value
from cotlab.core.requests import Failed, Request, Response
from cotlab.core.text_safety import printable_line
from cotlab.core.types import ModelRef
from cotlab.providers.keys import mask_known_keys
from cotlab.run.transport.budget import Price
from cotlab.run.transport.limits import Limits
from cotlab.run.transport.reserve import LostCall, Reserve, reported_usage
from cotlab.store.live import RunProgress
from cotlab.store.responses import ResponseLog

MAX_STORED_ERRORS = 5


@dataclass(slots=True)
class RequestContext:
    """The shared state of one run in this process."""

    run_id: str
    """Name of the run."""
    response_log: ResponseLog
    """Response log of the store."""
    limits: Limits
    """Rate limits, budget and tries."""
    prices: Mapping[ModelRef, Price]
    """Price of each model."""
    progress: RunProgress
    """Counts that are displayed while it runs."""
    journal: Journal
    """run.log."""
    is_closing: bool = False
    """Whether nothing more is sent."""
    fatal_error: ProviderError | None = None
    """Error after which no request can succeed, such as a refused key."""
    n_sent: int = 0
    """Calls that were made."""
    n_answered: int = 0
    """Calls that had a reply."""
    n_consecutive_failures: int = 0
    """Requests that were given up since the last reply."""
    saved_micro: int = 0
    """What replies from the log would have cost, in micro-dollars."""
    in_flight_keys: set[str] = field(default_factory=set)
    """Keys of the requests that are at a provider now: their replies may free some of what they
    reserve."""
    call_ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set whenever a call ends."""
    reserve_by_model: dict[ModelRef, Reserve] = field(init=False)
    """What is reserved for the calls of each model, with what earlier processes of the run learnt.
    """

    def __post_init__(self) -> None:
        self.reserve_by_model = {ref: Reserve(price) for ref, price in self.prices.items()}
        self.progress.answered = self.progress.answered or 0
        for overshoot in self.response_log.list_overshoots(self.run_id):
            for ref, reserve in self.reserve_by_model.items():
                if overshoot.model is None or overshoot.model == to_json_value(ref):
                    reserve.restore_overshoot(overshoot)

    def count_cache_hit(self, request: Request, stored_response: Response) -> Response:
        """Count a reply from the log, and what it would have cost."""
        self.progress.hits += 1
        self.saved_micro += self.prices[request.model].cost(stored_response.usage) or 0
        return stored_response

    def settle_reply(
        self, request: Request, call_id: int, response: Response, elapsed_s: float | None = None
    ) -> Response:
        """Settle a call with its reply in one commit; return the reply as stored."""
        usage, reserve = reported_usage(response), self.reserve_by_model[request.model]
        text, reasoning = response.text and mask_known_keys(response.text), response.reasoning
        response = replace(
            response, usage=usage, text=text, reasoning=reasoning and mask_known_keys(reasoning)
        )
        cost = reserve.charge(usage)
        is_reserve_raised = reserve.update_from_usage(request, usage, elapsed_s)
        self.response_log.settle(call_id, cost, "ok", (request, response))
        if cost is None and response.refused and elapsed_s is not None:
            reserve.add_lost_call(LostCall(call_id, request, elapsed_s))
        self.response_log.lower_reserves(reserve.lowered_reserves())
        self.n_answered, self.n_consecutive_failures = self.n_answered + 1, 0
        self.progress.answered = (self.progress.answered or 0) + 1
        self.progress.retried_error = ""
        stored_usage = response.usage
        self.journal.note(
            "reply",
            key=request.key,
            cost_micro=cost,
            tokens_in=stored_usage.tokens_in,
            tokens_out=stored_usage.tokens_out,
            refused=response.refused or None,
        )
        if is_reserve_raised:
            self.journal.note(
                "reserve raised",
                model=str(request.model),
                more_in=reserve.extra_tokens_in,
                more_out=reserve.extra_tokens_out,
            )
        return response

    def record_failure(
        self,
        request: Request,
        call_id: int,
        error: ProviderError | None,
        outcome: str,
        *,
        is_free: bool,
    ) -> None:
        """Settle a call without a reply: at 0 where it was rejected, else at its full reserve."""
        self.response_log.settle(call_id, 0 if is_free else None, outcome)
        self.journal.note("no reply", key=request.key, outcome=outcome, error_text=str(error or ""))

    def record_lost_call(
        self, request: Request, call_id: int, error: ProviderError, outcome: str, elapsed_s: float
    ) -> None:
        """Settle a call that may have been billed, at what such a call costs as far as known."""
        reserve = self.reserve_by_model[request.model]
        self.record_failure(request, call_id, error, outcome, is_free=False)
        reserve.add_lost_call(LostCall(call_id, request, elapsed_s))
        self.response_log.lower_reserves(reserve.lowered_reserves())

    def release_calls(self, *keys: str) -> None:
        """Release calls that ended, however they did: others may wait for their reserve."""
        self.in_flight_keys.difference_update(keys)
        spend = self.response_log.get_spend(self.run_id)
        self.progress.spent_micro, self.progress.reserved_micro = sum(spend), spend.reserved_micro
        self.call_ended.set()

    async def wait_for_budget(self, max_cost: int) -> None:
        """Wait until a call has ended; BudgetReached where none is in flight.

        ``max_cost`` is the most that the next call may cost, in micro-dollars.
        """
        if not self.in_flight_keys:
            n_requests_left = max(1, self.progress.expected - self.progress.replies)
            raise BudgetReached(
                *self.response_log.get_spend(self.run_id),
                self.limits.cap_micro,
                max_cost,
                n_requests_left,
            )
        await self.wait_for_call_end()

    async def wait_for_call_end(self) -> None:
        """Wait until a call in flight has ended."""
        self.call_ended.clear()
        await self.call_ended.wait()

    def error_text(self, error: ProviderError) -> str:
        """Return an error on one line; without its words in a redacted log."""
        if self.response_log.redact:
            return f"{type(error).__name__} (its words are redacted)"
        return printable_line(error)

    def failed_reply(self, request: Request, error: ProviderError, n_tries: int) -> Failed:
        """Return the failure of a request after its last try."""
        message = self.error_text(error)
        is_unsupported = isinstance(error, Unsupported)
        self.progress.failed += not is_unsupported
        if not is_unsupported or n_tries:
            self.progress.last_errors = [*self.progress.last_errors, message][-MAX_STORED_ERRORS:]
        self.journal.note(
            "given up",
            key=request.key,
            tries=n_tries,
            unsupported=is_unsupported or None,
            error_text=str(error),
        )
        return Failed(request.key, message, n_tries, is_unsupported)


logger = logging.getLogger(__name__)
LOG_FILE_NAME = "run.log"


class Journal:
    """Appends events to ``folder/run.log``; without a folder it writes nothing."""

    def __init__(self, folder: Path | None = None, *, redact: bool = False) -> None:
        self.redact = redact
        self._file: TextIO | None = None
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                self._file = (folder / LOG_FILE_NAME).open("a", encoding="utf-8", buffering=1)
            except OSError as error:
                logger.warning("run.log cannot be written: %s", error)

    def note(self, event: str, *, error_text: str = "", **facts: Any) -> None:
        """Write one line: time, event, facts, and the text of an error unless it is redacted."""
        if self._file is None:
            return
        record = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event}
        record |= {name: value for name, value in facts.items() if value is not None}
        if error_text and not self.redact:
            record["words"] = error_text
        try:
            self._file.write(json.dumps(record, ensure_ascii=True) + "\n")
        except OSError as error:  # a full disk: the run goes on, as replies are in the store
            logger.warning("run.log cannot be written any more: %s", error)
            self._file = None

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
