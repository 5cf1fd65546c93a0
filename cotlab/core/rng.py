"""Random generators that depend on what is drawn for, never on the order of calls."""

from __future__ import annotations

import hashlib
import random


def derive(*components: str | int) -> random.Random:
    """A generator seeded by ``parts`` alone: the same parts give the same draws on every machine."""
    return random.Random(derive_seed(*components))


def derive_seed(*components: str | int) -> int:
    """A seed in [0, 2**63) from ``parts``."""
    text = "\x1f".join(str(part) for part in components)
    return (
        int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")
        >> 1
    )
