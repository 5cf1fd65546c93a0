"""Writing to the store. Each function takes a connection of ``Store.writing()``."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
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
    if connection.execute(
        "SELECT 1 FROM items WHERE suite = ? AND meta IS NOT NULL LIMIT 1", [suite.digest]
    ).fetchall():
        return
    connection.record("DELETE FROM items WHERE suite = ?", [suite.digest])
    connection.record("DELETE FROM suites WHERE digest = ?", [suite.digest])

    def stored_text(value: str) -> str:
        return f"sha256:{digest(value)}" if redact else value

    connection.insert(
        "suites",
        {
            "digest": suite.digest,
            "name": suite.name,
            "n": len(suite.items),
            "file_sha256": file_sha256,
            "added_at": datetime.now(UTC),
        },
    )
    rows = (
        {
            "suite": suite.digest,
            "position": position,
            "id": item.id,
            "question": stored_text(item.question),
            "answer": None if item.answer is None else stored_text(item.answer),
            "steps": [stored_text(step.text) for step in item.steps],
            "category": item.category,
            "meta": None if redact else canonical_json(item.meta),
        }
        for position, item in enumerate(suite.items)
    )
    connection.insert("items", *rows)


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
    counts = dict.fromkeys(("revision", "asked", "hits", "failed", "spent_micro", "saved_micro"), 0)
    connection.insert(
        "runs",
        {
            **counts,
            "id": run,
            "suite": plan.suite_digest,
            "suite_name": plan.suite,
            "model": str(plan.subject),
            "plan": canonical_json(plan),
            "plan_digest": plan.digest,
            "config": json.dumps(dict(config)),
            "code_version": code_version,
            "output": output,
            "redacted": redacted,
            "status": "planned",
            "planned_at": datetime.now(UTC),
            "n_items": n_items,
            "estimate": json.dumps(dict(estimate)) if estimate else None,
        },
    )


def set_plan(connection: Writer, run: str, plan: Plan) -> None:
    """Replace the plan of a run, as where it is scored by newer scorers."""
    connection.record(
        "UPDATE runs SET plan = ?, plan_digest = ? WHERE id = ?",
        [canonical_json(plan), plan.digest, run],
    )


def has_run(connection: Writer, run: str) -> bool:
    """Return whether the store holds a run of this id, as this transaction sees it."""
    return bool(connection.execute("SELECT 1 FROM runs WHERE id = ?", [run]).fetchall())


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
    row = {"run": run, "scorer": scorer, "params_digest": params_digest}
    connection.insert("constants", {**row, "value": canonical_json(constants)})


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
    rows = (
        {
            **asdict(estimate),
            "run": run,
            "facet": json.dumps(dict(estimate.group)),
            "over_": estimate.over,
        }
        for estimate in estimates
    )
    connection.insert("estimates", *rows)
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
