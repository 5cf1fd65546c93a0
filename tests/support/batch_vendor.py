"""A vendor with a batch interface, for the tests of batches."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from cotlab.core.errors import (
    ProviderError,
    Unavailable,
)
from cotlab.core.provider import BatchState
from cotlab.core.requests import Complete, Failed, Request, Response, Usage
from cotlab.run.transport.budget import FREE_PRICE, Price
from cotlab.run.transport.dispatcher import Dispatcher
from cotlab.run.transport.limits import Limits
from cotlab.store.live import RunProgress
from cotlab.store.responses import ResponseLog
from tests.run.transport.test_dispatcher import REF, ask_all, ask_for

PRICED = Price(Decimal(1), Decimal(1))
"""A reply costs 5, its reserve some hundreds."""
MOST = PRICED.max_cost(ask_for("0"))
LIMITS = Limits(poll_interval_s=0.01, first_wait_s=0.001)
Result = Response | ProviderError | None


class Vendor:
    """Takes batches and keeps them, whatever becomes of those who handed them in.

    ``result(text, n)`` is what the n-th asking of a text brings, None for nothing at all; a batch
    ends once ``ready`` is set. The n-th ``submit`` raises what ``turns_away(n)`` gives, after it
    was taken where ``keeps`` is set.
    """

    ref, answers = REF, frozenset({Complete.kind})

    def __init__(
        self,
        result: Callable[[str, int], Result] = lambda text, n: Response(
            "", "yes", usage=Usage(3, 2)
        ),
    ) -> None:
        self.result, self.ready, self.keeps, self.finds = result, True, False, True
        self.turns_away: Callable[[int], ProviderError | None] = lambda n: None
        self.broken_finds = 0
        self.batches: dict[str, tuple[str, list[str]]] = {}
        self.names: list[str] = []
        self.at: list[float] = []
        self.asked: Counter[str] = Counter()

    @property
    def sizes(self) -> list[int]:
        return [len(texts) for _, texts in self.batches.values()]

    def take(self, name: str, *texts: str) -> str:
        self.batches[f"batch-{len(self.batches)}"] = (name, list(texts))
        return f"batch-{len(self.batches) - 1}"

    async def submit(self, name: str, requests: Sequence[Request]) -> str:
        self.names.append(name)
        self.at.append(time.monotonic())
        error = self.turns_away(len(self.names) - 1)
        if error is None or self.keeps:
            taken = self.take(name, *map(text_of, requests))
        if error is not None:
            raise error
        return taken

    async def find(self, name: str, keys: Sequence[str], since: str) -> str | None:
        self.broken_finds -= 1
        if self.broken_finds >= 0:
            raise Unavailable("no list today")
        return (
            next((key for key, (own, _) in self.batches.items() if own == name), None)
            if self.finds
            else None
        )

    async def poll(self, batch: str) -> BatchState:
        total = len(self.batches[batch][1])
        return BatchState(self.ready, total if self.ready else 0, total)

    async def results(
        self, batch: str, requests: Sequence[Request]
    ) -> Mapping[str, Response | ProviderError]:
        told: dict[str, Response | ProviderError] = {}
        for request in requests:
            text = text_of(request)
            assert text in self.batches[batch][1]
            result = self.result(text, self.asked[text])
            self.asked[text] += 1
            if isinstance(result, Response):
                told[request.key] = Response(request.key, result.text, usage=result.usage)
            elif result is not None:
                told[request.key] = result
        return told

    async def send(self, request: Request) -> Response:
        raise AssertionError("a request that goes into a batch is not sent alone")

    async def close(self) -> None:
        return None


def text_of(request: Request) -> str:
    assert isinstance(request, Complete)
    return request.messages[0].content


def over(
    log: ResponseLog, vendor: Vendor, limits: Limits = LIMITS, price: Price = FREE_PRICE
) -> Dispatcher:
    return Dispatcher("r", {REF: vendor}, {REF: price}, log, limits, RunProgress(), batch=True)


async def ask(dispatcher: Dispatcher, *texts: str) -> list[Response | Failed | BaseException]:
    async with asyncio.timeout(120):
        return await ask_all(dispatcher, *texts)


def left_by_a_killed_process(log: ResponseLog, vendor_id: str | None, *texts: str) -> None:
    """What the log says after a kill −9: the batch is noted, its vendor's answer only where it was
    read."""
    calls = [log.reserve(ask_for(text), "r", MOST, 10**6).call_id for text in texts]
    log.add_batch("r-before", "r", str(REF), [call for call in calls if call is not None])
    if vendor_id is not None:
        log.update_batch("r-before", vendor_id)
