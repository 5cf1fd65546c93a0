"""What every vendor owes, through its own SDK: each reply and failure of a server ends in one
response or one error; our own faults do not.

``ask`` sends a turn of the loopback server (``tests/support/loopback/server.py``), which writes it
in the vendor's form. What only one vendor has is in ``test_VENDOR.py``.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from email.utils import format_datetime
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
from cotlab.core.requests import Complete, Message, Response, Token, Usage
from cotlab.providers import wire
from cotlab.providers.keys import KEY_VARIABLES
from cotlab.run.transport.budget import Price
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


# Replies

USAGE = {"in": 11, "out": 5, "cached": 8, "reasoning": 2}
PRICES = {"in": "0.3", "out": "2.5", "cached": "0.1"}
REPLIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a plain reply": (
        {"text": "It is 4.", "usage": {"in": 11, "out": 5}},
        {"text": "It is 4.", "finish": "stop", "reasoning": None, "refused": False},
    ),
    "reasoning beside the text": (
        {"text": "It is 4.", "reasoning": "2 + 2", "usage": USAGE},
        {"text": "It is 4.", "reasoning": "2 + 2", "usage": Usage(11, 5, 8, 2)},
    ),
    "cut at the length": ({"text": "It", "finish": "length"}, {"text": "It", "finish": "length"}),
    "all of it reasoning": (
        {"text": None, "reasoning": "hm", "finish": "length"},
        {"text": "", "reasoning": "hm", "finish": "length", "refused": False},
    ),
    "refused": ({"refusal": True}, {"text": None, "refused": True}),
    "refused after some words": (
        {"text": "I wo", "finish": "safety", "refusal": True},
        {"text": "I wo", "refused": True, "finish": "content_filter"},
    ),
    "empty": ({"text": ""}, {"text": "", "refused": False}),
    "an end of another name": ({"text": "x", "finish": "new"}, {"text": "x", "finish": "other"}),
    "no count of tokens": ({"text": "x", "usage": None}, {"usage": Usage()}),
    "half of a character": (
        {"text": "a\ud800b \U0001f600", "reasoning": "\udfff"},
        {"text": "a?b \U0001f600", "reasoning": "?"},
    ),
}


@on_one_loop
@pytest.mark.parametrize(("turn", "told"), REPLIES.values(), ids=list(REPLIES))
async def test_each_reply_has_its_meaning(
    server: Loopback, model: Any, turn: dict[str, Any], told: dict[str, Any]
) -> None:
    server.script(turn, prices=PRICES)
    request = ask(model)
    reply = await model.send(request)
    assert {name: getattr(reply, name) for name in told} == told
    assert reply.key == request.key and reply.sent["given"] == "user"
    assert datetime.fromisoformat(reply.received_at).tzinfo is not None
    assert reply.model == MODELS[model.ref.provider]
    if isinstance(turn.get("usage"), dict):
        price = Price(Decimal("0.3"), Decimal("2.5"), cached_price=Decimal("0.1"))
        assert price.exact_cost(reply.usage) == Decimal(str(float(server.spend())))


@on_one_loop
async def test_each_token_has_its_log_probability(server: Loopback, model: Any) -> None:
    others = [["It", -0.5], ["So", -1.25], ["no", float("-inf")], ["?", float("nan")]]
    server.script({"text": "It is", "logprobs": [["It", -0.5, others], [" is", -1, []]]})
    tokens = (await model.send(ask(model))).tokens
    if model.ref.provider == "anthropic":  # it returns none
        assert tokens == ()
    else:
        assert tokens == (Token("It", -0.5, (("It", -0.5), ("So", -1.25))), Token(" is", -1.0))


@on_one_loop
async def test_what_no_server_takes_is_mended(server: Loopback, model: Any) -> None:
    await model.send(Complete(model.ref, (Message("user", "x\udc00y é"),), system="\ud800"))
    assert "x?y é" in json.dumps(server.seen()[-1]["body"], ensure_ascii=False)


@on_one_loop
async def test_a_temperature_that_is_too_high_is_not_sent(server: Loopback, model: Any) -> None:
    with pytest.raises(Unsupported):
        await model.send(replace(ask(model), temperature=2.1))
    assert server.count() == 0


OPENAI_BODY: dict[str, Any] = {
    "choices": [
        {
            "message": {"content": "x", "reasoning_content": "hm", "refusal": None},
            "finish_reason": "stop",
            "logprobs": {
                "content": [
                    {
                        "token": "x",
                        "logprob": -1.0,
                        "top_logprobs": [{"token": "x", "logprob": -1.0}],
                    }
                ]
            },
        }
    ],
    "usage": {
        "prompt_tokens": 1,
        "completion_tokens": 1,
        "prompt_tokens_details": {"cached_tokens": 1},
        "completion_tokens_details": {"reasoning_tokens": 1},
    },
    "model": "m",
    "error": None,
}
BODIES: dict[str, Any] = {
    "openai": OPENAI_BODY,
    "openai_compat": OPENAI_BODY,
    "anthropic": {
        "content": [{"type": "text", "text": "x"}, {"type": "thinking", "thinking": "hm"}],
        "stop_reason": "end_turn",
        "usage": {
            "input_tokens": 1,
            "cache_read_input_tokens": 1,
            "output_tokens": 1,
            "output_tokens_details": {"thinking_tokens": 1},
        },
        "model": "m",
    },
    "google": {
        "candidates": [
            {
                "content": {"parts": [{"text": "hm", "thought": True}, {"text": "x"}]},
                "finishReason": "STOP",
                "logprobsResult": {
                    "chosenCandidates": [{"token": "x", "logProbability": -1.0}],
                    "topCandidates": [{"candidates": [{"token": "x", "logProbability": -1.0}]}],
                },
            }
        ],
        "promptFeedback": {"blockReason": None},
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1},
        "modelVersion": "m",
    },
}
"""A whole reply of each vendor."""
Place = tuple[str | int, ...]
MALFORMED: list[tuple[str, str, Any]] = [
    (provider, place, wrong)
    for provider, places in {
        "openai": ("choices.0.message.content", "choices.0.logprobs.content.0"),
        "anthropic": ("content.0.text",),
        "google": (
            "candidates.0.content.parts.1.text",
            "candidates.0.logprobsResult.chosenCandidates.0.token",
        ),
    }.items()
    for place in places
    for wrong in (5, ["x"], [{"type": "tool_use"}])
] + [
    ("openai", "choices.0.logprobs.content.0.logprob", wrong)
    for wrong in (float("nan"), float("-inf"), 10**400, True, "-1", 1e301)
]


def places_of(body: Any, at: Place = ()) -> Iterator[Place]:
    """The path of everything in a body."""
    pairs = body.items() if isinstance(body, dict) else enumerate(body)
    for name, value in pairs:
        yield (*at, name)
        if isinstance(value, dict | list):
            yield from places_of(value, (*at, name))


def with_at(body: Any, place: Place, value: Any) -> Any:
    """The body with another value at a path."""
    body = at = copy.deepcopy(body)
    for part in place[:-1]:
        at = at[part]
    at[place[-1]] = value
    return body


@on_one_loop
@pytest.mark.parametrize(("provider", "place", "wrong"), MALFORMED, ids=str)
async def test_a_reply_without_the_promised_form_is_told_by_its_field(
    server: Loopback, provider: str, place: str, wrong: Any
) -> None:
    path = tuple(int(part) if part.isdigit() else part for part in place.split("."))
    model = opened_at(provider, server.root)
    server.script({"body": json.dumps(with_at(BODIES[provider], path, wrong))})
    error = await failure(model)
    assert type(error) is BadReply and place in str(error) and len(str(error)) < 400
    await model.close()


COUNTS: list[tuple[str, str, Any, Usage]] = [
    ("anthropic", "usage", {"input_tokens": 5, "output_tokens": 3}, Usage(5, 3)),
    (
        *("anthropic", "usage"),
        {"input_tokens": 5, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 11},
        Usage(23, None, 7),
    ),
    ("anthropic", "usage", {"cache_read_input_tokens": 7}, Usage(None, None, 7)),
    ("anthropic", "usage", {"input_tokens": "5", "output_tokens": -1}, Usage()),
    ("google", "usageMetadata", {"promptTokenCount": 5, "candidatesTokenCount": 3}, Usage(5, 3)),
    (
        *("google", "usageMetadata"),  # what is nought is left out
        {"promptTokenCount": 5, "thoughtsTokenCount": 40},
        Usage(5, 40, reasoning=40),
    ),
    ("google", "usageMetadata", {"promptTokenCount": "5"}, Usage()),
    ("openai_compat", "usage", {"prompt_tokens": "12", "completion_tokens": True}, Usage()),
    ("openai_compat", "usage", [], Usage()),
]


@on_one_loop
@pytest.mark.parametrize(("provider", "field", "told", "usage"), COUNTS, ids=str)
async def test_tokens_are_counted_whole_or_not_at_all(
    server: Loopback, provider: str, field: str, told: Any, usage: Usage
) -> None:
    model = opened_at(provider, server.root)
    server.script({"body": json.dumps({**BODIES[provider], field: told})})
    reply = await model.send(ask(model))
    await model.close()
    assert (reply.usage, reply.text) == (usage, "x")


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats()
    | st.text(st.characters(), max_size=5)
    | st.sampled_from(["\ud800", 10**400, 2**64]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.text(max_size=5) | st.just("\udfff"), inner, max_size=2)
    ),
    max_leaves=4,
)


@on_one_loop
@given(st.data())
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
async def test_no_reply_of_a_server_is_a_bug(
    server: Loopback, model: Any, data: st.DataObject
) -> None:
    body = BODIES[model.ref.provider]
    place = data.draw(st.sampled_from(list(places_of(body))))
    server.script({"body": json.dumps(with_at(body, place, data.draw(JUNK)))})
    try:
        reply = await model.send(ask(model))
    except (BadReply, Unavailable):
        return
    assert isinstance(reply, Response) and (reply.text is None) <= reply.refused
    assert json.dumps((reply.text, reply.reasoning, reply.model), ensure_ascii=False).encode()


# Batches

REJECTED: dict[str, Any] = {
    "openai": {"code": "content_filter"},
    "anthropic": {"message": "Output blocked by content filtering policy"},
}
LONG_AGO = "2020-01-01T00:00:00+00:00"


async def ended(model: Any, batch: str) -> None:
    while not (await model.poll(batch)).has_ended:  # noqa: ASYNC110 - what ends it is at the other end
        await asyncio.sleep(0.02)


@on_one_loop
@pytest.mark.parametrize("provider", list(REJECTED))
async def test_a_batch_from_end_to_end(server: Loopback, provider: str) -> None:
    model = opened_at(provider, server.root)
    rejected = {"status": 400, "error": REJECTED[provider]}
    turns = ({"refusal": True}, rejected, {"status": 400}, {"status": 429})
    server.script(*turns, then={"text": "a\u2028b", "reasoning": "hm"}, batch_s=0.2)
    requests = [
        replace(ask(model, k), messages=(Message("user", f"Number {k}?\u2028"),)) for k in range(6)
    ]
    keys = [request.key for request in requests]
    batch = await model.submit("run-1", requests)
    assert await model.find("run-1", keys, LONG_AGO) == batch
    assert (await model.poll(batch)).has_ended is False
    await ended(model, batch)
    assert await model.poll(batch) == (True, 6, 6)
    results = await model.results(batch, requests)
    told = [results[key] for key in keys]
    assert [type(one) for one in told] == [
        *(Response, Response, Unsupported, RateLimited),
        *(Response, Response),
    ]
    assert [one.refused for one in told if isinstance(one, Response)] == [True, True, False, False]
    server.script({"text": "a\u2028b", "reasoning": "hm"})
    alone = await model.send(requests[-1])
    assert replace(told[-1], received_at="") == replace(alone, received_at="")
    await model.close()


@on_one_loop
@pytest.mark.parametrize("provider", list(REJECTED))
async def test_what_fails_in_a_batch_may_be_tried_again(server: Loopback, provider: str) -> None:
    model = opened_at(provider, server.root)
    requests = [ask(model, k) for k in range(40)]
    server.script(then={"text": "x"}, batch_s=0.05, batch_errors=0.4, batch_expire=0.4)
    batch = await model.submit("run-1", requests)
    await ended(model, batch)
    results = await model.results(batch, requests)
    assert {type(one) for one in results.values()} == {Response, Unavailable} and len(results) == 40
    assert {request.key for request in requests[:5]} == set(
        await model.results(batch, requests[:5])
    )
    for call in (model.poll("batch_9"), model.results("batch_9", requests)):
        with pytest.raises(NotFound):
            await call
    await model.close()


# Failures

FAILURES: list[tuple[dict[str, Any], type[ProviderError]]] = [
    ({"status": 404}, NotFound),
    ({"status": 400, "error": {"message": "context length exceeded"}}, Unsupported),
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
