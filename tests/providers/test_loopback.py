"""The server that stands in for OpenAI, Anthropic and Google, through each vendor's SDK."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.error
from collections.abc import AsyncIterator
from contextlib import nullcontext
from fractions import Fraction
from typing import Any, NamedTuple

import anthropic
import httpx2
import openai
import pytest
from google.genai import errors as google_errors

from tests.support.loopback import Loopback
from tests.support.loopback.clients import (
    LOST,
    PRICES,
    STATUS_ERRORS,
    Anthropic,
    Google,
    OpenAI,
    Said,
    Speaker,
    cost,
)  # isort: skip

pytestmark = pytest.mark.filterwarnings(
    "ignore:Inheritance class AiohttpClientSession"
)  # google-genai 3.4 on aiohttp 3.14
USED = {"in": 20, "out": 7, "cached": 8, "reasoning": 3}


@pytest.fixture(params=["openai", "anthropic", "google", "google over aiohttp"])
async def speaker(server: Loopback, request: pytest.FixtureRequest) -> AsyncIterator[Speaker]:
    speaker: Speaker
    if request.param == "openai":
        speaker = OpenAI(server)
    elif request.param == "anthropic":
        speaker = Anthropic(server)
    else:
        speaker = Google(server, httpx2.AsyncClient() if request.param == "google" else None)
    yield speaker
    await speaker.close()


class Failed(NamedTuple):
    status: int
    headers: Any
    body: Any


async def failure(speaker: Speaker) -> Failed:
    with pytest.raises(STATUS_ERRORS) as caught:
        await speaker.ask("hi")
    error: Any = caught.value
    if isinstance(error, google_errors.APIError):
        return Failed(error.code, error.response.headers, error.details)
    return Failed(error.status_code, error.response.headers, error.body)


async def test_a_completion_and_its_usage(server: Loopback, speaker: Speaker) -> None:
    server.script({"text": "It is 4.", "reasoning": "2 + 2", "usage": USED}, prices=PRICES)
    said = await speaker.ask("What is\n2 + 2?")
    assert said[:1] + said[2:] == ("It is 4.", (20, 7, 8, 3), "2 + 2", False)
    assert said.finish in ("stop", "end_turn", "STOP")
    assert server.spend() == cost([said.used]) == Fraction("7.2")  # 20 x 0.15 + 7 x 0.60
    (call,) = server.seen()
    assert (
        call["method"] == "POST"
        and call["body"]
        and call["headers"]["content-type"].startswith("application/json")
    )
    assert abs(call["at"] - time.time()) < 60


async def test_what_is_said_when_nothing_is_scripted(server: Loopback, speaker: Speaker) -> None:
    server.script(answers={"capital": "Paris", "France": "no"})
    assert (await speaker.ask("What is\n2 + 2?")).text == "2 + 2?"
    assert (await speaker.ask("What is\n2 + 2?", "It is")).text == " 7."
    assert (await speaker.ask("The capital of France?")).text == "Paris"
    assert (await speaker.ask("a b", "c", "d e f")).used[:2] == (6, 3)  # words
    assert (server.count(), server.asked_most()) == (4, 1)
    await speaker.ask("a b", "c", "d e f")
    assert (server.count(), server.asked_most()) == (5, 2)


async def test_each_vendor_refuses_in_its_own_way(server: Loopback, speaker: Speaker) -> None:
    server.script(
        {"refusal": True}, {"finish": "safety"}, {"finish": "length", "text": "cut"}, prices=PRICES
    )
    refused = await speaker.ask("hi")
    stopped = await speaker.ask("hi")
    long = await speaker.ask("hi")
    assert refused.refused and refused.text is None
    assert stopped.refused and stopped.finish in ("content_filter", "refusal", "SAFETY")
    assert not long.refused and long.finish in ("length", "max_tokens", "MAX_TOKENS")
    assert server.spend() == cost([refused.used, stopped.used, long.used])


async def test_too_many_requests(server: Loopback, speaker: Speaker) -> None:
    server.script(
        {"status": 429, "headers": {"Retry-After": "2"}, "retry_delay": "2s"}, prices=PRICES
    )
    failed = await failure(speaker)
    assert failed.status == 429 and failed.headers["retry-after"] == "2"
    if isinstance(speaker, Google):
        assert failed.body["error"]["status"] == "RESOURCE_EXHAUSTED"
        assert failed.body["error"]["details"][0]["retryDelay"] == "2s"
    assert (server.count(), server.spend()) == (1, 0)


async def test_a_server_in_trouble(server: Loopback, speaker: Speaker) -> None:
    for bill, cents in ((False, 0), (True, 2)):
        server.script(
            {"status": 502},
            {"status": 504},
            {"status": 529},
            {"status": 401},
            usage=USED,
            prices=PRICES,
            bill_errors=bill,
        )
        failures = [await failure(speaker) for _ in range(4)]
        assert [failed.status for failed in failures] == [502, 504, 529, 401]
        assert server.spend() == cost([(20, 7, 8, 3)] * cents)
    if isinstance(speaker, Anthropic):
        assert failures[2].body["error"]["type"] == "overloaded_error"


async def test_replies_that_do_not_arrive_are_billed(server: Loopback, speaker: Speaker) -> None:
    server.script({"cut": True}, {"malformed": True}, {"reset": True}, usage=USED, prices=PRICES)
    with pytest.raises(LOST):
        await speaker.ask("hi")
    with pytest.raises(ValueError):
        await speaker.ask("hi")
    assert server.spend() == cost([(20, 7, 8, 3)] * 2)
    with pytest.raises(LOST):
        await speaker.ask("hi")
    assert server.spend() == cost([(20, 7, 8, 3)] * 2) and server.count() == 3


async def test_a_client_that_goes_away_is_billed(server: Loopback, speaker: Speaker) -> None:
    server.script(held=True, usage=USED, prices=PRICES)
    asking = asyncio.create_task(speaker.ask("hi"))
    await server.arrived(1)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert server.spend() == cost([(20, 7, 8, 3)])


async def test_the_models(server: Loopback, speaker: Speaker) -> None:
    server.script()
    assert any(name.endswith(speaker.model) for name in await speaker.names())
    server.script(models=["one", "two"])
    assert [name.removeprefix("models/") for name in await speaker.names()] == ["one", "two"]
    server.script(models={"status": 401})
    with pytest.raises(STATUS_ERRORS, match="401|authentication_error"):
        await speaker.names()
    assert server.count() == 0


async def test_a_storm_may_hit_a_request_so_often_and_no_more(
    server: Loopback, speaker: Speaker
) -> None:
    server.script(storm={"share": 1, "kinds": ["500"], "most": 2})
    for _ in range(2):
        with pytest.raises(Exception, match="500|Internal"):
            await speaker.ask("How much is it?")
    await speaker.ask("How much is it?")
    assert server.count() == 3


async def test_the_bill_is_that_of_the_replies(server: Loopback, speaker: Speaker) -> None:
    storm = {"seed": 5, "share": 0.4, "kinds": ["429", "500", "529", "slow"], "slow_s": 0.02}
    told = []
    for _ in range(2):
        server.script(storm=storm, usage="random", prices=PRICES, jitter_s=0.002, remember=False)
        replies = [
            await asyncio.gather(speaker.ask("How much is it?"), return_exceptions=True)
            for _ in range(25)
        ]
        said = [reply for (reply,) in replies if isinstance(reply, Said)]
        assert 0 < len(said) < 25 == server.count() and not server.seen()
        assert all(
            into <= 15 and out <= 4096 and cached <= into and thought <= out
            for into, out, cached, thought in [reply.used for reply in said]
        )
        assert server.spend() == cost([reply.used for reply in said])
        told.append(
            [str(reply) if isinstance(reply, Said) else type(reply) for (reply,) in replies]
        )
    assert told[0] == told[1]  # the same seed, the same weather


@pytest.mark.parametrize(
    ("kind", "after"),
    [
        ("429", openai.RateLimitError),
        ("500", openai.InternalServerError),
        ("529", openai.InternalServerError),
        ("cut", LOST),
        ("reset", LOST),
        ("malformed", ValueError),
        ("shape", TypeError),
        ("slow", None),
    ],
)
async def test_each_kind_of_weather(server: Loopback, chat: OpenAI, kind: str, after: Any) -> None:
    server.script(
        {"text": "x"}, usage=USED, prices=PRICES, storm={"share": 1, "kinds": [kind], "slow_s": 0.1}
    )
    with pytest.raises(after) if after else nullcontext() as caught:
        await chat.ask("hi")
    assert kind != "429" or caught.value.response.headers["retry-after"] == "0.2"
    assert server.spend() == (
        0 if kind in ("429", "500", "529", "reset") else cost([(20, 7, 8, 3)])
    )


@pytest.mark.parametrize(
    ("model", "said", "more", "why"),
    [
        (Anthropic.model, ("hi",), {"stop_sequences": ["a", "\n"]}, "whitespace"),
        (Anthropic.model, ("hi", "So "), {}, "trailing whitespace"),
        ("claude-opus-4-6", ("hi", "So"), {}, "prefill"),
        ("claude-sonnet-5", ("hi", "So"), {}, "prefill"),
        (
            "claude-opus-4-7",
            ("hi",),
            {"temperature": 0.0},
            "`temperature` is deprecated for this model.",
        ),
        ("claude-opus-5-1", ("hi",), {"temperature": 1.0}, "deprecated"),
        (Anthropic.model, ("hi", "So"), {"temperature": 0.0, "stop_sequences": ["\nQ"]}, None),
        ("claude-opus-4-6", ("hi",), {"temperature": 0.0}, None),
    ],
)
async def test_what_anthropic_turns_away(
    server: Loopback,
    claude: Anthropic,
    model: str,
    said: tuple[str, ...],
    more: dict[str, Any],
    why: str | None,
) -> None:
    server.script({"text": "the turn"}, prices=PRICES)
    if why is not None:
        with pytest.raises(anthropic.BadRequestError, match=why) as caught:
            await claude.ask(*said, model=model, extra_body=more)
        assert caught.value.type == "invalid_request_error" and server.spend() == 0
        said, more = ("hi",), {}
    assert (await claude.ask(*said, model=model, extra_body=more)).text == "the turn"


@pytest.mark.parametrize(
    ("model", "more", "code"),
    [
        ("gpt-5-mini", {"max_tokens": 5}, "unsupported_parameter"),
        ("o3", {"stop": ["\n"]}, "unsupported_parameter"),
        ("o4-mini", {"logprobs": True}, "unsupported_parameter"),
        ("gpt-6-astra", {"temperature": 0.0}, "unsupported_value"),
        ("o1", {"temperature": 1, "max_completion_tokens": 5}, None),
        ("gpt-5-chat-latest", {"max_tokens": 5}, None),
        ("gpt-4o", {"temperature": 0.0, "stop": ["\n"], "logprobs": True}, None),
    ],
)
async def test_what_openai_turns_away(
    server: Loopback, chat: OpenAI, model: str, more: dict[str, Any], code: str | None
) -> None:
    server.script()
    if code is None:
        assert (await chat.ask("hi", model=model, **more)).text == "hi"
    else:
        with pytest.raises(openai.BadRequestError) as caught:
            await chat.ask("hi", model=model, **more)
        assert (caught.value.code, caught.value.param) == (code, next(iter(more)))


async def test_logprobs_in_each_form(server: Loopback, chat: OpenAI) -> None:
    turn = {"logprobs": [["It", -0.5, [["It", -0.5], ["So", -1.25]]]]}
    server.script(turn, turn)
    reply = await chat.client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "hi"}]
    )
    assert reply.choices[0].logprobs.content[0].top_logprobs[1].logprob == -1.25
    google = Google(server, httpx2.AsyncClient())
    said = (
        (await google.client.aio.models.generate_content(model="m", contents="hi"))
        .candidates[0]
        .logprobs_result
    )
    assert (said.chosen_candidates[0].token, said.chosen_candidates[0].log_probability) == (
        "It",
        -0.5,
    )
    assert [(top.token, top.log_probability) for top in said.top_candidates[0].candidates] == [
        ("It", -0.5),
        ("So", -1.25),
    ]
    await google.close()


async def raw(server: Loopback, *pieces: bytes) -> list[Any]:
    """Writes the pieces to one connection and reads a JSON reply for each."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    told = []
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0.01)
    for _ in range(piece.count(b"HTTP/1.1")):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        told.append(
            json.loads(
                await reader.readexactly(int(head.split("Content-Length: ")[1].split("\r\n")[0]))
            )
        )
    writer.close()
    await writer.wait_closed()
    return told


