"""One remote provider: who waits for whom after a 429, how often a request is tried, and what two
limits allow together."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotlab.core.errors import BadReply, ProviderError, RateLimited, TimedOut, Unavailable
from cotlab.core.requests import Complete, Failed, Request, Response, Usage
from cotlab.run.transport.budget import Price
from cotlab.run.transport.dispatcher import Dispatcher
from cotlab.run.transport.limits import Limits
from cotlab.run.transport.remote import (
    MAX_429_UNANSWERED,
    MAX_BAD_REPLIES,
    MAX_TRIES_UNANSWERED,
)
from cotlab.run.transport.reserve import MIN_PROVING_REPLIES, Reserve
from cotlab.store.live import RunProgress
from cotlab.store.responses import ResponseLog, RunSpend
from tests.run.transport.test_dispatcher import LIMITS, REF, Server, ask_all, ask_for, over, until
from tests.support.moved_time import run_in_moved_time

ERRORS = {
    "429": lambda: RateLimited("429", 0.0),
    "429 without a wait": lambda: RateLimited("429"),
    "500": lambda: Unavailable("500"),
    "late": lambda: TimedOut("late"),
    "senseless": lambda: BadReply("senseless"),
}


class Timed(Server):
    """A server that notes when each call began, and how many were at it then."""

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.began: list[tuple[float, int]] = []

    async def send(self, request: Request) -> Response:
        self.began.append((time.monotonic(), self.at_once + 1))
        return await super().send(request)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[ResponseLog]:
    log = ResponseLog(tmp_path / "log.sqlite")
    yield log
    log.close()


async def test_a_429_holds_everybody_back_as_long_as_it_says(log: ResponseLog) -> None:
    turned_away = 0.0

    def outcome(n: int) -> RateLimited | None:
        nonlocal turned_away
        if n != 10:
            return None
        turned_away = time.monotonic()
        return RateLimited("429", 0.3)

    server = Timed(outcome, latency_s=0.02)
    dispatcher = over(log, server, replace(LIMITS, concurrency=10))
    replies = await ask_all(dispatcher, *map(str, range(60)))
    assert all(isinstance(reply, Response) for reply in replies)
    assert min(at for at, _ in server.began if at > turned_away) >= turned_away + 0.3
    assert dispatcher.progress.limited == 1


async def test_a_503_with_a_wait_pauses_all_sends_as_long_as_it_requests(log: ResponseLog) -> None:
    rejected_at = 0.0

    def outcome(n: int) -> Unavailable | None:
        nonlocal rejected_at
        if n != 10:
            return None
        rejected_at = time.monotonic()
        return Unavailable("503", retry_wait_s=0.3)

    server = Timed(outcome, latency_s=0.02)
    dispatcher = over(log, server, replace(LIMITS, concurrency=10))
    replies = await ask_all(dispatcher, *map(str, range(60)))
    assert all(isinstance(reply, Response) for reply in replies)
    began_after = [began for began, _ in server.began if began > rejected_at]
    assert len(began_after) > 40 and min(began_after) - rejected_at >= 0.3 - 1e-9


async def test_while_a_request_is_tried_again_the_progress_has_the_error(log: ResponseLog) -> None:
    at_calls: list[str] = []
    n_calls = count(1)

    def outcome(_: int) -> Unavailable | None:
        at_calls.append(dispatcher.progress.retried_error)
        return Unavailable("500\x1b[2J: a stop") if next(n_calls) in (2, 3) else None

    dispatcher = over(log, Timed(outcome), replace(LIMITS, concurrency=1))
    replies = await ask_all(dispatcher, "0", "1", "2")
    assert all(isinstance(reply, Response) for reply in replies)
    assert at_calls[:4] == ["", "", "500 [2J: a stop", "500 [2J: a stop"]
    assert at_calls[4:] == [""] and dispatcher.progress.retried_error == ""


@pytest.mark.parametrize(("max_tries", "n_tries"), [(2, 2), (None, 4), (9, 4)])
async def test_a_check_of_a_server_that_answers_is_tried_less_often(
    max_tries: int | None, n_tries: int, log: ResponseLog
) -> None:
    server = Timed(lambda n: Unavailable("500") if n else None)
    dispatcher = over(log, server, replace(LIMITS, max_tries=4))
    assert isinstance(await dispatcher.send_check(ask_for("0")), Response)
    failed = await dispatcher.send_check(ask_for("1"), max_tries)
    assert isinstance(failed, Failed) and len(server.began) == 1 + n_tries


async def test_a_503_whose_wait_is_longer_than_an_hour_ends_the_run(log: ResponseLog) -> None:
    server = Server(lambda n: Unavailable("down for maintenance", retry_wait_s=7_200.0))
    (failed,) = await ask_all(over(log, server), "1")
    assert isinstance(failed, Unavailable) and server.calls.total() == 1


@pytest.mark.parametrize(
    "error", [RateLimited("429", 30.0), RateLimited("429"), Unavailable("500")]
)
async def test_a_retry_that_waits_is_dropped_at_once_when_the_run_stops(
    log: ResponseLog, error: ProviderError
) -> None:
    server = Server(lambda n: error if n else None)
    dispatcher = over(log, server, replace(LIMITS, first_wait_s=30.0))
    await dispatcher.ask(ask_for("first"))
    waiting = [asyncio.create_task(dispatcher.ask(ask_for(text))) for text in ("a", "b")]
    await until(lambda: server.calls.total() > 1 and not dispatcher.job.in_flight_keys)
    began = time.monotonic()
    await dispatcher.drain()
    assert time.monotonic() == began
    assert all(
        isinstance(told, asyncio.CancelledError)
        for told in await asyncio.gather(*waiting, return_exceptions=True)
    )


@pytest.mark.parametrize(
    "limits", [replace(LIMITS, requests_per_minute=1), replace(LIMITS, tokens_per_minute=1)]
)
async def test_what_waits_for_its_minute_is_dropped_at_once_when_the_run_stops(
    log: ResponseLog, limits: Limits
) -> None:
    dispatcher = over(log, server := Server(), limits)
    await dispatcher.ask(ask_for("first"))
    waiting = asyncio.create_task(ask_all(dispatcher, "a", "b"))
    await asyncio.sleep(0.05)
    began = time.monotonic()
    await dispatcher.drain()
    assert time.monotonic() == began and server.calls == {"first": 1}
    assert all(isinstance(told, asyncio.CancelledError) for told in await waiting)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ResponseLog]:
    log = ResponseLog(tmp_path_factory.mktemp("shared") / "log.sqlite")
    yield log
    log.close()


FRESH = count()


@given(
    st.lists(st.lists(st.sampled_from(list(ERRORS)), max_size=12), min_size=1, max_size=4),
    st.integers(1, 5),
)
@settings(max_examples=60, deadline=None)
def test_no_request_is_sent_more_often_than_it_may_be(
    shared: ResponseLog, weather: list[list[str]], tries: int
) -> None:
    """Whatever errors each request meets, in whatever order, after the server has answered once."""
    texts = {f"{next(FRESH)}": iter(errors) for errors in weather}
    met: defaultdict[str, Counter[str]] = defaultdict(Counter)

    class Stormy(Server):
        async def send(self, request: Request) -> Response:
            assert isinstance(request, Complete)
            text = request.messages[0].content
            name = next(texts.get(text, iter(())), "reply")
            met[text][name] += 1
            if name in ERRORS:
                raise ERRORS[name]()
            return Response(request.key, "yes")

    async def storm() -> list[object]:
        dispatcher = over(
            shared, Stormy(), Limits(requests_per_minute=None, first_wait_s=1e-4, max_tries=tries)
        )
        await ask_all(dispatcher, f"calm {next(FRESH)}")
        async with asyncio.timeout(20):
            return list(await ask_all(dispatcher, *texts))

    for text, told in zip(texts, run_in_moved_time(storm()), strict=True):
        away = sum(n for name, n in met[text].items() if name.startswith("429"))
        failures = sum(met[text][name] for name in ("500", "late", "senseless"))
        assert failures <= tries and met[text]["senseless"] <= MAX_BAD_REPLIES
        assert isinstance(told, Response) == bool(met[text]["reply"])
        if isinstance(told, Failed):  # given up for a reason, and not sooner
            assert (
                failures == tries
                or away >= MAX_429_UNANSWERED
                or (met[text]["senseless"] and failures >= MAX_BAD_REPLIES)
            )


@pytest.mark.parametrize("error", [Unavailable("nobody there"), TimedOut("late")])
async def test_a_server_that_is_dead_ends_the_run_and_one_that_was_alive_does_not(
    log: ResponseLog, error: ProviderError
) -> None:
    (told,) = await ask_all(over(log, server := Server(lambda n: error)), "a")
    assert told is error and server.calls.total() == MAX_TRIES_UNANSWERED
    dispatcher = over(log, server := Server(lambda n: error if n else None))
    await dispatcher.ask(ask_for("alive"))
    (told,) = await ask_all(dispatcher, "a")
    assert isinstance(told, Failed) and server.calls["a"] == LIMITS.max_tries


async def test_a_call_that_is_turned_away_costs_no_money(log: ResponseLog) -> None:
    server = Server(lambda n: RateLimited("429", 0.001) if n == 0 else None)
    (reply,) = await ask_all(over(log, server, LIMITS, Price(Decimal(1), Decimal(1))), "a")
    assert isinstance(reply, Response) and server.calls == {"a": 2}
    assert log.get_spend("r") == RunSpend(5, 0)  # 3 tokens in and 2 out, at a dollar a million


async def test_a_resumed_run_counts_what_its_killed_process_sent(log: ResponseLog) -> None:
    for i in range(3):
        log.reserve(ask_for(f"before the kill {i}"), "r", 0, 0)
    dispatcher = over(log, server := Server(), replace(LIMITS, requests_per_minute=4))
    began = time.monotonic()
    await ask_all(dispatcher, "a", "b")
    assert time.monotonic() - began >= 2 * 60 / 4 and server.calls.total() == 2


PRICE = Price(Decimal(1), Decimal(1))
LARGE_REPLY = Response("", "yes", usage=Usage(20, 5_000))


def reserve_of(dispatcher: Dispatcher) -> Reserve:
    return dispatcher.job.reserve_by_model[REF]


async def test_after_a_reply_beyond_its_reserve_calls_go_alone_until_twenty_were_within(
    log: ResponseLog,
) -> None:
    server = Timed(lambda n: LARGE_REPLY if n == 3 else None, latency_s=0.01)
    dispatcher = over(log, server, replace(LIMITS, concurrency=5), PRICE)
    replies = await ask_all(dispatcher, *(f"{i:02d}" for i in range(60)))
    assert all(isinstance(reply, Response) for reply in replies)
    at_once = [n for _, n in server.began]
    assert at_once[0] == 1 and max(at_once[1:4]) > 1  # the first call goes alone, then several do
    landed = next(
        i for i in range(4, 60) if at_once[i : i + 3] == [1, 1, 1]
    )  # all that were in flight have landed
    alone = next(i for i, n in enumerate(at_once[landed:]) if n > 1)
    assert (
        MIN_PROVING_REPLIES - 5 <= alone <= MIN_PROVING_REPLIES + 1
        and max(at_once[landed + alone :]) == 5
    )
    assert reserve_of(dispatcher).max_cost(ask_for("00")) == PRICE.max_cost(ask_for("00")) + 5_000


async def test_every_larger_reply_raises_the_reserve(log: ResponseLog) -> None:
    sizes = (500, 9_000, 700, 20_000)
    dispatcher = over(
        log, Server(lambda n: Response("", "yes", usage=Usage(20, sizes[n]))), LIMITS, PRICE
    )
    for i, most in enumerate((500, 9_000, 9_000, 20_000)):
        await dispatcher.ask(ask_for(str(i)))
        assert (
            reserve_of(dispatcher).extra_tokens_in,
            reserve_of(dispatcher).extra_tokens_out,
        ) == (0, most)
    again = over(log, Server(), LIMITS, PRICE)  # another process of the run
    assert reserve_of(again).extra_tokens_out == 20_000 and reserve_of(again).is_exclusive


async def test_what_one_model_reports_raises_no_reserve_of_another(log: ResponseLog) -> None:
    other = replace(REF, name="other")
    providers = {REF: Server(lambda n: LARGE_REPLY), other: Server()}
    for _ in range(2):  # and so in another process of the run
        dispatcher = Dispatcher(
            "r", providers, dict.fromkeys(providers, PRICE), log, LIMITS, RunProgress()
        )
        await dispatcher.ask(ask_for("a"))
        reserves = dispatcher.job.reserve_by_model
        assert (reserves[REF].extra_tokens_out, reserves[other].extra_tokens_out) == (5_000, 0)


async def test_a_free_model_is_asked_as_many_at_once_whatever_it_reports(log: ResponseLog) -> None:
    server = Server(lambda n: LARGE_REPLY, latency_s=0.01)
    await ask_all(over(log, server, replace(LIMITS, concurrency=10)), *map(str, range(20)))
    assert server.most_at_once == 10
