"""What a call costs and may cost at most, in integer micro-dollars; an unknown price is never zero.

The most holds for a server that honours max_tokens and counts no more than it was sent; for others
see ``reserve.py``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError

from cotlab.core.errors import ConfigError
from cotlab.core.requests import Complete, Request, Usage
from cotlab.core.types import ModelRef
from cotlab.providers.capabilities import family_of, provider_info
from cotlab.providers.keys import is_private
from cotlab.run.yaml_file import read_yaml


@dataclass(frozen=True, slots=True)
class Price:
    """Price of a model, in dollars a million tokens."""

    input_price: Decimal
    """Input tokens."""
    output_price: Decimal
    """Output tokens."""
    is_known: bool = True
    """False for a model that runs under --allow-unpriced."""
    cached_price: Decimal | None = None
    """Input tokens that the vendor read from its cache; None: as any other."""
    reasoning_price: Decimal | None = None
    """Unseen output tokens; None: as any other."""
    long_input_prices: tuple[tuple[int, Price], ...] = ()
    """Prices of long inputs: from so many input tokens on, all tokens of a call cost that."""
    headroom: int = 0
    """Output tokens that may be generated beyond those asked for."""
    source: str = ""
    """Where the price comes from."""

    @property
    def is_free(self) -> bool:
        """Whether no token costs anything."""
        has_charge = (
            self.input_price or self.output_price or self.cached_price or self.reasoning_price
        )
        return not has_charge and all(price.is_free for _, price in self.long_input_prices)

    def max_tokens(self, request: Request) -> int:
        """Return the most tokens that a call can use: a token is at least a byte of the request."""
        return len(request.json_bytes) + self.max_tokens_out(request)

    def max_tokens_out(self, request: Request) -> int:
        """Return the most tokens that a reply can have, reasoning included."""
        if not isinstance(request, Complete):
            return 0
        return request.max_tokens + self.headroom

    def max_cost(
        self, request: Request, extra_tokens_in: int = 0, extra_tokens_out: int = 0
    ) -> int:
        """Return the most that a call can cost, with more input and output tokens if given."""
        if self.is_free:
            return 0
        tokens_in = len(request.json_bytes) + extra_tokens_in
        tokens_out = self.max_tokens_out(request) + extra_tokens_out
        return math.ceil(
            max(
                price._max_rate_cost(tokens_in, tokens_out)
                for price in self._prices_up_to(tokens_in)
            )
        )

    def cost(self, usage: Usage) -> int | None:
        """Return what a reply did cost, rounded up; None where it has no count of tokens."""
        cost = self.exact_cost(usage)
        return None if cost is None else math.ceil(cost)

    def exact_cost(self, usage: Usage) -> Decimal | None:
        """Return what a reply did cost; None where it has no count of tokens."""
        if self.is_free:
            return Decimal(0)
        if usage.tokens_in is None or usage.tokens_out is None:
            return None
        price = self._prices_up_to(usage.tokens_in)[-1]
        cached_tokens = min(usage.cached or 0, usage.tokens_in)
        reasoning_tokens = min(usage.reasoning or 0, usage.tokens_out)
        return (
            price.input_price * (usage.tokens_in - cached_tokens)
            + _price_or_default(price.cached_price, price.input_price) * cached_tokens
            + price.output_price * (usage.tokens_out - reasoning_tokens)
            + _price_or_default(price.reasoning_price, price.output_price) * reasoning_tokens
        )

    def _prices_up_to(self, tokens_in: int) -> list[Price]:
        """Return the prices of an input of up to ``tokens_in`` tokens, that of all of them last."""
        return [
            self,
            *(price for threshold, price in self.long_input_prices if tokens_in > threshold),
        ]

    def _max_rate_cost(self, tokens_in: int, tokens_out: int) -> Decimal:
        max_price_in = max(self.input_price, _price_or_default(self.cached_price, self.input_price))
        max_price_out = max(
            self.output_price, _price_or_default(self.reasoning_price, self.output_price)
        )
        return max_price_in * tokens_in + max_price_out * tokens_out


FREE_PRICE = Price(Decimal(0), Decimal(0), source="free")


MAX_PRICE_USD = 1_000_000
"""A million tokens cost less than this."""


_Dollars = Annotated[Decimal, Field(ge=0, le=MAX_PRICE_USD, allow_inf_nan=False)]


class _ModelPrices(BaseModel):
    """One model of a price file, in dollars a million tokens."""

    model_config = ConfigDict(extra="forbid")
    input: _Dollars
    output: _Dollars
    cached: _Dollars | None = None
    reasoning: _Dollars | None = None


class _PriceFile(RootModel[dict[str, _ModelPrices]]):
    """Model, or provider/model, to its prices."""


def parse_price(text: str) -> Price:
    """Return the price that INPUT/OUTPUT states, like 0.5/1.5; ValueError where it states none."""
    try:
        prices = _ModelPrices.model_validate(
            dict(zip(("input", "output"), text.split("/", 1), strict=False))
        )
    except ValidationError as error:
        raise ValueError("write INPUT/OUTPUT in dollars a million tokens, like 0.5/1.5") from error
    return Price(prices.input, prices.output, source="--role")


def read_prices(path: str | Path | None) -> Mapping[str, Price]:
    """Return the prices of a YAML file, in dollars a million tokens.

    A line is ``model: {input: 0.5, output: 1.5, cached: 0.1}``.

    Raises
    ------
    ConfigError
        If the file cannot be read or a price is missing, negative or unknown.
    """
    if path is None:
        return {}
    try:
        data: Any = read_yaml(Path(path))
        rows = _PriceFile.model_validate(data or {}).root
    except (OSError, ValueError, ArithmeticError) as error:
        message = " ".join(str(error).split())[:200]
        if isinstance(error, ValidationError):
            defects = (
                (".".join(map(str, error_detail["loc"])), error_detail["msg"])
                for error_detail in error.errors()
            )
            message = "; ".join(f"{field or 'file'}: {defect}" for field, defect in defects)
        raise ConfigError(
            f"--prices {path}: {message}. Write: MODEL: {{input: 0.5, output: 1.5}}, dollars a"
            " million."
        ) from error
    return {
        name: Price(row.input, row.output, True, row.cached, row.reasoning, source=str(path))
        for name, row in rows.items()
    }


def price_of(
    ref: ModelRef,
    *,
    allow_unpriced: bool = False,
    prices: Mapping[str, Price] | None = None,
    batch: bool = False,
) -> Price:
    """Return the price of a model: of the price file, 0 where it is local, or of the bundled table.

    Raises
    ------
    ConfigError
        If it is unknown and ``allow_unpriced`` is not set.
    """
    price = (prices or {}).get(str(ref)) or (prices or {}).get(ref.name)
    if price is None:
        price = FREE_PRICE if _is_free(ref) else _bundled_price(ref, batch=batch)
    if price is None and allow_unpriced:
        price = Price(Decimal(0), Decimal(0), is_known=False, source="unknown")
    if price is not None:
        return replace(price, headroom=family_of(ref.provider, ref.name).headroom)
    raise ConfigError(
        f"No price is known for {ref}: its spend could not be capped. Name it in a file for"
        " --prices, or let it run without a cap with --allow-unpriced."
    )


def _is_free(ref: ModelRef) -> bool:
    info = provider_info(ref.provider)
    is_self_hosted = bool(info.key_variable) and not info.hosts and is_private(ref.base_url)
    return info.free or is_self_hosted


def context_window(ref: ModelRef) -> int | None:
    """Return the tokens of input and output that a model takes; None where that is not known."""
    price_info = None if _is_free(ref) else _bundled_price_info(ref)
    return None if price_info is None else price_info.model.context_window


def _bundled_price_info(ref: ModelRef, **context_args: Any) -> Any:
    """Return what the bundled table says of a model; None where it is not there."""
    from genai_prices import Usage as Counted
    from genai_prices import calc_price

    family = provider_info(ref.provider).price_family
    provider_args = {"provider_id": family or ref.provider}
    if not family and ref.base_url:
        provider_args = {"provider_api_url": ref.base_url}
    single_token = Counted(input_tokens=1, output_tokens=1)
    try:
        return calc_price(single_token, model_ref=ref.name, **provider_args, **context_args)
    except LookupError:
        return None


def _bundled_price(ref: ModelRef, *, batch: bool) -> Price | None:
    """Return the bundled table's price, None where it knows none."""
    context_args = {"price_context": {"processing": "batch"}} if batch else {}
    price_info = _bundled_price_info(ref, **context_args)
    if price_info is None:
        return None
    model_price = price_info.model_price
    price_by_name = {
        name: getattr(model_price, key, None) for name, key in _BUNDLED_COLUMNS.items()
    }
    if price_by_name["input_price"] is None or price_by_name["output_price"] is None:
        return None
    tiers = (tier for price in price_by_name.values() for tier in getattr(price, "tiers", ()))
    tier_starts = sorted({tier.start for tier in tiers})

    def prices_at(tokens: int) -> dict[str, Any]:
        return {name: _column_price(price, tokens) for name, price in price_by_name.items()}

    return Price(
        **prices_at(0),
        long_input_prices=tuple(
            (tier_start, Price(**prices_at(tier_start + 1))) for tier_start in tier_starts
        ),
        source=f"genai-prices {version('genai-prices')}",
    )


_BUNDLED_COLUMNS = {
    "input_price": "input_mtok",
    "output_price": "output_mtok",
    "cached_price": "cache_read_mtok",
    "reasoning_price": "output_reasoning_mtok",
}


def _column_price(price: Any, tokens: int) -> Decimal | None:
    """Return one column of the table for an input of ``tokens``; of tiers the last one reached."""
    if not hasattr(price, "tiers"):
        return None if price is None else Decimal(price)
    return Decimal(([price.base] + [tier.price for tier in price.tiers if tokens > tier.start])[-1])


def _price_or_default(price: Decimal | None, default: Decimal) -> Decimal:
    return default if price is None else price
