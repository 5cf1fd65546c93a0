"""Read from the store; each function opens it for one query and returns a frame or core type."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import pandas as pd
import pyarrow as pa

from cotlab.core.errors import UnknownName
from cotlab.core.types import CLUSTER_KEY, Item, ModelRef, Plan, ScorerSpec, Step, Suite
from cotlab.store.database import Store
from cotlab.store.recorded_models import with_recorded_models

_RUNS_SQL = """
    SELECT r.*, coalesce(e.n_ended, 0) AS n_ended, coalesce(e.n_errors, 0) AS n_errors,
           coalesce(p.name, '') AS name, coalesce(p.note, '') AS user_note,
           p.archived_at IS NOT NULL AS is_archived
    FROM runs r LEFT JOIN run_names p ON p.run = r.id LEFT JOIN (
        SELECT run, count(*) FILTER (errors = 0) AS n_ended, sum(errors)::BIGINT AS n_errors
        FROM ended WHERE $run IS NULL OR run = $run GROUP BY run) e ON e.run = r.id
    """
_NEWEST_RUNS_SQL = "SELECT id FROM runs ORDER BY planned_at DESC, id DESC LIMIT 20"
_ITEMS_SQL = "SELECT id, question, answer, steps, category, meta FROM items WHERE suite = ?"
_SCORES_SQL = """
    SELECT * EXCLUDE (run) FROM scores
    WHERE run = $run AND ($metrics IS NULL OR list_contains($metrics, metric))
      AND ($scorers IS NULL OR list_contains($scorers, scorer))
      AND ($items IS NULL OR list_contains($items, item_id))
      AND ($steps IS NULL OR list_contains($steps, step))
      AND ($facet IS NULL OR json_contains(facet, $facet))
      AND ($facet_texts IS NULL OR list_contains($facet_texts, facet))
    ORDER BY item_id, scorer, metric, facet, step, sample
    """


def list_runs(store: Store, text: str = "") -> pd.DataFrame:
    """Return all runs, the newest first; ``text`` must be in id, name, model, suite or plan."""
    with store.reading() as connection:
        runs = connection.execute(
            f"""{_RUNS_SQL}
        WHERE contains(lower(concat_ws(' ', r.id, p.name, r.model, r.suite_name, r.plan)),
                       lower($text))
        ORDER BY planned_at DESC, id DESC
        """,
            {"run": None, "text": text},
        ).df()
        return with_recorded_models(connection, runs)


def get_run(store: Store, run_id: str) -> dict[str, Any]:
    """Return the row of one run as a mapping; UnknownName if there is none."""
    with store.reading() as connection:
        rows = connection.execute(f"{_RUNS_SQL} WHERE r.id = $run", {"run": run_id}).df()
        rows = with_recorded_models(connection, rows)
        newest_runs = [] if len(rows) else connection.execute(_NEWEST_RUNS_SQL).fetchall()
    if rows.empty:
        raise UnknownName("run", run_id, [str(name) for (name,) in newest_runs])
    row = rows.iloc[0].to_dict()
    return {name: None if pd.isna(value) else value for name, value in row.items()}


def plan_from_row(row: Mapping[str, Any]) -> Plan:
    """Return the plan of a run's row."""
    return plan_from_json(row["plan"])


def plan_from_json(text: str) -> Plan:
    """Parse a plan from its canonical JSON."""
    data = json.loads(text)
    data["models"] = {role: ModelRef(**ref) for role, ref in data["models"].items()}
    data["scorers"] = tuple(ScorerSpec(**spec) for spec in data["scorers"])
    return Plan(**{field.name: data[field.name] for field in fields(Plan) if field.name in data})


def list_suites(store: Store) -> pd.DataFrame:
    """Return the stored suites, the newest first, with how many runs each has."""
    return store.query_frame(
        "SELECT s.*, (SELECT count(*) FROM runs r WHERE r.suite = s.digest) AS n_runs FROM"
        " suites s ORDER BY added_at DESC"
    )


