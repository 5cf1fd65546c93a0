"""Prices: free at home, unknown is an error, and no reply costs more than was reserved for it."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotlab.core.errors import ConfigError
from cotlab.core.requests import Complete, LogProb, Message, Usage
from cotlab.core.types import ModelRef
from cotlab.providers.keys import is_private
from cotlab.run.budget import FREE, Price, price_of

TEXT = st.text(max_size=60)
RATES = st.decimals(0, 100, places=4)


def compat(url: str | None, name: str = "gpt-4o-mini") -> ModelRef:
    return ModelRef("openai_compat", name, base_url=url)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8000/v1", "http://localhost/v1", "http://[::1]:1/v1", "http://192.168.1.7/v1", "http://10.0.0.1",
            "http://172.16.3.4:80", "http://box.local/v1", "http://api.localhost"],
)  # fmt: skip
def test_a_private_address_is_free(url: str) -> None:
    assert is_private(url)
    assert price_of(compat(url, "any name")).free and price_of(compat(url, "any name")) == FREE


@pytest.mark.parametrize(
    "url", ["https://api.openai.com/v1", "http://8.8.8.8/v1", "https://localhost.example.com", "https://127.0.0.1.example.com/v1",
            "https://example.com/127.0.0.1", "https://example.com#localhost", "https://localhost@example.com/", "", None],
)  # fmt: skip
def test_any_other_address_is_not(url: str | None) -> None:
    assert not is_private(url)


@pytest.mark.parametrize("provider", ["organism", "local", "echo", "scripted"])
def test_models_in_this_process_are_free(provider: str) -> None:
    assert price_of(ModelRef(provider, "x")) == FREE


def test_a_known_model_has_its_price_and_no_other() -> None:
    # genai-prices 0.2.3: gpt-4o-mini at OpenAI, 0.15 and 0.60 dollars a million tokens
    price = price_of(compat("https://api.openai.com/v1"))
    assert (price.tokens_in, price.tokens_out, price.cached) == (Decimal("0.15"), Decimal("0.6"), Decimal("0.075"))
    assert price.cost(Usage(1_000_000, 1_000_000)) == 750_000


@pytest.mark.parametrize(
    "ref",
    [
        compat("https://api.openai.com/v1", "no-such-model"),
        compat("https://models.example.org/v1"),
        ModelRef("openai", "none-9x"),
    ],
)
def test_an_unknown_price_is_an_error_and_never_zero_in_silence(ref: ModelRef) -> None:
    with pytest.raises(ConfigError, match="--allow-unpriced"):
        price_of(ref)
    assert not price_of(ref, allow_unpriced=True).known


def test_a_reply_without_a_count_has_no_cost_unless_it_is_free() -> None:
    assert Price(Decimal(1), Decimal(0)).cost(Usage(None, 5)) is None
    assert Price(Decimal(0), Decimal(1)).cost(Usage(5, None)) is None
    assert FREE.cost(Usage()) == 0


def test_part_of_a_micro_dollar_is_rounded_up() -> None:
    assert Price(Decimal("0.15"), Decimal("0.6")).cost(Usage(1, 0)) == 1
    assert Price(Decimal("0.15"), Decimal("0.6")).cost(Usage(10, 10)) == 8  # 1.5 + 6


@given(RATES, RATES, TEXT, TEXT, TEXT, st.integers(1, 500), st.data())
def test_no_reply_costs_more_than_its_reserve(
    rate_in: Decimal, rate_out: Decimal, question: str, system: str, prefix: str, max_tokens: int, data: st.DataObject
) -> None:
    price = Price(rate_in, rate_out)
    request = Complete(ModelRef("p", "m"), (Message("user", question),), system=system, prefix=prefix, max_tokens=max_tokens)
    given_bytes = sum(len(text.encode()) for text in (question, system, prefix))
    # a token is at least one byte; a chat template adds a few tokens to each of at most three turns
    used = Usage(data.draw(st.integers(0, given_bytes + 30)), data.draw(st.integers(0, max_tokens)))
    cost = price.cost(used)
    assert cost is not None and cost <= price.most(request)


def test_a_reserve_does_not_depend_on_what_was_asked_of_the_request_before() -> None:
    price = Price(Decimal(1), Decimal(1))
    request = Complete(ModelRef("p", "m"), (Message("user", "q"),))
    before = price.most(request)
    assert request.key and price.most(request) == before


def test_what_generates_nothing_reserves_its_text_only() -> None:
    request = LogProb(ModelRef("p", "m"), (Message("user", "q" * 1000),), ("a",))
    assert 1000 <= Price(Decimal(1), Decimal(10**6)).most(request) <= 1400
