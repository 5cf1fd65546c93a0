"""The OpenAI-compatible provider through the vendor's SDK, against a server on this machine."""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx2 as httpx
import openai
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loopback import Loopback, serving

from cotlab.core.errors import (
    BadReply,
    ConfigError,
    ProviderError,
    RateLimited,
    TimedOut,
    Unauthorised,
    Unavailable,
    Unsupported,
)
from cotlab.core.requests import Complete, Message, Response, Token, Usage
from cotlab.core.types import ModelRef
from cotlab.providers import openai_compat
from cotlab.providers.openai_compat import KEY, OpenAICompat, map_error

SECRET = "sk-very-secret-0123456789"
ASKED = Complete(
    ModelRef("openai_compat", "small"), (Message("user", "first"), Message("assistant", "second"), Message("user", "third")),
    system="be brief", max_tokens=17, temperature=0.5, seed=7, sample=3, stop=("\n",), top_logprobs=50,
)  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with serving() as running:
        yield running


@pytest.fixture
async def model(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OpenAICompat]:
    monkeypatch.setenv(KEY, SECRET)
    server.script()
    model = OpenAICompat(ModelRef("openai_compat", "small", base_url=server.base_url))
    yield model
    await model.close()


async def test_everything_asked_is_sent_and_everything_said_is_read(server: Loopback, model: OpenAICompat) -> None:
    server.script({
        "text": "It is 4.", "reasoning": "2 + 2", "logprobs": [["It", -0.5, [["It", -0.5], ["So", -1.25]]], [" is", -0.25, []]],
        "usage": {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16,
                  "prompt_tokens_details": {"cached_tokens": 8}, "completion_tokens_details": {"reasoning_tokens": 2}},
    })  # fmt: skip
    reply = await model.send(ASKED)
    assert reply.key == ASKED.key and reply.text == "It is 4." and reply.reasoning == "2 + 2"
    assert reply.tokens == (Token("It", -0.5, (("It", -0.5), ("So", -1.25))), Token(" is", -0.25, ()))
    assert reply.usage == Usage(11, 5, cached=8, reasoning=2)
    assert (reply.finish, reply.refused) == ("stop", False)
    (call,) = server.seen()
    assert call["body"] == {
        "model": "small", "max_tokens": 17, "temperature": 0.5, "seed": 10, "stop": ["\n"], "logprobs": True,
        "top_logprobs": 20,
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "first"},
                     {"role": "assistant", "content": "second"}, {"role": "user", "content": "third"}],
    }  # fmt: skip
    assert reply.sent == {name: value for name, value in call["body"].items() if name != "messages"}
    assert datetime.fromisoformat(reply.received_at).tzinfo is not None


async def test_only_what_was_asked_for_is_sent(server: Loopback, model: OpenAICompat) -> None:
    await model.send(Complete(ModelRef("openai_compat", "small"), (Message("user", "hi"),), prefix="So "))
    (call,) = server.seen()
    assert set(call["body"]) == {"model", "messages", "max_tokens", "temperature"}
    assert call["body"]["messages"][-1] == {"role": "assistant", "content": "So "}


async def test_the_key_travels_in_its_header_and_nowhere_else(server: Loopback, model: OpenAICompat) -> None:
    reply = await model.send(ASKED)
    (call,) = server.seen()
    assert call["headers"].pop("authorization") == f"Bearer {SECRET}"
    assert SECRET not in json.dumps(call)
    assert SECRET not in repr((reply, model.ref))


async def test_without_a_key_a_local_server_is_asked_all_the_same(server: Loopback) -> None:
    server.script()
    model = OpenAICompat(ModelRef("openai_compat", "small", base_url=server.base_url))
    assert (await model.send(ASKED)).text == "third"
    await model.close()


