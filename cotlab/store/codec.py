"""Requests and replies as the JSON text that the response log holds."""

from __future__ import annotations

import json
import re
import struct
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any

from cotlab.core.keys import to_json_value
from cotlab.core.requests import Located, Request, Response, Token, Usage

_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a character: a lone \\ud83d."""


def encode_request(request: Request) -> str:
    """Return a request as text."""
    try:
        return request.json_bytes.decode("utf-8")
    except UnicodeDecodeError:
        return encode_json(request.to_json())


def encode_json(value: Any) -> str:
    """Return JSON text; lone surrogates, which no encoding takes, stay escapes."""
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isascii() or not _SURROGATE.search(text) else json.dumps(value)


def encode_response(response: Response) -> dict[str, Any]:
    """Return a reply as JSON values without empty fields.

    Tokens are [text, logprob, alternatives].
    """
    fields: dict[str, Any] = {
        "key": response.key,
        "text": response.text,
        "numbers": response.numbers,
        "vectors": None if response.vectors is None else tuple(map(_pack_vector, response.vectors)),
        "located": None if response.located is None else to_json_value(response.located),
        "tokens": [(t.text, t.logprob, t.top) for t in response.tokens],
        "usage": to_json_value(response.usage),
        "finish": response.finish,
        "refused": response.refused,
        "reasoning": response.reasoning,
        "sent": to_json_value(response.sent),
        "device": response.device,
        "batch": response.batch,
        "received_at": response.received_at,
        "model": response.model,
    }
    return {
        k: v
        for k, v in fields.items()
        if v not in (None, [], {}) and (v != "" or k in ("text", "reasoning"))
    }


def decode_response(text: str) -> Response:
    """Return the reply of a stored text."""
    row = json.loads(text)
    row["usage"] = Usage(**row.get("usage", {}))
    row["tokens"] = tuple(
        Token(text, logprob, tuple((o[0], o[1]) for o in top))
        for text, logprob, top in row.get("tokens", ())
    )
    if "numbers" in row:
        row["numbers"] = tuple(row["numbers"])
    if "vectors" in row:
        row["vectors"] = tuple(map(_unpack_vector, row["vectors"]))
    if "located" in row:
        located = row["located"]
        row["located"] = Located(
            tuple(map(tuple, located["positions"])),
            tuple(located["pieces"]),
            located["layers"],
            located["dtype"],
        )
    return Response(**row)


def _pack_vector(vector: Sequence[float]) -> str | Sequence[float]:
    """Return a vector as base64 of little-endian float32, a quarter of its size as JSON.

    Where that would change a number, the vector stays as it is.
    """
    try:
        raw = struct.pack(f"<{len(vector)}f", *vector)
    except (OverflowError, struct.error):
        return vector
    return (
        b64encode(raw).decode()
        if vector and struct.unpack(f"<{len(vector)}f", raw) == tuple(vector)
        else vector
    )


def _unpack_vector(packed: str | Sequence[float]) -> tuple[float, ...]:
    if not isinstance(packed, str):
        return tuple(packed)
    raw = b64decode(packed)
    return struct.unpack(f"<{len(raw) // 4}f", raw)
