"""Test whether a vendor can be reached with the key that is set, by its free list of models."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from cotlab.core.errors import ConfigError, TimedOut, Unavailable
from cotlab.core.provider import Listing
from cotlab.core.types import ModelRef
from cotlab.run.plan import open_provider
from cotlab.run.transport.dispatcher import run_anywhere

PATIENCE_S = 20.0


@dataclass(frozen=True, slots=True)
class Connection:
    """A vendor that answered."""

    models: tuple[str, ...]
    """Models that the key reaches."""
    took_s: float
    """Seconds until the answer."""


def check_connection(provider: str, base_url: str | None = None) -> Connection:
    """Ask a vendor for its models.

    Raises
    ------
    ConfigError
        If the key is missing, the address unusable, or the provider has no list of models.
    ProviderError
        If the vendor cannot be reached or refuses the key.
    """
    opened_provider = open_provider(ModelRef(provider, "-", base_url=base_url or None))
    if not isinstance(opened_provider, Listing):
        raise ConfigError(f"The provider {provider} has no list of models to ask for.")
    listing: Listing = opened_provider

    async def ask() -> Connection:
        began = time.monotonic()
        try:
            async with asyncio.timeout(PATIENCE_S):
                models = await listing.models()
        except TimeoutError as late:
            raise TimedOut(f"no reply within {PATIENCE_S:.0f} s") from late
        finally:
            await opened_provider.close()
        return Connection(tuple(models), time.monotonic() - began)

    connection: Connection = run_anywhere(ask)
    if not connection.models:
        raise Unavailable("the server answered, but lists no model")
    return connection
