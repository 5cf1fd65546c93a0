"""The rate limits that servers state: read from their headers through each vendor's package, and
followed by ``--max-requests-per-minute auto``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cotlab.core.errors import RateLimited
from cotlab.core.provider import ServerLimits
from cotlab.core.requests import Request, Response
from cotlab.providers.keys import KEY_VARIABLES
from cotlab.providers.server_limits import parse_duration_s, read_server_limits
from cotlab.run.transport.limits import Limits
from cotlab.store.responses import ResponseLog
from tests.run.transport.test_dispatcher import LIMITS, REF, Server, ask_all, over
from tests.support.loopback import Loopback
from tests.support.vendors import SECRET, ask, opened_at

OPENAI = {  # as in a reply of api.openai.com
    "x-ratelimit-limit-requests": "5000",
    "x-ratelimit-limit-tokens": "160000",
    "x-ratelimit-remaining-requests": "4999",
    "x-ratelimit-remaining-tokens": "159976",
    "x-ratelimit-reset-requests": "12ms",
    "x-ratelimit-reset-tokens": "9ms",
}


@pytest.fixture
def log(tmp_path: Path) -> Iterator[ResponseLog]:
    opened = ResponseLog(tmp_path / "log.sqlite")
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("12ms", 0.012), ("1s", 1), ("6m0s", 360), ("1h2m3.5s", 3723.5), ("30", 30), ("0s", 0)]
    + [(wrong, None) for wrong in ("", "soon", "5x", "-3", "nan", "1s later")],
)
def test_a_duration_in_a_header(text: str, seconds: float | None) -> None:
    assert parse_duration_s(text) == seconds


def test_what_the_headers_state() -> None:
    assert read_server_limits(OPENAI) == ServerLimits(5000, 4999, 0.012, 160_000)
    reset = (datetime.now(UTC) + timedelta(seconds=40)).isoformat(timespec="seconds")
    names = {"limit": "50", "remaining": "7", "reset": reset}
    anthropic = {f"anthropic-ratelimit-requests-{name}": text for name, text in names.items()}
    limits = read_server_limits(anthropic)
    assert limits is not None and limits[:2] == (50, 7) and limits.max_tokens is None
    assert limits.reset_s is not None and 38 < limits.reset_s <= 40
    assert read_server_limits({"retry-after": "3"}) is None
    assert read_server_limits({"x-ratelimit-limit-requests": "many"}) is None


@pytest.mark.parametrize("provider", ["openai", "anthropic", "openai_compat"])
async def test_each_package_gives_the_headers_of_replies_and_of_errors(
    provider: str, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLES[provider], SECRET)
    monkeypatch.setenv("COTLAB_SEND_KEY_TO", "127.0.0.1")
    model = opened_at(provider, server.root)
    refused = OPENAI | {"x-ratelimit-remaining-requests": "0"}
    server.script({"headers": OPENAI}, {"status": 429, "headers": refused}, then={})
    stated = []
    for _ in range(3):
        with suppress(RateLimited):
            await model.send(ask(model))
        stated.append(model.server_limits and model.server_limits.requests_left)
    assert stated == [4999, 0, None]
    await model.close()


class Stating(Server):
    """A server that states a limit with each reply, and notes when it was asked."""

    def __init__(self, stated: ServerLimits) -> None:
        super().__init__()
        self.stated, self.times = stated, list[float]()
        self.server_limits: ServerLimits | None = None

    async def send(self, request: Request) -> Response:
        self.times.append(time.monotonic())
        response = await super().send(request)
        self.server_limits = self.stated
        return response


def auto() -> Limits:
    return replace(LIMITS, requests_per_minute="auto", concurrency=4)


async def test_a_run_goes_as_fast_as_the_server_allows(log: ResponseLog) -> None:
    server = Stating(ServerLimits(3000, 2999, 0.02, 10**6))
    dispatcher = over(log, server, auto())
    began = time.monotonic()
    await ask_all(dispatcher, *map(str, range(150)))  # the default takes more than two minutes
    assert time.monotonic() - began < 100 and dispatcher.progress.per_minute == 3000


async def test_no_more_is_sent_than_the_server_has_left(log: ResponseLog) -> None:
    server = Stating(ServerLimits(10, 0, 2.0))  # one more in 0.2 s
    await ask_all(over(log, server, auto()), *map(str, range(6)))
    later = server.times[5:]  # the first four were sent before anything was stated
    assert all(b - a >= 0.19 for a, b in pairwise([server.times[4], *later]))


@pytest.mark.parametrize(
    ("requests_per_minute", "base_url", "expected"),
    [
        ("default", None, 60),
        ("default", "https://models.example.org/v1", 60),
        ("default", "http://127.0.0.1:8000/v1", None),
        ("default", "http://192.168.1.7/v1", None),
        ("auto", None, 60),
        ("auto", "http://localhost:1/v1", None),
        (7, "http://localhost:1/v1", 7),
        (None, None, None),
    ],
)
def test_the_default_is_60_to_a_vendor_and_no_limit_nearby(
    requests_per_minute: Any, base_url: str | None, expected: int | None
) -> None:
    limits = Limits(requests_per_minute=requests_per_minute)
    assert limits.sends_per_minute(replace(REF, base_url=base_url)) == expected
    assert limits.sends_per_minute(replace(REF, provider="echo", base_url=base_url)) is None
