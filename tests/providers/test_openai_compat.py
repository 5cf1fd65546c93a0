"""The OpenAI-compatible provider through the vendor's SDK, against a server on this machine."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from cotlab.core.errors import (
    BadReply,
    ConfigError,
    ProviderError,
    RateLimited,
    Unauthorised,
    Unavailable,
    Unsupported,
)
from cotlab.core.requests import Complete, Message
from cotlab.core.types import ModelRef
from cotlab.providers.openai_compat import OpenAICompat
from tests.support.loopback import Loopback

ASKED = Complete(
    ModelRef("openai_compat", "small"),
    (Message("user", "first"), Message("assistant", "second"), Message("user", "third")),
    system="be brief",
    max_tokens=17,
    temperature=0.5,
    seed=7,
    sample=3,
    stop=("\n",),
    top_logprobs=50,
)


@pytest.fixture
async def model(server: Loopback) -> AsyncIterator[OpenAICompat]:
    server.script()
    model = OpenAICompat(ModelRef("openai_compat", "small", base_url=server.base_url))
    yield model
    await model.close()


async def test_everything_asked_is_sent(server: Loopback, model: OpenAICompat) -> None:
    reply = await model.send(ASKED)
    (call,) = server.seen()
    assert call["body"] == {
        "model": "small",
        "max_tokens": 17,
        "temperature": 0.5,
        "seed": 10,
        "stop": ["\n"],
        "logprobs": True,
        "top_logprobs": 20,
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "first"},
            {"role": "assistant", "content": "second"},
            {"role": "user", "content": "third"},
        ],
    }
    assert reply.sent == {
        **{name: value for name, value in call["body"].items() if name != "messages"},
        "given": "user",
    }


async def test_a_prefix_is_the_start_of_the_models_own_turn(server: Loopback) -> None:
    server.script()
    model = OpenAICompat(
        ModelRef("openai_compat", "small", base_url=server.base_url, form="prefill")
    )
    assert model.ref.form == "prefill"
    reply = await model.send(Complete(model.ref, (Message("user", "hi"),), prefix="So "))
    (call,) = server.seen()
    assert set(call["body"]) == {
        "model",
        "messages",
        "max_tokens",
        "temperature",
        "continue_final_message",
        "add_generation_prompt",
    }
    assert call["body"]["messages"][-1] == {"role": "assistant", "content": "So "}
    assert (call["body"]["continue_final_message"], call["body"]["add_generation_prompt"]) == (
        True,
        False,
    )
    assert reply.sent["given"] == "prefix" and "So " not in json.dumps(reply.sent)
    await model.close()


@pytest.mark.parametrize("form", ["chat", "continuation"])
def test_any_other_form_is_chat(form: Any) -> None:
    assert (
        OpenAICompat(
            ModelRef("openai_compat", "m", base_url="http://127.0.0.1:9/v1", form=form)
        ).ref.form
        == "chat"
    )


def test_an_address_is_needed() -> None:
    for url in (None, ""):
        with pytest.raises(ConfigError, match="needs --base-url"):
            OpenAICompat(ModelRef("openai_compat", "m", base_url=url))


@pytest.mark.parametrize(
    ("turn", "text"),
    [
        ({"finish": "content_filter", "text": None}, None),
        ({"refusal": "I cannot help with that.", "text": ""}, ""),
        ({"status": 400, "error": {"code": "content_filter", "message": "filtered"}}, None),
        ({"status": 400, "error": {"code": "invalid_prompt", "message": "flagged"}}, None),
    ],
)
async def test_a_refusal_is_data(
    server: Loopback, model: OpenAICompat, turn: dict[str, Any], text: str | None
) -> None:
    server.script(turn)
    reply = await model.send(ASKED)
    assert reply.refused and reply.text == text and reply.key == ASKED.key
    assert reply.sent["max_tokens"] == 17


THINKING = {"type": "thinking", "thinking": [{"type": "text", "text": "2 + 2 = 4."}]}


@pytest.mark.parametrize(
    ("turn", "text", "reasoning"),
    [
        ({"text": [THINKING, {"type": "text", "text": "It "}, {"type": "text", "text": "is 4."}]},)
        + ("It is 4.", "2 + 2 = 4."),
        ({"text": [{"type": "text", "text": "4"}]}, "4", None),
        ({"text": [THINKING, THINKING], "finish": "length"}, "", "2 + 2 = 4.\n2 + 2 = 4."),
        ({"text": [THINKING]}, "", "2 + 2 = 4."),
        ({"text": None, "reasoning": "It is 4."}, "", "It is 4."),
    ],
    ids=["thinking and text", "text", "cut", "thinking alone", "reasoning alone"],
)
async def test_text_and_thinking_of_a_list_of_parts_are_told_apart(
    server: Loopback, model: OpenAICompat, turn: dict[str, Any], text: str, reasoning: str | None
) -> None:
    server.script(turn)
    reply = await model.send(ASKED)
    assert (reply.text, reply.reasoning, reply.refused) == (text, reasoning, False)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "refusal", "refusal": "no"},
        {"type": "tool_use", "name": "f", "input": {}},
        {"type": "input_audio", "input_audio": {"data": ""}},
        {"type": "thinking", "thinking": [{"type": "reference", "reference_ids": [1]}]},
    ],
    ids=lambda part: part["type"],
)
async def test_a_part_of_another_type_fails_the_call_by_its_name(
    server: Loopback, model: OpenAICompat, part: dict[str, Any]
) -> None:
    server.script({"text": [{"type": "text", "text": "It is 4."}, part]})
    inner = part["thinking"][0] if "thinking" in part else part
    with pytest.raises(BadReply, match=inner["type"]):
        await model.send(ASKED)


@pytest.mark.parametrize(
    "turn",
    [
        {"body": '{"choices": []}'},
        {"body": '{"choices": [{"message": {}}]}'},
        {"text": None},
        {"text": []},
        {"text": None, "reasoning": "It is 4.", "finish": "tool_calls"},
        {"text": [{"type": "thinking", "thinking": {}}]},
    ],
    ids=str,
)
async def test_json_without_the_promised_form_is_a_bad_reply(
    server: Loopback, model: OpenAICompat, turn: dict[str, Any]
) -> None:
    server.script(turn)
    with pytest.raises(BadReply, match="promised form"):
        await model.send(ASKED)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 429, "message": "slow"}, RateLimited),
        ({"code": 502, "message": "x"}, Unavailable),
        ({}, Unavailable),
        ({"code": 400, "message": "x"}, Unsupported),
        ({"code": "insufficient_quota"}, Unauthorised),
    ],
)
async def test_an_error_may_come_with_a_200(
    server: Loopback, model: OpenAICompat, error: dict[str, Any], kind: type[ProviderError]
) -> None:
    server.script({"body": json.dumps({"error": error, "choices": None})})
    with pytest.raises(kind):
        await model.send(ASKED)


async def test_reasoning_has_another_name_too(server: Loopback, model: OpenAICompat) -> None:
    message = {"content": "x", "reasoning": "hm"}
    server.script({"body": json.dumps({"choices": [{"message": message}]})})
    reply = await model.send(ASKED)
    assert (reply.text, reply.reasoning, reply.model, reply.finish) == ("x", "hm", "", "other")
