"""Writing to the store. Each function takes a connection of ``Store.writing()``."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pyarrow as pa

from cotlab.core.keys import canonical_json, digest
from cotlab.core.types import Estimate, Plan, Score, Suite
from cotlab.store.database import Writer
from cotlab.store.tables import SCHEMAS, pack_sheet


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
    connection: Writer,
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
    connection.record("DELETE FROM items WHERE suite = ?", [suite.digest])
    connection.record("DELETE FROM suites WHERE digest = ?", [suite.digest])
    connection.record(
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
    connection.insert("items", batch)


def add_run(
    connection: Writer,
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
    connection.record(
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


def has_run(connection: Writer, run: str) -> bool:
    """Return whether the store holds a run of this id, as this transaction sees it."""
    return connection.execute("SELECT 1 FROM runs WHERE id = ?", [run]).fetchone() is not None


def set_status(connection: Writer, run: str, status: str, note: str | None = None) -> None:
    """Set the status: running, stopped, budget, failed or done; all but running end it."""
    ended_at = None if status == "running" else datetime.now(UTC)
    connection.record(
        "UPDATE runs SET status = ?, ended_at = ?, note = ?, revision = revision + 1 WHERE id = ?",
        [status, ended_at, note, run],
    )


def set_counts(
    connection: Writer,
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
    connection.record(
        "UPDATE runs SET asked = ?, hits = hits + ?, failed = failed + ?, spent_micro = ?, "
        "saved_micro = saved_micro + ? WHERE id = ?",
        [n_sent, n_hits, n_failed, spent_micro, saved_micro, run],
    )


def set_constants(
    connection: Writer,
    run: str,
    scorer: str,
    params_digest: str,
    constants: Mapping[str, Any],
) -> None:
    """Store the run-level constants of a scorer."""
    connection.record("DELETE FROM constants WHERE run = ? AND scorer = ?", [run, scorer])
    connection.record(
        "INSERT INTO constants VALUES (?, ?, ?, ?)",
        [run, scorer, params_digest, canonical_json(constants)],
    )


def add_ended(connection: Writer, run: str, ended_items: Sequence[EndedItem]) -> None:
    """Replace the scores of each (run, item, scorer) as a whole, so that no row doubles."""
    if not ended_items:
        return
    ended_at = datetime.now(UTC)
    rows_by_item = [[_score_row(score) for score in ended.scores] for ended in ended_items]
    marks = [
        (
            run,
            ended.scorer,
            ended.item_id,
            ended.version,
            ended.params_digest,
            sum(score.status == "error" for score in ended.scores),
            sum(score.status == "refused" for score in ended.scores),
            ended_at,
        )
        for ended in ended_items
    ]
    marks_batch = _batch("ended", marks)
    with connection.registered("marks", marks_batch):
        for table, item_column in (("scores", "item_id"), ("ended", "item")):
            connection.execute(
                f"DELETE FROM {table} USING marks m WHERE {table}.run = m.run AND {table}.scorer ="
                f" m.scorer AND {table}.{item_column} = m.item"
            )
    scores = [
        (run, ended.scorer, *row)
        for ended, rows in zip(ended_items, rows_by_item, strict=True)
        for row in rows
    ]
    if scores:
        connection.insert_copied("scores", _batch("scores", scores))
    connection.insert_copied("ended", marks_batch)
    sheets = map(pack_sheet, rows_by_item)
    connection.record_stored(
        "INSERT OR REPLACE INTO ended VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(*mark, sheet) for mark, sheet in zip(marks, sheets, strict=True)],
    )
    connection.record("UPDATE runs SET revision = revision + 1 WHERE id = ?", [run])


def set_estimates(connection: Writer, run: str, estimates: Iterable[Estimate]) -> None:
    """Replace a run's estimates."""
    connection.record("DELETE FROM estimates WHERE run = ?", [run])
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
    connection.record("INSERT INTO estimates VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", *rows)
    connection.record("UPDATE runs SET revision = revision + 1 WHERE id = ?", [run])


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


def _batch(table: str, rows: Sequence[Sequence[Any]]) -> pa.Table:
    schema = SCHEMAS[table]
    columns = zip(zip(*rows, strict=True), schema.types, strict=True)
    return pa.table([pa.array(*column) for column in columns], schema=schema)
