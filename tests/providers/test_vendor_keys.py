"""Opening a vendor: keys that are asked for, sent in their header and never told, and addresses that can be used."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback import Loopback, serving

from cotlab.core.errors import ConfigError
from cotlab.core.provider import Provider
from cotlab.core.registry import PROVIDERS
from cotlab.core.requests import Complete, Message
from cotlab.core.types import ModelRef
from cotlab.providers.keys import KEYS, without_keys

SECRET = "sk-very-secret-0123456789"
MODELS = {"openai": "gpt-4o-mini", "anthropic": "claude-haiku-4-5", "google": "gemini-2.5-flash", "openai_compat": "small"}


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with serving() as running:
        yield running


@pytest.fixture(params=list(MODELS))
async def model(request: pytest.FixtureRequest, server: Loopback, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    monkeypatch.setenv(KEYS[request.param], SECRET)
    server.script()
    opened = opened_at(request.param, server.root)
    yield opened
    await opened.close()


def opened_at(provider: str, root: str) -> Any:
    tail = "" if provider in ("anthropic", "google") else "/v1"
    return PROVIDERS[provider](ModelRef(provider, MODELS[provider], base_url=root + tail))


def ask(model: Provider) -> Complete:
    return Complete(model.ref, (Message("user", "How many?"),), max_tokens=17)


@pytest.mark.parametrize("provider", ["openai", "anthropic", "google"])
def test_a_key_is_asked_for_where_it_is_needed(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=rf"{KEYS[provider]}.*\.env.*secrets\.toml"):
        PROVIDERS[provider](ModelRef(provider, MODELS[provider]))
    with pytest.raises(ConfigError, match=KEYS[provider]):
        opened_at(provider, "https://proxy.example.com")
    for bad in ("sk-a b", "sk-\u00e9", "sk-\x01"):
        monkeypatch.setenv(KEYS[provider], bad)
        with pytest.raises(ConfigError, match="character") as caught:
            opened_at(provider, "https://proxy.example.com")
        assert bad not in str(caught.value)


async def test_the_key_travels_in_its_header_and_nowhere_else(server: Loopback, model: Any) -> None:
    reply = await model.send(ask(model))
    (call,) = server.seen()
    header = "x-goog-api-key" if model.ref.provider == "google" else "authorization"
    assert call["headers"].pop(header).removeprefix("Bearer ") == SECRET
    assert SECRET not in json.dumps(call) and SECRET not in repr((reply, model.ref))


@pytest.mark.parametrize("provider", list(MODELS))
async def test_a_server_at_home_needs_no_key(provider: str, server: Loopback) -> None:
    server.script()
    model = opened_at(provider, server.root)
    assert (await model.send(ask(model))).text == "How many?"
    await model.close()


@given(st.text(max_size=30), st.text(max_size=30))
def test_no_text_keeps_a_key(before: str, after: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", SECRET)
        patch.setenv("GOOGLE_API_KEY", "ab")  # too short to be looked for
        assert SECRET not in without_keys(f"{before}{SECRET}{after}")
        assert without_keys("an abacus asks for risk-management-plans") == "an abacus asks for risk-management-plans"
    assert without_keys("try Bearer abc123 or AIzaSyA1234567890abcdefg") == "try *** or ***"


@pytest.mark.parametrize("provider", list(MODELS))
@pytest.mark.parametrize("url", [
    "127.0.0.1:8000", "ftp://127.0.0.1", "http://", "http:///v1", "http://[::1", "http://h:99999", "http://h:x/", "http://h h/",
    f"http://user:{SECRET}@127.0.0.1/v1", f"http://{SECRET}@h/v1", f"http://h/v1?key={SECRET}", f"http://h/v1#{SECRET}",
])  # fmt: skip
def test_an_address_that_cannot_be_used_is_told_without_its_password(provider: str, url: str) -> None:
    with pytest.raises(ConfigError, match="--base-url") as caught:
        PROVIDERS[provider](ModelRef(provider, MODELS[provider], base_url=url))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("tail", ["", "/", "/v1", "/v1/", "/v1beta", "/v1beta/"])
@pytest.mark.parametrize("provider", ["anthropic", "google"])
async def test_an_address_may_end_in_what_the_sdk_adds(provider: str, tail: str, server: Loopback) -> None:
    if provider == "anthropic" and "beta" in tail:
        return
    server.script()
    model = PROVIDERS[provider](ModelRef(provider, MODELS[provider], base_url=server.root + tail))
    assert (await model.send(ask(model))).text == "How many?"
    await model.close()
