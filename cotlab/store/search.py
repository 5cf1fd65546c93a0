"""Find a text in the questions, the chains and the stored replies of runs.

The database files do the searching: only the hits of one page come into memory.
"""

from __future__ import annotations

import json
import re
from contextlib import closing
from typing import Literal, NamedTuple

from cotlab.core.errors import ConfigError
from cotlab.store.database import Store
from cotlab.store.log import open_log

HITS_PER_PAGE = 50
"""Hits of one page of results."""
MAX_SEARCH_CHARACTERS = 300
"""Longest text that can be searched for."""
Part = Literal["question", "step", "reply"]
"""Where a text was found."""

_WORD_START, _WORD_END = r"(^|[^\p{L}\p{N}_])", r"([^\p{L}\p{N}_]|$)"
_FACTS_SQL = """
    chosen AS (
        SELECT r.id AS run, r.suite, r.planned_at FROM runs r LEFT JOIN run_names p ON p.run = r.id
        WHERE CASE WHEN $run IS NULL THEN $archived OR p.archived_at IS NULL ELSE r.id = $run END
    ),
    facts AS (
        SELECT s.run, s.item_id,
               min(value) FILTER (metric = 'baseline_correct') AS lowest_correct,
               max(value) FILTER (metric = 'baseline_correct') AS highest_correct,
               max(value) FILTER (metric IN ('answer_change', 'perturbed_answer_change')) AS change,
               bool_or(contains(facet, '"chain": "reference"')) AS is_reference
        FROM scores s JOIN chosen c ON c.run = s.run GROUP BY ALL
    ),
    searched AS (
        SELECT c.run, c.planned_at, i.*, f.is_reference
        FROM facts f JOIN chosen c ON c.run = f.run
        JOIN items i ON i.suite = c.suite AND i.id = f.item_id
        WHERE ($category IS NULL OR i.category = $category)
          AND CASE $answer WHEN 'right' THEN f.lowest_correct = 1
                           WHEN 'wrong' THEN f.highest_correct = 0 ELSE true END
          AND CASE $flipped WHEN 'yes' THEN f.change > 0
                            WHEN 'no' THEN f.change = 0 ELSE true END
    )"""
_HITS_SQL = f"""
    WITH {_FACTS_SQL},
    passages AS (
        SELECT DISTINCT i.suite, i.id, 'question' AS part, NULL::INTEGER AS step, i.question AS text
        FROM items i WHERE i.suite IN (SELECT suite FROM chosen) AND i.meta IS NOT NULL
        UNION ALL
        SELECT i.suite, i.id, 'step', generate_subscripts(i.steps, 1)::INTEGER - 1, unnest(i.steps)
        FROM items i WHERE i.suite IN (SELECT suite FROM chosen) AND i.meta IS NOT NULL
    ),
    matching AS (
        SELECT * FROM passages
        WHERE CASE WHEN $pattern IS NULL THEN contains(lower(text), $text)
                   ELSE regexp_matches(lower(text), $pattern) END
    ),
    evidence AS (
        SELECT s.run, s.item_id, s.step, unnest(s.evidence) AS key
        FROM scores s JOIN chosen c ON c.run = s.run WHERE len($keys) > 0
    ),
    replied AS (
        SELECT run, item_id, key, min(step) AS step FROM evidence
        WHERE key IN (SELECT unnest($keys)) GROUP BY ALL
    ),
    hits AS (
        SELECT s.run, s.planned_at, s.position, s.id, s.question, s.category, m.part,
               m.step, m.text, NULL AS key, s.is_reference
        FROM searched s JOIN matching m ON m.suite = s.suite AND m.id = s.id
        UNION ALL
        SELECT s.run, s.planned_at, s.position, s.id, s.question, s.category, 'reply',
               r.step, NULL, r.key, s.is_reference
        FROM searched s JOIN replied r ON r.run = s.run AND r.item_id = s.id
    )
    SELECT run, id, question, coalesce(category, ''), part, step, text, key,
           coalesce(is_reference, false), count(*) OVER ()
    FROM hits
    ORDER BY planned_at DESC, run, position, CASE part WHEN 'question' THEN 0 WHEN 'step' THEN 1
             ELSE 2 END, step, key
    LIMIT $limit OFFSET $offset
    """
