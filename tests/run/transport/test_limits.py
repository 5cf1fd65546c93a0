"""Requests and tokens a minute: what a provider is sent, whoever asks and whenever."""

from __future__ import annotations

import asyncio
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotlab.core.provider import ServerLimits
from cotlab.run.transport.limits import Pace
from tests.support.moved_time import MovedTime, run_in_moved_time


class TickingTime(MovedTime):
    """A clock that never stands still, as no clock does: a wait of a nanosecond ends."""

    def __call__(self) -> float:
        self.move(1e-9)
        return super().__call__()


@pytest.fixture(autouse=True)
def moved_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", TickingTime())


async def send_all(pace: Pace, arrivals_s: list[float], tokens: int = 1) -> list[float]:
    """Send a call after each so many seconds; return when each was sent, from now."""
    began = time.monotonic()

    async def send(after_s: float) -> float:
        await asyncio.sleep(after_s)
        await pace.wait(tokens)
        return time.monotonic() - began

    return sorted(await asyncio.gather(*map(send, arrivals_s)))


def most_in_a_minute(times_s: list[float]) -> int:
    return max(sum(0 <= other - at < 60 - 1e-3 for other in times_s) for at in times_s)


@given(st.integers(1, 40), st.lists(st.floats(0, 200), min_size=1, max_size=120))
@settings(max_examples=60, deadline=None)
def test_no_minute_holds_more_requests_than_it_may(most: int, arrivals_s: list[float]) -> None:
    times_s = run_in_moved_time(send_all(Pace(most, None), arrivals_s))
    assert most_in_a_minute(times_s) <= most


@pytest.mark.parametrize(("most", "at_once"), [(1, 1), (60, 6), (600, 60)])
async def test_a_tenth_is_sent_at_once_and_the_others_evenly(most: int, at_once: int) -> None:
    times_s = await send_all(Pace(most, None), [0.0] * 3 * most)
    assert sum(at < 0.01 for at in times_s) == at_once
    assert times_s[-1] <= 3 * 60 / 0.9


async def test_a_limit_on_tokens_learns_what_calls_use() -> None:
    pace = Pace(None, 1000)
    assert (await send_all(pace, [0.0] * 3, 500))[-1] == pytest.approx(30, abs=0.01)
    await asyncio.sleep(60)
    for _ in range(60):
        pace.learn_tokens(500, 50)
    assert (await send_all(pace, [0.0] * 18, 500))[-1] < 0.01  # a tenth of what they may use
    assert (await send_all(pace, [0.0], 10**9)) != []  # one that alone is over the limit goes


async def test_what_an_earlier_process_sent_counts() -> None:
    pace = Pace(60, 1000, [400] * 10)
    assert (await send_all(pace, [0.0], 0))[0] == pytest.approx(60 / 55, abs=0.01)
    assert (await send_all(pace, [0.0], 100))[0] == pytest.approx(6 - 60 / 55, abs=0.01)


async def test_a_pause_that_begins_while_one_waits_is_kept() -> None:
    pace = Pace(60, None)
    sending = asyncio.create_task(send_all(pace, [0.0] * 7))
    await asyncio.sleep(0.5)
    pace.pause(100)
    times_s = await sending
    assert times_s[5] < 0.01 and times_s[6] >= 100.5


async def test_the_server_s_own_limits_are_followed_at_once() -> None:
    pace = Pace(1, None)
    sending = asyncio.create_task(send_all(pace, [0.0] * 20))
    await asyncio.sleep(1)
    pace.follow_server(ServerLimits(6000, 5000), 0)
    assert (await sending)[-1] < 61 and pace.max_requests == 6000
    pace.follow_server(ServerLimits(10, 0, 20.0), 0)  # one is free again after 2 s
    assert (await send_all(pace, [0.0]))[0] == pytest.approx(2.0, abs=0.01)
