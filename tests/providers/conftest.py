"""The server that stands in for the vendors, one for each module, and its clients."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.loopback import Loopback, serving
from tests.support.loopback.clients import Anthropic, OpenAI


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with serving() as running:
        yield running


@pytest.fixture
async def chat(server: Loopback) -> AsyncIterator[OpenAI]:
    speaker = OpenAI(server)
    yield speaker
    await speaker.close()


@pytest.fixture
async def claude(server: Loopback) -> AsyncIterator[Anthropic]:
    speaker = Anthropic(server)
    yield speaker
    await speaker.close()
