"""Each request once, within limits and budget, tried again where that can help."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from cotlab.core.errors import (
    BadReply,
    BudgetReached,
    ProviderError,
    RateLimited,
    TimedOut,
    Unauthorised,
    Unavailable,
    Unsupported,
)
from cotlab.core.requests import Complete, Embed, Failed, Message, Request, Response, Usage
from cotlab.core.types import ModelRef
from cotlab.run.transport.budget import FREE_PRICE, Price
from cotlab.run.transport.dispatcher import Dispatcher
from cotlab.run.transport.in_process import MAX_BATCH_SIZE
from cotlab.run.transport.limits import Limits
from cotlab.run.transport.remote import MAX_429_UNANSWERED, MAX_BAD_REPLIES, MAX_TRIES_UNANSWERED
from cotlab.store.live import RunProgress
from cotlab.store.responses import ResponseLog, RunSpend

REF = ModelRef("openai_compat", "m")
LIMITS = Limits(concurrency=50, requests_per_minute=None, first_wait_s=0.001)
Outcome = Callable[[int], ProviderError | Response | None]


def ask_for(text: str, max_tokens: int = 10) -> Complete:
    return Complete(REF, (Message("user", text),), max_tokens=max_tokens)


class Server:
    """A provider that counts; ``outcome(n)`` of its n-th call may be an error or another reply."""

    ref, answers = REF, frozenset({Complete.kind})

    def __init__(self, outcome: Outcome = lambda n: None, latency_s: float = 0.0) -> None:
        self.calls: Counter[str] = Counter()
        self.outcome, self.latency_s, self.at_once, self.most_at_once = outcome, latency_s, 0, 0

    async def send(self, request: Request) -> Response:
        assert isinstance(request, Complete)
        n = self.calls.total()
        self.calls[request.messages[0].content] += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(self.latency_s)
        finally:
            self.at_once -= 1
        told = self.outcome(n)
        if isinstance(told, ProviderError):
            raise told
        return replace(told or Response("", "yes", usage=Usage(3, 2)), key=request.key)

    async def close(self) -> None:
        return None


class Batcher:
    """A local model that counts; odd words are not in its vocabulary."""

    ref, answers = REF, frozenset({Complete.kind})

    def __init__(self) -> None:
        self.batches: list[int] = []

    def send_batch(self, requests: Sequence[Request]) -> list[Response | ProviderError]:
        self.batches.append(len(requests))
        return [
            Unsupported("'odd' is unknown") if "odd" in str(r) else Response(r.key, "yes")
            for r in requests
        ]

    async def close(self) -> None:
        return None


@pytest.fixture
def log(tmp_path: Path) -> Iterator[ResponseLog]:
    log = ResponseLog(tmp_path / "log.sqlite")
    yield log
    log.close()


def over(
    log: ResponseLog, provider: Server | Batcher, limits: Limits = LIMITS, price: Price = FREE_PRICE
) -> Dispatcher:
    return Dispatcher("r", {REF: provider}, {REF: price}, log, limits, RunProgress())


async def until(true: Callable[[], bool]) -> None:
    for _ in range(60_000):
        if true():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("not in a minute")


async def ask_all(dispatcher: Dispatcher, *texts: str) -> list[Response | Failed | BaseException]:
    asked = (dispatcher.ask(ask_for(text)) for text in texts)
    return list(await asyncio.gather(*asked, return_exceptions=True))


async def test_identical_requests_in_flight_are_one_call(log: ResponseLog) -> None:
    server = Server(latency_s=0.01)
    dispatcher = over(log, server)
    replies = await ask_all(dispatcher, *["same"] * 50)
    assert server.calls == {"same": 1}
    assert len({id(reply) for reply in replies}) == 1
    assert (
        dispatcher.job.n_sent,
        dispatcher.requested,
        dispatcher.progress.replies,
        dispatcher.progress.hits,
    ) == (1, 50, 50, 0)


async def test_what_is_in_the_log_is_not_asked(log: ResponseLog) -> None:
    priced = Price(Decimal(1), Decimal(1))
    await ask_all(over(log, Server(), price=priced), "a", "b")
    server = Server()
    dispatcher = over(
        log, server, replace(LIMITS, cap_micro=0), price=priced
    )  # a hit needs no money
    replies = await ask_all(dispatcher, "a", "b", "a")
    assert [reply.text for reply in replies if isinstance(reply, Response)] == ["yes"] * 3
    assert not server.calls
    assert (dispatcher.job.n_sent, dispatcher.progress.hits, dispatcher.job.saved_micro) == (
        0,
        3,
        15,
    )


async def test_no_more_than_the_allowed_number_is_in_flight(log: ResponseLog) -> None:
    server = Server(latency_s=0.005)
    await ask_all(over(log, server, replace(LIMITS, concurrency=3)), *map(str, range(20)))
    assert server.most_at_once == 3
    assert server.calls.total() == 20


async def test_a_kind_that_the_model_does_not_answer_is_unsupported(log: ResponseLog) -> None:
    server = Server()
    reply = await over(log, server).ask(Embed(REF, ("text",)))
    assert isinstance(reply, Failed) and reply.unsupported and reply.tries == 0
    assert not server.calls


async def test_what_the_model_cannot_take_is_unsupported_and_no_error(log: ResponseLog) -> None:
    dispatcher = over(log, server := Server(lambda n: Unsupported("too long")))
    (reply,) = await ask_all(dispatcher, "a")
    assert isinstance(reply, Failed) and reply.unsupported and reply.error == "too long"
    assert server.calls.total() == 1 and dispatcher.progress.failed == 0


async def test_a_second_try_may_succeed(log: ResponseLog) -> None:
    server = Server(lambda n: Unavailable("500") if n < 2 else None)
    dispatcher = over(log, server)
    (reply,) = await ask_all(dispatcher, "a")
    assert isinstance(reply, Response) and server.calls.total() == dispatcher.job.n_sent == 3
    assert dispatcher.progress.failed == 0


async def test_tries_come_to_an_end(log: ResponseLog) -> None:
    server = Server(lambda n: Unavailable(f"500 at {n}") if n else None)
    dispatcher = over(log, server, replace(LIMITS, max_tries=5))
    await dispatcher.ask(ask_for("first"))
    (reply,) = await ask_all(dispatcher, "a")
    assert isinstance(reply, Failed)
    assert (reply.tries, reply.error, reply.unsupported) == (5, "500 at 5", False)
    assert server.calls == {"first": 1, "a": 5}
    assert dispatcher.progress.failed == 1 and dispatcher.progress.last_errors == ["500 at 5"]
    assert log.get(ask_for("a").key) is None  # asked again another time


async def test_a_reply_that_makes_no_sense_is_seldom_tried_again(log: ResponseLog) -> None:
    server = Server(lambda n: BadReply("no text") if n else None)
    _, reply = await ask_all(over(log, server, replace(LIMITS, concurrency=1)), "good", "a")
    assert isinstance(reply, Failed) and reply.tries == server.calls["a"] == MAX_BAD_REPLIES


async def test_a_server_that_serves_slowly_loses_no_request(log: ResponseLog) -> None:
    free_at = 0.0

    def one_in_5_ms(n: int) -> RateLimited | None:
        nonlocal free_at
        now = time.monotonic()
        if now < free_at:
            return RateLimited("429", 0.005)
        free_at = now + 0.005
        return None

    server = Server(one_in_5_ms)
    dispatcher = over(log, server, replace(LIMITS, concurrency=30))
    replies = await ask_all(dispatcher, *map(str, range(60)))
    assert all(isinstance(reply, Response) for reply in replies)
    assert dispatcher.progress.limited == server.calls.total() - 60 > 60


async def test_a_server_that_only_limits_is_given_up(log: ResponseLog) -> None:
    replies = await ask_all(
        over(log, server := Server(lambda n: RateLimited("429", 0.001))), "a", "b"
    )
    assert all(isinstance(reply, Failed) and reply.tries == MAX_429_UNANSWERED for reply in replies)
    assert server.calls == {"a": MAX_429_UNANSWERED, "b": MAX_429_UNANSWERED}


async def test_a_refused_key_stops_at_once(log: ResponseLog) -> None:
    server = Server(lambda n: Unauthorised("the key was refused"))
    dispatcher = over(log, server, replace(LIMITS, concurrency=1))
    with pytest.raises(Unauthorised):
        await asyncio.gather(*(dispatcher.ask(ask_for(str(i))) for i in range(30)))
    await dispatcher.drain()
    assert server.calls.total() == 1


async def test_a_bug_in_a_provider_is_not_swallowed(log: ResponseLog) -> None:
    class Broken(Server):
        async def send(self, request: Request) -> Response:
            raise ZeroDivisionError

    dispatcher = over(log, Broken(), price=Price(Decimal(1), Decimal(1)))
    with pytest.raises(ZeroDivisionError):
        await dispatcher.ask(ask_for("a"))
    assert log.get_spend("r").reserved_micro > 0


async def test_draining_waits_for_what_was_sent_and_drops_the_rest(log: ResponseLog) -> None:
    server = Server(latency_s=0.05)
    dispatcher = over(log, server, replace(LIMITS, concurrency=4))
    wanted = [asyncio.create_task(dispatcher.ask(ask_for(str(i)))) for i in range(200)]
    await until(lambda: server.at_once == 4)
    for task in wanted:
        task.cancel()
    await dispatcher.drain()
    assert server.calls.total() == 4
    assert sum(log.get(ask_for(str(i)).key) is not None for i in range(200)) == 4
    with suppress(asyncio.CancelledError):
        await asyncio.gather(*wanted)


async def test_a_slow_call_times_out_and_stays_at_its_reserve(log: ResponseLog) -> None:
    price = Price(Decimal(1), Decimal(1))
    (reply,) = await ask_all(
        over(log, Server(latency_s=9), replace(LIMITS, max_tries=2, timeout_s=0.01), price), "a"
    )
    assert isinstance(reply, TimedOut) and "no reply within" in str(reply)
    assert log.get_spend("r") == RunSpend(0, 2 * price.max_cost(ask_for("a")))


async def test_refused_requests_cost_nothing_and_broken_ones_their_reserve(
    log: ResponseLog,
) -> None:
    price = Price(Decimal(1), Decimal(1))
    await ask_all(over(log, Server(lambda n: Unsupported("x")), price=price), "a")
    assert log.get_spend("r") == RunSpend(0, 0)
    await ask_all(over(log, Server(lambda n: BadReply("x")), price=price), "b")
    assert log.get_spend("r") == RunSpend(0, MAX_TRIES_UNANSWERED * price.max_cost(ask_for("b")))


async def test_the_budget_stops_only_what_does_not_fit_alone(log: ResponseLog) -> None:
    price = Price(Decimal(1), Decimal(1))  # a reply costs 5, its reserve some hundreds
    most = max(price.max_cost(ask_for(str(i))) for i in range(10))
    server = Server(latency_s=0.002)
    dispatcher = over(
        log, server, replace(LIMITS, cap_micro=most + 45), price
    )  # room for one reserve at a time
    replies = await ask_all(dispatcher, *map(str, range(10)))
    assert all(isinstance(reply, Response) for reply in replies)
    assert server.most_at_once == 1
    assert log.get_spend("r") == RunSpend(50, 0)
    (late,) = await ask_all(dispatcher, "x" * 45)
    assert isinstance(late, BudgetReached) and (late.spent_micros, late.budget_micros) == (
        50,
        most + 45,
    )
    assert server.calls.total() == 10


@pytest.mark.parametrize("fits", [1, 2, 3])
async def test_no_run_ever_reserves_more_than_its_cap(log: ResponseLog, fits: int) -> None:
    price = Price(Decimal(1), Decimal(1))
    most = price.max_cost(ask_for("00"))
    cap = fits * most
    peak = 0

    def watch(n: int) -> None:
        nonlocal peak
        peak = max(peak, sum(log.get_spend("r")))

    # the server says that each reply cost its whole reserve: all that was sent and the 10 tokens of
    # the longest reply
    server = Server(
        lambda n: watch(n) or Response("", "yes", usage=Usage(most - 10, 10)), latency_s=0.001
    )
    replies = await ask_all(
        over(log, server, replace(LIMITS, cap_micro=cap), price), *(f"{i:02d}" for i in range(20))
    )
    assert sum(isinstance(reply, Response) for reply in replies) == fits
    assert sum(isinstance(reply, BudgetReached) for reply in replies) == 20 - fits
    assert peak == cap == log.get_spend("r").paid_micro


async def test_waiting_requests_go_to_a_local_model_together(log: ResponseLog) -> None:
    model = Batcher()
    dispatcher = over(log, model)
    replies = await ask_all(dispatcher, *map(str, range(MAX_BATCH_SIZE + 10)), "odd")
    assert model.batches == [
        153,
        242,
    ]  # 1,536 tokens' work at first, then more, for it answers at once
    assert isinstance(replies[-1], Failed) and replies[-1].unsupported
    assert all(isinstance(reply, Response) for reply in replies[:-1])
    assert dispatcher.progress.in_flight == 0
    again = Batcher()
    await ask_all(over(log, again), *map(str, range(MAX_BATCH_SIZE + 10)), "odd")
    assert again.batches == [1]  # only what had no reply


async def test_a_local_model_that_breaks_lets_nobody_wait(log: ResponseLog) -> None:
    class Broken(Batcher):
        def send_batch(self, requests: Sequence[Request]) -> list[Response | ProviderError]:
            raise MemoryError

    dispatcher = over(log, Broken())
    replies = await ask_all(dispatcher, *map(str, range(MAX_BATCH_SIZE + 1)))
    assert all(isinstance(reply, MemoryError) for reply in replies)
    await dispatcher.drain()


async def test_a_redacted_run_keeps_no_words_of_an_error(tmp_path: Path) -> None:
    log = ResponseLog(tmp_path / "redacted.sqlite", redact=True)
    dispatcher = over(
        log,
        Server(lambda n: BadReply("secret words") if n else None),
        replace(LIMITS, concurrency=1),
    )
    _, reply = await ask_all(dispatcher, "good", "a")
    assert (
        isinstance(reply, Failed)
        and "secret" not in f"{reply.error} {dispatcher.progress.last_errors}"
    )
    assert "BadReply" in reply.error
    log.close()


async def test_two_dispatchers_of_two_runs_share_the_log(log: ResponseLog, tmp_path: Path) -> None:
    await ask_all(over(log, Server()), "a")
    other, server = ResponseLog(tmp_path / "log.sqlite"), Server()
    dispatcher = Dispatcher("other", {REF: server}, {REF: FREE_PRICE}, other, LIMITS, RunProgress())
    await ask_all(dispatcher, "a", "b")
    assert server.calls == {"b": 1}
    other.close()
