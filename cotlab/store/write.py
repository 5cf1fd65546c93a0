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

_SCORES = pa.schema(
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


class Ended(NamedTuple):
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
    stored = connection.execute(
        "SELECT count(*) FROM items WHERE suite = ? AND meta IS NOT NULL", [suite.digest]
    ).fetchone()
    if stored and stored[0]:
        return
    connection.execute("DELETE FROM items WHERE suite = ?", [suite.digest])
    connection.execute("DELETE FROM suites WHERE digest = ?", [suite.digest])
    connection.execute(
        "INSERT INTO suites VALUES (?, ?, ?, ?, ?)",
        [suite.digest, suite.name, len(suite.items), file_sha256, datetime.now(UTC)],
    )

    def text(value: str) -> str:
        return f"sha256:{digest(value)}" if redact else value

    batch = pa.table(
        {
            "suite": [suite.digest] * len(suite.items),
            "position": pa.array(range(len(suite.items)), pa.int32()),
            "id": [i.id for i in suite.items],
            "question": [text(i.question) for i in suite.items],
            "answer": pa.array(
                [None if i.answer is None else text(i.answer) for i in suite.items], pa.string()
            ),
            "steps": pa.array(
                [[text(s.text) for s in i.steps] for i in suite.items], pa.list_(pa.string())
            ),
            "category": [i.category for i in suite.items],
            "meta": pa.array(
                [None if redact else canonical_json(i.meta) for i in suite.items], pa.string()
            ),
        }
    )
    _insert(connection, "items", batch)


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


def has_run(connection: duckdb.DuckDBPyConnection, run: str) -> bool:
    """Return whether the store holds a run of this id, as this transaction sees it."""
    return connection.execute("SELECT 1 FROM runs WHERE id = ?", [run]).fetchone() is not None


def set_status(
    connection: duckdb.DuckDBPyConnection, run: str, status: str, note: str | None = None
) -> None:
    """Set the status: running, stopped, budget, failed or done; all but running end it."""
    ended = None if status == "running" else datetime.now(UTC)
    connection.execute(
        "UPDATE runs SET status = ?, ended_at = ?, note = ?, revision = revision + 1 WHERE id = ?",
        [status, ended, note, run],
    )


def set_counts(
    connection: duckdb.DuckDBPyConnection,
    run: str,
    *,
    sent: int,
    hits: int,
    failed: int,
    spent: int,
    saved: int,
) -> None:
    """Store the requests and micro-dollars of a run.

    ``sent`` and ``spent`` count all its processes; ``hits``, ``failed`` and ``saved`` this one
    alone.
    """
    connection.execute(
        "UPDATE runs SET asked = ?, hits = hits + ?, failed = failed + ?, spent_micro = ?, "
        "saved_micro = saved_micro + ? WHERE id = ?",
        [sent, hits, failed, spent, saved, run],
    )


def set_constants(
    connection: duckdb.DuckDBPyConnection,
    run: str,
    scorer: str,
    params_digest: str,
    value: Mapping[str, Any],
) -> None:
    """Store the run-level constants of a scorer."""
    connection.execute("DELETE FROM constants WHERE run = ? AND scorer = ?", [run, scorer])
    connection.execute(
        "INSERT INTO constants VALUES (?, ?, ?, ?)",
        [run, scorer, params_digest, canonical_json(value)],
    )


def add_ended(connection: duckdb.DuckDBPyConnection, run: str, ended: Sequence[Ended]) -> None:
    """Replace the scores of each (run, item, scorer) as a whole, so that no row doubles."""
    if not ended:
        return
    now = datetime.now(UTC)
    marks = pa.table(
        {
            "run": [run] * len(ended),
            "scorer": [e.scorer for e in ended],
            "item": [e.item_id for e in ended],
            "version": pa.array([e.version for e in ended], pa.int32()),
            "params_digest": [e.params_digest for e in ended],
            "errors": pa.array(
                [sum(s.status == "error" for s in e.scores) for e in ended], pa.int32()
            ),
            "refusals": pa.array(
                [sum(s.status == "refused" for s in e.scores) for e in ended], pa.int32()
            ),
            "ended_at": pa.array([now] * len(ended), pa.timestamp("us", tz="UTC")),
        }
    )
    connection.register("marks", marks)
    for table, item in (("scores", "item_id"), ("ended", "item")):
        connection.execute(
            f"DELETE FROM {table} USING marks m WHERE {table}.run = m.run AND {table}.scorer ="
            f" m.scorer AND {table}.{item} = m.item"
        )
    connection.unregister("marks")
    rows = [(run, e.scorer, *_row(score)) for e in ended for score in e.scores]
    if rows:
        columns = [
            pa.array(column, field.type)
            for column, field in zip(zip(*rows, strict=True), _SCORES, strict=True)
        ]
        _insert(connection, "scores", pa.table(columns, schema=_SCORES))
    _insert(connection, "ended", marks)
    connection.execute("UPDATE runs SET revision = revision + 1 WHERE id = ?", [run])


def set_estimates(
    connection: duckdb.DuckDBPyConnection, run: str, estimates: Iterable[Estimate]
) -> None:
    """Replace a run's estimates."""
    connection.execute("DELETE FROM estimates WHERE run = ?", [run])
    rows = [
        [
            run,
            e.metric,
            json.dumps(dict(e.group)),
            e.point,
            e.lo,
            e.hi,
            e.confidence,
            e.n,
            e.n_undefined,
            e.method,
            e.over,
            e.reason,
        ]
        for e in estimates
    ]
    if rows:
        connection.executemany(
            "INSERT INTO estimates VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows
        )
    connection.execute("UPDATE runs SET revision = revision + 1 WHERE id = ?", [run])


def _row(score: Score) -> tuple[Any, ...]:
    """Return a score's columns from metric on; ValueError for NaN and infinity."""
    if score.value is not None and not math.isfinite(score.value):
        raise ValueError(
            f"{score.metric} of item {score.item_id!r} is {score.value!r}: undefined is None"
        )
    lo, hi = score.where or (None, None)
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
        lo,
        hi,
        list(score.evidence),
    )


def _insert(connection: duckdb.DuckDBPyConnection, table: str, batch: pa.Table) -> None:
    connection.register("batch", batch)
    connection.execute(f"INSERT INTO {table} SELECT * FROM batch")
    connection.unregister("batch")
