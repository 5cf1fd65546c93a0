"""Find a text in the questions, the chains and the stored replies of runs.

The database files do the searching: only the hits of one page come into memory.
"""

from __future__ import annotations

import json
import re
from contextlib import closing
from typing import Literal, NamedTuple

import pyarrow as pa

from cotlab.core.errors import ConfigError
from cotlab.store.database import Store
from cotlab.store.log import open_log

HITS_PER_PAGE = 50
"""Hits of one page of results."""
MAX_SEARCH_CHARACTERS = 300
"""Longest text that can be searched for."""
Part = Literal["question", "step", "reply"]
"""Where a text was found."""

_CHOSEN_SQL = """
    SELECT r.id, r.suite FROM runs r LEFT JOIN run_names p ON p.run = r.id
    WHERE CASE WHEN $run IS NULL THEN $archived OR p.archived_at IS NULL ELSE r.id = $run END
    """
_KEYS_SQL = "SELECT DISTINCT unnest(evidence) FROM scores WHERE run = ?"
_PASSAGES_SQL = """
    WITH searched AS (
        SELECT * FROM items
        WHERE meta IS NOT NULL AND suite IN (SELECT value FROM json_each(:suites))
    )
    SELECT suite, id, 'question', NULL, question, NULL FROM searched WHERE is_match(question)
    UNION ALL
    SELECT suite, searched.id, 'step', step.key, step.value, NULL
    FROM searched, json_each(steps) AS step WHERE is_match(step.value)
    UNION ALL
    SELECT NULL, NULL, 'reply', NULL, NULL, key FROM replies
    WHERE (:keys IS NULL OR key IN (SELECT value FROM json_each(:keys))) AND NOT redacted
      AND is_match(CASE WHEN json_valid(response) THEN json_extract(response, '$.text') END)
    """
"""The texts with a match in ``log.sqlite``; of replies their keys alone."""
_PASSAGES = pa.schema(
    [
        *((name, pa.string()) for name in ("suite", "id", "part")),
        ("step", pa.int32()),
        *((name, pa.string()) for name in ("text", "key")),
    ]
)
_HITS_SQL = """
    WITH facts AS (
        SELECT run, item_id,
               min(value) FILTER (metric = 'baseline_correct') AS lowest_correct,
               max(value) FILTER (metric = 'baseline_correct') AS highest_correct,
               max(value) FILTER (metric IN ('answer_change', 'perturbed_answer_change')) AS change,
               bool_or(contains(facet, '"chain": "reference"')) AS is_reference
        FROM scores WHERE list_contains($runs, run) GROUP BY ALL
    ),
    searched AS (
        SELECT r.planned_at, f.run, i.position, i.suite, i.id, i.question,
               coalesce(i.category, '') AS category, f.is_reference
        FROM facts f JOIN runs r ON r.id = f.run
        JOIN items i ON i.suite = r.suite AND i.id = f.item_id
        WHERE ($category IS NULL OR i.category = $category)
          AND CASE $answer WHEN 'right' THEN f.lowest_correct = 1
                           WHEN 'wrong' THEN f.highest_correct = 0 ELSE true END
          AND CASE $flipped WHEN 'yes' THEN f.change > 0
                            WHEN 'no' THEN f.change = 0 ELSE true END
    ),
    evidence AS (
        SELECT run, item_id, step, unnest(evidence) AS key FROM scores
        WHERE $has_replies AND list_contains($runs, run)
    ),
    replied AS (
        SELECT run, item_id, key, min(step) AS step FROM evidence
        WHERE key IN (SELECT key FROM passages WHERE key IS NOT NULL) GROUP BY ALL
    ),
    hits AS (
        SELECT s.*, p.part, p.step, p.text, p.key
        FROM searched s JOIN passages p ON p.suite = s.suite AND p.id = s.id
        UNION ALL
        SELECT s.*, 'reply', r.step, NULL, r.key
        FROM searched s JOIN replied r ON r.run = s.run AND r.item_id = s.id
    )
    SELECT run, id, question, category, part, step, text, key, coalesce(is_reference, false),
           count(*) OVER ()
    FROM hits
    ORDER BY planned_at DESC, run, position, CASE part WHEN 'question' THEN 0 WHEN 'step' THEN 1
             ELSE 2 END, step, key
    LIMIT $limit OFFSET $offset
    """


class SearchQuery(NamedTuple):
    """What to search for, and in which items."""

    text: str
    """The text; upper and lower case are the same."""
    run: str | None = None
    """Id of the run to search in; None for all runs."""
    answer: Literal["right", "wrong"] | None = None
    """Only items whose answer to the unchanged chain is right, or wrong, by every score of it."""
    flipped: Literal["yes", "no"] | None = None
    """Only items whose answer an intervention on a step changed, or of which none did."""
    category: str | None = None
    """Only items of this category."""
    full_word: bool = False
    """Whether letters and digits may not continue the text on either side."""
    archived: bool = False
    """Whether archived runs are searched too, where no run is named."""

    def find(self, text: object) -> tuple[int, int] | None:
        """Return where in a text the first match is; None where it has none."""
        pattern = re.escape(self.text.strip())
        if self.full_word:
            pattern = rf"(?<!\w){pattern}(?!\w)"
        match = re.search(pattern, text, re.IGNORECASE) if isinstance(text, str) else None
        return match.span() if match is not None else None


