"""How hard a server is pressed: sends and tokens in any window, and calls in flight, whatever the
order of arrivals."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotlab.core.requests import Complete, Message
from cotlab.core.types import ModelRef
from cotlab.run.transport import limits
from cotlab.run.transport.limits import ConcurrencyLimit, SendLimit, TokenLimit
from cotlab.store.responses import ResponseLog
from tests.support.moved_time import MovedTime, run_in_moved_time

WINDOW_S = 60.0


async def arrive(limit: SendLimit, after_s: float, unused: bool) -> float | None:
    """The time of a send, or None where the place was given back."""
    await asyncio.sleep(after_s)
    asked = time.monotonic()
    place = await limit.acquire()
    assert asked <= place <= time.monotonic()
    if unused:
        limit.release(place)
    return None if unused else place


@given(
    st.integers(1, 4),
    st.lists(st.tuples(st.floats(0, 2 * WINDOW_S), st.booleans()), min_size=1, max_size=8),
)
@settings(max_examples=25, deadline=None)
def test_no_window_holds_more_sends_than_allowed(
    most: int, arrivals: list[tuple[float, bool]]
) -> None:
    async def all_of_them() -> list[float | None]:
        limit = SendLimit(most, window_s=WINDOW_S)
        return list(
            await asyncio.gather(*(arrive(limit, after_s, unused) for after_s, unused in arrivals))
        )

    sent = sorted(place for place in run_in_moved_time(all_of_them()) if place is not None)
    assert len(sent) == sum(not unused for _, unused in arrivals)  # nobody waits for ever
    windows = zip(sent, sent[most:], strict=False)
    assert all(later - first >= WINDOW_S - 1e-9 for first, later in windows)


@given(st.integers(1, 4), st.lists(st.floats(0, 2 * WINDOW_S), max_size=6), st.integers(1, 5))
@settings(max_examples=12, deadline=None)
def test_the_sends_of_an_earlier_process_count(most: int, ages_s: list[float], n: int) -> None:
    async def go_on() -> tuple[float, list[float]]:
        limit, began = SendLimit(most, ages_s, WINDOW_S), time.monotonic()
        return began, [await limit.acquire() for _ in range(n)]

    began, sent = run_in_moved_time(go_on())
    ever = [*(began - age for age in ages_s), *sent]
    for place in sent:
        assert (
            sum(place - WINDOW_S + 1e-9 < other <= place for other in ever) <= most
        )  # 1e-9: of rounding


async def test_a_run_resumed_right_after_a_kill_waits_out_its_window(tmp_path: Path) -> None:
    log = ResponseLog(tmp_path / "log.sqlite")
    for text, run in (("a", "r"), ("b", "r"), ("c", "r"), ("d", "r"), ("e", "another")):
        log.reserve(Complete(ModelRef("p", "m"), (Message("user", text),)), run, 0, 0)
    with sqlite3.connect(tmp_path / "log.sqlite") as rows:  # the first was sent 61 s ago
        rows.execute(
            "UPDATE calls SET at = ? WHERE id = 1",
            ((datetime.now(UTC) - timedelta(seconds=61)).isoformat(),),
        )
    rows.close()
    ages_s = [age for age, _ in log.list_recent_calls("r", 60)]
    log.close()
    assert len(ages_s) == 3 and all(0 <= age < 60 for age in ages_s)
    limit, began = SendLimit(4, ages_s, window_s=60.25), time.monotonic()
    assert await limit.acquire() == began  # 3 of 4 places were taken
    assert await limit.acquire() - began == pytest.approx(60.25 - max(ages_s))


@pytest.mark.parametrize(
    "age_s", [28.595817249141348, 16.91027066398223, 19.512261764843405, 34.557177]
)
async def test_a_wait_below_the_last_digit_of_the_clock_ends(age_s: float) -> None:
    limit, began = SendLimit(1, [age_s], window_s=60.25), time.monotonic()
    looks = 0

    def count_look() -> float:
        nonlocal looks
        looks += 1
        assert looks < 1000, "the limit is looked at for ever"
        return 0.0

    limit._refill_wait_s = count_look  # type: ignore[method-assign]
    assert await limit.acquire() - began == pytest.approx(60.25 - age_s)


async def test_a_place_given_back_is_free_again() -> None:
    limit = SendLimit(1, window_s=3600)
    for _ in range(5):
        limit.release(await limit.acquire())
    await limit.acquire()
    waiting = asyncio.create_task(limit.acquire())
    await asyncio.sleep(0.02)
    assert not waiting.done()
    waiting.cancel()


async def test_no_limit_never_waits() -> None:
    limit, tokens = SendLimit(None), TokenLimit(None)
    assert len([await limit.acquire() for _ in range(1000)]) == 1000
    for _ in range(1000):
        tokens.mark_sent(await tokens.acquire(10**9))


async def spend(
    limit: TokenLimit, after_s: float, most: int, really: int, replied_s: float
) -> tuple[float, int, int]:
    """Return the time of a send, its most tokens, and those that its reply reported."""
    await asyncio.sleep(after_s)
    entry = await limit.acquire(most)
    limit.mark_sent(entry)
    at = entry[0]
    await asyncio.sleep(replied_s)
    limit.correct_tokens(entry, really)
    return at, most, really


CALLS = st.lists(
    st.tuples(
        st.floats(0, WINDOW_S), st.integers(1, 60), st.floats(0, 1), st.floats(0, 1.5 * WINDOW_S)
    ),
    min_size=1,
    max_size=6,
)


@given(st.integers(20, 60), CALLS)
@settings(max_examples=12, deadline=None)
def test_no_window_holds_more_tokens_than_allowed(
    allowed: int, calls: list[tuple[float, int, float, float]]
) -> None:
    async def all_of_them() -> list[tuple[float, int, int]]:
        limit = TokenLimit(allowed, WINDOW_S)
        return await asyncio.gather(
            *(
                spend(limit, after, most, int(most * part), wait)
                for after, most, part, wait in calls
            )
        )

    sent = run_in_moved_time(all_of_them())
    for at, most, really in sent:
        before = sum(used for other, _, used in sent if at - WINDOW_S < other < at)
        assert before + really <= allowed or (before == 0 and most > allowed)


async def test_a_reply_frees_the_tokens_that_its_call_did_not_use() -> None:
    limit = TokenLimit(100, window_s=3600)
    first = await limit.acquire(80)
    limit.mark_sent(first)
    waiting = asyncio.create_task(limit.acquire(80))
    await asyncio.sleep(0.02)
    assert not waiting.done()
    limit.correct_tokens(first, None)  # a reply that does not say
    await asyncio.sleep(0.02)
    assert not waiting.done()
    limit.correct_tokens(first, 20)  # 20 + 80 = 100
    await asyncio.wait_for(waiting, 60)


async def test_a_call_above_the_limit_goes_alone() -> None:
    limit, began = TokenLimit(10, window_s=0.1), time.monotonic()
    for tokens, after_s in (
        (4, 0.0),
        (50, 0.1),
        (1, 0.2),
    ):  # each once the one before it has left the window
        entry = await limit.acquire(tokens)
        limit.mark_sent(entry)
        assert entry[0] - began >= after_s
    alone = TokenLimit(10, window_s=3600)
    for _ in range(3):  # what was not sent, or turned away, leaves the window empty
        alone.correct_tokens(await alone.acquire(50), 0)
        entry = await asyncio.wait_for(alone.acquire(50), 60)
        alone.mark_sent(entry)
        alone.correct_tokens(entry, 0)


async def test_a_reply_that_comes_after_its_window_changes_nothing() -> None:
    limit = TokenLimit(10, window_s=0.1)
    old = await limit.acquire(10)
    limit.mark_sent(old)
    await asyncio.sleep(0.1)
    second = await limit.acquire(10)
    limit.mark_sent(second)
    limit.correct_tokens(old, 0)  # 10 tokens of the second are in the window, and not 0
    third = await limit.acquire(10)
    limit.mark_sent(third)
    assert third[0] - second[0] >= 0.1


async def test_a_minute_begins_when_a_call_is_sent() -> None:
    limit = TokenLimit(10, window_s=0.1)
    held = await limit.acquire(10)
    waiting = asyncio.create_task(limit.acquire(10))
    await asyncio.sleep(0.15)  # the first waits for something else, longer than the window
    sent_at = time.monotonic()
    limit.mark_sent(held)
    second = await waiting
    limit.mark_sent(second)
    assert second[0] - sent_at >= 0.1


def test_in_flight_falls_by_a_fifth_and_never_below_one() -> None:
    slots = ConcurrencyLimit(10)
    assert slots.limit == 10
    fell = []
    for _ in range(12):
        slots.record_rate_limit(time.monotonic(), 0)
        fell.append(slots.limit)
    # 10 · 0.8^k = 8, 6.4, 5.12, 4.1, 3.3, 2.6, 2.1, 1.7, 1.3, 1.07, then 1
    assert fell == [8, 6, 5, 4, 3, 2, 2, 1, 1, 1, 1, 1]


def test_a_burst_that_is_turned_away_counts_once(moved_time: MovedTime) -> None:
    slots, sent_at = ConcurrencyLimit(50), time.monotonic()
    moved_time.move(0.1)
    for _ in range(50):
        slots.record_rate_limit(sent_at, 0)
    assert slots.limit == 40
    slots.record_rate_limit(time.monotonic(), 0)  # sent after the fall
    assert slots.limit == 32


def test_in_flight_grows_by_one_a_round_of_replies() -> None:
    slots = ConcurrencyLimit(10)
    slots.record_rate_limit(time.monotonic(), 0)
    grew = []
    for _ in range(40):
        slots.record_success()
        grew.append(slots.limit)
    # each reply adds 1/limit, so half the limit's square grows by one: (9² - 8²)/2 = 8.5 replies,
    # (10² - 8²)/2 = 18
    assert (grew.index(9) + 1, grew.index(10) + 1, grew[-1]) == (9, 18, 10)


def test_in_flight_does_not_grow_while_the_server_rests(moved_time: MovedTime) -> None:
    slots = ConcurrencyLimit(10)
    slots.record_rate_limit(time.monotonic(), 30)
    for _ in range(100):
        slots.record_success()
    assert slots.limit == 8  # nobody may send, so these replies say nothing about now
    moved_time.move(30)
    slots.record_success()
    slots.record_server_error()
    for _ in range(100):
        slots.record_success()
    assert slots.limit == 8
    moved_time.move(limits.GROWTH_PAUSE_S)
    for _ in range(100):
        slots.record_success()
    assert slots.limit == 10


@given(
    st.lists(st.sampled_from(["reply", "429", "old 429", "500"]), max_size=60), st.integers(1, 20)
)
def test_the_limit_stays_between_one_and_the_most(events: list[str], most: int) -> None:
    slots = ConcurrencyLimit(most)
    for event in events:
        if event == "500":
            slots.record_server_error()
        elif event == "reply":
            slots.record_success()
        else:
            slots.record_rate_limit(time.monotonic() - (event == "old 429"), 0)
        assert 1 <= slots.limit <= most


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans()), max_size=25),
    st.integers(1, 4),
)
@settings(max_examples=50, deadline=None)
def test_nobody_enters_beyond_the_limit_and_no_place_is_lost(
    workers: list[tuple[int, int, bool]], most: int
) -> None:
    """Each works for some turns of the loop, and some are cancelled after some turns, wherever they
    are then."""
    slots = ConcurrencyLimit(most)

    async def work(turns: int, limited: bool) -> None:
        await slots.acquire(is_retry=limited)
        assert slots.in_flight <= slots.limit
        try:
            for _ in range(turns):
                await asyncio.sleep(0)
            slots.record_rate_limit(time.monotonic(), 0) if limited else slots.record_success()
        finally:
            slots.release()

    async def all_of_them() -> list[object]:
        tasks = []
        for turns, cancelled_after, limited in workers:
            tasks.append(asyncio.create_task(work(turns, limited)))
            for _ in range(cancelled_after):
                await asyncio.sleep(0)
            if cancelled_after == 2:
                tasks[-1].cancel()
            elif cancelled_after == 3:
                tasks[len(tasks) // 2].cancel()
        async with asyncio.timeout(5):
            return await asyncio.gather(*tasks, return_exceptions=True)

    told = run_in_moved_time(all_of_them())
    assert all(one is None or isinstance(one, asyncio.CancelledError) for one in told)
    assert slots.in_flight == 0


async def test_a_waiter_cancelled_as_it_is_let_in_gives_its_place_on() -> None:
    slots = ConcurrencyLimit(1)
    await slots.acquire()
    first, second = asyncio.create_task(slots.acquire()), asyncio.create_task(slots.acquire())
    await asyncio.sleep(0)
    slots.release()  # lets the first in …
    first.cancel()  # … which is cancelled before it could run
    await asyncio.wait_for(second, 60)
    assert first.cancelled() and slots.in_flight == 1


async def test_a_second_try_is_served_first() -> None:
    slots, served = ConcurrencyLimit(1), list[str]()
    await slots.acquire()

    async def enter(name: str, again: bool = False) -> None:
        await slots.acquire(is_retry=again)
        served.append(name)
        slots.release()

    async with asyncio.TaskGroup() as group:
        for name in ("new", "newer", "again"):
            group.create_task(enter(name, name == "again"))
        await asyncio.sleep(0)
        slots.release()
    assert served == ["again", "new", "newer"]
