"""The rate limit, whatever the order of arrivals."""

from __future__ import annotations

import asyncio
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from cotlab.run.limits import SendLimit

WINDOW_S = 0.05


async def arrive(limit: SendLimit, after_s: float, unused: bool) -> float | None:
    """The time of a send, or None where the place was given back."""
    await asyncio.sleep(after_s)
    asked = time.monotonic()
    place = await limit.acquire()
    assert asked <= place <= time.monotonic()
    if unused:
        limit.give_back(place)
    return None if unused else place


@given(st.integers(1, 4), st.lists(st.tuples(st.floats(0, 2 * WINDOW_S), st.booleans()), min_size=1, max_size=8))
@settings(max_examples=25, deadline=None)
def test_no_window_holds_more_sends_than_allowed(most: int, arrivals: list[tuple[float, bool]]) -> None:
    async def all_of_them() -> list[float | None]:
        limit = SendLimit(most, window_s=WINDOW_S)
        return list(await asyncio.gather(*(arrive(limit, after_s, unused) for after_s, unused in arrivals)))

    sent = sorted(place for place in asyncio.run(all_of_them()) if place is not None)
    assert len(sent) == sum(not unused for _, unused in arrivals)  # nobody waits for ever
    assert all(later - first >= WINDOW_S for first, later in zip(sent, sent[most:], strict=False))


async def test_a_place_given_back_is_free_again() -> None:
    limit = SendLimit(1, window_s=3600)
    for _ in range(5):
        limit.give_back(await limit.acquire())
    await limit.acquire()
    waiting = asyncio.create_task(limit.acquire())
    await asyncio.sleep(0.02)
    assert not waiting.done()
    waiting.cancel()


async def test_no_limit_never_waits() -> None:
    limit = SendLimit(None)
    assert len([await limit.acquire() for _ in range(1000)]) == 1000
