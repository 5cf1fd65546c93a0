"""Whatever an SDK raises or a server sends ends in a reply or one of our errors."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace

import aiohttp
import httpx2
import openai
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cotlab.core.errors import (
    ProviderError,
    TimedOut,
    Unavailable,
)
from cotlab.core.requests import Response
from cotlab.providers import anthropic as our_anthropic
from cotlab.providers import google as our_google
from cotlab.providers import openai_compat as our_openai
from tests.support.loopback import raw_server
from tests.support.vendors import LEAVES, MODELS, ask, opened_at

Mapper = Callable[[BaseException], ProviderError]


REQUEST = httpx2.Request("POST", "http://127.0.0.1/v1")


@pytest.mark.parametrize(
    "mapper",
    [our_openai.map_openai_error, our_anthropic.map_anthropic_error, our_google.map_google_error],
)
def test_every_error_of_a_connection_has_a_leaf(mapper: Mapper) -> None:
    gone = (
        ConnectionResetError("gone"),
        aiohttp.ServerDisconnectedError(),
        aiohttp.ClientPayloadError("cut"),
        aiohttp.ClientError("x"),
        httpx2.InvalidURL("x"),
        httpx2.StreamClosed(),
    )
    assert {type(mapper(error)) for error in gone} == {Unavailable}
    assert {
        type(mapper(error))
        for error in (aiohttp.ServerTimeoutError("late"), httpx2.ReadTimeout("late"))
    } == {TimedOut}


def test_a_certificate_that_is_not_trusted_is_told_as_such() -> None:
    """aiohttp's error for it is a ValueError too, as is JSON that cannot be read."""
    place = SimpleNamespace(host="h", port=1, is_ssl=True)
    error = aiohttp.ClientConnectorCertificateError(place, ValueError("self-signed"))  # type: ignore[arg-type]
    assert "cannot be reached" in str(our_google.map_google_error(error)) and "self-signed" in str(
        our_google.map_google_error(error)
    )


def test_a_refused_connection_is_no_time_out() -> None:
    """The openai SDK's transport calls every lost connection a time-out of connecting."""
    try:
        try:
            raise aiohttp.ClientConnectionError("refused")
        except aiohttp.ClientConnectionError as low:
            raise httpx2.ConnectTimeout("refused") from low
    except httpx2.ConnectTimeout as middle:
        high = openai.APITimeoutError(REQUEST)
        high.__cause__ = middle
    assert type(our_openai.map_openai_error(high)) is Unavailable


BODY = json.dumps(
    {
        "choices": [{"message": {"content": "x"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1},
        "content": [{"type": "text", "text": "x"}],
        "stop_reason": "end_turn",
        "candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"}],
    }
).encode()
HEADERS = st.sampled_from(
    [
        b"Content-Length: %d\r\n" % len(BODY),
        b"Content-Length: 5\r\n",
        b"Content-Length: 99999\r\n",
        b"Content-Length: -1\r\n",
        b"Content-Length: x\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Content-Encoding: gzip\r\n",
        b"Content-Encoding: br\r\n",
        b"Content-Encoding: deflate\r\n",
        b"Content-Type: text/html; charset=utf-16\r\n",
        b"Content-Type: application/json\r\n",
        b"Content-Type: x\r\n",
        b"Location: http://127.0.0.1:9/\r\n",
        b"Set-Cookie: a\r\n",
        b"no colon\r\n",
        b"\xff: \xff\r\n",
        b"X: " + b"y" * 70_000 + b"\r\n",
        b"Connection: close\r\n",
        b"Retry-After: \xff\r\n",
    ]
)
STATUS = st.sampled_from(
    [b"HTTP/1.1 200 OK\r\n"] * 8
    + [
        b"HTTP/1.1 500 \r\n",
        b"HTTP/1.1 200\r\n",
        b"HTTP/1.0 200 OK\r\n",
        b"HTTP/9 200 OK\r\n",
        b"HTTP/1.1 999 \r\n",
        b"\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\n",
        b"HTTP/1.1 204 \r\n",
        b"SSH-2.0\r\n",
        b"",
        b"HTTP/1.1 307 \r\nLocation: /v1/x\r\n",
        b"HTTP/1.1 400 Bad\r\n",
    ]
)
BODIES = st.sampled_from(
    [BODY] * 4
    + [
        BODY[:20],
        b"",
        gzip.compress(BODY),
        b"5\r\nhello\r\n0\r\n\r\n",
        b"zz\r\n",
        b"\xff\xfe\x00",
        BODY + BODY,
    ]
) | st.binary(max_size=40)


@asynccontextmanager
async def saying(replies: list[bytes]) -> AsyncIterator[str]:
    """A server that answers each connection's first request with the last of ``replies``, whatever
    it is, and hangs up."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            size = next(
                (
                    int(line.split(b":")[1])
                    for line in head.split(b"\r\n")
                    if line.startswith(b"content-length")
                ),
                0,
            )
            await reader.readexactly(size)
            writer.write(replies[-1])
            await writer.drain()
            writer.close()
            await writer.wait_closed()
        except (OSError, asyncio.IncompleteReadError):
            writer.close()

    async with raw_server(answer) as root:
        yield root


@pytest.mark.soak
@pytest.mark.parametrize("provider", list(MODELS))
@given(st.lists(st.tuples(STATUS, st.lists(HEADERS, max_size=3), BODIES), min_size=8, max_size=8))
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
async def test_whatever_a_server_says_is_a_reply_or_one_of_our_errors(
    provider: str, said: list[tuple[bytes, list[bytes], bytes]]
) -> None:
    replies: list[bytes] = []
    async with saying(replies) as root:
        model = opened_at(provider, root)
        try:
            for status, headers, body in said:
                replies.append(status + b"".join(headers) + b"\r\n" + body)
                try:
                    reply = await model.send(ask(model))
                except ProviderError as error:
                    assert type(error) in LEAVES
                else:
                    assert isinstance(reply, Response)
        finally:
            await model.close()
