"""The vendors of the tests: a model of each, on a server on loopback, with a secret key."""

from __future__ import annotations

from typing import Any

from cotlab.core.errors import (
    BadReply,
    NotFound,
    ProviderError,
    RateLimited,
    TimedOut,
    Unauthorised,
    Unavailable,
    Unsupported,
)
from cotlab.core.provider import Provider
from cotlab.core.registry import PROVIDERS
from cotlab.core.requests import Complete, Message
from cotlab.core.types import ModelRef

SECRET = "sk-very-secret-0123456789"
MODELS = {
    "openai": "gpt-4o-mini",
    "anthropic": "claude-haiku-4-5",
    "google": "gemini-2.5-flash",
    "openai_compat": "small",
}
LEAVES: tuple[type[ProviderError], ...] = (
    RateLimited,
    TimedOut,
    Unavailable,
    Unauthorised,
    NotFound,
    Unsupported,
    BadReply,
)
"""Every error that a provider may raise."""


def opened_at(provider: str, root: str, **fields: Any) -> Any:
    """Open a vendor's model on the server at ``root``, with further fields of its reference."""
    tail = "" if provider in ("anthropic", "google") else "/v1"
    return PROVIDERS[provider](ModelRef(provider, MODELS[provider], base_url=root + tail, **fields))


def ask(model: Provider, sample: int = 0) -> Complete:
    """Return a small request to a model."""
    return Complete(model.ref, (Message("user", "How many?"),), max_tokens=17, sample=sample)