@pytest.mark.parametrize(
    ("turn", "text"),
    [({"finish": "content_filter", "text": None}, None), ({"finish": "content_filter", "text": "I wo"}, "I wo"),
     ({"refusal": "I cannot help with that.", "text": None}, None),
     ({"status": 400, "error": {"code": "content_filter", "message": "filtered"}}, None)],
)  # fmt: skip
async def test_a_refusal_is_data(server: Loopback, model: OpenAICompat, turn: dict[str, Any], text: str | None) -> None:
    server.script(turn)
    reply = await model.send(ASKED)
    assert reply.refused and reply.text == text and reply.key == ASKED.key


FAILURES: list[tuple[dict[str, Any], type[ProviderError]]] = [
    ({"status": 401}, Unauthorised),
    ({"status": 403}, Unauthorised),
    ({"status": 404}, Unauthorised),
    ({"status": 429, "error": {"code": "insufficient_quota"}}, Unauthorised),
    ({"status": 429}, RateLimited),
    ({"status": 500}, Unavailable),
    ({"status": 503}, Unavailable),
    ({"status": 408}, Unavailable),
    ({"status": 409}, Unavailable),
    ({"cut": True}, Unavailable),
    ({"status": 400, "error": {"message": "context length exceeded"}}, Unsupported),
    ({"status": 413}, Unsupported),
    ({"status": 422}, Unsupported),
    ({"body": "{"}, BadReply),
    ({"body": "[1]"}, BadReply),
    ({"body": "null"}, BadReply),
    ({"body": "<html>hello</html>", "type": "text/html"}, BadReply),
    ({"body": "{}"}, BadReply),
    ({"body": '{"choices": []}'}, BadReply),
    ({"body": '{"choices": {}}'}, BadReply),
    ({"body": '{"choices": [{"message": {"content": [1]}}]}'}, BadReply),
    ({"text": None}, BadReply),
    ({"logprobs": [["a", float("nan"), []]]}, BadReply),
    ({"logprobs": [[None, -1.0, []]]}, BadReply),
]


@pytest.mark.parametrize(("turn", "kind"), FAILURES, ids=lambda value: str(value)[:40])
async def test_each_failure_has_its_error(
    server: Loopback, model: OpenAICompat, turn: dict[str, Any], kind: type[ProviderError]
) -> None:
    if "status" in turn:  # a server that repeats what it was sent must not bring the key into a message
        turn = {**turn, "error": {"message": f"not with {SECRET}", **turn.get("error", {})}}
    server.script(turn)
    with pytest.raises(ProviderError) as caught:
        await model.send(ASKED)
    assert type(caught.value) is kind
    assert SECRET not in str(caught.value)
    assert server.count() == 1  # the SDK tries nothing again by itself


@pytest.mark.parametrize(
    ("told", "after_s"),
    [("7", 7.0), ("0.5", 0.5), ("", None), ("soon", None), ("-3", None), ("nan", None), ("inf", None), ("²", None)],
)
async def test_retry_after_in_seconds(server: Loopback, model: OpenAICompat, told: str, after_s: float | None) -> None:
    server.script({"status": 429, "headers": {"Retry-After": told}})
    with pytest.raises(RateLimited) as caught:
        await model.send(ASKED)
    assert caught.value.after_s == after_s


async def test_retry_after_as_a_date(server: Loopback, model: OpenAICompat) -> None:
    server.script(
        {"status": 429, "headers": {"Retry-After": format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)}}
    )
    with pytest.raises(RateLimited) as caught:
        await model.send(ASKED)
    assert caught.value.after_s is not None and 3000 < caught.value.after_s <= 3600


async def test_a_server_that_says_nothing_times_out(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_compat, "TIMEOUT_S", 0.1)
    model = OpenAICompat(ModelRef("openai_compat", "small", base_url=server.base_url))
    server.script({"latency_s": 0.5})
    with pytest.raises(TimedOut):
        await model.send(ASKED)
    await model.close()


