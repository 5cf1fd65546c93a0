"""What a call costs and may cost at most, in integer micro-dollars; an unknown price is never zero."""

from __future__ import annotations

import ipaddress
import math
from dataclasses import dataclass
from decimal import Decimal
from urllib.parse import urlsplit

from cotlab.core.errors import ConfigError
from cotlab.core.keys import canonical_json
from cotlab.core.requests import Complete, Request, Usage
from cotlab.core.types import ModelRef

FREE_PROVIDERS = ("organism", "local", "echo", "scripted", "symbolic")


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars a million tokens; ``known`` is False for a model that runs under --allow-unpriced."""

    tokens_in: Decimal
    tokens_out: Decimal
    known: bool = True

    def most(self, request: Request) -> int:
        """The most that ``request`` can cost: a token is at least a byte, and the reply at its longest."""
        if not (self.tokens_in or self.tokens_out):
            return 0
        given = len(canonical_json(request.asked()).encode("utf-8", "surrogatepass"))
        made = request.max_tokens if isinstance(request, Complete) else 0
        return math.ceil(self.tokens_in * given + self.tokens_out * made)

    def cost(self, usage: Usage) -> int | None:
        """What a reply did cost; None where the provider counted no tokens."""
        if usage.tokens_in is None or usage.tokens_out is None:
            return 0 if not (self.tokens_in or self.tokens_out) else None
        return math.ceil(self.tokens_in * usage.tokens_in + self.tokens_out * usage.tokens_out)


FREE = Price(Decimal(0), Decimal(0))


def price_of(ref: ModelRef, *, allow_unpriced: bool = False) -> Price:
    """The price of a model.

    Raises
    ------
    ConfigError
        If it is unknown and ``allow_unpriced`` is not set.
    """
    if ref.provider in FREE_PROVIDERS or (ref.provider == "openai_compat" and is_private(ref.base_url)):
        return FREE
    from genai_prices import Usage as Counted
    from genai_prices import calc_price

    seller = {"provider_api_url": ref.base_url} if ref.provider == "openai_compat" else {"provider_id": ref.provider}
    try:
        million = [
            calc_price(Counted(input_tokens=i, output_tokens=o), model_ref=ref.name, **seller).total_price * 1000
            for i, o in ((1000, 0), (0, 1000))
        ]
    except LookupError as unknown:
        if allow_unpriced:
            return Price(Decimal(0), Decimal(0), known=False)
        raise ConfigError(
            f"No price is known for {ref}: its spend could not be capped. --allow-unpriced runs it without a cap."
        ) from unknown
    return Price(*million)


def is_private(url: str | None) -> bool:
    """Whether an address is this machine or a private network, where a server costs nothing."""
    host = urlsplit(url or "").hostname or ""
    if host == "localhost" or host.endswith((".localhost", ".local")):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_private