_KEYS_SQL = """
    SELECT DISTINCT unnest(evidence) FROM scores WHERE run = ?
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

    def find(self, text: str) -> tuple[int, int] | None:
        """Return where in a text the match is; None where it has none."""
        pattern = re.escape(self.text)
        if self.full_word:
            pattern = rf"(?<!\w){pattern}(?!\w)"
        match = re.search(pattern, text, re.IGNORECASE)
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
    query = query._replace(text=query.text.strip())
    _require_text(query.text)
    with store.reading() as connection:
        keys = _matching_keys(
            store,
            query,
            None
            if query.run is None
            else [key for (key,) in connection.execute(_KEYS_SQL, [query.run]).fetchall()],
        )
        parameters = {
            **{name: getattr(query, name) for name in ("run", "answer", "flipped", "category")},
            "archived": query.archived,
            "text": query.text.lower(),
            "pattern": _word_pattern(query),
            "keys": keys,
        }
        rows = connection.execute(
            _HITS_SQL, {**parameters, "limit": limit, "offset": offset}
        ).fetchall()
        n_hits = int(rows[0][-1]) if rows else 0
        if not rows and offset:
            first_row = connection.execute(
                _HITS_SQL, {**parameters, "limit": 1, "offset": 0}
            ).fetchone()
            n_hits = int(first_row[-1]) if first_row else 0
    texts = _reply_texts(store, [row[7] for row in rows if row[7] is not None])
    hits = (
        SearchHit(run, item, question, category, part, step, texts.get(key, text), key, is_read)
        for run, item, question, category, part, step, text, key, is_read, _ in rows
    )
    return SearchResult(tuple(hits), n_hits)


def hit_passage(hit: SearchHit, query: SearchQuery, n_around: int = 90) -> tuple[str, str, str]:
    """Return what stands before the match of a hit, the match, and what follows, on one line.

    The match is empty where the hit's text has none any more.
    """
    text = hit.text or ""
    start, end = query._replace(text=query.text.strip()).find(text) or (0, 0)
    before, after = text[max(0, start - n_around) : start], text[end : end + n_around]
    return (
        ("…" if start > n_around else "") + _single_line(before),
        _single_line(text[start:end]),
        _single_line(after) + ("…" if end + n_around < len(text) else ""),
    )


def _single_line(text: str) -> str:
    return re.sub(r"\s+", " ", "".join(char if char.isprintable() else " " for char in text))


def _word_pattern(query: SearchQuery) -> str | None:
    """Return the pattern of whole words in lower case, as the database reads it."""
    if not query.full_word:
        return None
    escaped_text = "".join(
        rf"\x{{{ord(char):x}}}" if not char.isalnum() else char for char in query.text.lower()
    )
    return f"{_WORD_START}{escaped_text}{_WORD_END}"


def _matching_keys(store: Store, query: SearchQuery, keys: list[str] | None) -> list[str]:
    """Return the keys of the replies with the text, of these or (None) of all in the log."""
    if not store.log_path.exists() or keys == []:
        return []
    pattern = _python_pattern(query)

    def is_match(text: object) -> bool:
        return isinstance(text, str) and pattern.search(text.lower()) is not None

    with closing(open_log(store.log_path)) as connection:
        connection.create_function("is_match", 1, is_match, deterministic=True)
        rows = connection.execute(
            "SELECT key FROM replies WHERE (? IS NULL OR key IN (SELECT value FROM json_each(?)))"
            " AND NOT redacted AND is_match(CASE WHEN json_valid(response)"
            " THEN json_extract(response, '$.text') END)",
            (None if keys is None else 1, "[]" if keys is None else json.dumps(keys)),
        ).fetchall()
    return [key for (key,) in rows]


def _python_pattern(query: SearchQuery) -> re.Pattern[str]:
    escaped_text = re.escape(query.text.lower())
    return re.compile(rf"(?<!\w){escaped_text}(?!\w)" if query.full_word else escaped_text)


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
