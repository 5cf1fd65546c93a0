"""Which code a kept result was computed by: the digest of its sources."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]


@cache
def sources_digest(*names: str) -> str:
    """Return the digest of modules and packages, named by their paths in the package."""
    sources = hashlib.sha256()
    for name in names:
        path = _PACKAGE / name
        for module in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            sources.update(f"{module.relative_to(_PACKAGE).as_posix()}\n".encode())
            sources.update(module.read_bytes())
    return sources.hexdigest()
