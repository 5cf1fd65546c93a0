"""Anthropic through its own SDK: what each family is sent, what its replies say, and a batch from
end to end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from cotlab.core.errors import (
    BadReply,
    ProviderError,
    RateLimited,
    Unauthorised,
    Unsupported,
)
from cotlab.core.requests import Complete, Message
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


LONG_AGO = "2020-01-01T00:00:00+00:00"


def several(n: int, **more: Any) -> list[Complete]:
    return [replace(ASKED, messages=(Message("user", f"Number {k}?"),), **more) for k in range(n)]


async def ended(model: Anthropic, batch: str) -> None:
    while not (await model.poll(batch)).has_ended:  # noqa: ASYNC110 - what ends it is at the other end
        await asyncio.sleep(0.02)


async def test_everything_it_takes_is_sent(server: Loopback, model: Anthropic) -> None:
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


async def test_a_blocked_output_is_a_refusal(server: Loopback, model: Anthropic) -> None:
    message = "Output blocked by content filtering policy"
    server.script({"status": 400, "error": {"message": message}})
    reply = await model.send(ASKED)
    assert (reply.refused, reply.text, reply.finish) == (True, None, "content_filter")


@pytest.mark.parametrize(
    ("told", "finish"),
    [
        ("stop_sequence", "stop"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "other"),
        ("pause_turn", "other"),
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


async def test_a_batch_is_found_by_its_size_and_time(server: Loopback, model: Anthropic) -> None:
    server.script(batch_s=0.2)
    requests = several(3)
    batch = await model.submit("run-1", requests)
    keys = [request.key for request in requests]
    assert await model.find("run-1", keys, LONG_AGO) == batch  # the only one of that size
    assert await model.find("run-1", keys[1:], LONG_AGO) is None
    assert await model.find("run-1", keys, "2999-01-01T00:00:00+00:00") is None
    (call,) = [call for call in server.seen() if call["method"] == "POST"]
    single = message_parameters(requests[0], family_of("anthropic", "claude-haiku-4-5"))
    assert call["body"]["requests"][0] == {"custom_id": keys[0], "params": single.body}
    await ended(model, batch)
    assert await model.find("run-1", keys, LONG_AGO) == batch
    assert await model.find("run-1", ["a", "b", "c"], LONG_AGO) is None


async def test_a_batch_without_results(server: Loopback, model: Anthropic) -> None:
    with pytest.raises(Unsupported):
        await model.submit("run-1", [])
    server.script(batch_s=30)
    batch = await model.submit("run-1", several(1))
    with pytest.raises(BadReply, match="results_url"):
        await model.results(batch, several(1))
