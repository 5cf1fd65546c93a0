"""A local model is handed about two seconds' work of one kind at a time, whatever its speed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from cotlab.core.errors import ProviderError
from cotlab.core.requests import (
    Complete,
    Entail,
    LogProb,
    Message,
    Patched,
    PatchRow,
    Request,
    Response,
    Source,
)
from cotlab.core.types import ModelRef
from cotlab.run.transport import in_process as local
from cotlab.run.transport.budget import FREE_PRICE
from cotlab.run.transport.dispatcher import Dispatcher
from cotlab.run.transport.in_process import (
    FIRST_BATCH_DIVISOR,
    MAX_BATCH_TOKENS,
)
from cotlab.run.transport.limits import Limits
from cotlab.store.live import RunProgress
from cotlab.store.responses import ResponseLog

REF = ModelRef("local", "m")
FIRST = MAX_BATCH_TOKENS // FIRST_BATCH_DIVISOR


class Slow:
    """A model that takes its time for each token of work and keeps what each batch was."""

    answers = frozenset({"complete", "logprob", "patched", "entail"})

    def __init__(self, seconds_a_token: float, ref: ModelRef = REF) -> None:
        self.ref, self.seconds = ref, seconds_a_token
        self.batches = list[tuple[str, int, float]]()

    async def send(self, request: Request) -> Response:
        raise AssertionError("a batch provider is sent batches")

    async def close(self) -> None:
        return None

    def send_batch(self, requests: Sequence[Request]) -> list[Response | ProviderError]:
        (kind,) = {request.kind for request in requests}
        spent = self.seconds * sum(local._request_tokens(request) for request in requests)
        self.batches.append((kind, len(requests), spent))
        time.sleep(spent)
        return [Response(request.key, "yes", numbers=(0.0,)) for request in requests]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[ResponseLog]:
    opened = ResponseLog(tmp_path / "log.sqlite")
    yield opened
    opened.close()


async def test_kinds_go_apart_in_the_order_of_asking_and_each_at_its_own_pace(
    log: ResponseLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "TARGET_BATCH_S", 0.05)
    model = Slow(0.1 / FIRST)  # what a run begins with takes twice as long as a batch should
    dispatcher = Dispatcher("r", {REF: model}, {REF: FREE_PRICE}, log, Limits(), RunProgress())
    asked: list[Request] = []
    for n in range(60):
        words = (Message("user", str(n)),)
        asked += [
            Complete(REF, words, max_tokens=64),
            LogProb(REF, words, ("1",)),
            Patched(REF, words, "1", Source("run"), (PatchRow((), ()),) * 11),
        ]
    replies = await asyncio.gather(*(dispatcher.ask(request) for request in asked))
    assert [reply.key for reply in replies] == [request.key for request in asked]
    assert dispatcher.progress.in_flight == 0 and dispatcher.progress.replies == len(asked)
    for kind in ("complete", "logprob", "patched"):
        sizes = [(n, spent) for name, n, spent in model.batches if name == kind]
        assert sum(n for n, _ in sizes) == 60 and len(sizes) > 2
        assert all(spent < 0.08 for _, spent in sizes[1:])  # once the speed is known
    assert model.batches[0][0] == "complete"


async def test_a_slow_symbolic_check_does_not_make_batches_of_one(
    log: ResponseLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "TARGET_BATCH_S", 1e-6)
    ref = ModelRef("symbolic", "s")
    solver = Slow(1e-6, ref)
    dispatcher = Dispatcher("r", {ref: solver}, {ref: FREE_PRICE}, log, Limits(), RunProgress())
    await asyncio.gather(*(dispatcher.ask(Entail(ref, "", f"{n} = {n}")) for n in range(100)))
    assert [n for _, n, _ in solver.batches] == [32, 32, 32, 4]
