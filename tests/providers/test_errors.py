"""Every way in which a vendor can fail ends in one of the house's errors, through the real SDKs;
our own faults do not."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace
from typing import Any

import aiohttp
import anthropic
import httpx2
import openai
import pytest
import pytest_asyncio
from google.genai import errors as genai_errors
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cotlab.core.errors import (
    BadReply,
    NotFound,
    ProviderError,
    RateLimited,
    TimedOut,
    Unauthorised,
    Unavailable,
    Unsupported,
)
from cotlab.core.provider import Batching, Listing, Provider
from cotlab.core.registry import PROVIDERS
from cotlab.core.requests import Complete, Message, Response
from cotlab.core.types import ModelRef
from cotlab.providers import anthropic as our_anthropic
from cotlab.providers import google as our_google
from cotlab.providers import openai_compat as our_openai
from cotlab.providers import wire
from cotlab.providers.keys import KEY_VARIABLES
from tests.support.loopback import Loopback, serving

SECRET = "sk-very-secret-0123456789"
MODELS = {
    "openai": "gpt-4o-mini",
    "anthropic": "claude-haiku-4-5",
    "google": "gemini-2.5-flash",
    "openai_compat": "small",
}
LEAVES = (RateLimited, TimedOut, Unavailable, Unauthorised, NotFound, Unsupported, BadReply)
Mapper = Callable[[BaseException], ProviderError]
on_one_loop = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with serving() as running:
        yield running


@pytest_asyncio.fixture(params=list(MODELS), scope="module", loop_scope="module")
async def opened(request: pytest.FixtureRequest, server: Loopback) -> AsyncIterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY_VARIABLES[request.param], SECRET)
        patch.setenv("COTLAB_SEND_KEY_TO", "127.0.0.1")
        model = opened_at(request.param, server.root)
    yield model
    await model.close()


@pytest.fixture
def model(opened: Any, server: Loopback, monkeypatch: pytest.MonkeyPatch) -> Any:
    """One of each vendor's models, opened once: opening takes longer than a call."""
    monkeypatch.setenv(KEY_VARIABLES[opened.ref.provider], SECRET)
    monkeypatch.setenv("COTLAB_SEND_KEY_TO", "127.0.0.1")
    server.script()
    return opened


def opened_at(provider: str, root: str) -> Any:
    tail = "" if provider in ("anthropic", "google") else "/v1"
    return PROVIDERS[provider](ModelRef(provider, MODELS[provider], base_url=root + tail))


def ask(model: Provider, sample: int = 0) -> Complete:
    return Complete(model.ref, (Message("user", "How many?"),), max_tokens=17, sample=sample)


async def failure(model: Provider) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await model.send(ask(model))
    assert type(caught.value) in LEAVES and str(caught.value)
    assert SECRET not in str(caught.value) and SECRET not in repr(caught.value)
    return caught.value


# Through the SDKs

FAILURES: list[tuple[dict[str, Any], type[ProviderError]]] = [
    ({"status": 401}, Unauthorised),
    ({"status": 402}, Unauthorised),
    ({"status": 403}, Unauthorised),
    ({"status": 404}, NotFound),
    ({"status": 429}, RateLimited),
    ({"status": 400, "error": {"message": "context length exceeded"}}, Unsupported),
    ({"status": 413}, Unsupported),
    ({"status": 418}, Unsupported),
    ({"status": 422}, Unsupported),
    ({"status": 408}, Unavailable),
    ({"status": 409}, Unavailable),
    ({"status": 500}, Unavailable),
    ({"status": 503}, Unavailable),
    ({"status": 529}, Unavailable),
    ({"status": 502, "body": "<html>Bad gateway</html>", "type": "text/html"}, Unavailable),
    ({"status": 500, "body": "{", "type": "application/json"}, Unavailable),
    ({"status": 500, "body": ""}, Unavailable),
    ({"status": 500, "body": "[]"}, Unavailable),
    ({"status": 429, "body": '{"error": "slow down"}'}, RateLimited),
    ({"status": 403, "body": "null"}, Unauthorised),
    ({"status": 204, "body": ""}, Unavailable),
    ({"status": 302, "body": ""}, Unavailable),
    ({"cut": True}, Unavailable),
    ({"reset": True}, Unavailable),
    ({"malformed": True}, Unavailable),
    ({"body": ""}, Unavailable),
    ({"body": "{"}, Unavailable),
    ({"body": "[" * 100_000}, Unavailable),
    ({"body": "<html>hello</html>", "type": "text/html"}, Unavailable),
    ({"body": "[1]"}, BadReply),
    ({"body": "null"}, BadReply),
    ({"body": "{}"}, BadReply),
    ({"body": '"text"', "type": "text/plain"}, BadReply),
]


