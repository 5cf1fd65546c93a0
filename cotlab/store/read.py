"""Read from the store; each function opens it for one query and returns a frame or core type."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import pandas as pd

from cotlab.core.errors import UnknownName
from cotlab.core.types import Item, ModelRef, Plan, ScorerSpec, Step, Suite
from cotlab.store.database import Store

_RUNS = """
    SELECT r.*, (SELECT count(*) FROM ended e WHERE e.run = r.id AND e.errors = 0) AS n_ended,
           (SELECT coalesce(sum(e.errors), 0)::BIGINT FROM ended e WHERE e.run = r.id) AS n_errors
    FROM runs r
    """
_NEWEST_RUNS = "SELECT id FROM runs ORDER BY planned_at DESC, id DESC LIMIT 20"
_SCORE_ORDER = "item_id, scorer, metric, facet, step, sample"
_INTEGERS = ("step", "sample", "where_lo", "where_hi")


def list_runs(store: Store, status: str | None = None, text: str = "") -> pd.DataFrame:
    """Return all runs, the newest first; ``text`` must occur in id, model, suite or plan."""
    with store.reading() as connection:
        return connection.execute(
            f"""{_RUNS}
            WHERE ($status IS NULL OR r.status = $status)
              AND contains(lower(concat_ws(' ', r.id, r.model, r.suite_name, r.plan)), lower($text))
            ORDER BY planned_at DESC, id DESC
            """,
            {"status": status, "text": text},
        ).df()


def get_run(store: Store, run_id: str) -> dict[str, Any]:
    """Return the row of one run as a mapping; UnknownName if there is none."""
    with store.reading() as connection:
        rows = connection.execute(f"{_RUNS} WHERE r.id = $run", {"run": run_id}).df()
        known = [] if len(rows) else connection.execute(_NEWEST_RUNS).fetchall()
    if rows.empty:
        raise UnknownName("run", run_id, [str(name) for (name,) in known])
    return {
        name: None if pd.isna(value) else value for name, value in rows.iloc[0].to_dict().items()
    }


def stored_plan(row: Mapping[str, Any]) -> Plan:
    """Return the plan of a run's row."""
    return plan_from_json(row["plan"])


def plan_from_json(text: str) -> Plan:
    """Parse a plan from its canonical JSON."""
    data = json.loads(text)
    data["models"] = {role: ModelRef(**ref) for role, ref in data["models"].items()}
    data["scorers"] = tuple(ScorerSpec(**spec) for spec in data["scorers"])
    return Plan(**{f.name: data[f.name] for f in fields(Plan) if f.name in data})


def list_suites(store: Store) -> pd.DataFrame:
    """Return the stored suites, the newest first, with how many runs each has."""
    with store.reading() as connection:
        return connection.execute(
            "SELECT s.*, (SELECT count(*) FROM runs r WHERE r.suite = s.digest) AS n_runs FROM"
            " suites s ORDER BY added_at DESC"
        ).df()


def get_suite(store: Store, digest: str) -> Suite:
    """Return a stored suite; UnknownName where there is none.

    A redacted suite has hashes in place of texts.
    """
    with store.reading() as connection:
        name_row = connection.execute(
            "SELECT name FROM suites WHERE digest = ?", [digest]
        ).fetchone()
        rows = connection.execute(
            "SELECT id, question, answer, steps, category, meta FROM items WHERE suite = ? ORDER BY"
            " position",
            [digest],
        ).fetchall()
    if name_row is None:
        raise UnknownName("suite", digest, ())
    return Suite(name_row[0], tuple(_item(*row) for row in rows), digest)


def is_redacted(store: Store, digest: str) -> bool:
    with store.reading() as connection:
        row = connection.execute(
            "SELECT count(*) FROM items WHERE suite = ? AND meta IS NULL", [digest]
        ).fetchone()
    return bool(row and row[0])


def get_item(store: Store, digest: str, item_id: str) -> Item:
    """Return one item of a stored suite; UnknownName where there is none."""
    with store.reading() as connection:
        row = connection.execute(
            "SELECT id, question, answer, steps, category, meta FROM items WHERE suite = ? AND"
            " id = ?",
            [digest, item_id],
        ).fetchone()
    if row is None:
        raise UnknownName("item", item_id, ())
    return _item(*row)


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
    with store.reading() as connection:
        frame = connection.execute(
            f"""
            SELECT * EXCLUDE (run) FROM scores
            WHERE run = $run AND ($item IS NULL OR item_id = $item)
              AND ($facet IS NULL OR facet = $facet)
              AND ($metrics IS NULL OR list_contains($metrics, metric))
            ORDER BY {_SCORE_ORDER}
            """,
            {"run": run_id, "item": item_id, "facet": facet, "metrics": _listed(metrics)},
        ).df()
    return _with_integers(frame)


