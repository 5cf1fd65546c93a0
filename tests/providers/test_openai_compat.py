"""The OpenAI-compatible provider through the vendor's SDK, against a server on this machine."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime
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
from cotlab.core.requests import Complete, Message, Response, Token, Usage
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


async def test_everything_asked_is_sent_and_everything_said_is_read(
    server: Loopback, model: OpenAICompat
) -> None:
    server.script(
        {
            "text": "It is 4.",
            "reasoning": "2 + 2",
            "logprobs": [["It", -0.5, [["It", -0.5], ["So", -1.25]]], [" is", -0.25, []]],
            "usage": {"in": 11, "out": 5, "cached": 8, "reasoning": 2},
        }
    )
    reply = await model.send(ASKED)
    assert reply.key == ASKED.key and reply.text == "It is 4." and reply.reasoning == "2 + 2"
    assert reply.tokens == (
        Token("It", -0.5, (("It", -0.5), ("So", -1.25))),
        Token(" is", -0.25, ()),
    )
    assert reply.usage == Usage(11, 5, cached=8, reasoning=2)
    assert (reply.finish, reply.refused, reply.model) == ("stop", False, "small")
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
    assert datetime.fromisoformat(reply.received_at).tzinfo is not None


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
        ({"finish": "content_filter", "text": "I wo"}, "I wo"),
        ({"refusal": "I cannot help with that.", "text": None}, None),
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


@pytest.mark.parametrize(
    ("told", "finish"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "content_filter"),
        ("tool_calls", "other"),
        ("new", "other"),
    ],
)
async def test_the_words_for_an_end(
    server: Loopback, model: OpenAICompat, told: str, finish: str
) -> None:
    server.script({"finish": told, "text": "x"})
    assert (await model.send(ASKED)).finish == finish


async def test_a_reply_that_was_all_reasoning_is_empty(
    server: Loopback, model: OpenAICompat
) -> None:
    server.script({"finish": "length", "text": None, "reasoning": "hm"})
    reply = await model.send(ASKED)
    assert (reply.text, reply.finish, reply.refused, reply.reasoning) == ("", "length", False, "hm")


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
        {"body": '{"choices": {}}'},
        {"body": '{"choices": [{"message": {"content": [1]}}]}'},
        {"body": '{"choices": [{"message": {}}]}'},
        {"text": None},
        {"text": []},
        {"text": None, "reasoning": "It is 4.", "finish": "tool_calls"},
        {"text": [{"type": "text", "text": None}]},
        {"text": [{"type": "thinking", "thinking": {}}]},
        {"logprobs": [["a", float("nan"), []]]},
        {"logprobs": [[None, -1.0, []]]},
        {"logprobs": [["a", 10**400, []]]},
        {"logprobs": [["a", True, []]]},
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


async def test_a_used_up_quota_stops_the_run(server: Loopback, model: OpenAICompat) -> None:
    server.script(
        {
            "status": 429,
            "error": {"code": "insufficient_quota", "message": "You exceeded your quota"},
        }
    )
    with pytest.raises(Unauthorised, match="out of money or quota"):
        await model.send(ASKED)


async def test_a_count_that_is_no_number_is_no_count(server: Loopback, model: OpenAICompat) -> None:
    server.script({"usage": {"prompt_tokens": "12", "completion_tokens": -1}}, {"usage": None})
    assert (await model.send(ASKED)).usage == Usage()
    assert (await model.send(replace(ASKED, sample=4))).usage == Usage()


async def test_other_names_of_the_same(server: Loopback, model: OpenAICompat) -> None:
    body = {
        "choices": [
            {
                "message": {"content": "x", "reasoning": "hm"},
                "finish_reason": "stop",
                "logprobs": {
                    "content": [
                        {
                            "token": "x",
                            "logprob": -1,
                            "top_logprobs": [
                                {"token": "y", "logprob": float("-inf")},
                                {"token": "z", "logprob": -2},
                            ],
                        }
                    ]
                },
            }
        ]
    }
    server.script({"body": json.dumps(body)})
    reply = await model.send(ASKED)
    assert (reply.reasoning, reply.model, reply.tokens) == (
        "hm",
        "",
        (Token("x", -1.0, (("z", -2.0),)),),
    )


async def test_the_models_of_a_server(server: Loopback, model: OpenAICompat) -> None:
    server.script(models=["b", "a"])
    assert await model.models() == ["a", "b"]


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
PLACES = st.lists(
    st.sampled_from(
        [
            ("choices",),
            ("choices", 0),
            ("choices", 0, "message"),
            ("choices", 0, "message", "content"),
            ("choices", 0, "finish_reason"),
            ("choices", 0, "logprobs"),
            ("choices", 0, "logprobs", "content"),
            ("choices", 0, "logprobs", "content", 0),
            ("choices", 0, "logprobs", "content", 0, "logprob"),
            ("choices", 0, "logprobs", "content", 0, "top_logprobs"),
            ("usage",),
            ("usage", "prompt_tokens"),
            ("usage", "prompt_tokens_details"),
            ("choices", 0, "message", "refusal"),
            ("choices", 0, "message", "reasoning_content"),
            ("model",),
            ("error",),
        ]
    ),
    min_size=1,
    max_size=2,
)


@given(PLACES, st.lists(JUNK, min_size=2, max_size=2))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
async def test_no_reply_of_a_server_is_a_bug(
    server: Loopback, model: OpenAICompat, places: list[tuple[Any, ...]], junk: list[Any]
) -> None:
    body: Any = {
        "choices": [
            {
                "message": {"content": "x"},
                "finish_reason": "stop",
                "logprobs": {"content": [{"token": "x", "logprob": -1.0, "top_logprobs": []}]},
            }
        ],
        "usage": {
            "prompt_tokens": 1,
            "completion_tokens": 1,
            "prompt_tokens_details": {"cached_tokens": 1},
        },
    }
    for place, put in zip(places, junk, strict=False):
        at = body
        try:
            for part in place[:-1]:
                at = at[part]
            at[place[-1]] = put
        except (TypeError, KeyError, IndexError, AttributeError):
            continue
    server.script({"body": json.dumps(body)})
    try:
        reply = await model.send(ASKED)
    except (BadReply, Unavailable):
        return
    assert isinstance(reply, Response) and (reply.text is None) <= reply.refused
