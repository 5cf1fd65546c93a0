"""Which variable holds the key of which vendor, and how a text is kept free of keys."""

from __future__ import annotations

import os

KEYS = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "google": "GOOGLE_API_KEY",
    "openai_compat": "OPENAI_COMPAT_API_KEY",
}
"""Provider → environment variable. A key is read when a provider is opened and is never stored, logged or shown."""


def without_keys(text: str) -> str:
    """``text`` with every known key replaced, for words that come from a server."""
    for name in KEYS.values():
        if key := os.environ.get(name):
            text = text.replace(key, "***")
    return text