async def test_no_server_is_unavailable() -> None:
    model = OpenAICompat(ModelRef("openai_compat", "small", base_url="http://127.0.0.1:9/v1"))
    with pytest.raises(Unavailable, match="cannot be reached"):
        await model.send(ASKED)
    await model.close()


async def test_text_that_no_file_takes_is_mended(server: Loopback, model: OpenAICompat) -> None:
    server.script({"text": "a\ud800b", "reasoning": "\udfff", "logprobs": [["\ud800", -1.0, [["\ud801", -1.0]]]]})
    reply = await model.send(ASKED)
    assert (reply.text, reply.reasoning, reply.tokens) == ("a?b", "?", (Token("?", -1.0, (("?", -1.0),)),))


async def test_a_count_that_is_no_number_is_no_count(server: Loopback, model: OpenAICompat) -> None:
    server.script({"usage": {"prompt_tokens": "12", "completion_tokens": -1}}, {"usage": None})
    assert (await model.send(ASKED)).usage == Usage()
    assert (await model.send(replace(ASKED, sample=4))).usage == Usage()


def errors_of_the_sdk() -> list[type[openai.OpenAIError]]:
    kinds = [kind for _, kind in inspect.getmembers(openai, inspect.isclass) if issubclass(kind, openai.OpenAIError)]
    assert len(kinds) > 10
    return kinds


@pytest.mark.parametrize("kind", errors_of_the_sdk(), ids=lambda kind: kind.__name__)
def test_every_error_of_the_sdk_is_mapped(kind: type[openai.OpenAIError]) -> None:
    request = httpx.Request("POST", "http://127.0.0.1/v1")
    for status in (400, 401, 403, 404, 408, 409, 413, 418, 422, 429, 500, 502, 503, 504, 529):
        error = kind.__new__(kind)
        Exception.__init__(error, "said")
        error.__dict__.update(
            message="said", request=request, response=httpx.Response(status, request=request), status_code=status, code=None
        )
        mapped = map_error(error)
        assert isinstance(mapped, ProviderError) and type(mapped) is not ProviderError
        assert str(mapped)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2), max_leaves=4,
)  # fmt: skip
PLACES = st.lists(st.sampled_from(
    [("choices",), ("choices", 0), ("choices", 0, "message"), ("choices", 0, "message", "content"),
     ("choices", 0, "finish_reason"), ("choices", 0, "logprobs"), ("choices", 0, "logprobs", "content"),
     ("choices", 0, "logprobs", "content", 0), ("choices", 0, "logprobs", "content", 0, "logprob"),
     ("choices", 0, "logprobs", "content", 0, "top_logprobs"), ("usage",), ("usage", "prompt_tokens"),
     ("usage", "prompt_tokens_details"), ("choices", 0, "message", "refusal"), ("choices", 0, "message", "reasoning_content")]
), min_size=1, max_size=2)  # fmt: skip


@given(PLACES, st.lists(JUNK, min_size=2, max_size=2))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_no_reply_of_a_server_is_a_bug(
    server: Loopback, model: OpenAICompat, places: list[tuple[Any, ...]], junk: list[Any]
) -> None:
    body: Any = {
        "choices": [{"message": {"content": "x"}, "finish_reason": "stop",
                     "logprobs": {"content": [{"token": "x", "logprob": -1.0, "top_logprobs": []}]}}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 1}},
    }  # fmt: skip
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
    except BadReply:
        return
    assert isinstance(reply, Response) and (reply.text is None) <= reply.refused


@pytest.mark.parametrize(
    "url",
    [None, "", "127.0.0.1:8000", "ftp://127.0.0.1", "http://", f"http://user:{SECRET}@127.0.0.1/v1", f"http://{SECRET}@h/v1"],
)
def test_an_address_that_cannot_be_used_is_told_without_its_password(url: str | None) -> None:
    with pytest.raises(ConfigError, match="--base-url") as caught:
        OpenAICompat(ModelRef("openai_compat", "m", base_url=url))
    assert SECRET not in str(caught.value)