def get_suite(store: Store, digest: str) -> Suite:
    """Return a stored suite; UnknownName where there is none.

    A redacted suite has hashes in place of texts.
    """
    with store.reading() as connection:
        name_row = connection.execute(
            "SELECT name FROM suites WHERE digest = ?", [digest]
        ).fetchone()
        rows = connection.execute(f"{_ITEMS_SQL} ORDER BY position", [digest]).fetchall()
    if name_row is None:
        raise UnknownName("suite", digest, ())
    return Suite(name_row[0], tuple(_item_from_row(*row) for row in rows), digest)


def count_items(store: Store, digest: str) -> int:
    """Count the items of a stored suite; 0 where there is none."""
    [(count,)] = store.query_rows("SELECT count(*) FROM items WHERE suite = ?", [digest])
    return int(count)


def is_suite_redacted(store: Store, digest: str) -> bool:
    """Return whether a stored suite has hashes in place of texts."""
    [(count,)] = store.query_rows(
        "SELECT count(*) FROM items WHERE suite = ? AND meta IS NULL", [digest]
    )
    return bool(count)


def get_item(store: Store, digest: str, item_id: str) -> Item:
    """Return one item of a stored suite; UnknownName where there is none."""
    rows = store.query_rows(f"{_ITEMS_SQL} AND id = ?", [digest, item_id])
    if not rows:
        raise UnknownName("item", item_id, ())
    return _item_from_row(*rows[0])


def run_scores(
    store: Store,
    run_id: str,
    *,
    metrics: Sequence[str] | None = None,
    item_id: str | None = None,
    facet: str | None = None,
) -> pd.DataFrame:
    """Return the scores of a run, all of them where no filter is given.

    ``value`` is NaN and ``step`` <NA> where NULL; the columns are the table's, without ``run``.
    A run may have millions: pages, tables and summaries take ``select_scores``.
    """
    items = None if item_id is None else [item_id]
    facet_texts = None if facet is None else [facet]
    return _query_scores(
        store, _SCORES_SQL, run_id, metrics=metrics, items=items, facet_texts=facet_texts
    )


def select_scores(
    store: Store,
    run_id: str,
    *,
    metrics: Sequence[str] | None = None,
    scorers: Sequence[str] | None = None,
    items: Sequence[str] | None = None,
    steps: Sequence[int] | None = None,
    facet: Mapping[str, str] | None = None,
    facet_texts: Sequence[str] | None = None,
    with_evidence: bool = True,
) -> pd.DataFrame:
    """Return the scores of a run that match every filter.

    Parameters
    ----------
    metrics, scorers, items, steps
        Only scores of one of these; at least one of the filters must be given.
    facet : mapping
        Names and values that a score's facet must have.
    facet_texts : sequence of str
        Canonical texts, one of which a score's facet must be.
    with_evidence : bool
        Whether to read the column evidence, which is most of a score's bytes.

    Returns
    -------
    DataFrame
        In the order of ``run_scores``.
    """
    filters = {"metrics": metrics, "scorers": scorers, "items": items, "steps": steps}
    if not any(values is not None for values in filters.values()):
        raise ValueError("select_scores needs metrics, scorers, items or steps")
    query = _SCORES_SQL if with_evidence else _SCORES_SQL.replace("(run)", "(run, evidence)")
    facet_json = json.dumps(dict(facet)) if facet else None
    return _query_scores(store, query, run_id, facet=facet_json, facet_texts=facet_texts, **filters)


def _query_scores(
    store: Store, query: str, run_id: str, **filters: Sequence[Any] | str | None
) -> pd.DataFrame:
    """Return the scores of a run, with the filters of ``_SCORES_SQL`` that are given."""
    filter_names = ("metrics", "scorers", "items", "steps", "facet", "facet_texts")
    parameters = {name: _as_parameter(filters.get(name)) for name in filter_names}
    columns = store.query_columns(query, {"run": run_id, **parameters})
    frame = columns.to_pandas(types_mapper={pa.int32(): pd.Int64Dtype()}.get)
    if len(frame) and columns["reason"].null_count == len(frame):
        frame["reason"] = pd.Series([None] * len(frame), dtype=object)
    return frame


