"""What a call costs and may cost at most, in integer micro-dollars; an unknown price is never zero.

The most holds for a server that honours max_tokens and counts no more than it was sent; for others
see ``reserve.py``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError

from cotlab.core.errors import ConfigError
from cotlab.core.requests import Complete, Request, Usage
from cotlab.core.types import ModelRef
from cotlab.providers.capabilities import family_of, provider_info
from cotlab.providers.keys import is_private


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars a million tokens; ``known`` is False for a model that runs under --allow-unpriced.

    ``cached`` is the price of input tokens that the vendor read from its cache (None: as any
    other), ``reasoning`` that of unseen output. ``above`` holds the prices of long inputs: from so
    many input tokens on, all of a call's tokens cost that. ``headroom`` tokens may be generated
    beyond those asked for.
    """

    tokens_in: Decimal
    tokens_out: Decimal
    known: bool = True
    cached: Decimal | None = None
    reasoning: Decimal | None = None
    above: tuple[tuple[int, Price], ...] = ()
    headroom: int = 0
    source: str = ""

    @property
    def free(self) -> bool:
        charged = self.tokens_in or self.tokens_out or self.cached or self.reasoning
        return not charged and all(price.free for _, price in self.above)

    def max_tokens(self, request: Request) -> int:
        """The most tokens that a call can use: a token is at least a byte, and the reply at its longest."""
        return len(request.json_bytes) + self.most_out(request)

    def most_out(self, request: Request) -> int:
        """The most tokens that a reply can have, reasoning included."""
        return request.max_tokens + self.headroom if isinstance(request, Complete) else 0

    def max_cost(self, request: Request, more_in: int = 0, more_out: int = 0) -> int:
        """The most that a call can cost, reasoning included; with so many tokens of input and output more."""
        if self.free:
            return 0
        given, made = len(request.json_bytes) + more_in, self.most_out(request) + more_out
        return math.ceil(max(rate._max_rate_cost(given, made) for rate in self._rates(given)))

    def cost(self, usage: Usage) -> int | None:
        """What a reply did cost; None where the provider counted no tokens."""
        if self.free:
            return 0
        if usage.tokens_in is None or usage.tokens_out is None:
            return None
        rate = self._rates(usage.tokens_in)[-1]
        cached, reasoning = (
            min(usage.cached or 0, usage.tokens_in),
            min(usage.reasoning or 0, usage.tokens_out),
        )
        return math.ceil(
            rate.tokens_in * (usage.tokens_in - cached)
            + _price_or(rate.cached, rate.tokens_in) * cached
            + rate.tokens_out * (usage.tokens_out - reasoning)
            + _price_or(rate.reasoning, rate.tokens_out) * reasoning
        )

    def _rates(self, given: int) -> list[Price]:
        """The prices that an input of up to ``given`` tokens can meet, the one for all of them last."""
        return [self, *(price for start, price in self.above if given > start)]

    def _max_rate_cost(self, given: int, made: int) -> Decimal:
        dear_in = max(self.tokens_in, _price_or(self.cached, self.tokens_in))
        return (
            dear_in * given
            + max(self.tokens_out, _price_or(self.reasoning, self.tokens_out)) * made
        )


FREE = Price(Decimal(0), Decimal(0), source="free")


MAX_DOLLARS = 1_000_000
"""A million tokens cost less than this."""


class _ModelPrices(BaseModel):
    """One model of a price file, in dollars a million tokens."""

    model_config = ConfigDict(extra="forbid")
    input: Decimal = Field(ge=0, le=MAX_DOLLARS, allow_inf_nan=False)
    output: Decimal = Field(ge=0, le=MAX_DOLLARS, allow_inf_nan=False)
    cached: Decimal | None = Field(None, ge=0, le=MAX_DOLLARS, allow_inf_nan=False)
    reasoning: Decimal | None = Field(None, ge=0, le=MAX_DOLLARS, allow_inf_nan=False)


class _PriceFile(RootModel[dict[str, _ModelPrices]]):
    """Model, or provider/model, to its prices."""


