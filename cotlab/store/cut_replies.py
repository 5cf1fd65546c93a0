"""Count the replies that were cut off at their largest number of output tokens."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

EVIDENCE_SQL = "SELECT DISTINCT unnest(evidence) AS key FROM scores WHERE run = ?"
"""Keys of the requests that the scores of a run rest on, in the store."""
_CUT_SQL = """
SELECT json_extract(request, '$.max_tokens'), count(*),
       sum(coalesce(json_extract(response, '$.finish'), '') = 'length')
FROM replies
WHERE key IN (SELECT value FROM json_each(?)) AND kind = 'complete'
  AND json_valid(response) AND json_valid(coalesce(request, 'null'))
GROUP BY 1 ORDER BY 1
"""


class CutReplies(NamedTuple):
    """The replies to requests of one largest number of output tokens."""

    max_tokens: int | None
    """The largest number; None where requests are redacted."""
    n_replies: int
    """Replies that the run's scores rest on."""
    n_cut_off: int
    """Those of them that ended there."""


def read_cut_replies(connection: sqlite3.Connection, keys: Sequence[str]) -> list[CutReplies]:
    """Return the replies with these keys by their largest number of output tokens."""
    return [CutReplies(*row) for row in connection.execute(_CUT_SQL, (json.dumps(keys),))]


def add_cut_replies(counts: Iterable[CutReplies]) -> list[CutReplies]:
    """Return counts of disjoint sets of replies added up, by number of tokens as the log has them.

    Requests that are redacted come first, as in each of the sets.
    """
    sums: dict[int | None, tuple[int, int]] = {}
    for count in counts:
        n_replies, n_cut_off = sums.get(count.max_tokens, (0, 0))
        sums[count.max_tokens] = (n_replies + count.n_replies, n_cut_off + count.n_cut_off)
    rising = sorted(sums, key=lambda n: (n is not None, isinstance(n, str), n or 0))
    return [CutReplies(max_tokens, *sums[max_tokens]) for max_tokens in rising]