def count_score_groups(store: Store, run_id: str) -> pd.DataFrame:
    """Return what a run has scores of, counted.

    Returns
    -------
    DataFrame
        scorer, metric, facet, n (scores), n_defined (with a value), n_steps (of a step), n_items; a
        row for each scorer, metric and facet.
    """
    return store.query_frame(
        """
        SELECT scorer, metric, facet, count(*) AS n, count(value) AS n_defined,
               count(step) AS n_steps, count(DISTINCT item_id) AS n_items
        FROM scores WHERE run = ? GROUP BY scorer, metric, facet ORDER BY scorer, metric, facet
        """,
        [run_id],
    )


def list_scored_items(
    store: Store,
    run_id: str,
    metrics: Sequence[str] | None = None,
    *,
    facet_texts: Sequence[str] | None = None,
    facet_values: Mapping[str, str] | None = None,
    only_steps: bool = False,
    only_defined: bool = False,
) -> list[str]:
    """Return the ids of items with scores that match every filter, in the order of the suite.

    ``facet_texts`` are canonical texts, one of which a score has; ``facet_values`` names values
    that it has; ``only_steps`` takes scores of steps only, ``only_defined`` those with a value.
    """
    rows = store.query_rows(
        """
        SELECT i.id FROM runs r JOIN items i ON i.suite = r.suite
        WHERE r.id = $run AND i.id IN (
            SELECT item_id FROM scores
            WHERE run = $run AND ($metrics IS NULL OR list_contains($metrics, metric))
              AND ($facets IS NULL OR list_contains($facets, facet))
              AND (NOT $steps OR step IS NOT NULL)
              AND ($facet IS NULL OR json_contains(facet, $facet))
              AND (NOT $defined OR value IS NOT NULL))
        ORDER BY i.position
        """,
        {
            "run": run_id,
            "metrics": _as_parameter(metrics),
            "facets": _as_parameter(facet_texts),
            "steps": only_steps,
            "defined": only_defined,
            "facet": json.dumps(dict(facet_values)) if facet_values else None,
        },
    )
    return [str(item_id) for (item_id,) in rows]


def _as_parameter(values: Sequence[Any] | None) -> Any:
    """Return a parameter as DuckDB takes it: a sequence as a list, a text and None as they are."""
    return values if values is None or isinstance(values, str) else list(values)


