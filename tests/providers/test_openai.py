"""OpenAI through its SDK: what each family is sent, and a batch from file to results."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from cotlab.core.errors import (
    BadReply,
    ConfigError,
    RateLimited,
    Unauthorised,
    Unavailable,
    Unsupported,
)
from cotlab.core.requests import Complete, Message, Response
from cotlab.core.types import ModelRef
from cotlab.providers.capabilities import THINKING_TOKENS, family_of
from cotlab.providers.openai import OpenAI, _batch_error
from cotlab.providers.openai_compat import completion_parameters
from tests.support.loopback import Loopback

ASKED = Complete(
    ModelRef("openai", "gpt-4o-mini"),
    (Message("user", "How many?"),),
    system="be brief",
    max_tokens=17,
    temperature=0.5,
    seed=7,
    sample=3,
    stop=("\n",),
    top_logprobs=5,
)


@pytest.fixture
async def model(server: Loopback) -> AsyncIterator[OpenAI]:
    server.script()
    model = OpenAI(ModelRef("openai", "gpt-4o-mini", base_url=server.base_url))
    yield model
    await model.close()


def several(n: int, **more: Any) -> list[Complete]:
    return [
        replace(ASKED, messages=(Message("user", f"Number {k}?\u2028"),), **more) for k in range(n)
    ]


async def ended(model: OpenAI, batch: str) -> None:
    while not (await model.poll(batch)).has_ended:  # noqa: ASYNC110 - what ends it is at the other end
        await asyncio.sleep(0.02)


async def test_a_chat_model_takes_everything(server: Loopback, model: OpenAI) -> None:
    reply = await model.send(ASKED)
    (call,) = server.seen()
    assert call["path"] == "/v1/chat/completions"
    assert call["body"] == {
        "model": "gpt-4o-mini",
        "max_completion_tokens": 17,
        "temperature": 0.5,
        "seed": 10,
        "stop": ["\n"],
        "logprobs": True,
        "top_logprobs": 5,
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "How many?"},
        ],
    }
    assert reply.sent == {
        **{name: value for name, value in call["body"].items() if name != "messages"},
        "given": "user",
    }


async def test_a_reasoning_model_is_not_sent_what_it_rejects(server: Loopback) -> None:
    server.script({"reasoning": "hm", "usage": {"in": 3, "out": 40, "reasoning": 38}})
    model = OpenAI(ModelRef("openai", "gpt-5-mini", base_url=server.base_url))
    reply = await model.send(replace(ASKED, model=model.ref))
    (call,) = server.seen()
    assert set(call["body"]) == {"model", "messages", "max_completion_tokens", "seed"}
    assert call["body"]["max_completion_tokens"] == 17 + THINKING_TOKENS
    assert reply.sent["not_sent"] == ["stop", "temperature", "top_logprobs"]
    assert (reply.usage.tokens_out, reply.usage.reasoning) == (40, 38)
    await model.close()


def test_reasoning_is_turned_off_where_the_rest_depends_on_it() -> None:
    row = family_of("openai", "gpt-5.4")
    asked = completion_parameters(
        replace(ASKED, model=ModelRef("openai", "gpt-5.4")), row, OpenAI.max_tokens_name
    )
    assert (
        asked.body["reasoning_effort"],
        asked.body["temperature"],
        asked.body["top_logprobs"],
    ) == ("none", 0.5, 5)
    assert asked.body["max_completion_tokens"] == 17 and asked.sent_params["not_sent"] == ["stop"]
    assert asked.sent_params["reasoning_effort"] == "none"


def test_its_models_do_not_go_on_from_their_own_turn(server: Loopback) -> None:
    with pytest.raises(ConfigError, match="--given prefix"):
        OpenAI(ModelRef("openai", "gpt-4o-mini", base_url=server.base_url, form="prefill"))


async def test_a_temperature_that_is_too_high_is_not_sent(server: Loopback, model: OpenAI) -> None:
    with pytest.raises(Unsupported, match="up to 2"):
        await model.send(replace(ASKED, temperature=2.1))
    with pytest.raises(Unsupported, match="own turn"):
        await model.send(replace(ASKED, prefix="So "))
    assert server.count() == 0


async def test_the_models_of_the_vendor(model: OpenAI) -> None:
    assert await model.models() == ["gpt-4o-mini", "gpt-5-mini", "o4-mini"]


async def test_a_batch_from_end_to_end(server: Loopback, model: OpenAI) -> None:
    server.script(
        {"refusal": True},
        {"status": 400, "error": {"code": "content_filter"}},
        {"status": 400},
        {"text": None},
        then={"text": "a\u2028b"},
        batch_s=0.2,
    )
    requests = several(8)
    batch = await model.submit("run-1", requests)
    long_ago = "2020-01-01T00:00:00+00:00"
    assert (
        await model.find("run-1", (), long_ago) == batch
        and await model.find("run-2", (), long_ago) is None
    )
    assert (await model.poll(batch)).has_ended is False
    await ended(model, batch)
    assert await model.poll(batch) == (True, 8, 8)
    results = await model.results(batch, requests)
    assert set(results) == {request.key for request in requests}
    told = [results[request.key] for request in requests]
    assert [type(one) for one in told] == [
        Response,
        Response,
        Unsupported,
        BadReply,
        *[Response] * 4,
    ]
    assert [one.refused for one in told[:2] if isinstance(one, Response)] == [True, True]
    last = told[-1]
    assert isinstance(last, Response) and last.text == "a\u2028b" and last.key == requests[-1].key
    calls = {call["path"]: call["body"] for call in server.seen() if call["method"] == "POST"}
    assert (
        calls["/v1/batches"]["metadata"] == {"cotlab": "run-1"}
        and calls["/v1/batches"]["completion_window"] == "24h"
    )
    assert calls["/v1/files"]["purpose"] == "batch"
    lines = [json.loads(line) for line in calls["/v1/files"]["file"].splitlines()]
    single = completion_parameters(
        requests[0], family_of("openai", "gpt-4o-mini"), OpenAI.max_tokens_name
    )
    assert (
        lines[0]["custom_id"] == requests[0].key
        and lines[0]["body"] == single.body
        and last.sent == single.sent_params
    )


async def test_what_fails_in_a_batch_may_be_tried_again(server: Loopback, model: OpenAI) -> None:
    requests = several(40)
    server.script(then={"text": "x"}, batch_s=0.05, batch_errors=0.4, batch_expire=0.4)
    batch = await model.submit("run-1", requests)
    await ended(model, batch)
    results = await model.results(batch, requests)
    assert {type(one) for one in results.values()} == {Response, Unavailable} and len(results) == 40
    assert {request.key for request in requests[:5]} == set(
        await model.results(batch, requests[:5])
    )


async def test_a_batch_that_is_refused_whole(server: Loopback, model: OpenAI) -> None:
    requests = several(2)
    server.script(batch_s=0.05)
    batch = await model.submit(
        "run-1", [requests[0], replace(requests[1], model=ModelRef("openai", "gpt-5-mini"))]
    )
    await ended(model, batch)
    results = await model.results(batch, requests)
    assert {type(one) for one in results.values()} == {Unsupported} and len(results) == 2
    for call in (model.poll("batch_9"), model.results("batch_9", requests)):
        with pytest.raises(Unauthorised):
            await call
    with pytest.raises(Unsupported):
        await model.submit("run-2", [replace(requests[0], temperature=2.5)])


@pytest.mark.parametrize(
    ("first", "kind"),
    [
        ({"code": "token_limit_exceeded", "message": "Enqueued token limit reached"}, RateLimited),
        ({"code": "billing_hard_limit_reached", "message": "x"}, Unauthorised),
        ({"code": "invalid_url"}, Unsupported),
    ],
)
def test_why_a_batch_was_refused_whole(first: dict[str, str], kind: type[Exception]) -> None:
    assert type(_batch_error({"errors": {"data": [first]}}, "openai")) is kind
    for junk in ({}, {"errors": None}, {"errors": {"data": [None]}}, {"errors": {"data": "x"}}):
        assert type(_batch_error(junk, "openai")) is Unsupported


async def test_a_batch_is_found_behind_others(server: Loopback, model: OpenAI) -> None:
    server.script(batch_s=0.01)
    first = await model.submit("run-0", several(1))
    for k in range(1, 103):
        await model.submit(f"run-{k}", several(1))
    assert await model.find("run-0", (), "2020-01-01T00:00:00+00:00") == first
    assert (
        sum(call["path"] == "/v1/batches" and call["method"] == "GET" for call in server.seen())
        == 2
    )
