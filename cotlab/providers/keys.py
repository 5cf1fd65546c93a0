"""Which variable holds the key of which vendor, when one is needed, and how a text is kept free of keys."""

from __future__ import annotations

import ipaddress
import os
import re
from urllib.parse import urlsplit

from cotlab.core.errors import ConfigError

KEYS = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "google": "GOOGLE_API_KEY",
    "openai_compat": "OPENAI_COMPAT_API_KEY",
}
"""Provider → environment variable. A key is read when a provider is opened and is never stored, logged or shown."""
PLACEHOLDER = "none"
"""Stands in for a key where none is needed: the vendors' packages insist on one."""
_SHORTEST = 4
"""What is shorter is no key, and may well be a word of the text."""
_LOOKS_LIKE_ONE = re.compile(r"\bsk-[\w-]{8,}|\bAIza[\w-]{16,}|\bBearer\s+\S+")


def key_for(provider: str, base_url: str | None) -> str:
    """The key that opens ``provider``; the placeholder for a server at home, and for one that only may want a key.

    Raises
    ------
    ConfigError
        If there is none, or if it cannot be sent.
    """
    name = KEYS[provider]
    key = os.environ.get(name, "").strip()
    if not key and (provider == "openai_compat" or is_private(base_url)):
        return PLACEHOLDER
    if not key:
        raise ConfigError(
            f"{provider} needs a key: set {name} in the environment, in .env or in .streamlit/secrets.toml of this folder."
        )
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ConfigError(f"{name} holds a character that no key has: copy the key anew.")
    return key


def is_private(url: str | None) -> bool:
    """Whether an address is this machine or a private network."""
    try:
        host = urlsplit(url or "").hostname or ""
    except ValueError:
        return False
    if host == "localhost" or host.endswith((".localhost", ".local")):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_private


def without_known_keys(text: str) -> str:
    """``text`` with every key of the environment replaced: for what a model says."""
    for name in KEYS.values():
        key = os.environ.get(name, "").strip()
        if len(key) >= _SHORTEST and key != PLACEHOLDER:
            text = text.replace(key, "***")
    return text


def without_keys(text: str) -> str:
    """``text`` with every known key, and whatever looks like one, replaced: for words that come from a server."""
    text = without_known_keys(text)
    return _LOOKS_LIKE_ONE.sub("***", text)