@on_one_loop
@pytest.mark.parametrize(("turn", "kind"), FAILURES, ids=lambda value: str(value)[:50])
async def test_each_failure_has_its_error(
    server: Loopback, model: Any, turn: dict[str, Any], kind: type[ProviderError]
) -> None:
    if (
        "status" in turn and "body" not in turn
    ):  # a server that repeats what it was sent must not bring the key into a message
        turn = {**turn, "error": {"message": f"not with {SECRET}", **turn.get("error", {})}}
    server.script(turn)
    assert type(await failure(model)) is kind
    assert server.count() == 1, "the SDK tried again by itself"


@on_one_loop
async def test_every_status_has_a_leaf(server: Loopback, model: Any) -> None:
    statuses = list(range(400, 600))
    server.script(*({"status": status} for status in statuses))
    kinds = {status: type(await failure(model)) for status in statuses}
    assert server.count() == len(statuses)
    assert {status for status in statuses if issubclass(kinds[status], Unauthorised)} == {
        401,
        402,
        403,
        404,
    }
    assert {status for status in statuses if kinds[status] is RateLimited} == {429}
    assert {status for status in statuses if kinds[status] is Unavailable} == {
        408,
        409,
        *range(500, 600),
    }


async def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in MODELS:
        model = opened_at(provider, "http://127.0.0.1:9")
        assert type(await failure(model)) is Unavailable
        with pytest.raises(Unavailable):
            await model.models()
        await model.close()


@on_one_loop
async def test_words_of_a_server_are_cut_and_stand_on_one_line(
    server: Loopback, model: Any
) -> None:
    server.script({"status": 400, "error": {"message": "no\n\x00 way " + "x" * 5000}})
    said = str(await failure(model))
    assert "no \x00 way" in said and "\n" not in said and len(said) < 400


@on_one_loop
@pytest.mark.parametrize(
    ("headers", "after_s"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "0.5"}, 0.5),
        ({"Retry-After": "0"}, 0.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "1500", "Retry-After": "9"}, 1.5),
        ({"retry-after-ms": "soon", "Retry-After": "9"}, 9.0),
    ]
    + [
        ({"Retry-After": wrong}, None)
        for wrong in ("", "soon", "-3", "nan", "inf", "Wed, 99 Oct 2026 07:28:00 GMT")
    ],
)
async def test_the_wait_that_a_server_asks_for(
    server: Loopback, model: Any, headers: dict[str, str], after_s: float | None
) -> None:
    server.script({"status": 429, "headers": headers})
    limited = await failure(model)
    assert isinstance(limited, RateLimited) and limited.after_s == after_s


@on_one_loop
async def test_a_wait_given_as_a_date(server: Loopback, model: Any) -> None:
    told = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    server.script({"status": 429, "headers": {"Retry-After": told}})
    limited = await failure(model)
    assert (
        isinstance(limited, RateLimited)
        and limited.after_s is not None
        and 3000 < limited.after_s <= 3600
    )


@on_one_loop
async def test_a_list_that_fails_is_told(server: Loopback, model: Any) -> None:
    assert isinstance(model, Listing) and isinstance(model, Provider)
    assert isinstance(model, Batching) == (model.ref.provider in ("openai", "anthropic"))
    server.script(models={"status": 401})
    with pytest.raises(Unauthorised):
        await model.models()
    server.script(models=[])
    assert await model.models() == []


# What is not to be mapped


