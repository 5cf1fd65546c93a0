"""Random generators seeded by what they are used for, so results never depend on call order."""

from __future__ import annotations

import hashlib
import random


def derive(*components: str | int) -> random.Random:
    """Return a generator seeded by the components: the same draws on every machine."""
    return random.Random(derive_seed(*components))


def derive_seed(*components: str | int) -> int:
    """Return a seed in [0, 2**63) derived from the components."""
    text = "\x1f".join(str(part) for part in components)
    return (
        int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")
        >> 1
    )
