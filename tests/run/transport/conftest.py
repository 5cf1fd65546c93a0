"""Time moves by itself here, but where a server in a process of its own is asked."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping

import pytest

from tests.support.moved_time import MovedTime, MovedTimeLoop

WITH_A_SERVER = "test_bill.py"


def pytest_asyncio_loop_factories(
    item: pytest.Item,
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    with_a_server = item.path.name == WITH_A_SERVER
    return {"real": asyncio.new_event_loop} if with_a_server else {"moved": MovedTimeLoop}


@pytest.fixture(autouse=True)
def moved_time(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> MovedTime | None:
    if request.path.name == WITH_A_SERVER:
        return None
    random.seed(0)  # of the jitter of retries
    clock = MovedTime()
    monkeypatch.setattr(time, "monotonic", clock)
    return clock
