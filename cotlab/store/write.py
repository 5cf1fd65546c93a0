"""Writing to the store. Each function takes a connection of ``Store.writing()``."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from cotlab.core.keys import canonical_json, digest
from cotlab.core.types import Estimate, Plan, Score, Suite

_SCORES_SCHEMA = pa.schema(
    [
        ("run", pa.string()),
        ("scorer", pa.string()),
        ("metric", pa.string()),
        ("item_id", pa.string()),
        ("step", pa.int32()),
        ("sample", pa.int32()),
        ("facet", pa.string()),
        ("value", pa.float64()),
        ("status", pa.string()),
        ("reason", pa.string()),
        ("where_lo", pa.int32()),
        ("where_hi", pa.int32()),
        ("evidence", pa.list_(pa.string())),
    ]
)


class EndedItem(NamedTuple):
    """One item that one scorer has finished."""

    scorer: str
    """Name of the scorer."""
    version: int
    """Version of the scorer."""
    params_digest: str
    """Digest of its parameters."""
    item_id: str
    """Id of the item."""
    scores: tuple[Score, ...]
    """Its scores."""


def add_suite(
    connection: duckdb.DuckDBPyConnection,
    suite: Suite,
    *,
    file_sha256: str = "",
    redact: bool = False,
) -> None:
    """Store a suite once.

    A redacted one stores the SHA-256 of its texts until it is added in full.
    """
    count_row = connection.execute(
        "SELECT count(*) FROM items WHERE suite = ? AND meta IS NOT NULL", [suite.digest]
    ).fetchone()
    if count_row and count_row[0]:
        return
    connection.execute("DELETE FROM items WHERE suite = ?", [suite.digest])
    connection.execute("DELETE FROM suites WHERE digest = ?", [suite.digest])
    connection.execute(
        "INSERT INTO suites VALUES (?, ?, ?, ?, ?)",
        [suite.digest, suite.name, len(suite.items), file_sha256, datetime.now(UTC)],
    )

    def stored_text(value: str) -> str:
        return f"sha256:{digest(value)}" if redact else value

    batch = pa.table(
        {
            "suite": [suite.digest] * len(suite.items),
            "position": pa.array(range(len(suite.items)), pa.int32()),
            "id": [item.id for item in suite.items],
            "question": [stored_text(item.question) for item in suite.items],
            "answer": pa.array(
                [None if item.answer is None else stored_text(item.answer) for item in suite.items],
                pa.string(),
            ),
            "steps": pa.array(
                [[stored_text(step.text) for step in item.steps] for item in suite.items],
                pa.list_(pa.string()),
            ),
            "category": [item.category for item in suite.items],
            "meta": pa.array(
                [None if redact else canonical_json(item.meta) for item in suite.items], pa.string()
            ),
        }
    )
    insert_batch(connection, "items", batch)


def add_run(
    connection: duckdb.DuckDBPyConnection,
    run: str,
    plan: Plan,
    *,
    config: Mapping[str, Any],
    code_version: str,
    output: str,
    redacted: bool,
    n_items: int,
    estimate: Mapping[str, Any] | None = None,
) -> None:
    """Store a planned run.

    ``estimate`` is its expected requests, cost and prices.
    """
    connection.execute(
        "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'planned', ?, NULL, ?, 0, 0, 0, 0,"
        " 0, 0, NULL, ?)",
        [
            run,
            plan.suite_digest,
            plan.suite,
            str(plan.subject),
            canonical_json(plan),
            plan.digest,
            json.dumps(dict(config)),
            code_version,
            output,
            redacted,
            datetime.now(UTC),
            n_items,
            json.dumps(dict(estimate)) if estimate else None,
        ],
    )


def set_plan(
    connection: duckdb.DuckDBPyConnection, run: str, plan: Plan, config: Mapping[str, Any]
) -> None:
    """Store another plan of a run that has not asked anything of it yet."""
    connection.execute(
        "UPDATE runs SET model = ?, plan = ?, plan_digest = ?, config = ?, revision = revision + 1"
        " WHERE id = ?",
        [str(plan.subject), canonical_json(plan), plan.digest, json.dumps(dict(config)), run],
    )


def has_run(connection: duckdb.DuckDBPyConnection, run: str) -> bool:
    """Return whether the store holds a run of this id, as this transaction sees it."""
    return connection.execute("SELECT 1 FROM runs WHERE id = ?", [run]).fetchone() is not None


def set_status(
    connection: duckdb.DuckDBPyConnection, run: str, status: str, note: str | None = None
) -> None:
    """Set the status: running, stopped, budget, failed or done; all but running end it."""
    ended_at = None if status == "running" else datetime.now(UTC)
    connection.execute(
        "UPDATE runs SET status = ?, ended_at = ?, note = ?, revision = revision + 1 WHERE id = ?",
        [status, ended_at, note, run],
    )


def set_counts(
    connection: duckdb.DuckDBPyConnection,
    run: str,
    *,
    n_sent: int,
    n_hits: int,
    n_failed: int,
    spent_micro: int,
    saved_micro: int,
) -> None:
    """Store the requests and micro-dollars of a run.

    ``n_sent`` and ``spent_micro`` count all its processes; ``n_hits``, ``n_failed`` and
    ``saved_micro`` this one alone.
    """
    connection.execute(
        "UPDATE runs SET asked = ?, hits = hits + ?, failed = failed + ?, spent_micro = ?, "
        "saved_micro = saved_micro + ? WHERE id = ?",
        [n_sent, n_hits, n_failed, spent_micro, saved_micro, run],
    )


def set_constants(
    connection: duckdb.DuckDBPyConnection,
    run: str,
    scorer: str,
    params_digest: str,
    constants: Mapping[str, Any],
) -> None:
    """Store the run-level constants of a scorer."""
    connection.execute("DELETE FROM constants WHERE run = ? AND scorer = ?", [run, scorer])
    connection.execute(
        "INSERT INTO constants VALUES (?, ?, ?, ?)",
        [run, scorer, params_digest, canonical_json(constants)],
    )


def add_ended(
    connection: duckdb.DuckDBPyConnection, run: str, ended_items: Sequence[EndedItem]
) -> None:
    """Replace the scores of each (run, item, scorer) as a whole, so that no row doubles."""
    if not ended_items:
        return
    ended_at = datetime.now(UTC)
    ended_batch = pa.table(
        {
            "run": [run] * len(ended_items),
            "scorer": [ended_item.scorer for ended_item in ended_items],
            "item": [ended_item.item_id for ended_item in ended_items],
            "version": pa.array([ended_item.version for ended_item in ended_items], pa.int32()),
            "params_digest": [ended_item.params_digest for ended_item in ended_items],
            "errors": pa.array(
                [
                    sum(item_score.status == "error" for item_score in ended_item.scores)
                    for ended_item in ended_items
                ],
                pa.int32(),
            ),
            "refusals": pa.array(
                [
                    sum(item_score.status == "refused" for item_score in ended_item.scores)
                    for ended_item in ended_items
                ],
                pa.int32(),
            ),
            "ended_at": pa.array([ended_at] * len(ended_items), pa.timestamp("us", tz="UTC")),
        }
    )
    connection.register("marks", ended_batch)
    for table, item_column in (("scores", "item_id"), ("ended", "item")):
        connection.execute(
            f"DELETE FROM {table} USING marks m WHERE {table}.run = m.run AND {table}.scorer ="
            f" m.scorer AND {table}.{item_column} = m.item"
        )
    connection.unregister("marks")
    rows = [
        (run, ended_item.scorer, *_score_row(score))
        for ended_item in ended_items
        for score in ended_item.scores
    ]
    if rows:
        typed_columns = zip(zip(*rows, strict=True), _SCORES_SCHEMA.types, strict=True)
        columns = [pa.array(column, column_type) for column, column_type in typed_columns]
        insert_batch(connection, "scores", pa.table(columns, schema=_SCORES_SCHEMA))
    insert_batch(connection, "ended", ended_batch)
    connection.execute("UPDATE runs SET revision = revision + 1 WHERE id = ?", [run])


def set_estimates(
    connection: duckdb.DuckDBPyConnection, run: str, estimates: Iterable[Estimate]
) -> None:
    """Replace a run's estimates."""
    connection.execute("DELETE FROM estimates WHERE run = ?", [run])
    rows = [
        [
            run,
            estimate.metric,
            json.dumps(dict(estimate.group)),
            estimate.point,
            estimate.lo,
            estimate.hi,
            estimate.confidence,
            estimate.n,
            estimate.n_undefined,
            estimate.method,
            estimate.over,
            estimate.reason,
        ]
        for estimate in estimates
    ]
    if rows:
        connection.executemany(
            "INSERT INTO estimates VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows
        )
    connection.execute("UPDATE runs SET revision = revision + 1 WHERE id = ?", [run])


def _score_row(score: Score) -> tuple[Any, ...]:
    """Return a score's columns from metric on; ValueError for NaN and infinity."""
    if score.value is not None and not math.isfinite(score.value):
        raise ValueError(
            f"{score.metric} of item {score.item_id!r} is {score.value!r}: undefined is None"
        )
    where_lo, where_hi = score.where or (None, None)
    reason = score.reason.encode("utf-8", "replace").decode() if score.reason is not None else None
    return (
        score.metric,
        score.item_id,
        score.step,
        score.sample,
        json.dumps(dict(score.facet)),
        score.value,
        score.status,
        reason,
        where_lo,
        where_hi,
        list(score.evidence),
    )


def insert_batch(connection: duckdb.DuckDBPyConnection, table: str, batch: pa.Table) -> None:
    """Append the rows of ``batch``, which has the columns of the table in their order."""
    connection.register("batch", batch)
    connection.execute(f"INSERT INTO {table} SELECT * FROM batch")
    connection.unregister("batch")
