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
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError

from cotlab.core.errors import ConfigError
from cotlab.core.requests import Complete, Request, Response, Usage
from cotlab.core.types import ModelRef
from cotlab.providers.capabilities import family_of, provider_info
from cotlab.providers.keys import is_private
from cotlab.store.overshoots import Overshoot


@dataclass(frozen=True, slots=True)
class Price:
    """Price of a model, in dollars a million tokens."""

    tokens_in: Decimal
    """Input tokens."""
    tokens_out: Decimal
    """Output tokens."""
    known: bool = True
    """False for a model that runs under --allow-unpriced."""
    cached: Decimal | None = None
    """Input tokens that the vendor read from its cache; None: as any other."""
    reasoning: Decimal | None = None
    """Unseen output tokens; None: as any other."""
    above: tuple[tuple[int, Price], ...] = ()
    """Prices of long inputs: from so many input tokens on, all tokens of a call cost that."""
    headroom: int = 0
    """Output tokens that may be generated beyond those asked for."""
    source: str = ""
    """Where the price comes from."""

    @property
    def free(self) -> bool:
        """Whether no token costs anything."""
        charged = self.tokens_in or self.tokens_out or self.cached or self.reasoning
        return not charged and all(price.free for _, price in self.above)

    def max_tokens(self, request: Request) -> int:
        """Return the most tokens that a call can use: a token is at least a byte of the request."""
        return len(request.json_bytes) + self.most_out(request)

    def most_out(self, request: Request) -> int:
        """Return the most tokens that a reply can have, reasoning included."""
        return request.max_tokens + self.headroom if isinstance(request, Complete) else 0

    def max_cost(self, request: Request, more_in: int = 0, more_out: int = 0) -> int:
        """Return the most that a call can cost, with more input and output tokens if given."""
        if self.free:
            return 0
        given, made = len(request.json_bytes) + more_in, self.most_out(request) + more_out
        return math.ceil(max(rate._max_rate_cost(given, made) for rate in self._rates(given)))

    def cost(self, usage: Usage) -> int | None:
        """Return what a reply did cost; None where the provider counted no tokens."""
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
        """Return the prices of an input of up to ``given`` tokens, that of all of them last."""
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
    """Return the price of a model: of the price file, 0 where it is local, or of the bundled table.

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


def context_window(ref: ModelRef) -> int | None:
    """Return the tokens of input and output that a model takes; None where that is not known."""
    row = None if _is_free(ref) else _bundled_price_info(ref)
    return None if row is None else row.model.context_window


def _bundled_price_info(ref: ModelRef, **context: Any) -> Any:
    """Return what the bundled table says of a model; None where it is not there."""
    from genai_prices import Usage as Counted
    from genai_prices import calc_price

    family = provider_info(ref.provider).price_family
    if not family and ref.base_url:
        seller = {"provider_api_url": ref.base_url}
    else:
        seller = {"provider_id": family or ref.provider}
    try:
        return calc_price(
            Counted(input_tokens=1, output_tokens=1), model_ref=ref.name, **seller, **context
        )
    except LookupError:
        return None


def _from_table(ref: ModelRef, *, batch: bool) -> Price | None:
    """Return the bundled table's price, None where it knows none."""
    context = {"price_context": {"processing": "batch"}} if batch else {}
    row = _bundled_price_info(ref, **context)
    if row is None:
        return None
    model_price = row.model_price
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
    """Return one column of the table for an input of ``tokens``; of tiers the last one reached."""
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


MOST_TOKENS = 10_000_000
"""More than any model reads or writes in a call: a reply that reports more has no count."""
PROVING_REPLIES = 20
"""Replies in a row within a raised reserve after which several calls may be in flight again."""


def reported_usage(response: Response) -> Usage:
    """Return the tokens that a reply reports, None for a number that is no count.

    No request has 0 input tokens, no text has 0 output tokens, and no call uses more than
    ``MOST_TOKENS``.
    """
    used = response.usage
    if any(
        n is not None and n > MOST_TOKENS
        for n in (used.tokens_in, used.tokens_out, used.cached, used.reasoning)
    ):
        return Usage()
    if response.text and used.tokens_out == 0:
        used = replace(used, tokens_out=None)
    return replace(used, tokens_in=None) if used.tokens_in == 0 else used


@dataclass(slots=True)
class Reserve:
    """The amount that is reserved for each call of one model.

    It is the most that the price allows, which is no bound where a server ignores max_tokens or
    counts more input than it was sent. A reply that cost more raises every later reserve by the
    tokens that it reported, and one call at a time is in flight until ``PROVING_REPLIES`` in a row
    were within that. The first call of a process goes alone as well: a server that reports more
    usually does so every time.
    """

    price: Price
    """Price of the model."""
    more_in: int = 0
    """Input tokens that are reserved on top of those that a request allows."""
    more_out: int = 0
    """Output tokens that are reserved on top of those that a request allows."""
    unproven: int = 0
    """Replies still to come within the raised reserve before several calls may be in flight."""
    tried: bool = False
    """Whether a call of this process has ended."""

    @property
    def alone(self) -> bool:
        """Whether a call may be sent only while no other is in flight."""
        return not self.price.free and (self.unproven > 0 or not self.tried)

    def most(self, request: Request) -> int:
        """Return the micro-dollars to reserve for a call."""
        return self.price.max_cost(request, self.more_in, self.more_out)

    def most_tokens(self, request: Request) -> int:
        """Return the tokens to reserve for a call."""
        return self.price.max_tokens(request) + self.more_in + self.more_out

    def learn(self, request: Request, used: Usage) -> bool:
        """Raise the reserve if a reply cost more than was reserved; return whether it did."""
        cost = self.price.cost(used)
        if self.price.free or cost is None or used.tokens_in is None or used.tokens_out is None:
            return False
        if cost <= self.most(request):
            self.unproven = max(0, self.unproven - 1)
            return False
        self._raise(
            used.tokens_in if used.tokens_in > len(request.json_bytes) else 0,
            used.tokens_out if used.tokens_out > self.price.most_out(request) else 0,
        )
        return True

    def recall(self, seen: Overshoot) -> None:
        """Raise the reserve by what an earlier process of the run saw."""
        if not self.price.free:
            self._raise(
                seen.tokens_in if seen.beyond_in is None or seen.beyond_in > 0 else 0,
                (
                    seen.tokens_out
                    if seen.beyond_out is None or seen.beyond_out > self.price.headroom
                    else 0
                ),
            )

    def _raise(self, more_in: int, more_out: int) -> None:
        """Add all tokens that were reported: the next request may allow fewer and use as many."""
        self.more_in, self.more_out = max(self.more_in, more_in), max(self.more_out, more_out)
        self.unproven = PROVING_REPLIES
