"""Count the replies that were cut off at their largest number of output tokens."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
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
