"""Anthropic through its own SDK: what each family is sent, what its replies say, and a batch from
end to end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cotlab.core.errors import (
    BadReply,
    ConfigError,
    ProviderError,
    RateLimited,
    Unauthorised,
    Unavailable,
    Unsupported,
)
from cotlab.core.requests import Complete, Message, Response, Usage
from cotlab.core.types import ModelRef
from cotlab.providers.anthropic import Anthropic, message_parameters
from cotlab.providers.capabilities import THINKING_TOKENS, family_of
from tests.support.loopback import Loopback

ASKED = Complete(
    ModelRef("anthropic", "claude-haiku-4-5"),
    (Message("user", "first"), Message("assistant", "second"), Message("user", "third")),
    system="be brief",
    max_tokens=17,
    temperature=0.5,
    seed=7,
    sample=3,
    stop=("\n", "END"),
    top_logprobs=5,
)


@pytest.fixture
async def model(server: Loopback) -> AsyncIterator[Anthropic]:
    server.script()
    model = Anthropic(ModelRef("anthropic", "claude-haiku-4-5", base_url=server.root))
    yield model
    await model.close()


def several(n: int, **more: Any) -> list[Complete]:
    return [replace(ASKED, messages=(Message("user", f"Number {k}?"),), **more) for k in range(n)]


async def ended(model: Anthropic, batch: str) -> None:
    while not (await model.poll(batch)).has_ended:  # noqa: ASYNC110 - what ends it is at the other end
        await asyncio.sleep(0.02)


async def test_everything_it_takes_is_sent_and_everything_said_is_read(
    server: Loopback, model: Anthropic
) -> None:
    server.script(
        {
            "text": "It is 4.",
            "reasoning": "2 + 2",
            "usage": {"in": 11, "out": 5, "cached": 8, "reasoning": 2},
        }
    )
    reply = await model.send(ASKED)
    (call,) = server.seen()
    assert call["path"] == "/v1/messages"
    assert call["body"] == {
        "model": "claude-haiku-4-5",
        "max_tokens": 17,
        "temperature": 0.5,
        "stop_sequences": ["END"],
        "system": "be brief",
        "messages": [
            {"role": "user", "content": "first"},
            {"role": "assistant", "content": "second"},
            {"role": "user", "content": "third"},
        ],
    }
    assert reply.sent == {
        "model": "claude-haiku-4-5",
        "max_tokens": 17,
        "temperature": 0.5,
        "stop_sequences": ["END"],
        "given": "user",
        "not_sent": ["seed", "stop", "top_logprobs"],
    }
    assert (reply.key, reply.text, reply.reasoning, reply.finish) == (
        ASKED.key,
        "It is 4.",
        "2 + 2",
        "stop",
    )
    assert reply.usage == Usage(11, 5, cached=8, reasoning=2)
    assert (reply.refused, reply.model, reply.tokens) == (False, "claude-haiku-4-5", ())


@pytest.mark.parametrize(
    ("name", "room"), [("claude-opus-4-7", 0), ("claude-opus-5", THINKING_TOKENS)]
)
async def test_a_newer_model_is_not_sent_what_it_rejects(
    server: Loopback, name: str, room: int
) -> None:
    server.script()
    model = Anthropic(ModelRef("anthropic", name, base_url=server.root))
    reply = await model.send(replace(ASKED, model=model.ref))
    (call,) = server.seen()
    assert "temperature" not in call["body"] and call["body"]["max_tokens"] == 17 + room
    assert reply.sent["not_sent"] == ["seed", "stop", "temperature", "top_logprobs"]
    await model.close()


async def test_the_start_of_its_own_turn_ends_without_white_space(server: Loopback) -> None:
    server.script()
    model = Anthropic(
        ModelRef("anthropic", "claude-haiku-4-5", base_url=server.root, form="prefill")
    )
    assert model.ref.form == "prefill"
    reply = await model.send(replace(ASKED, prefix="So the answer is \n"))
    assert server.seen()[0]["body"]["messages"][-1] == {
        "role": "assistant",
        "content": "So the answer is",
    }
    assert reply.sent["given"] == "prefix" and reply.text == " 7."
    assert "answer" not in json.dumps(reply.sent)
    reply = await model.send(replace(ASKED, prefix=" \n"))
    assert (
        server.seen()[1]["body"]["messages"][-1]["role"] == "user" and reply.sent["given"] == "user"
    )
    await model.close()


@pytest.mark.parametrize("name", ["claude-opus-4-6", "claude-opus-4-7", "claude-sonnet-5"])
async def test_a_newer_model_has_no_start_of_its_own_turn(server: Loopback, name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name}.*--given prefix"):
        Anthropic(ModelRef("anthropic", name, base_url=server.root, form="prefill"))


@pytest.mark.parametrize(
    ("turn", "text"),
    [
        ({"refusal": True, "text": None}, None),
        ({"refusal": "no", "text": "I wo"}, "I wo"),
        ({"status": 400, "error": {"message": "Output blocked by content filtering policy"}}, None),
    ],
)
async def test_a_refusal_is_data(
    server: Loopback, model: Anthropic, turn: dict[str, Any], text: str | None
) -> None:
    server.script(turn)
    reply = await model.send(ASKED)
    assert (reply.refused, reply.text, reply.finish) == (True, text, "content_filter")


@pytest.mark.parametrize(
    ("told", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "other"),
        ("pause_turn", "other"),
        ("new", "other"),
    ],
)
async def test_the_words_for_an_end(
    server: Loopback, model: Anthropic, told: str, finish: str
) -> None:
    server.script({"finish": told, "text": None})
    reply = await model.send(ASKED)
    assert (reply.finish, reply.text, reply.refused) == (finish, "", False)


MONEY = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."
LIMITS: list[tuple[dict[str, Any], type[ProviderError]]] = [
    ({"status": 400, "error": {"message": MONEY}}, Unauthorised),
    (
        {"status": 400, "error": {"message": "You have reached your specified API usage limits."}},
        Unauthorised,
    ),
    ({"status": 402, "error": {"type": "billing_error"}}, Unauthorised),
    (
        {"status": 429, "error": {"details": {"error_code": "enforced_spend_limit_reached"}}},
        Unauthorised,
    ),
    (
        {"status": 429, "error": {"details": {"error_code": "contract_spend_limit_reached"}}},
        Unauthorised,
    ),
    ({"status": 429, "error": {"details": {"error_code": "ramp_limit_exceeded"}}}, RateLimited),
    ({"status": 400, "error": {"details": {"error_code": "organization_on_hold"}}}, Unauthorised),
]


@pytest.mark.parametrize(("turn", "kind"), LIMITS, ids=lambda value: str(value)[:70])
async def test_a_used_up_account_stops_the_run(
    server: Loopback, model: Anthropic, turn: dict[str, Any], kind: type[ProviderError]
) -> None:
    server.script(turn)
    with pytest.raises(kind):
        await model.send(ASKED)


@pytest.mark.parametrize(
    ("told", "usage"),
    [
        (
            {
                "input_tokens": 5,
                "cache_read_input_tokens": 7,
                "cache_creation_input_tokens": 11,
                "output_tokens": 3,
            },
            Usage(23, 3, 7),
        ),
        ({"input_tokens": 5, "output_tokens": 3}, Usage(5, 3)),
        ({"cache_read_input_tokens": 7}, Usage(None, None, 7)),
        ({"input_tokens": "5", "output_tokens": -1, "output_tokens_details": []}, Usage()),
        (None, Usage()),
        ([], Usage()),
    ],
)
async def test_tokens_are_counted_whole_or_not_at_all(
    server: Loopback, model: Anthropic, told: Any, usage: Usage
) -> None:
    body = {
        "content": [{"type": "text", "text": "a"}, {"type": "new"}, {"type": "text", "text": "b"}],
        "usage": told,
    }
    server.script({"body": json.dumps(body)})
    reply = await model.send(ASKED)
    assert reply.usage == usage and reply.text == "ab"


async def test_the_models_of_the_vendor(server: Loopback, model: Anthropic) -> None:
    assert await model.models() == ["claude-haiku-4-5", "claude-opus-4-7"]
    assert server.seen()[0]["path"] == "/v1/models"


async def test_a_batch_from_end_to_end(server: Loopback, model: Anthropic) -> None:
    server.script(
        {"refusal": True},
        {"status": 400, "error": {"message": "Output blocked by content filtering policy"}},
        {"status": 400},
        {"status": 529},
        {"status": 400, "error": {"message": MONEY}},
        then={"text": "a\u2028b"},
        batch_s=0.2,
    )
    requests = several(8)
    batch = await model.submit("run-1", requests)
    keys, long_ago = [request.key for request in requests], "2020-01-01T00:00:00+00:00"
    assert await model.find("run-1", keys, long_ago) == batch  # the only one of that size
    assert await model.find("run-1", keys[1:], long_ago) is None
    assert await model.find("run-1", keys, "2999-01-01T00:00:00+00:00") is None
    assert (await model.poll(batch)).has_ended is False
    await ended(model, batch)
    assert await model.poll(batch) == (True, 8, 8)
    results = await model.results(batch, requests)
    told = [results[request.key] for request in requests]
    assert [type(one) for one in told] == [
        Response,
        Response,
        Unsupported,
        Unavailable,
        Unauthorised,
        *[Response] * 3,
    ]
    assert [one.refused for one in told[:2] if isinstance(one, Response)] == [True, True]
    (call,) = [call for call in server.seen() if call["method"] == "POST"]
    single = message_parameters(requests[0], family_of("anthropic", "claude-haiku-4-5"))
    assert call["body"]["requests"][0] == {"custom_id": requests[0].key, "params": single.body}
    last = told[-1]
    assert isinstance(last, Response) and (last.text, last.sent, last.key) == (
        "a\u2028b",
        single.sent_params,
        requests[-1].key,
    )


async def test_what_fails_in_a_batch_may_be_tried_again(server: Loopback, model: Anthropic) -> None:
    requests = several(40)
    server.script(then={"text": "x"}, batch_s=0.05, batch_errors=0.4, batch_expire=0.4)
    batch = await model.submit("run-1", requests)
    await ended(model, batch)
    results = await model.results(batch, requests)
    assert {type(one) for one in results.values()} == {Response, Unavailable} and len(results) == 40
    assert {request.key for request in requests[:5]} == set(
        await model.results(batch, requests[:5])
    )


async def test_a_batch_that_is_refused_whole(server: Loopback, model: Anthropic) -> None:
    with pytest.raises(Unsupported):
        await model.submit("run-1", [])
    for call in (model.poll("msgbatch_9"), model.results("msgbatch_9", several(1))):
        with pytest.raises(Unauthorised):
            await call
    server.script(batch_s=30)
    batch = await model.submit("run-1", several(1))
    with pytest.raises(BadReply, match="results_url"):
        await model.results(batch, several(1))


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats()
    | st.text(st.characters(), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2)
    ),
    max_leaves=4,
)
PLACES = st.sampled_from(
    [
        ("content",),
        ("content", 0),
        ("content", 0, "type"),
        ("content", 0, "text"),
        ("content", 1, "thinking"),
        ("stop_reason",),
        ("usage",),
        ("usage", "input_tokens"),
        ("usage", "cache_read_input_tokens"),
        ("usage", "output_tokens_details"),
        ("model",),
    ]
)


@given(PLACES, JUNK)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
async def test_no_reply_of_a_server_is_a_bug(
    server: Loopback, model: Anthropic, place: tuple[Any, ...], junk: Any
) -> None:
    body: Any = {
        "content": [{"type": "text", "text": "x"}, {"type": "thinking", "thinking": "hm"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1},
        "model": "m",
    }
    at = body
    for part in place[:-1]:
        at = at[part]
    at[place[-1]] = junk
    server.script({"body": json.dumps(body)})
    try:
        reply = await model.send(ASKED)
    except BadReply:
        return
    assert isinstance(reply, Response) and (reply.text is None) <= reply.refused
