"""Prices: free at home, unknown is an error, and no reply costs more than was reserved for it."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotlab.core.errors import ConfigError
from cotlab.core.keys import canonical_json
from cotlab.core.requests import Complete, LogProb, Message, Request, Response, Usage
from cotlab.core.types import ModelRef
from cotlab.providers.keys import is_private
from cotlab.run.transport.budget import (
    FREE_PRICE,
    Price,
    price_of,
)
from cotlab.run.transport.reserve import MAX_REPORTED_TOKENS, Reserve, reported_usage

TEXT = st.text(max_size=60)
COUNTS = st.integers(1, 20_000)
RATES = st.decimals(0, 100, places=4)


def size(request: Request) -> int:
    """Bytes of the request as asked: more than it can have tokens."""
    return len(canonical_json(request.to_json()).encode())


def compat(url: str | None, name: str = "gpt-4o-mini") -> ModelRef:
    return ModelRef("openai_compat", name, base_url=url)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8000/v1",
        "http://localhost/v1",
        "http://[::1]:1/v1",
        "http://192.168.1.7/v1",
        "http://10.0.0.1",
        "http://172.16.3.4:80",
        "http://box.local/v1",
        "http://api.localhost",
    ],
)
def test_a_private_address_is_free(url: str) -> None:
    assert is_private(url)
    assert (
        price_of(compat(url, "any name")).is_free
        and price_of(compat(url, "any name")) == FREE_PRICE
    )


@pytest.mark.parametrize(
    "url",
    [
        "https://api.openai.com/v1",
        "http://8.8.8.8/v1",
        "https://localhost.example.com",
        "https://127.0.0.1.example.com/v1",
        "https://example.com/127.0.0.1",
        "https://example.com#localhost",
        "https://localhost@example.com/",
        "",
        None,
    ],
)
def test_any_other_address_is_not(url: str | None) -> None:
    assert not is_private(url)


@pytest.mark.parametrize("provider", ["organism", "local", "echo", "scripted"])
def test_models_in_this_process_are_free(provider: str) -> None:
    assert price_of(ModelRef(provider, "x")) == FREE_PRICE


def test_a_known_model_has_its_price_and_no_other() -> None:
    # genai-prices 0.2.3: gpt-4o-mini at OpenAI, 0.15 and 0.60 dollars a million tokens
    price = price_of(compat("https://api.openai.com/v1"))
    assert (price.input_price, price.output_price, price.cached_price) == (
        Decimal("0.15"),
        Decimal("0.6"),
        Decimal("0.075"),
    )
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
    unknown = price_of(ref, allow_unpriced=True)
    assert not unknown.is_known and unknown.source == "unknown"


def test_leave_to_run_unpriced_changes_nothing_where_a_price_is_known() -> None:
    for ref in (
        ModelRef("openai", "gpt-4o-mini"),
        ModelRef("echo", "echo"),
        compat("http://127.0.0.1/v1"),
    ):
        assert price_of(ref, allow_unpriced=True) == price_of(ref) and price_of(ref).is_known


def test_a_reply_without_a_count_has_no_cost_unless_it_is_free() -> None:
    assert Price(Decimal(1), Decimal(0)).cost(Usage(None, 5)) is None
    assert Price(Decimal(0), Decimal(1)).cost(Usage(5, None)) is None
    assert FREE_PRICE.cost(Usage()) == 0


def test_part_of_a_micro_dollar_is_rounded_up() -> None:
    assert Price(Decimal("0.15"), Decimal("0.6")).cost(Usage(1, 0)) == 1
    assert Price(Decimal("0.15"), Decimal("0.6")).cost(Usage(10, 10)) == 8  # 1.5 + 6


@st.composite
def prices(draw: st.DrawFn) -> Price:
    """Any price: with and without one of its own for cached and for reasoning tokens, and for long
    inputs."""

    def rates(above: tuple[tuple[int, Price], ...] = (), headroom: int = 0) -> Price:
        own = {name: draw(st.none() | RATES) for name in ("cached_price", "reasoning_price")}
        return Price(draw(RATES), draw(RATES), **own, long_input_prices=above, headroom=headroom)

    starts = draw(st.lists(st.integers(0, 1000), unique=True, max_size=3))
    return rates(
        above=tuple((start, rates()) for start in sorted(starts)),
        headroom=draw(st.integers(0, 500)),
    )


@given(prices(), TEXT, st.integers(1, 500), st.data())
def test_no_reply_costs_more_than_its_reserve_whatever_is_cached_reasoned_or_long(
    price: Price, question: str, max_tokens: int, data: st.DataObject
) -> None:
    request = Complete(ModelRef("p", "m"), (Message("user", question),), max_tokens=max_tokens)
    given_ = data.draw(st.integers(0, size(request)))
    made = data.draw(st.integers(0, max_tokens + price.headroom))
    cached, reasoning = (data.draw(st.none() | st.integers(0, most)) for most in (given_, made))
    cost = price.cost(Usage(given_, made, cached, reasoning))
    assert cost is not None and 0 <= cost <= price.max_cost(request)
    assert given_ + made <= price.max_tokens(request)


def test_each_kind_of_token_costs_its_own_price() -> None:
    price = Price(Decimal(2), Decimal(8), cached_price=Decimal("0.5"), reasoning_price=Decimal(4))
    assert price.cost(Usage(1000, 100)) == 2800  # 1000 · 2 + 100 · 8
    assert price.cost(Usage(1000, 100, cached=400)) == 2200  # 600 · 2 + 400 · 0.5 + 100 · 8
    assert price.cost(Usage(1000, 100, cached=400, reasoning=50)) == 2000  # … and 50 · 8 + 50 · 4
    assert (
        price.cost(Usage(1000, 100, cached=2000)) == 1300
    )  # no more can be cached than was sent: 1000 · 0.5 + 100 · 8
    plain = Price(Decimal(2), Decimal(8))
    assert (
        plain.cost(Usage(1000, 100, cached=400, reasoning=50)) == 2800
    )  # without prices of their own: as any other


@pytest.mark.parametrize(
    "price",
    [
        Price(Decimal(0), Decimal(0), cached_price=Decimal(1)),
        Price(Decimal(0), Decimal(0), reasoning_price=Decimal(1)),
        Price(Decimal(0), Decimal(0), long_input_prices=((100, Price(Decimal(1), Decimal(0))),)),
    ],
)
def test_what_costs_something_for_some_tokens_is_not_free(price: Price) -> None:
    assert not price.is_free and price.cost(Usage(200, 200, 200, 200)) == 200
    assert (
        price.max_cost(Complete(ModelRef("p", "m"), (Message("user", "q" * 200),), max_tokens=200))
        >= 200
    )


def test_tokens_that_a_model_may_use_unseen_are_reserved() -> None:
    # genai-prices 0.2.3: gpt-5 at 1.25 and 10 dollars a million; it may reason for 8,192 tokens on
    # top
    ref = ModelRef("openai", "gpt-5")
    price, request = price_of(ref), Complete(ref, (Message("user", "q"),), max_tokens=64)
    assert price.headroom == 8192
    assert price.max_cost(request) == math.ceil(Decimal("1.25") * size(request)) + 10 * (64 + 8192)
    assert price.max_tokens(request) == size(request) + 64 + 8192


def test_a_long_input_has_the_price_of_long_inputs() -> None:
    # genai-prices 0.2.3: gemini-2.5-pro at 1.25, 10 and, from the cache, 0.125; above 200,000
    # tokens 2.50, 15 and 0.25
    ref = ModelRef("google", "gemini-2.5-pro")
    price = price_of(ref)
    assert price.cost(Usage(200_000, 1_000)) == 260_000  # 250,000 + 10,000
    assert price.cost(Usage(200_001, 1_000)) == 515_003  # 500,002.5 + 15,000
    assert price.cost(Usage(300_000, 1_000)) == 765_000  # 750,000 + 15,000
    assert price.cost(Usage(300_000, 1_000, cached=100_000)) == 540_000  # 500,000 + 25,000 + 15,000
    long = Complete(ref, (Message("user", "q" * 300_000),), max_tokens=1_000)
    assert price.max_cost(long) == math.ceil(Decimal("2.5") * size(long)) + 15 * (1_000 + 8_192)


@pytest.mark.parametrize(
    ("ref", "batch_in", "batch_out"),
    [
        (
            ModelRef("openai", "gpt-4o-mini"),
            Decimal("0.075"),
            Decimal("0.3"),
        ),  # half of 0.15 and 0.60
        (
            ModelRef("anthropic", "claude-sonnet-4-5"),
            Decimal("1.5"),
            Decimal("7.5"),
        ),  # half of 3 and 15
    ],
)
def test_a_batch_costs_half(ref: ModelRef, batch_in: Decimal, batch_out: Decimal) -> None:
    price, usual = price_of(ref, batch=True), price_of(ref)
    assert (
        (price.input_price, price.output_price)
        == (batch_in, batch_out)
        == (usual.input_price / 2, usual.output_price / 2)
    )


def test_what_generates_nothing_reserves_its_text_only() -> None:
    request = LogProb(ModelRef("p", "m"), (Message("user", "q" * 1000),), ("a",))
    assert 1000 <= Price(Decimal(1), Decimal(10**6)).max_cost(request) <= 1400


@pytest.mark.parametrize(
    ("text", "reported", "usage"),
    [
        ("yes", Usage(0, 0), Usage(None, None)),
        ("yes", Usage(0, 5), Usage(None, 5)),
        ("yes", Usage(5, 0, 1), Usage(5, None, 1)),
        ("", Usage(5, 0), Usage(5, 0)),  # a refusal
        (None, Usage(0, 0), Usage(None, 0)),
        ("yes", Usage(5, MAX_REPORTED_TOKENS), Usage(5, MAX_REPORTED_TOKENS)),
        ("yes", Usage(5, MAX_REPORTED_TOKENS + 1), Usage()),
        ("yes", Usage(10**400, 5), Usage()),
        ("yes", Usage(5, 5, 10**400), Usage()),
        ("yes", Usage(), Usage()),
    ],
)
def test_a_number_that_cannot_be_is_no_count(
    text: str | None, reported: Usage, usage: Usage
) -> None:
    assert reported_usage(Response("k", text, usage=reported)) == usage


@given(
    prices(),
    st.lists(st.tuples(TEXT, st.integers(1, 50), COUNTS, COUNTS), max_size=6),
    TEXT,
    st.integers(1, 50),
)
def test_a_raised_reserve_is_enough_for_all_that_was_reported(
    price: Price, seen: list[tuple[str, int, int, int]], question: str, max_tokens: int
) -> None:
    """A server that adds hidden tokens to each request, or makes replies of its own length: as many
    once more fit."""
    reserve = Reserve(price)
    for text, most, used_in, used_out in seen:
        before, made_most = reserve.max_cost(request := asked(text, most)), most + price.headroom
        usage = Usage(used_in, used_out)
        cost = price.cost(usage)
        assert cost is not None and reserve.update_from_usage(request, usage) == (cost > before)
        assert cost <= reserve.max_cost(request) and before <= reserve.max_cost(request)
        if cost > before:  # whatever is asked next, what went beyond this request fits
            hidden = used_in if used_in > len(request.json_bytes) else 1
            made = used_out if used_out > made_most else 0
            again = price.cost(Usage(hidden, made))
            assert again is not None and again <= reserve.max_cost(asked(question, max_tokens))


def test_a_reserve_is_not_raised_by_what_it_covers() -> None:
    reserve = Reserve(Price(Decimal(1), Decimal(1)))
    request = asked("q", 10)
    assert not reserve.update_from_usage(
        request, Usage(len(request.json_bytes), 10)
    ) and not reserve.update_from_usage(request, Usage())
    assert reserve.max_cost(request) == reserve.price.max_cost(request)
    assert reserve.update_from_usage(request, Usage(len(request.json_bytes), 11)) and (
        reserve.extra_tokens_in,
        reserve.extra_tokens_out,
    ) == (0, 11)


def asked(text: str, max_tokens: int) -> Complete:
    return Complete(ModelRef("p", "m"), (Message("user", text),), max_tokens=max_tokens)
