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
from cotlab.core.types import ModelRef
from cotlab.providers.keys import without_known_keys
from cotlab.run.transport.budget import Price, Reserve, reported_usage
from cotlab.run.transport.limits import Limits
from cotlab.store.live import Progress
from cotlab.store.responses import ResponseLog

MAX_STORED_ERRORS = 5


@dataclass(slots=True)
class RequestContext:
    """The shared state of one run in this process."""

    run: str
    """Name of the run."""
    log: ResponseLog
    """Response log of the store."""
    limits: Limits
    """Rate limits, budget and tries."""
    prices: Mapping[ModelRef, Price]
    """Price of each model."""
    progress: Progress
    """Counts that are shown while it runs."""
    journal: Journal
    """run.log."""
    closing: bool = False
    """Whether nothing more is sent."""
    locked_out: ProviderError | None = None
    """Error after which no request can succeed, such as a refused key."""
    sent: int = 0
    """Calls that were made."""
    answered: int = 0
    """Calls that had a reply."""
    consecutive_failures: int = 0
    """Requests that were given up since the last reply."""
    saved_micro: int = 0
    """What replies from the log would have cost, in micro-dollars."""
    in_flight_keys: set[str] = field(default_factory=set)
    """Keys of the requests that are at a provider now: their replies may free some of what they
    reserve."""
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set whenever a call ends."""
    reserves: dict[ModelRef, Reserve] = field(init=False)
    """What is reserved for the calls of each model, with what earlier processes of the run learnt.
    """

    def __post_init__(self) -> None:
        self.reserves = {ref: Reserve(price) for ref, price in self.prices.items()}
        for seen in self.log.overshoots(self.run):
            for ref, reserve in self.reserves.items():
                if seen.model is None or seen.model == to_json_value(ref):
                    reserve.recall(seen)

    def count_hit(self, request: Request, stored: Response) -> Response:
        """Count a reply from the log, and what it would have cost."""
        self.progress.hits += 1
        self.saved_micro += self.prices[request.model].cost(stored.usage) or 0
        return stored

    def received(self, request: Request, call: int, response: Response) -> Response:
        """Settle a call with its reply in one commit; the reply as it is kept."""
        usage, reserve = reported_usage(response), self.reserves[request.model]
        text, reasoning = response.text and without_known_keys(response.text), response.reasoning
        response = replace(
            response, usage=usage, text=text, reasoning=reasoning and without_known_keys(reasoning)
        )
        cost = self.prices[request.model].cost(response.usage)
        raised = reserve.learn(request, usage)
        self.log.settle(call, cost, "ok", (request, response))
        self.answered, self.consecutive_failures = self.answered + 1, 0
        used = response.usage
        self.journal.note(
            "reply",
            key=request.key,
            cost_micro=cost,
            tokens_in=used.tokens_in,
            tokens_out=used.tokens_out,
            refused=response.refused or None,
        )
        if raised:
            self.journal.note(
                "reserve raised",
                model=str(request.model),
                more_in=reserve.more_in,
                more_out=reserve.more_out,
            )
        return response

    def record_failure(
        self, request: Request, call: int, error: ProviderError | None, outcome: str, *, free: bool
    ) -> None:
        """Settle a call without a reply: at 0 where it was rejected, else at its full reserve."""
        self.log.settle(call, 0 if free else None, outcome)
        self.journal.note("no reply", key=request.key, outcome=outcome, error_text=str(error or ""))

    def release(self, *keys: str) -> None:
        """Release calls that ended, however they did: others may wait for their reserve."""
        self.in_flight_keys.difference_update(keys)
        spent = self.log.spend(self.run)
        self.progress.spent_micro, self.progress.reserved_micro = sum(spent), spent.reserved
        self.settled.set()

    async def wait_for_money(self) -> None:
        """Wait until some call has settled; BudgetReached where none is out that could."""
        if not self.in_flight_keys:
            left = max(1, self.progress.expected - self.progress.replies)
            raise BudgetReached(sum(self.log.spend(self.run)), self.limits.cap_micro, left)
        await self.wait_for_landing()

    async def wait_for_landing(self) -> None:
        """Wait until some call that is out is over."""
        self.settled.clear()
        await self.settled.wait()

    def failed(self, request: Request, error: ProviderError, tries: int) -> Failed:
        """Return the failure of a request after its last try."""
        message = (
            f"{type(error).__name__} (its words are redacted)" if self.log.redact else str(error)
        )
        unsupported = isinstance(error, Unsupported)
        self.progress.failed += not unsupported
        if not unsupported or tries:
            self.progress.last_errors = [*self.progress.last_errors, message][-MAX_STORED_ERRORS:]
        self.journal.note(
            "given up",
            key=request.key,
            tries=tries,
            unsupported=unsupported or None,
            error_text=str(error),
        )
        return Failed(request.key, message, tries, unsupported)


log = logging.getLogger(__name__)
FILE = "run.log"


class Journal:
    """Appends events to ``folder/run.log``; without a folder it writes nothing."""

    def __init__(self, folder: Path | None = None, *, redact: bool = False) -> None:
        self.redact = redact
        self._file: TextIO | None = None
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = (folder / FILE).open("a", encoding="utf-8", buffering=1)

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
        except OSError as error:  # a full disk: the run goes on, for its replies are kept elsewhere
            log.warning("run.log cannot be written any more: %s", error)
            self._file = None

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
