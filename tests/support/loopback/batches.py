"""Batches as time goes by: each request is done at its share of the time, and one that a cancel
overtakes is not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from types import ModuleType
from typing import Any, NamedTuple

from state import State


class Outcome(NamedTuple):
    custom_id: str
    kind: str
    """done, expired or cancelled."""
    status: int = 0
    body: dict[str, Any] = {}


@dataclass
class Batch:
    id: str
    wire: ModuleType
    path: str
    """Where each of its requests would go alone."""
    requests: list[tuple[str, dict[str, Any], int]]
    """custom_id, body, number of the call."""
    seconds: float
    facts: dict[str, Any] = field(default_factory=dict)
    """What the vendor's own form adds."""
    created: float = field(default_factory=time.time)
    cancelled: float | None = None
    ended: float | None = None
    outcomes: list[Outcome] = field(default_factory=list)

    def done_by_now(self) -> int:
        share = (self.ended or self.cancelled or time.time()) - self.created
        return (
            min(len(self.requests), int(len(self.requests) * share / self.seconds))
            if self.seconds
            else len(self.requests)
        )

    def validating(self) -> bool:
        return time.time() - self.created < self.seconds / 4

    def tally(self) -> dict[str, int]:
        """How many ended in which way: done, errored, expired, cancelled."""
        told = {"done": 0, "errored": 0, "expired": 0, "cancelled": 0}
        for outcome in self.outcomes:
            told[
                "errored" if outcome.kind == "done" and outcome.status != 200 else outcome.kind
            ] += 1
        return told


def start(
    state: State,
    prefix: str,
    wire: ModuleType,
    path: str,
    requests: Iterable[tuple[str, dict[str, Any]]],
    **facts: Any,
) -> Batch:
    batch = Batch(
        f"{prefix}_{len(state.batches) + 1:06}",
        wire,
        path,
        [(custom_id, asked, state.note(path, asked)[0]) for custom_id, asked in requests],
        state.script.get("batch_s", 0.2),
        facts,
    )
    state.batches[batch.id] = batch
    asyncio.get_running_loop().call_later(batch.seconds, _end, state, batch)
    return batch


def cancel(state: State, batch: Batch) -> None:
    """The batch ends soon, with what was done by now."""
    if batch.cancelled is None:
        batch.cancelled = time.time()
        asyncio.get_running_loop().call_later(batch.seconds / 4, _end, state, batch)


def _end(state: State, batch: Batch) -> None:
    if batch.ended is not None:
        return
    reached = len(batch.requests) if batch.cancelled is None else batch.done_by_now()
    for at, (custom_id, asked, number) in enumerate(batch.requests):
        batch.outcomes.append(
            _outcome(state, batch, custom_id, asked, number)
            if at < reached
            else Outcome(custom_id, "cancelled")
        )
    batch.ended = time.time()
    if "finish" in batch.facts:
        batch.facts["finish"](state, batch)


def _outcome(
    state: State, batch: Batch, custom_id: str, asked: dict[str, Any], number: int
) -> Outcome:
    draw = Random(f"{state.seed}/{number}/batch")
    if draw.random() < state.script.get("batch_expire", 0):
        return Outcome(custom_id, "expired")
    if draw.random() < state.script.get("batch_errors", 0):
        return Outcome(custom_id, "done", 500, batch.wire.error(500, {}))
    return Outcome(custom_id, "done", *state.one_of_a_batch(batch.wire, batch.path, asked, number))


def shuffled(batch: Batch) -> list[Outcome]:
    """The outcomes in an order of their own: neither vendor promises that of the requests."""
    told = list(batch.outcomes)
    Random(batch.id).shuffle(told)
    return told


def page(batches: Iterable[Batch], query: dict[str, str], after: str) -> tuple[list[Batch], bool]:
    """One page, newest first, and whether there is more behind it."""
    told = list(batches)[::-1]
    if at := query.get(after):
        told = told[[batch.id for batch in told].index(at) + 1 :]
    limit = int(query.get("limit", 20))
    return told[:limit], len(told) > limit
