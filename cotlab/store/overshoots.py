"""Calls that cost more than was reserved, as servers reported more tokens than allowed."""

from __future__ import annotations

import json
import sqlite3
from typing import Any, NamedTuple


class Overshoot(NamedTuple):
    """What one model's replies of a run cost beyond their reserve, in micro-dollars."""

    model: dict[str, Any] | None
    """The model as in the request; None where requests are redacted."""
    replies: int
    """Replies that cost more than their reserve."""
    beyond: int
    """What they cost beyond it, in all."""
    tokens_in: int
    """Most input tokens that one of them reported."""
    tokens_out: int
    """Most output tokens that one of them reported."""
    beyond_in: int | None
    """Most input tokens of one beyond the bytes of its request; None where redacted."""
    beyond_out: int | None
    """Most output tokens of one beyond its max_tokens; None where redacted."""


_QUERY = """
SELECT json_extract(r.request, '$.model'), count(*), sum(c.cost - c.reserved),
       max(coalesce(json_extract(r.response, '$.usage.tokens_in'), c.tokens)),
       max(coalesce(json_extract(r.response, '$.usage.tokens_out'), c.tokens)),
       max(json_extract(r.response, '$.usage.tokens_in') - length(CAST(r.request AS BLOB))),
       max(json_extract(r.response, '$.usage.tokens_out')
           - coalesce(json_extract(r.request, '$.max_tokens'), 0))
FROM calls c LEFT JOIN replies r ON r.key = c.key
WHERE c.run = ? AND c.cost > c.reserved
GROUP BY 1 ORDER BY 1
"""


def read_overshoots(connection: sqlite3.Connection, run: str) -> list[Overshoot]:
    """Return what the calls of a run cost beyond their reserve, one entry a model."""
    rows = []
    for model, replies, beyond, tokens_in, tokens_out, beyond_in, beyond_out in connection.execute(
        _QUERY, (run,)
    ):
        known = model is not None
        rows.append(
            Overshoot(
                json.loads(model) if known else None,
                replies,
                beyond,
                tokens_in,
                tokens_out,
                beyond_in if known else None,
                beyond_out if known else None,
            )
        )
    return rows
