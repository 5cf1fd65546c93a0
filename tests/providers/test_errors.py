"""Every way in which a vendor can fail ends in one of the house's errors, through the real SDKs;
our own faults do not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
import pytest_asyncio

from cotlab.core.errors import (
    BadReply,
    NotFound,
    ProviderError,
    RateLimited,
    Unauthorised,
    Unavailable,
    Unsupported,
)
from cotlab.core.provider import Provider, SupportsBatches, SupportsModelList
from cotlab.core.requests import Complete, Message, Response
from cotlab.providers import wire
from cotlab.providers.keys import KEY_VARIABLES
from tests.support.loopback import Loopback
from tests.support.vendors import LEAVES, MODELS, SECRET, ask, opened_at

on_one_loop = pytest.mark.asyncio(loop_scope="module")


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
    failures = {status: await failure(model) for status in statuses}
    kinds = {status: type(error) for status, error in failures.items()}
    # the server's own time-out, and what a gateway says where it lost the reply of a server
    billable = {status for status, error in failures.items() if error.may_be_billed}
    assert billable == {408, 502, 504, 520, 524}
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
    assert "no way" in said and said.isprintable() and len(said) < 400


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
    for status, error_type in ((429, RateLimited), (503, Unavailable), (529, Unavailable)):
        server.script({"status": status, "headers": headers})
        limited = await failure(model)
        assert isinstance(limited, error_type) and limited.retry_wait_s == after_s


@on_one_loop
async def test_a_wait_given_as_a_date(server: Loopback, model: Any) -> None:
    told = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    server.script({"status": 429, "headers": {"Retry-After": told}})
    limited = await failure(model)
    assert (
        isinstance(limited, RateLimited)
        and limited.retry_wait_s is not None
        and 3000 < limited.retry_wait_s <= 3600
    )


@on_one_loop
async def test_a_list_that_fails_is_told(server: Loopback, model: Any) -> None:
    assert isinstance(model, SupportsModelList) and isinstance(model, Provider)
    assert isinstance(model, SupportsBatches) == (model.ref.provider in ("openai", "anthropic"))
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