def run_estimates(store: Store, run_id: str, metrics: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the estimates of a run; ``over_`` names the unit that n counts."""
    return store.query_frame(
        "SELECT * EXCLUDE (run) FROM estimates WHERE run = $run AND ($metrics IS NULL OR"
        " list_contains($metrics, metric)) ORDER BY metric, facet",
        {"run": run_id, "metrics": _as_parameter(metrics)},
    )


def list_ended_pairs(store: Store, run_id: str) -> pd.DataFrame:
    """Return the pairs of a run that ended.

    Columns scorer, item, version, params_digest, errors, refusals.
    """
    return store.query_frame(
        "SELECT scorer, item, version, params_digest, errors, refusals FROM ended WHERE run = ?",
        [run_id],
    )


def scores_written_at(store: Store, run_id: str, item_id: str) -> int | None:
    """Return when scores of an item were last written, in microseconds since 1970, or None."""
    [(microseconds,)] = store.query_rows(
        "SELECT max(epoch_us(ended_at)) FROM ended WHERE run = ? AND item = ?", [run_id, item_id]
    )
    return None if microseconds is None else int(microseconds)


def get_constants(
    store: Store, run_id: str, scorer: str, params_digest: str
) -> Mapping[str, Any] | None:
    """Return what ``prepare`` of a scorer gave in this run, or None."""
    rows = store.query_rows(
        "SELECT value FROM constants WHERE run = ? AND scorer = ? AND params_digest = ?",
        [run_id, scorer, params_digest],
    )
    return json.loads(rows[0][0]) if rows else None


def list_constants(store: Store, run_id: str) -> dict[str, Mapping[str, Any]]:
    """Return what ``prepare`` gave in this run by scorer, such as mediation's self-test."""
    rows = store.query_rows(
        "SELECT scorer, value FROM constants WHERE run = ? ORDER BY scorer", [run_id]
    )
    return {scorer: json.loads(value) for scorer, value in rows}


def count_scores_by_status(
    store: Store, run_id: str, metric: str | None = None
) -> dict[tuple[str, str], int]:
    """Return the number of a run's scores by status and reason, the most frequent first."""
    rows = store.query_rows(
        "SELECT status, coalesce(reason, ''), count(*) AS n FROM scores"
        " WHERE run = $run AND ($metric IS NULL OR metric = $metric)"
        " GROUP BY ALL ORDER BY n DESC, 1, 2",
        {"run": run_id, "metric": metric},
    )
    return {(status, reason): int(n) for status, reason, n in rows}


def list_run_items(
    store: Store, run_id: str, limit: int | None = None, offset: int = 0
) -> pd.DataFrame:
    """Return the scored items of a run, with their scores counted, in the order of the suite.

    Columns id, question, answer, category, n_steps, n_scores, n_undefined; ``limit`` and
    ``offset`` take a part of them.
    """
    return store.query_frame(
        """
        WITH counted AS (
            SELECT item_id, count(*) AS n_scores, count(*) FILTER (status != 'ok') AS n_undefined
            FROM scores WHERE run = $run GROUP BY item_id)
        SELECT i.id, i.question, i.answer, i.category, len(i.steps) AS n_steps, c.n_scores,
               c.n_undefined
        FROM runs r JOIN items i ON i.suite = r.suite JOIN counted c ON c.item_id = i.id
        WHERE r.id = $run ORDER BY i.position LIMIT $limit OFFSET $offset
        """,
        {"run": run_id, "limit": limit, "offset": offset},
    )


def get_category_by_item(store: Store, run_id: str) -> dict[str, str]:
    """Return the category of each item of a run's suite by id; "" where it has none."""
    rows = store.query_rows(
        "SELECT i.id, coalesce(i.category, '') FROM runs r JOIN items i ON i.suite = r.suite"
        " WHERE r.id = ?",
        [run_id],
    )
    return dict(rows)


def get_cluster_by_item(store: Store, run_id: str) -> dict[str, str]:
    """Return the cluster of each item of a run's suite that has one, by id."""
    rows = store.query_rows(
        "SELECT i.id, json_extract_string(i.meta, $path) AS cluster FROM runs r JOIN items i"
        " ON i.suite = r.suite WHERE r.id = $run AND cluster IS NOT NULL",
        {"run": run_id, "path": f"$.{CLUSTER_KEY}"},
    )
    return dict(rows)


def list_domains(store: Store) -> list[str]:
    """Return the categories that items of any stored suite have, by name; "" is none."""
    rows = store.query_rows(
        "SELECT DISTINCT category FROM items WHERE category != '' ORDER BY category"
    )
    return [str(row[0]) for row in rows]


def get_store_totals(store: Store) -> dict[str, int]:
    """Count suites, items, runs and scores, and what all runs spent in micro-dollars."""
    counts = store.query_frame(
        "SELECT (SELECT count(*) FROM suites) AS suites, (SELECT count(*) FROM items) AS items,"
        " count(*) AS runs, (SELECT count(*) FROM scores) AS scores,"
        " coalesce(sum(spent_micro), 0)::BIGINT AS spent_micro FROM runs"
    )
    return {str(name): int(count) for name, count in counts.iloc[0].items()}


def _item_from_row(
    item_id: str,
    question: str,
    answer: str | None,
    steps: list[str],
    category: str,
    meta: str | None,
) -> Item:
    return Item(
        item_id,
        question,
        answer,
        tuple(Step(step_index, text) for step_index, text in enumerate(steps)),
        category,
        json.loads(meta) if meta else {},
    )
