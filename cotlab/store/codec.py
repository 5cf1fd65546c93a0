"""Requests and replies as the text that the response log holds, and back."""

from __future__ import annotations

import json
import re
import struct
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any

from cotlab.core.keys import plain
from cotlab.core.requests import Located, Request, Response, Token, Usage

_SURROGATE = re.compile("[\ud800-\udfff]")


def asked_text(request: Request) -> str:
    """The request as it can be stored."""
    try:
        return request.coded.decode("utf-8")
    except UnicodeDecodeError:
        return as_text(request.asked())


def as_text(value: Any) -> str:
    """JSON as it can be stored: lone surrogates, which no encoding takes, stay escapes."""
    said = json.dumps(value, ensure_ascii=False)
    return said if said.isascii() or not _SURROGATE.search(said) else json.dumps(value)


def told(response: Response) -> dict[str, Any]:
    """A reply as JSON values without what is empty; tokens as [text, logprob, alternatives]."""
    said: dict[str, Any] = {
        "key": response.key, "text": response.text, "numbers": response.numbers,
        "vectors": None if response.vectors is None else tuple(map(_packed, response.vectors)),
        "located": None if response.located is None else plain(response.located),
        "tokens": [(t.text, t.logprob, t.top) for t in response.tokens],
        "usage": plain(response.usage), "finish": response.finish, "refused": response.refused,
        "reasoning": response.reasoning, "sent": plain(response.sent), "device": response.device, "batch": response.batch,
        "received_at": response.received_at, "model": response.model,
    }  # fmt: skip
    return {k: v for k, v in said.items() if v not in (None, [], {}) and (v != "" or k in ("text", "reasoning"))}


def read_reply(text: str) -> Response:
    row = json.loads(text)
    row["usage"] = Usage(**row.get("usage", {}))
    row["tokens"] = tuple(
        Token(text, logprob, tuple((o[0], o[1]) for o in top)) for text, logprob, top in row.get("tokens", ())
    )
    if "numbers" in row:
        row["numbers"] = tuple(row["numbers"])
    if "vectors" in row:
        row["vectors"] = tuple(map(_unpacked, row["vectors"]))
    if "located" in row:
        found = row["located"]
        row["located"] = Located(
            tuple(map(tuple, found["positions"])), tuple(found["pieces"]), found["layers"], found["dtype"]
        )
    return Response(**row)


def _packed(vector: Sequence[float]) -> str | Sequence[float]:
    """A vector as base64 of little-endian float32, a quarter of its size as JSON; as numbers where that would change it."""
    try:
        raw = struct.pack(f"<{len(vector)}f", *vector)
    except (OverflowError, struct.error):
        return vector
    return b64encode(raw).decode() if vector and struct.unpack(f"<{len(vector)}f", raw) == tuple(vector) else vector


def _unpacked(said: str | Sequence[float]) -> tuple[float, ...]:
    if not isinstance(said, str):
        return tuple(said)
    raw = b64decode(said)
    return struct.unpack(f"<{len(raw) // 4}f", raw)
