"""The table of what models take: each row, and that nothing asked for is lost without a word."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotlab.core.errors import Unsupported
from cotlab.core.requests import Complete, Message
from cotlab.core.types import ModelRef
from cotlab.providers.capabilities import (
    SHIPPED_PROVIDERS,
    Family,
    family_of,
    supported_params,
)

ROWS: dict[tuple[str, str], tuple[str, ...]] = {
    ("openai", "gpt-3.5 and gpt-4"): (
        "gpt-3.5-turbo",
        "gpt-4",
        "gpt-4-turbo-2024-04-09",
        "chatgpt-4o-latest",
        "ft:gpt-3.5-turbo:org::id",
    ),
    ("openai", "gpt-4o, gpt-4.1 and gpt-5-chat"): (
        "gpt-4o-mini",
        "gpt-4o-2024-08-06",
        "gpt-4.1-nano",
        "gpt-5-chat-latest",
        "ft:gpt-4o-mini-2024-07-18:org::id",
        "GPT-4O",
    ),
    ("openai", "gpt-5.1, 5.2 and 5.4 without reasoning"): (
        "gpt-5.1",
        "gpt-5.1-2025-11-13",
        "gpt-5.2",
        "gpt-5.4",
        "gpt-5.4-mini",
        "gpt-5.4-nano-2026-03-17",
        "ft:gpt-5.4:org::id",
    ),
    ("openai", "o-series and gpt-5"): (
        "o1",
        "o3-mini",
        "o4-mini-2025-04-16",
        "gpt-5",
        "gpt-5-mini",
        "gpt-5-nano-2025-08-07",
        "gpt-5.1-chat-latest",
        "gpt-5.2-chat-latest",
        "gpt-5.1-codex",
        "gpt-5.2-pro",
        "gpt-5.5",
        "gpt-5.6-sol",
    ),
    ("openai", "gpt-6 and later"): ("gpt-6-astra", "gpt-6.1-sol", "gpt-60", "some-later-name"),
    ("anthropic", "claude 4.5"): (
        "claude-sonnet-4-5",
        "claude-haiku-4-5-20251001",
        "claude-opus-4-5-20251101",
    ),
    ("anthropic", "claude up to 4.1"): (
        "claude-instant-1.2",
        "claude-2.1",
        "claude-3-haiku-20240307",
        "claude-3-7-sonnet-latest",
        "claude-opus-4-0",
        "claude-opus-4-1-20250805",
        "claude-sonnet-4-20250514",
    ),
    ("anthropic", "claude 4.6"): ("claude-opus-4-6", "claude-sonnet-4-6"),
    ("anthropic", "claude 4.7 and 4.8"): ("claude-opus-4-7", "claude-opus-4-8"),
    ("anthropic", "claude 5 and later"): (
        "claude-opus-5",
        "claude-sonnet-5",
        "claude-haiku-5-5",
        "claude-fable-5-1",
        "claude-mythos-preview",
        "claude-opus-6",
    ),
    ("google", "gemini 1 and gemma"): (
        "gemini-1.5-pro",
        "models/gemini-1.5-flash",
        "gemma-3-27b-it",
    ),
    ("google", "gemini 2.0"): ("gemini-2.0-flash", "gemini-2.0-flash-lite-001"),
    ("google", "gemini 2.5 flash-lite"): ("gemini-2.5-flash-lite",),
    ("google", "gemini 2.5 to 3.5"): (
        "gemini-2.5-flash",
        "gemini-2.5-pro",
        "models/gemini-2.5-pro",
        "gemini-3-pro-preview",
        "gemini-3.1-flash-lite",
        "gemini-3.1-pro-preview",
        "gemini-3.5-flash",
    ),
    ("google", "gemini 3.5 flash-lite, 3.6 and later"): (
        "gemini-3.5-flash-lite",
        "gemini-3.6-flash",
        "gemini-3.8-flash",
        "gemini-pro-latest",
        "gemini-4-pro",
    ),
    ("openai_compat", "any"): ("llama-3.1-8b", "gpt-5", ""),
    ("organism", "not a vendor's"): ("r100",),
}
FAMILIES = [family for info in SHIPPED_PROVIDERS.values() for _, family in info.families]


@pytest.mark.parametrize(("provider", "name"), ROWS, ids=" ".join)
def test_each_model_falls_into_its_row(provider: str, name: str) -> None:
    for model in ROWS[provider, name]:
        assert family_of(provider, model).name == name, model


def test_no_row_is_untested() -> None:
    assert {family.name for family in FAMILIES} | {"not a vendor's"} == {name for _, name in ROWS}
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)


REQUESTS = st.builds(
    Complete,
    st.just(ModelRef("openai", "m")),
    st.just((Message("user", "q"),)),
    system=st.text(max_size=3),
    max_tokens=st.integers(1, 9999),
    temperature=st.floats(0, 1),
    seed=st.none() | st.integers(0, 2**40),
    stop=st.lists(st.sampled_from(["\n", " ", "x", "END"]), max_size=3).map(tuple),
    top_logprobs=st.integers(0, 99),
    sample=st.integers(0, 50),
    reply_schema=st.sampled_from([{}, {"type": "object"}]),
)


@given(REQUESTS, st.sampled_from(FAMILIES))
def test_what_is_asked_for_is_taken_or_named(request: Complete, family: Family) -> None:
    take = supported_params(request, family)
    assert take.max_tokens == request.max_tokens + family.headroom
    assert list(take.not_sent) == sorted(set(take.not_sent))
    assert (take.temperature is None) == ("temperature" in take.not_sent)
    assert take.temperature in (None, request.temperature)
    assert (take.seed is None) == (request.seed is None or "seed" in take.not_sent)
    assert take.seed is None or take.seed == (request.seed or 0) + request.sample
    assert (take.stop == request.stop) != ("stop" in take.not_sent)
    assert set(take.stop) <= set(request.stop) and (
        family.blank_stop or all(stop.strip() for stop in take.stop)
    )
    assert (take.top_logprobs == 0) == (
        request.top_logprobs == 0 or "top_logprobs" in take.not_sent
    )
    assert (take.reply_schema == request.reply_schema) != ("reply_schema" in take.not_sent)
    assert take.top_logprobs <= min(family.logprobs, request.top_logprobs)


@given(REQUESTS, st.integers(1, 9))
def test_draws_differ_in_their_seed(request: Complete, further: int) -> None:
    row = family_of("openai", "gpt-4o")
    one = supported_params(request, row).seed
    other = supported_params(replace(request, sample=request.sample + further), row).seed
    assert one is None if request.seed is None else one != other


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_what_a_family_rejects_is_not_bent(family: Family) -> None:
    request = Complete(ModelRef("anthropic", "m"), (Message("user", "q"),), temperature=2.5)
    if family.temperature is not None:
        with pytest.raises(Unsupported, match=f"up to {family.temperature:g}, not 2.5"):
            supported_params(request, family)
    begun = replace(request, temperature=0.0, prefix="So ")
    if family.prefill:
        supported_params(begun, family)
    else:
        with pytest.raises(Unsupported, match="its own turn"):
            supported_params(begun, family)
