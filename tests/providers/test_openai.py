"""OpenAI through its SDK: what each family is sent, and a batch from file to results."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from cotlab.core.errors import (
    RateLimited,
    Unauthorised,
    Unsupported,
)
from cotlab.core.requests import Complete, Message
from cotlab.core.types import ModelRef
from cotlab.providers.capabilities import THINKING_TOKENS, family_of
from cotlab.providers.openai import OpenAI
from cotlab.providers.openai_compat import completion_parameters
from tests.support.loopback import Loopback, raw_server

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


async def test_the_models_of_the_vendor(model: OpenAI) -> None:
    assert await model.models() == ["gpt-4o-mini", "gpt-5-mini", "o4-mini"]


async def test_a_batch_is_a_file_of_requests(server: Loopback, model: OpenAI) -> None:
    requests = several(2)
    await model.submit("run-1", requests)
    calls = {call["path"]: call["body"] for call in server.seen() if call["method"] == "POST"}
    assert calls["/v1/batches"]["metadata"] == {"cotlab": "run-1"}
    assert calls["/v1/batches"]["completion_window"] == "24h"
    assert calls["/v1/files"]["purpose"] == "batch"
    lines = [json.loads(line) for line in calls["/v1/files"]["file"].splitlines()]
    single = completion_parameters(
        requests[0], family_of("openai", "gpt-4o-mini"), OpenAI.max_tokens_name
    )
    assert (lines[0]["custom_id"], lines[0]["body"]) == (requests[0].key, single.body)


async def test_a_batch_that_is_refused_whole(server: Loopback, model: OpenAI) -> None:
    requests = several(2)
    server.script(batch_s=0.05)
    batch = await model.submit(
        "run-1", [requests[0], replace(requests[1], model=ModelRef("openai", "gpt-5-mini"))]
    )
    await ended(model, batch)
    results = await model.results(batch, requests)
    assert {type(one) for one in results.values()} == {Unsupported} and len(results) == 2
    with pytest.raises(Unsupported):
        await model.submit("run-2", [replace(requests[0], temperature=2.5)])


@pytest.mark.parametrize(
    ("errors", "kind"),
    [
        ([{"code": "token_limit_exceeded", "message": "Enqueued token limit"}], RateLimited),
        ([{"code": "billing_hard_limit_reached", "message": "x"}], Unauthorised),
        ([{"code": "invalid_url"}], Unsupported),
        *((junk, Unsupported) for junk in ([None], "x", None)),
    ],
)
async def test_why_a_batch_was_refused_whole(errors: Any, kind: type[Exception]) -> None:
    body = json.dumps({"id": "b1", "status": "failed", "errors": {"data": errors}}).encode()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        writer.close()

    async with raw_server(answer) as root:
        model = OpenAI(ModelRef("openai", "gpt-4o-mini", base_url=f"{root}/v1"))
        results = await model.results("b1", several(1))
        await model.close()
    assert [type(one) for one in results.values()] == [kind]


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