def post(text: str) -> bytes:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode()
    return b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (
        len(body),
        body,
    )


async def test_http_in_pieces_in_chunks_and_in_a_row(server: Loopback) -> None:
    server.script({"latency_s": 0.05})
    first, second = await raw(server, post("one") + post("two"))
    assert [r["choices"][0]["message"]["content"] for r in (first, second)] == ["one", "two"]
    head, _, body = post("three").partition(b"\r\n\r\n")
    chunks = b"%x;x=y\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n" % (9, body[:9], len(body) - 9, body[9:])
    whole = (
        head.replace(b"Content-Length", b"Transfer-Encoding: chunked\r\nX-Length")
        + b"\r\n\r\n"
        + chunks
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    for at in range(0, len(whole), 40):
        writer.write(whole[at : at + 40])
        await writer.drain()
        await asyncio.sleep(0.001)
    assert b'"three"' in await reader.readuntil(b"}}")
    writer.close()
    await writer.wait_closed()


async def test_two_hundred_at_once(server: Loopback) -> None:
    server.script(held=True, remember=False)
    asking = asyncio.gather(*(raw(server, post(f"x{at}")) for at in range(200)))
    await server.arrived(200)  # none of them waits for another's reply
    server.release()
    told = await asking
    assert {reply["choices"][0]["message"]["content"] for (reply,) in told} == {
        f"x{at}" for at in range(200)
    }
    assert (server.count(), server.asked_most(), server.seen()) == (200, 1, [])


def test_a_word_that_the_script_does_not_know_is_refused(server: Loopback) -> None:
    for script in ({"latency": 1}, {"then": {"txt": "a"}}, {"storm": {"kinds": ["403"]}}):
        with pytest.raises(urllib.error.HTTPError) as caught:
            server.script(**script)
        assert b"unknown" in caught.value.read()
        caught.value.close()
