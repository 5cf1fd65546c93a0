"""Canonical JSON and the digests that identify requests, suites and plans."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

_PRESENT = object()
_JSON_SCALARS = frozenset({str, int, bool, type(None)})


def to_json_value(value: Any) -> Any:
    """``value`` as JSON types: dataclasses and mappings become dicts, sequences lists. Raises TypeError on the rest."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json_value(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(k): to_json_value(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [to_json_value(v) for v in value]
    if isinstance(value, set | frozenset):
        return sorted(to_json_value(v) for v in value)
    raise TypeError(f"{type(value).__name__} has no canonical form")


def canonical_json(value: Any) -> str:
    """One text for equal values: keys sorted, no spaces, 1.0 as 1 and -0.0 as 0, no NaN (ValueError)."""
    return json.dumps(
        _canonical(value),
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    )


def _canonical(value: Any) -> Any:
    """``plain`` with floats that are whole numbers as integers: 0.0 and 0 are equal, so they share a key.

    What requests are made of is told by its exact type, which is three times as fast as asking what
    it is an instance of.
    """
    kind: Any = type(value)
    if kind in _JSON_SCALARS:
        return value
    if kind is tuple or kind is list:
        return [_canonical(v) for v in value]
    if (names := _fields(kind)) is not None:
        return {
            name: _canonical(current)
            for name, absent in names
            if (current := getattr(value, name)) != absent or absent is _PRESENT
        }
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, Mapping):
        return {str(k): _canonical(v) for k, v in value.items()}
    json_value = to_json_value(value)
    return [_canonical(v) for v in json_value] if isinstance(json_value, list) else json_value


@cache
def _fields(kind: type) -> tuple[tuple[str, Any], ...] | None:
    """Return name and absent value of each field of a dataclass; None for any other type.

    A field whose metadata give ``absent`` was added after values had been digested without it, when
    all of them behaved as if it current that value: it is left out exactly at that value.
    """
    if not is_dataclass(kind):
        return None
    return tuple((f.name, f.metadata.get("absent", _PRESENT)) for f in fields(kind))


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON, as 64 hexadecimal digits. Lone surrogates are hashed as they stand."""
    return hashlib.sha256(canonical_bytes(value)).hexdigest()


def canonical_bytes(value: Any) -> bytes:
    """The canonical JSON in UTF-8."""
    return canonical_json(value).encode("utf-8", "surrogatepass")