def select_scores(
    store: Store,
    run_id: str,
    *,
    metrics: Sequence[str] | None = None,
    scorers: Sequence[str] | None = None,
    items: Sequence[str] | None = None,
    steps: Sequence[int] | None = None,
    facet: Mapping[str, str] | None = None,
    columns: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Return the scores of a run that match every filter.

    Parameters
    ----------
    metrics, scorers, items, steps
        Only scores of one of these; at least one of the filters must be given.
    facet : mapping
        Names and values that a score's facet must have.
    columns : sequence of str, optional
        Only these columns; evidence is most of a score's bytes.

    Returns
    -------
    DataFrame
        In the order of ``run_scores``.
    """
    filters: dict[str, Any] = {
        "metric": _listed(metrics),
        "scorer": _listed(scorers),
        "item_id": _listed(items),
        "step": _listed(steps),
    }
    filters = {name: values for name, values in filters.items() if values is not None}
    if not filters:
        raise ValueError("select_scores needs metrics, scorers, items or steps")
    where = " AND ".join(f"list_contains(${name}, {name})" for name in filters)
    has_facet, facet_values = _facet_filter(facet)
    chosen = ", ".join(f'"{name}"' for name in columns) if columns else "* EXCLUDE (run)"
    with store.reading() as connection:
        frame = connection.execute(
            f"SELECT {chosen} FROM scores WHERE run = $run AND {where}{has_facet}"
            f" ORDER BY {_SCORE_ORDER}",
            {"run": run_id, **filters, **facet_values},
        ).df()
    return _with_integers(frame)


def score_groups(store: Store, run_id: str) -> pd.DataFrame:
    """Return what a run has scores of, counted.

    Returns
    -------
    DataFrame
        scorer, metric, facet, n (scores), n_defined (with a value), n_steps (of a step), n_items; a
        row for each scorer, metric and facet.
    """
    with store.reading() as connection:
        return connection.execute(
            """
            SELECT scorer, metric, facet, count(*) AS n, count(value) AS n_defined,
                   count(step) AS n_steps, count(DISTINCT item_id) AS n_items
            FROM scores WHERE run = ? GROUP BY scorer, metric, facet ORDER BY scorer, metric, facet
            """,
            [run_id],
        ).df()


def scored_items(
    store: Store,
    run_id: str,
    metrics: Sequence[str] | None = None,
    *,
    facets: Sequence[str] | None = None,
    facet: Mapping[str, str] | None = None,
    steps: bool = False,
    defined: bool = False,
) -> list[str]:
    """Return the ids of items with scores that match every filter, in the order of the suite.

    ``facets`` are canonical texts, one of which a score has; ``facet`` names values that it has;
    ``steps`` takes scores of steps only, ``defined`` those with a value.
    """
    has_facet, facet_values = _facet_filter(facet)
    with store.reading() as connection:
        rows = connection.execute(
            f"""
            SELECT i.id FROM runs r JOIN items i ON i.suite = r.suite
            WHERE r.id = $run AND i.id IN (
                SELECT item_id FROM scores
                WHERE run = $run AND ($metrics IS NULL OR list_contains($metrics, metric))
                  AND ($facets IS NULL OR list_contains($facets, facet))
                  AND (NOT $steps OR step IS NOT NULL)
                  AND (NOT $defined OR value IS NOT NULL){has_facet})
            ORDER BY i.position
            """,
            {
                "run": run_id,
                "metrics": _listed(metrics),
                "facets": _listed(facets),
                "steps": steps,
                "defined": defined,
                **facet_values,
            },
        ).fetchall()
    return [str(item_id) for (item_id,) in rows]


def _facet_filter(facet: Mapping[str, str] | None) -> tuple[str, dict[str, str]]:
    """Return conditions that a facet has some values, to add to others, and their parameters."""
    where, values = "", dict[str, str]()
    for k, (name, value) in enumerate((facet or {}).items()):
        where += f" AND json_extract_string(facet, $name{k}) = $value{k}"
        values |= {f"name{k}": f'$."{name}"', f"value{k}": value}
    return where, values


def _listed(values: Sequence[Any] | None) -> list[Any] | None:
    return None if values is None else list(values)


def _with_integers(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.astype({name: "Int64" for name in _INTEGERS if name in frame.columns})


def run_estimates(store: Store, run_id: str, metrics: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the estimates of a run; ``over_`` names the unit that n counts."""
    with store.reading() as connection:
        return connection.execute(
            "SELECT * EXCLUDE (run) FROM estimates WHERE run = $run AND ($metrics IS NULL OR"
            " list_contains($metrics, metric)) ORDER BY metric, facet",
            {"run": run_id, "metrics": list(metrics) if metrics is not None else None},
        ).df()


def ended_pairs(store: Store, run_id: str) -> pd.DataFrame:
    """Return the pairs of a run that ended.

    Columns scorer, item, version, params_digest, errors, refusals.
    """
    with store.reading() as connection:
        return connection.execute(
            "SELECT scorer, item, version, params_digest, errors, refusals FROM ended WHERE"
            " run = ?",
            [run_id],
        ).df()


def written_at(store: Store, run_id: str, item_id: str) -> int | None:
    """Return when scores of an item were last written, in microseconds since 1970, or None."""
    with store.reading() as connection:
        row = connection.execute(
            "SELECT max(epoch_us(ended_at)) FROM ended WHERE run = ? AND item = ?",
            [run_id, item_id],
        ).fetchone()
    return row[0] if row else None


def constants(
    store: Store, run_id: str, scorer: str, params_digest: str
) -> Mapping[str, Any] | None:
    """Return what ``prepare`` of a scorer gave in this run, or None."""
    with store.reading() as connection:
        row = connection.execute(
            "SELECT value FROM constants WHERE run = ? AND scorer = ? AND params_digest = ?",
            [run_id, scorer, params_digest],
        ).fetchone()
    return json.loads(row[0]) if row else None


def prepared(store: Store, run_id: str) -> dict[str, Mapping[str, Any]]:
    """Return what ``prepare`` gave in this run by scorer, such as mediation's self-test."""
    with store.reading() as connection:
        rows = connection.execute(
            "SELECT scorer, value FROM constants WHERE run = ? ORDER BY scorer", [run_id]
        ).fetchall()
    return {scorer: json.loads(value) for scorer, value in rows}


def items_of_run(
    store: Store, run_id: str, limit: int | None = None, offset: int = 0
) -> pd.DataFrame:
    """Return the scored items of a run, with their scores counted, in the order of the suite.

    Columns id, question, answer, category, n_steps, n_scores, n_undefined; ``limit`` and
    ``offset`` take a part of them.
    """
    with store.reading() as connection:
        return connection.execute(
            """
            WITH counted AS (
                SELECT item_id, count(*) AS n_scores,
                       count(*) FILTER (status != 'ok') AS n_undefined
                FROM scores WHERE run = $run GROUP BY item_id)
            SELECT i.id, i.question, i.answer, i.category, len(i.steps) AS n_steps, c.n_scores,
                   c.n_undefined
            FROM runs r JOIN items i ON i.suite = r.suite JOIN counted c ON c.item_id = i.id
            WHERE r.id = $run ORDER BY i.position LIMIT $limit OFFSET $offset
            """,
            {"run": run_id, "limit": limit, "offset": offset},
        ).df()


def item_categories(store: Store, run_id: str) -> dict[str, str]:
    """Return the category of each item of a run's suite by id; "" where it has none."""
    with store.reading() as connection:
        rows = connection.execute(
            "SELECT i.id, coalesce(i.category, '') FROM runs r JOIN items i ON i.suite = r.suite"
            " WHERE r.id = ?",
            [run_id],
        ).fetchall()
    return dict(rows)


def list_domains(store: Store) -> list[str]:
    """Return the categories that items of any stored suite have, by name; "" is none."""
    with store.reading() as connection:
        rows = connection.execute(
            "SELECT DISTINCT category FROM items WHERE category != '' ORDER BY category"
        ).fetchall()
    return [str(row[0]) for row in rows]


def store_totals(store: Store) -> dict[str, int]:
    """Count suites, items, runs and scores, and what all runs spent in micro-dollars."""
    with store.reading() as connection:
        row = connection.execute(
            "SELECT (SELECT count(*) FROM suites), (SELECT count(*) FROM items), count(*), (SELECT"
            " count(*) FROM scores), coalesce(sum(spent_micro), 0)::BIGINT FROM runs"
        ).fetchone()
    assert row is not None
    return dict(
        zip(("suites", "items", "runs", "scores", "spent_micro"), map(int, row), strict=True)
    )


def _item(
    id_: str, question: str, answer: str | None, steps: list[str], category: str, meta: str | None
) -> Item:
    return Item(
        id_,
        question,
        answer,
        tuple(Step(i, text) for i, text in enumerate(steps)),
        category,
        json.loads(meta) if meta else {},
    )