class SearchHit(NamedTuple):
    """A text in which the search text occurs."""

    run: str
    """Id of the run."""
    item_id: str
    """Id of the item."""
    question: str
    """Question of the item."""
    category: str
    """Category of the item; "" for none."""
    part: Part
    """Whether it is the question, a step of the suite's chain, or a reply."""
    step: int | None
    """Index of the step from 0; of a reply the first step whose score rests on it."""
    text: str | None
    """The text; None of a reply that the log lost meanwhile."""
    key: str | None
    """Key of the request that the reply answers; None of other texts."""
    is_reference_run: bool
    """Whether the run scored the suite's chain, so that its steps are those of the page Item."""


class SearchResult(NamedTuple):
    """A page of hits."""

    hits: tuple[SearchHit, ...]
    """The hits of this page: newest run first, then in the order of the suite."""
    n_hits: int
    """Hits in all."""


def search_texts(
    store: Store, query: SearchQuery, *, limit: int = HITS_PER_PAGE, offset: int = 0
) -> SearchResult:
    """Return a page of the texts in which a text occurs.

    Redacted texts are not searched. A page behind the last has no hits.

    Raises
    ------
    ConfigError
        If the text is empty, too long or no UTF-8 text.
    """
    _require_text(query.text.strip())
    with store.reading() as connection:
        parameters = {"run": query.run, "archived": query.archived}
        suite_by_run = dict(connection.execute(_CHOSEN_SQL, parameters).fetchall())
        keys = None
        if query.run is not None:
            keys = [key for (key,) in connection.execute(_KEYS_SQL, [query.run]).fetchall()]
        passages = _find_passages(store, query, sorted(set(suite_by_run.values())), keys)
        connection.register("passages", passages)
        facets = {name: getattr(query, name) for name in ("answer", "flipped", "category")}
        has_replies = passages["key"].null_count < len(passages)
        fixed = {**facets, "runs": list(suite_by_run), "has_replies": has_replies}
        rows = connection.execute(_HITS_SQL, {**fixed, "limit": limit, "offset": offset}).fetchall()
        first_rows = rows
        if not rows and offset:
            first_rows = connection.execute(
                _HITS_SQL, {**fixed, "limit": 1, "offset": 0}
            ).fetchall()
        connection.unregister("passages")
    texts = _reply_texts(store, [row[7] for row in rows if row[7] is not None])
    hits = (
        SearchHit(run, item, question, category, part, step, texts.get(key, text), key, is_read)
        for run, item, question, category, part, step, text, key, is_read, _ in rows
    )
    return SearchResult(tuple(hits), int(first_rows[0][-1]) if first_rows else 0)


def hit_passage(hit: SearchHit, query: SearchQuery, n_around: int = 90) -> tuple[str, str, str]:
    """Return what stands before the match of a hit, the match, and what follows, on one line.

    The match is empty where the hit's text has none any more.
    """
    text = hit.text or ""
    start, end = query.find(text) or (0, 0)
    before, after = text[max(0, start - n_around) : start], text[end : end + n_around]
    return (
        ("…" if start > n_around else "") + _single_line(before),
        _single_line(text[start:end]),
        _single_line(after) + ("…" if end + n_around < len(text) else ""),
    )


def _single_line(text: str) -> str:
    return re.sub(r"\s+", " ", "".join(char if char.isprintable() else " " for char in text))


def _find_passages(
    store: Store, query: SearchQuery, suites: list[str], keys: list[str] | None
) -> pa.Table:
    """Return the texts with a match in suites, and in these replies or (None) in all."""
    if not suites:
        return _PASSAGES.empty_table()
    with closing(open_log(store.log_path)) as log:
        log.create_function("is_match", 1, lambda text: query.find(text) is not None)
        parameters = {
            "suites": json.dumps(suites),
            "keys": None if keys is None else json.dumps(keys),
        }
        rows = log.execute(_PASSAGES_SQL, parameters).fetchall()
    return pa.Table.from_pylist(
        [dict(zip(_PASSAGES.names, row, strict=True)) for row in rows], schema=_PASSAGES
    )


def _reply_texts(store: Store, keys: list[str]) -> dict[str | None, str]:
    """Return the texts of stored replies by key."""
    if not keys:
        return {}
    with closing(open_log(store.log_path)) as connection:
        rows = connection.execute(
            "SELECT key, json_extract(response, '$.text') FROM replies"
            " WHERE key IN (SELECT value FROM json_each(?)) AND json_valid(response)",
            (json.dumps(keys),),
        ).fetchall()
    return {key: text for key, text in rows if isinstance(text, str)}


def _require_text(text: str) -> None:
    if not text:
        raise ConfigError("Give a text to search for.")
    if len(text) > MAX_SEARCH_CHARACTERS:
        raise ConfigError(f"A text to search for has at most {MAX_SEARCH_CHARACTERS} characters.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ConfigError("A text to search for has to be UTF-8 text.") from error