def read_prices(path: str | Path | None) -> Mapping[str, Price]:
    """The prices of a YAML file: ``model: {input: 0.5, output: 1.5, cached: 0.1}``, in dollars a million tokens.

    Raises
    ------
    ConfigError
        If the file cannot be read or a price is missing, negative or unknown.
    """
    if path is None:
        return {}
    try:
        data: Any = yaml.safe_load(Path(path).read_text("utf-8"))
        rows = _PriceFile.model_validate(data or {}).root
    except (OSError, yaml.YAMLError, ValueError, ArithmeticError, RecursionError) as error:
        message = (
            "; ".join(
                f"{'.'.join(map(str, e['loc'])) or 'file'}: {e['msg']}" for e in error.errors()
            )
            if isinstance(error, ValidationError)
            else " ".join(str(error).split())[:200]
        )
        raise ConfigError(
            f"--prices {path}: {message}. Write: MODEL: {{input: 0.5, output: 1.5}}, dollars a"
            " million."
        ) from error
    return {
        name: Price(
            row.input, row.output, cached=row.cached, reasoning=row.reasoning, source=str(path)
        )
        for name, row in rows.items()
    }


def price_of(
    ref: ModelRef,
    *,
    allow_unpriced: bool = False,
    prices: Mapping[str, Price] | None = None,
    batch: bool = False,
) -> Price:
    """The price of a model: the price file's, else nothing for what runs at home, else the bundled table's.

    Raises
    ------
    ConfigError
        If it is unknown and ``allow_unpriced`` is not set.
    """
    headroom = family_of(ref.provider, ref.name).headroom
    listed = (prices or {}).get(str(ref)) or (prices or {}).get(ref.name)
    if listed is not None:
        return _with(listed, headroom)
    if _is_free(ref):
        return _with(FREE, headroom)
    price = _from_table(ref, batch=batch)
    if price is not None:
        return _with(price, headroom)
    if allow_unpriced:
        return Price(Decimal(0), Decimal(0), known=False, headroom=headroom, source="unknown")
    raise ConfigError(
        f"No price is known for {ref}: its spend could not be capped. Name it in a file for"
        " --prices, or let it run without a cap with --allow-unpriced."
    )


def _is_free(ref: ModelRef) -> bool:
    info = provider_info(ref.provider)
    at_home = bool(info.key_variable) and not info.hosts and is_private(ref.base_url)
    return info.free or at_home


def _from_table(ref: ModelRef, *, batch: bool) -> Price | None:
    """The bundled table's price, None where it knows none."""
    from genai_prices import Usage as Counted
    from genai_prices import calc_price

    family = provider_info(ref.provider).price_family
    if not family and not ref.base_url:
        return None
    seller = {"provider_id": family} if family else {"provider_api_url": ref.base_url}
    context = {"price_context": {"processing": "batch"}} if batch else {}
    try:
        model_price = calc_price(
            Counted(input_tokens=1, output_tokens=1), model_ref=ref.name, **seller, **context
        ).model_price
    except LookupError:
        return None
    columns = {name: getattr(model_price, key, None) for name, key in _COLUMNS.items()}
    if columns["tokens_in"] is None or columns["tokens_out"] is None:
        return None
    starts = sorted(
        {tier.start for price in columns.values() for tier in getattr(price, "tiers", ())}
    )

    def at(tokens: int) -> dict[str, Any]:
        return {name: _at(price, tokens) for name, price in columns.items()}

    return Price(
        **at(0),
        above=tuple((start, Price(**at(start + 1))) for start in starts),
        source=f"genai-prices {version('genai-prices')}",
    )


_COLUMNS = {
    "tokens_in": "input_mtok",
    "tokens_out": "output_mtok",
    "cached": "cache_read_mtok",
    "reasoning": "output_reasoning_mtok",
}


def _at(price: Any, tokens: int) -> Decimal | None:
    """One column of the table for an input of ``tokens``: a number, or tiers of which the last one reached holds."""
    if not hasattr(price, "tiers"):
        return None if price is None else Decimal(price)
    return Decimal(([price.base] + [tier.price for tier in price.tiers if tokens > tier.start])[-1])


def _with(price: Price, headroom: int) -> Price:
    return Price(
        price.tokens_in,
        price.tokens_out,
        price.known,
        price.cached,
        price.reasoning,
        price.above,
        headroom,
        price.source,
    )


def _price_or(price: Decimal | None, other: Decimal) -> Decimal:
    return other if price is None else price
