"""Read the one JSON object of a reply, whether or not the server enforced its form."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

MAX_CHARACTERS = 200_000
"""A longer reply is not read."""
_MAX_ATTEMPTS = 10_000
"""Braces at which an object is looked for."""


class InvalidReply(ValueError):
    """A reply does not have the requested form; the message says why."""


def read_json_reply(text: str, keys: Iterable[str]) -> dict[str, Any]:
    """Return the JSON object with exactly these keys that a reply ends with.

    Text before it is ignored, as models without enforced output reason first; so are JSON objects
    with other keys, and the mark that closes a code block. An object that the reply only quotes on
    its way is no reply.

    Raises
    ------
    InvalidReply
        If no such object ends the reply, or another one that differs stands before it; if an object
        names a key twice or holds NaN or Infinity; or if the reply is too long.
    """
    if len(text) > MAX_CHARACTERS:
        raise InvalidReply(f"the reply has more than {MAX_CHARACTERS:,} characters")
    text = text.rstrip().removesuffix("```").rstrip()
    expected_keys, records = set(keys), list[dict[str, Any]]()
    position, n_attempts, is_last_read = text.find("{"), 0, False
    while position >= 0:
        n_attempts += 1
        if n_attempts > _MAX_ATTEMPTS:
            raise InvalidReply("the reply has too many braces to look for a JSON object")
        try:
            record, end = DECODER.raw_decode(text, position)
        except InvalidReply:
            raise
        except (ValueError, RecursionError):
            end, is_last_read = position + 1, False
        else:
            is_last_read = record.keys() == expected_keys and end == len(text)
            if record.keys() == expected_keys and record not in records:
                records.append(record)
        position = text.find("{", end)
    key_text = " and ".join(sorted(expected_keys))
    if len(records) > 1:
        raise InvalidReply(f"the reply holds different JSON objects with the keys {key_text}")
    if not is_last_read:
        raise InvalidReply(f"the reply does not end with a JSON object with the keys {key_text}")
    return records[0]


def read_number(record: Mapping[str, Any], name: str, lo: float, hi: float) -> float:
    """Return a number of a reply's object; InvalidReply where it is none in [lo, hi]."""
    value = record[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not lo <= value <= hi:
        raise InvalidReply(f"the {name} of the reply is not a number in [{lo:g}, {hi:g}]")
    return float(value)


def read_text(record: Mapping[str, Any], name: str) -> str:
    """Return a text of a reply's object; InvalidReply where it is none."""
    if not isinstance(record[name], str):
        raise InvalidReply(f"the {name} of the reply is not text")
    return str(record[name])


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise InvalidReply("the reply's JSON object names a key twice")
    return record


def _raise_invalid_constant(name: str) -> float:
    raise InvalidReply(f"the reply's JSON object holds {name}, which is not a number")


DECODER = json.JSONDecoder(object_pairs_hook=_unique_pairs, parse_constant=_raise_invalid_constant)
"""Reads JSON without a repeated key, NaN or Infinity, else raises InvalidReply."""
