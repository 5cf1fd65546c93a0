"""A vendor's batch interface: one batch for what can be asked at once, each reply paid once, and
nothing handed in twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from cotlab.core.errors import (
    BadReply,
    BudgetReached,
    RateLimited,
    Unauthorised,
    Unavailable,
    Unsupported,
)
from cotlab.core.provider import Provider, SupportsBatches
from cotlab.core.requests import Failed, Request, Response, Usage
from cotlab.run.transport import batches
from cotlab.run.transport.limits import Limits
from cotlab.store.responses import ResponseLog, RunSpend
from tests.run.transport.test_dispatcher import REF, ask_for, until
from tests.support.batch_vendor import (
    MOST,
    PRICED,
    Result,
    Vendor,
    ask,
    left_by_a_killed_process,
    over,
)


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "QUIET_PERIOD_S", 0.02)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[ResponseLog]:
    log = ResponseLog(tmp_path / "log.sqlite")
    yield log
    log.close()


def test_the_vendor_of_these_tests_is_one() -> None:
    assert isinstance(Vendor(), SupportsBatches) and isinstance(Vendor(), Provider)


async def test_what_all_items_ask_in_one_round_is_one_batch(log: ResponseLog) -> None:
    vendor = Vendor()
    dispatcher = over(log, vendor, price=PRICED)

    async def item(i: int) -> None:
        await asyncio.sleep(i * 1e-3)  # they do not begin all at once
        for number in ("first", "second"):
            await ask(dispatcher, f"{number} {i}", f"{number} for all")

    await asyncio.gather(*map(item, range(20)))
    assert vendor.sizes == [21, 21]
    assert len(set(vendor.names)) == 2 and all(name.startswith("r-") for name in vendor.names)
    assert log.get_spend("r") == RunSpend(42 * 5, 0) and dispatcher.job.n_sent == 42
    assert log.list_open_batches("r", str(REF)) == []
    assert (
        dispatcher.progress.waiting_for == ""
        and dispatcher.progress.in_flight == 0
        and not dispatcher.job.in_flight_keys
    )
    again = Vendor()
    await ask(over(log, again), "first 3", "second for all")
    assert again.sizes == []  # what has a reply is not handed in


async def test_only_what_failed_goes_into_a_second_batch(log: ResponseLog) -> None:
    def result(text: str, n: int) -> Result:
        if n:
            return Response("", "late", usage=Usage(3, 2))
        return {
            "server": Unavailable("500"),
            "senseless": BadReply("no text"),
            "missing": None,
        }.get(text, Response("", "yes", usage=Usage(3, 2)))

    vendor = Vendor(result)
    replies = await ask(over(log, vendor, price=PRICED), "a", "server", "b", "senseless", "missing")
    assert [reply.text for reply in replies if isinstance(reply, Response)] == [
        "yes",
        "late",
        "yes",
        "late",
        "late",
    ]
    assert [texts for _, texts in vendor.batches.values()] == [
        ["a", "server", "b", "senseless", "missing"],
        ["server", "senseless"],  # what was missing came at a second reading
    ]
    assert log.get_spend("r") == RunSpend(
        5 * 5, PRICED.max_cost(ask_for("senseless"))
    )  # it may have been billed


async def test_tries_come_to_an_end_and_what_no_try_helps_has_one(log: ResponseLog) -> None:
    errors = {"never": Unavailable("500"), "too long": Unsupported("400: too long")}
    vendor = Vendor(lambda text, n: errors.get(text, Response("", "yes")))
    limits = Limits(poll_interval_s=0.01, first_wait_s=0.001, max_tries=3)
    never, too_long, good = await ask(
        over(log, vendor, limits, PRICED), "never", "too long", "good"
    )
    assert isinstance(never, Failed) and (never.tries, never.error, never.unsupported) == (
        3,
        "500",
        False,
    )
    assert isinstance(too_long, Failed) and (too_long.tries, too_long.unsupported) == (1, True)
    assert isinstance(good, Response) and vendor.sizes == [3, 1, 1]
    assert log.get_spend("r").reserved_micro == PRICED.max_cost(
        ask_for("good")
    )  # its reply came without a count; errors cost nothing


async def test_what_does_not_fit_the_budget_waits_for_the_batch_that_is_out(
    log: ResponseLog,
) -> None:
    vendor = Vendor()
    dispatcher = over(log, vendor, Limits(poll_interval_s=0.01, cap_micro=2 * MOST + 45), PRICED)
    replies = await ask(dispatcher, *map(str, range(5)))
    assert all(isinstance(reply, Response) for reply in replies)
    assert vendor.sizes == [
        2,
        2,
        1,
    ]  # 2 reserves, then 10 paid and 2 reserves, then 20 paid and the last
    assert log.get_spend("r") == RunSpend(25, 0)


async def test_the_budget_is_reached_only_when_nothing_is_out(log: ResponseLog) -> None:
    vendor = Vendor()
    vendor.ready = False
    dispatcher = over(log, vendor, Limits(poll_interval_s=0.01, cap_micro=2 * MOST), PRICED)
    small, large = (asyncio.create_task(ask(dispatcher, text)) for text in ("0", "x" * 2 * MOST))
    await until(lambda: len(dispatcher.job.in_flight_keys) == 1)
    await asyncio.sleep(0.05)
    assert not small.done() and not large.done()
    vendor.ready = True
    (reply,), (told,) = await small, await large
    assert isinstance(reply, Response) and isinstance(told, BudgetReached)
    assert (told.spent_micros, told.budget_micros, vendor.sizes) == (5, 2 * MOST, [1])


async def test_a_killed_process_s_batch_is_joined_and_nothing_in_it_is_asked_again(
    log: ResponseLog,
) -> None:
    vendor = Vendor()
    left_by_a_killed_process(log, vendor.take("r-before", "0", "1", "2"), "0", "1", "2")
    dispatcher = over(log, vendor, price=PRICED)
    replies = await ask(dispatcher, "0", "1")  # nobody asks for 2 any more
    assert all(isinstance(reply, Response) for reply in replies)
    assert vendor.names == [] and vendor.asked == {"0": 1, "1": 1} and dispatcher.job.n_sent == 0
    assert log.get_spend("r") == RunSpend(10, MOST)
    assert log.list_open_batches("r", str(REF)) == []
    await ask(dispatcher, "0", "3")  # new requests make a new batch
    assert vendor.sizes == [3, 1]


async def test_a_batch_whose_number_was_never_read_is_found_by_its_name(log: ResponseLog) -> None:
    vendor = Vendor()
    vendor.take("r-before", "0", "1")
    left_by_a_killed_process(log, None, "0", "1")
    assert all(
        isinstance(reply, Response)
        for reply in await ask(over(log, vendor, price=PRICED), "0", "1")
    )
    assert vendor.names == [] and log.get_spend("r") == RunSpend(10, 0)


async def test_a_batch_that_cannot_be_found_stays_reserved_and_is_asked_anew(
    log: ResponseLog,
) -> None:
    vendor = Vendor()
    vendor.finds = False
    left_by_a_killed_process(log, None, "0", "1")
    replies = await ask(over(log, vendor, price=PRICED), "0", "1")
    assert all(isinstance(reply, Response) for reply in replies) and vendor.sizes == [2]
    assert log.get_spend("r") == RunSpend(10, 2 * MOST)
    assert log.list_open_batches("r", str(REF)) == []


async def test_a_run_that_stops_leaves_its_batch_and_the_next_process_takes_it_up(
    log: ResponseLog,
) -> None:
    vendor = Vendor()
    vendor.ready = False
    first = over(log, vendor, price=PRICED)
    asked = asyncio.create_task(ask(first, "0", "1"))
    await until(lambda: first.progress.waiting_for == "1 at the vendor, 0 of 2 replies")
    await first.drain()
    assert all(isinstance(told, asyncio.CancelledError) for told in await asked)
    (left,) = log.list_open_batches("r", str(REF))
    assert (
        left.vendor_id == "batch-0"
        and len(left.calls_by_key) == 2
        and log.get_spend("r") == RunSpend(0, 2 * MOST)
    )
    vendor.ready = True
    replies = await ask(over(log, vendor, price=PRICED), "0", "1", "2")
    assert all(isinstance(reply, Response) for reply in replies)
    assert vendor.sizes == [2, 1] and log.get_spend("r") == RunSpend(15, 0)


async def test_a_stop_while_a_batch_is_handed_in_waits_for_its_number(log: ResponseLog) -> None:
    class Slow(Vendor):
        async def submit(self, name: str, requests: Sequence[Request]) -> str:
            taken = await super().submit(name, requests)
            await asyncio.sleep(0.1)
            return taken

    dispatcher = over(log, vendor := Slow(), price=PRICED)
    asked = asyncio.create_task(ask(dispatcher, "0"))
    await until(lambda: bool(vendor.names))
    await dispatcher.drain()
    with suppress(asyncio.CancelledError):
        await asked
    assert [batch.vendor_id for batch in log.list_open_batches("r", str(REF))] == ["batch-0"]


async def test_a_submit_that_is_turned_away_is_tried_again_under_its_name(log: ResponseLog) -> None:
    vendor = Vendor()
    vendor.turns_away = lambda n: RateLimited("429", 0.1) if n == 0 else None
    (reply,) = await ask(over(log, vendor, price=PRICED), "0")
    assert isinstance(reply, Response) and vendor.sizes == [1]
    assert len(vendor.names) == 2 and len(set(vendor.names)) == 1
    assert vendor.at[1] - vendor.at[0] >= 0.1 and log.get_spend("r") == RunSpend(5, 0)


@pytest.mark.parametrize("broken_finds", [0, 2])
async def test_a_batch_that_was_taken_though_its_answer_was_lost_is_not_handed_in_twice(
    log: ResponseLog, broken_finds: int
) -> None:
    vendor = Vendor()
    vendor.turns_away, vendor.keeps, vendor.broken_finds = (
        lambda n: Unavailable("cut off"),
        True,
        broken_finds,
    )
    replies = await ask(over(log, vendor, price=PRICED), "0", "1")
    assert all(isinstance(reply, Response) for reply in replies)
    assert len(vendor.names) == 1 and vendor.sizes == [2] and log.get_spend("r") == RunSpend(10, 0)


async def test_a_batch_that_was_not_taken_is_handed_in_again_after_a_while(
    log: ResponseLog,
) -> None:
    vendor = Vendor()
    vendor.turns_away = lambda n: Unavailable("500") if n < 2 else None
    (reply,) = await ask(
        over(log, vendor, Limits(poll_interval_s=0.01, first_wait_s=0.1), PRICED), "0"
    )
    assert isinstance(reply, Response) and len(set(vendor.names)) == 3 and vendor.sizes == [1]
    first, second, third = vendor.at
    assert second - first >= 0.1 and third - second >= 0.2  # the wait doubles
    assert log.get_spend("r") == RunSpend(
        5, 2 * MOST
    )  # each of the two may have been taken after all


async def test_a_batch_that_is_rejected_whole_fails_its_requests_and_a_refused_key_the_run(
    log: ResponseLog,
) -> None:
    vendor = Vendor()
    vendor.turns_away = lambda n: (
        Unsupported("400: no such model") if n == 0 else Unauthorised("401")
    )
    told = await ask(over(log, vendor, price=PRICED), "0", "1")
    assert all(isinstance(one, Failed) and one.unsupported for one in told)
    told = await ask(over(log, vendor, price=PRICED), "0", "1")
    assert all(isinstance(one, Unauthorised) for one in told)
    assert len(vendor.names) == 2 and log.get_spend("r") == RunSpend(0, 0)


async def test_a_vendor_that_breaks_lets_nobody_wait(log: ResponseLog) -> None:
    class Broken(Vendor):
        async def submit(self, name: str, requests: Sequence[Request]) -> str:
            raise ZeroDivisionError

    dispatcher = over(log, Broken())
    assert all(isinstance(told, ZeroDivisionError) for told in await ask(dispatcher, "0", "1"))
    await dispatcher.drain()


async def test_after_replies_beyond_their_reserve_a_batch_reserves_as_much_and_goes_alone(
    log: ResponseLog,
) -> None:
    vendor = Vendor(lambda text, n: Response("", "yes", usage=Usage(20, 5_000)))
    learnt = MOST + 5_000
    dispatcher = over(
        log, vendor, Limits(poll_interval_s=0.01, cap_micro=2 * 5_020 + 2 * learnt), PRICED
    )
    assert all(isinstance(reply, Response) for reply in await ask(dispatcher, "0", "1"))
    replies = await ask(dispatcher, *"234567")
    assert vendor.sizes == [2, 2]  # the reserve of a fifth has no room beside what four cost
    assert sum(isinstance(reply, BudgetReached) for reply in replies) == 4
    assert log.get_spend("r") == RunSpend(4 * 5_020, 0)
    vendor.ready = False
    again = over(log, vendor, Limits(poll_interval_s=0.01), PRICED)  # another process of the run
    first = asyncio.create_task(ask(again, "8"))
    await until(lambda: len(vendor.sizes) == 3)
    second = asyncio.create_task(ask(again, "9"))
    await asyncio.sleep(0.1)
    assert len(vendor.sizes) == 3
    vendor.ready = True
    await asyncio.gather(first, second)
    assert vendor.sizes == [2, 2, 1, 1]
