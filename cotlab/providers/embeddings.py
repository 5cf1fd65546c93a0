"""Vectors of an OpenAI-compatible server: the request and the reply of /v1/embeddings."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from cotlab.core.errors import BadReply, Unsupported
from cotlab.core.requests import Embed, Response, Usage
from cotlab.providers import wire


def embedding_parameters(request: Embed) -> dict[str, Any]:
    """Return a request for vectors as /v1/embeddings takes it."""
    if not all(text.strip() for text in request.texts):
        raise Unsupported("a text without a word has no vector")
    texts = [wire.replace_surrogates(text) for text in request.texts]
    return {"model": request.model.name, "input": texts, "encoding_format": "float"}


def read_vectors(request: Embed, body: Any) -> Response:
    """Convert a list of embeddings to a response with vectors of unit length, in order."""
    body = wire.require_object(body, "it")
    rows = wire.require_objects(body.get("data"), "data", "embedding")
    vector_by_index = {row.get("index"): row.get("embedding") for row in rows}
    if len(rows) != len(request.texts) or vector_by_index.keys() != set(range(len(rows))):
        raise BadReply("the server returns embeddings of another number of texts")
    n_tokens = wire.optional_count(wire.optional_object(body.get("usage")).get("prompt_tokens"))
    return Response(
        request.key,
        vectors=tuple(_unit_vector(vector_by_index[index]) for index in range(len(rows))),
        usage=Usage(n_tokens, None if n_tokens is None else 0),
        received_at=datetime.now(UTC).isoformat(),
        model=wire.optional_text(body.get("model")),
    )


def _unit_vector(embedding: Any) -> tuple[float, ...]:
    vector = [
        wire.require_number(value, "embedding")
        for value in wire.require_list(embedding, "embedding")
    ]
    length = math.hypot(*vector)
    if not 0 < length < math.inf:
        raise BadReply("the server returns an embedding without a direction")
    return tuple(value / length for value in vector)
