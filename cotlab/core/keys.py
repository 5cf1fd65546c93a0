"""Canonical JSON and the digests that identify requests, suites and plans."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any


def plain(value: Any) -> Any:
    """``value`` as JSON types: dataclasses and mappings become dicts, sequences lists. Raises TypeError on the rest."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    if isinstance(value, set | frozenset):
        return sorted(plain(v) for v in value)
    raise TypeError(f"{type(value).__name__} has no canonical form")


def canonical_json(value: Any) -> str:
    """One text for equal values: keys sorted, no spaces, 1.0 as 1 and -0.0 as 0, no NaN (ValueError)."""
    return json.dumps(_whole(plain(value)), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _whole(value: Any) -> Any:
    """JSON values with floats that are whole numbers as integers: 0.0 and 0 are equal, so they share a key."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, dict):
        return {k: _whole(v) for k, v in value.items()}
    return [_whole(v) for v in value] if isinstance(value, list) else value


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON, as 64 hexadecimal digits. Lone surrogates are hashed as they stand."""
    return hashlib.sha256(encoded(value)).hexdigest()


def encoded(value: Any) -> bytes:
    """The canonical JSON in UTF-8."""
    return canonical_json(value).encode("utf-8", "surrogatepass")
