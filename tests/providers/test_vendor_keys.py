"""Opening a vendor: keys that are asked for, sent in their header and never told, and addresses
that can be used."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotlab.core.errors import ConfigError
from cotlab.core.registry import PROVIDERS
from cotlab.core.types import ModelRef
from cotlab.providers.capabilities import SHIPPED_PROVIDERS
from cotlab.providers.keys import KEY_VARIABLES, SEND_KEY_TO_VARIABLE, key_for, mask_keys
from tests.support.loopback import Loopback
from tests.support.vendors import MODELS, SECRET, ask, opened_at

HOSTS = {name: info.hosts[0] for name, info in SHIPPED_PROVIDERS.items() if info.hosts}


@pytest.fixture(params=list(MODELS))
async def model(
    request: pytest.FixtureRequest, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Any]:
    monkeypatch.setenv(KEY_VARIABLES[request.param], SECRET)
    monkeypatch.setenv(SEND_KEY_TO_VARIABLE, "127.0.0.1")
    server.script()
    opened = opened_at(request.param, server.root)
    yield opened
    await opened.close()


@pytest.mark.parametrize("provider", ["openai", "anthropic", "google"])
def test_a_key_is_asked_for_where_it_is_needed(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=rf"{KEY_VARIABLES[provider]}.*\.env.*secrets\.toml"):
        PROVIDERS[provider](ModelRef(provider, MODELS[provider]))
    with pytest.raises(ConfigError, match=KEY_VARIABLES[provider]):
        opened_at(provider, "https://proxy.example.com")
    for bad in ("sk-a b", "sk-\u00e9", "sk-\x01"):
        monkeypatch.setenv(KEY_VARIABLES[provider], bad)
        with pytest.raises(ConfigError, match="character") as caught:
            opened_at(provider, "https://proxy.example.com")
        assert bad not in str(caught.value)


async def test_the_key_travels_in_its_header_and_nowhere_else(server: Loopback, model: Any) -> None:
    reply = await model.send(ask(model))
    (call,) = server.seen()
    header = "x-goog-api-key" if model.ref.provider == "google" else "authorization"
    assert call["headers"].pop(header).removeprefix("Bearer ") == SECRET
    assert SECRET not in json.dumps(call) and SECRET not in repr((reply, model.ref))


@pytest.mark.parametrize("provider", list(HOSTS))
def test_a_vendor_s_key_goes_to_the_vendor(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLES[provider], SECRET)
    own = HOSTS[provider]
    for host in (own, own.upper(), f"eu.{own}", f"{own}:443"):
        assert key_for(provider, f"https://{host}/v1") == SECRET
    assert key_for(provider, None) == SECRET


@pytest.mark.parametrize("provider", list(HOSTS))
@pytest.mark.parametrize(
    "url",
    [
        "https://{own}.evil.example",
        "https://evil{own}",
        "https://evil.example/{own}",
        "https://evil.example:443",
        "https://{own}@evil.example",
        "https://evil.example#{own}",
        "https://evil.example?{own}",
        "http://127.0.0.1:8000/v1",
        "http://localhost:1",
        "http://192.168.1.7",
        "http://box.local",
        "http://gpu-box",
        "https://{own}.",
        "https://[::1]",
        "https://",
    ],
)
def test_a_vendor_s_key_goes_to_nobody_else(
    provider: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLES[provider], SECRET)
    monkeypatch.setenv(SEND_KEY_TO_VARIABLE, "proxy.example.com, ,other.example")
    with pytest.raises(
        ConfigError,
        match=rf"{KEY_VARIABLES[provider]} is not sent to .*--send-key-to |--base-url takes",
    ) as caught:
        key_for(provider, url.format(own=HOSTS[provider]))
    assert SECRET not in str(caught.value)
    assert key_for(provider, "https://Proxy.example.com:8443/v1") == SECRET


@pytest.mark.parametrize("provider", list(KEY_VARIABLES))
def test_no_key_goes_over_http_to_a_public_address(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = ["127.0.0.1", "10.0.0.7", "::1", "box.local", "gpu-box"]
    public = ["proxy.example.com", "8.8.8.8", "2001:4860:4860::8888", "134744072", "0x8080808"]
    public += [HOSTS[provider]] if provider in HOSTS else []
    monkeypatch.setenv(KEY_VARIABLES[provider], SECRET)
    monkeypatch.setenv(SEND_KEY_TO_VARIABLE, ",".join([*private, *public]))
    for host in private:
        assert (
            key_for(provider, f"http://[{host}]/v1" if ":" in host else f"http://{host}/v1")
            == SECRET
        )
    for host in public:
        at = f"[{host}]" if ":" in host else host
        with pytest.raises(ConfigError, match="over http.*write https://"):
            key_for(provider, f"http://{at}/v1")
        assert key_for(provider, f"https://{at}/v1") == SECRET


def test_a_screen_is_not_written_by_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with pytest.raises(ConfigError) as caught:
        key_for("openai", "https://evil\x1b[2J\x07.example/")
    assert str(caught.value).isprintable()


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
        assert SECRET not in mask_keys(f"{before}{SECRET}{after}")
        assert (
            mask_keys("an abacus asks for risk-management-plans")
            == "an abacus asks for risk-management-plans"
        )
    assert mask_keys("try Bearer abc123 or AIzaSyA1234567890abcdefg") == "try *** or ***"


@pytest.mark.parametrize("provider", list(MODELS))
@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8000",
        "ftp://127.0.0.1",
        "http://",
        "http:///v1",
        "http://[::1",
        "http://h:99999",
        "http://h:x/",
        "http://h h/",
        f"http://user:{SECRET}@127.0.0.1/v1",
        f"http://{SECRET}@h/v1",
        f"http://h/v1?key={SECRET}",
        f"http://h/v1#{SECRET}",
    ],
)
def test_an_address_that_cannot_be_used_is_told_without_its_password(
    provider: str, url: str
) -> None:
    with pytest.raises(ConfigError, match="--base-url") as caught:
        PROVIDERS[provider](ModelRef(provider, MODELS[provider], base_url=url))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("tail", ["", "/", "/v1", "/v1/", "/v1beta", "/v1beta/"])
@pytest.mark.parametrize("provider", ["anthropic", "google"])
async def test_an_address_may_end_in_what_the_sdk_adds(
    provider: str, tail: str, server: Loopback
) -> None:
    if provider == "anthropic" and "beta" in tail:
        return
    server.script()
    model = PROVIDERS[provider](ModelRef(provider, MODELS[provider], base_url=server.root + tail))
    assert (await model.send(ask(model))).text == "How many?"
    await model.close()
