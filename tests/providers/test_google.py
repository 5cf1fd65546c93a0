"""Google through its own SDK: what each family is sent and what its replies say."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from cotlab.core.errors import (
    BadReply,
    ConfigError,
    NotFound,
    ProviderError,
    RateLimited,
    Unauthorised,
    Unsupported,
)
from cotlab.core.requests import Complete, Message
from cotlab.core.types import ModelRef
from cotlab.providers.capabilities import THINKING_TOKENS
from cotlab.providers.google import Google
from tests.support.loopback import Loopback

ASKED = Complete(
    ModelRef("google", "gemini-2.0-flash"),
    (Message("user", "first"), Message("assistant", "second"), Message("user", "third")),
    system="be brief",
    max_tokens=17,
    temperature=0.5,
    seed=7,
    sample=3,
    stop=("\n", "END"),
    top_logprobs=50,
)


@pytest.fixture
async def model(server: Loopback) -> AsyncIterator[Google]:
    server.script()
    model = Google(ModelRef("google", "gemini-2.0-flash", base_url=server.root))
    yield model
    await model.close()


async def test_everything_asked_is_sent(server: Loopback, model: Google) -> None:
    reply = await model.send(ASKED)
    (call,) = server.seen()
    assert call["path"] == "/v1beta/models/gemini-2.0-flash:generateContent"
    body = call["body"]
    assert [(said["role"], said["parts"]) for said in body["contents"]] == [
        ("user", [{"text": "first"}]),
        ("model", [{"text": "second"}]),
        ("user", [{"text": "third"}]),
    ]
    assert body["systemInstruction"]["parts"] == [{"text": "be brief"}]
    assert body["generationConfig"] == {
        "maxOutputTokens": 17,
        "temperature": 0.5,
        "seed": 10,
        "stopSequences": ["\n", "END"],
        "responseLogprobs": True,
        "logprobs": 20,
    }
    assert set(body) == {"contents", "systemInstruction", "generationConfig"}
    assert reply.sent == {
        "model": "gemini-2.0-flash",
        "max_output_tokens": 17,
        "temperature": 0.5,
        "seed": 10,
        "stop_sequences": ["\n", "END"],
        "response_logprobs": True,
        "logprobs": 20,
        "given": "user",
    }


@pytest.mark.parametrize(
    ("name", "names", "not_sent"),
    [
        (
            "gemini-2.5-flash",
            {"maxOutputTokens", "temperature", "seed", "stopSequences"},
            ["top_logprobs"],
        ),
        (
            "models/gemini-3.8-flash",
            {"maxOutputTokens", "seed", "stopSequences"},
            ["temperature", "top_logprobs"],
        ),
    ],
)
async def test_a_newer_model_is_not_sent_what_it_rejects(
    server: Loopback, name: str, names: set[str], not_sent: list[str]
) -> None:
    server.script()
    model = Google(ModelRef("google", name, base_url=server.root))
    reply = await model.send(replace(ASKED, model=model.ref))
    (call,) = server.seen()
    assert set(call["body"]["generationConfig"]) == names and reply.sent["not_sent"] == not_sent
    assert call["body"]["generationConfig"]["maxOutputTokens"] == 17 + THINKING_TOKENS
    await model.close()


async def test_a_seed_fits_into_32_bits(server: Loopback, model: Google) -> None:
    await model.send(replace(ASKED, seed=2**40 + 5, sample=0))
    assert server.seen()[0]["body"]["generationConfig"]["seed"] == 5


def test_what_it_does_not_take_is_told(server: Loopback) -> None:
    for name in ("", "../x", "gemini?x", "a&b"):
        with pytest.raises(ConfigError, match="cannot be the name"):
            Google(ModelRef("google", name, base_url=server.root))


@pytest.mark.parametrize("reason", ["RECITATION", "SPII", "MODEL_ARMOR", "IMAGE_SAFETY"])
async def test_a_refusal_has_many_names(server: Loopback, model: Google, reason: str) -> None:
    server.script({"text": None, "finish": reason, "usage": {"in": 9, "out": 0}})
    reply = await model.send(ASKED)
    told = (reply.refused, reply.text, reply.finish, reply.usage.tokens_in)
    assert told == (True, None, "content_filter", 9)


@pytest.mark.parametrize(
    ("told", "finish"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("OTHER", "other"),
        ("LANGUAGE", "other"),
        ("MALFORMED_RESPONSE", "other"),
        ("NEW", "other"),
        ("CONTINUATION", "length"),
    ],
)
async def test_the_words_for_an_end(
    server: Loopback, model: Google, told: str, finish: str
) -> None:
    server.script(
        {"finish": told, "text": "x"},
        {"finish": told, "text": None},
        {"finish": told, "text": None},
    )
    assert (await model.send(ASKED)).finish == finish
    for asked in (
        ASKED,
        replace(ASKED, stop=()),
    ):  # a stop sequence may end a reply before its first word
        if finish == "length" or (finish == "stop" and asked.stop):
            assert (await model.send(asked)).text == ""
        else:
            with pytest.raises(BadReply, match=told):
                await model.send(asked)


def error(
    status: int, message: str, *details: dict[str, Any], reason: str | None = None
) -> dict[str, Any]:
    told = {"message": message, "details": list(details), **({"status": reason} if reason else {})}
    return {"status": status, "error": told}


QUOTA = {"@type": "type.googleapis.com/google.rpc.QuotaFailure"}
FAILURES: list[tuple[dict[str, Any], type[ProviderError]]] = [
    (error(400, "API key not valid. Please pass a valid API key."), Unauthorised),
    (error(400, "API key expired. Please renew the API key."), Unauthorised),
    (
        error(
            400,
            "User location is not supported. Please enable billing.",
            reason="FAILED_PRECONDITION",
        ),
        Unauthorised,
    ),
    (error(400, "Logprobs is not enabled for models/gemini-2.5-pro"), Unsupported),
    (error(404, "models/x is not found"), NotFound),
    (
        error(
            429,
            "quota",
            {**QUOTA, "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}]},
        ),
        Unauthorised,
    ),
    (
        error(
            429,
            "quota",
            {**QUOTA, "violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel"}]},
        ),
        RateLimited,
    ),
    (error(429, "quota", {**QUOTA, "violations": "x"}, {"retryDelay": None}), RateLimited),
    ({"status": 429, "body": '[{"error": {"code": 429, "message": "x"}}]'}, RateLimited),
    ({"status": 429, "body": '{"error": {"details": [7]}}'}, RateLimited),
]


@pytest.mark.parametrize(("turn", "kind"), FAILURES, ids=lambda value: str(value)[:70])
async def test_the_vendors_own_errors(
    server: Loopback, model: Google, turn: dict[str, Any], kind: type[ProviderError]
) -> None:
    server.script(turn)
    with pytest.raises(ProviderError) as caught:
        await model.send(ASKED)
    assert type(caught.value) is kind


@pytest.mark.parametrize(
    ("delay", "after_s"),
    [("2s", 2.0), ("47.5s", 47.5), ("0.25s", 0.25), ("soon", None), ("-1s", None)],
)
async def test_the_wait_that_the_vendor_asks_for(
    server: Loopback, model: Google, delay: str, after_s: float | None
) -> None:
    server.script(
        {"status": 429, "retry_delay": delay},
        {"status": 429, "retry_delay": delay, "headers": {"Retry-After": "9"}},
    )
    for wanted in (after_s, max(after_s or 0, 9)):
        with pytest.raises(RateLimited) as caught:
            await model.send(ASKED)
        assert caught.value.retry_wait_s == wanted


async def test_nothing_of_the_environment_leads_elsewhere(
    server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "GOOGLE_GENAI_USE_VERTEXAI": "true",
        "GOOGLE_GENAI_API_VERSION": "v9",
        "GOOGLE_CLOUD_PROJECT": "p",
        "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:9",
        "GOOGLE_API_KEY": "real-key",
        "COTLAB_SEND_KEY_TO": "127.0.0.1",
    }.items():
        monkeypatch.setenv(name, value)
    server.script()
    model = Google(ModelRef("google", "gemini-2.0-flash", base_url=server.root))
    assert (await model.send(ASKED)).text == "third"
    await model.close()