@on_one_loop
async def test_an_outer_time_limit_passes(server: Loopback, model: Any) -> None:
    server.script(then={"latency_s": 30})
    with pytest.raises(TimeoutError) as caught:
        async with asyncio.timeout(0.05):
            await model.send(ask(model))
    assert not isinstance(caught.value, ProviderError)


@on_one_loop
async def test_a_cancelled_call_is_cancelled(server: Loopback, model: Any) -> None:
    server.script(then={"latency_s": 30})
    task = asyncio.create_task(model.send(ask(model)))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    server.script()
    assert (await model.send(ask(model))).text == "How many?", "the next call works"


@on_one_loop
async def test_a_fault_of_ours_is_not_swallowed(
    server: Loopback, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AttributeError):
        await model.send(replace(ask(model), messages=(Message("user", 7),)))  # type: ignore[arg-type]

    def broken(*args: Any, **said: Any) -> Response:
        raise TypeError("ours")

    monkeypatch.setattr(wire, "build_response", broken)
    with pytest.raises(TypeError, match="ours"):
        await model.send(ask(model))


@on_one_loop
async def test_what_no_file_takes_is_mended_on_the_way_out_and_in(
    server: Loopback, model: Any
) -> None:
    server.script({"text": "a\ud800b", "reasoning": "\udfff"})
    reply = await model.send(Complete(model.ref, (Message("user", "x\udc00y é"),), system="\ud800"))
    assert (reply.text, reply.reasoning) == ("a?b", "?")
    assert "x?y é" in json.dumps(server.seen()[-1]["body"], ensure_ascii=False)


# Totality

REQUEST = httpx2.Request("POST", "http://127.0.0.1/v1")


def kinds_below(root: type[BaseException]) -> list[type[BaseException]]:
    """A class and all below it, but for those that other packages have put there."""
    found, package = {root: None}, root.__module__.split(".")[0]
    for kind in root.__subclasses__():
        if kind.__module__.split(".")[0] == package:
            found |= dict.fromkeys(kinds_below(kind))
    return list(found)


def made(kind: type[BaseException], status: int) -> BaseException | None:
    """An error of this kind in the way that the SDK makes it; None where it cannot be made from
    outside."""
    response = httpx2.Response(status, request=REQUEST, json={"error": {"message": "said"}})
    body = {"error": {"message": "said", "type": "x", "code": "y"}}
    for words in (
        {"message": "said", "response": response, "body": body},
        {"response": response, "body": body},
        {"request": REQUEST},
        {"message": "said", "request": REQUEST},
        {"message": "said", "request": REQUEST, "body": body},
        {"message": "said", "request": REQUEST, "response": response},
        {"message": "said"},
        {"code": status, "response_json": body},
        {"completion": SimpleNamespace(usage=None)},
        {"message": "said", "unsent_messages": []},
        {"symbol": "x"},
        {},
    ):
        try:
            return kind(**words)
        except TypeError:
            continue
    try:
        return kind("said")
    except TypeError:
        return None


SDKS: list[tuple[Mapper, type[BaseException], int]] = [
    (our_openai.map_openai_error, openai.OpenAIError, 20),
    (our_anthropic.map_anthropic_error, anthropic.AnthropicError, 25),
    (our_google.map_google_error, genai_errors.APIError, 3),
    *(
        (mapper, httpx2.HTTPError, 20)
        for mapper in (
            our_openai.map_openai_error,
            our_anthropic.map_anthropic_error,
            our_google.map_google_error,
        )
    ),
]


@pytest.mark.parametrize(
    ("mapper", "root", "least"), SDKS, ids=lambda value: getattr(value, "__module__", value)
)
def test_every_error_of_an_sdk_has_a_leaf(
    mapper: Mapper, root: type[BaseException], least: int
) -> None:
    kinds = kinds_below(root)
    seen = 0
    for kind in kinds:
        for status in (400, 401, 403, 404, 408, 409, 413, 418, 422, 429, 500, 502, 503, 504, 529):
            error = made(kind, status)
            if error is not None:
                assert type(mapper(error)) in LEAVES and str(mapper(error)), kind
        seen += error is not None
    assert seen >= least and seen >= 0.9 * len(kinds), "most kinds can be made"


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

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    finally:
        listening.close()


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
