"""Labels and their queues. Labels are only added: a correction or an undo is a new row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

import duckdb
import pandas as pd
import pyarrow as pa

from cotlab.core.keys import canonical_json
from cotlab.core.labels import Label, Verdict, target
from cotlab.store.database import Store

COLUMNS = (
    "id",
    "run",
    "item_id",
    "rater",
    "queue",
    "reasoning",
    "answer_correct",
    "modes",
    "note",
    "flagged",
    "withdrawn",
    "origin",
    "at_",
    "seq",
)
"""Columns of the table of labels."""
EVERYONE = 0
"""``raters`` of an item that every rater labels."""
_LABELS = pa.schema(
    [
        *((name, pa.string()) for name in COLUMNS[:6]),
        ("answer_correct", pa.bool_()),
        ("modes", pa.list_(pa.string())),
        ("note", pa.string()),
        ("flagged", pa.bool_()),
        ("withdrawn", pa.bool_()),
        ("origin", pa.string()),
        ("at_", pa.timestamp("us", tz="UTC")),
        ("seq", pa.int64()),
    ]
)


class Queued(NamedTuple):
    """One item of a queue."""

    run: str
    """Id of the run."""
    item_id: str
    """Id of the item."""
    raters: int = 1
    """Number of labels that it needs; ``EVERYONE`` for one of each rater."""
    gold: str | None = None
    """Expected label as JSON, hidden from raters; None for most items."""
    reason: str = ""
    """Why it is in the queue."""


def add_labels(connection: duckdb.DuckDBPyConnection, labels: Iterable[Label]) -> int:
    """Add labels in order, in the transaction of ``connection``; return how many were new.

    A label whose id is stored already is not written again, whatever it says: pressing a key twice
    adds one row.
    """
    first: dict[str, Label] = {}
    for label in labels:
        first.setdefault(label.id, label)
    stored_ids = {
        row[0]
        for row in connection.execute(
            "SELECT id FROM labels WHERE list_contains(?, id)", [list(first)]
        ).fetchall()
    }
    new = [label for label in first.values() if label.id not in stored_ids]
    if not new:
        return 0
    seqs = connection.execute("SELECT nextval('label_order') FROM range(?)", [len(new)]).fetchall()
    rows = [
        (
            label.id,
            label.run_id,
            label.item_id,
            label.rater,
            label.queue,
            label.reasoning,
            label.answer_correct,
            list(label.modes),
            label.note.encode("utf-8", "replace").decode(),
            label.flagged,
            label.withdrawn,
            label.origin,
            label.at,
            seq,
        )
        for label, seq in zip(new, sorted(row[0] for row in seqs), strict=True)
    ]
    columns = [
        pa.array(column, field.type)
        for column, field in zip(zip(*rows, strict=True), _LABELS, strict=True)
    ]
    connection.register("batch", pa.table(columns, schema=_LABELS))
    connection.execute(f"INSERT INTO labels ({', '.join(COLUMNS)}) SELECT * FROM batch")
    connection.unregister("batch")
    return len(new)


def label_table(
    store: Store,
    *,
    run: str | None = None,
    rater: str | None = None,
    queue: str | None = None,
    history: bool = False,
) -> pd.DataFrame:
    """Return labels in the order in which they were given.

    Parameters
    ----------
    store : Store
    run, rater, queue : str, optional
        Only those of this run, rater, queue.
    history : bool
        All rows that were ever written; by default the current label of each (run, item, rater), if
        it was not withdrawn.

    Returns
    -------
    DataFrame
        The table's columns and ``target``: answer correct and chain adequate. ``answer_correct``
        and ``target`` hold True, False or None, ``modes`` tuples, ``queue`` and ``reasoning`` str
        or None, ``at_`` times in UTC.
    """
    with store.reading() as connection:
        return select_labels(connection, run=run, rater=rater, queue=queue, history=history)


def select_labels(
    connection: duckdb.DuckDBPyConnection,
    *,
    run: str | None = None,
    rater: str | None = None,
    queue: str | None = None,
    item: str | None = None,
    ids: Sequence[str] | None = None,
    history: bool = False,
) -> pd.DataFrame:
    """Return ``label_table`` in the transaction of ``connection``; ``item``, ``ids`` narrow it."""
    table = connection.execute(
        f"""
        SELECT {", ".join(COLUMNS)} FROM {"labels" if history else "current_labels"}
        WHERE ($run IS NULL OR run = $run) AND ($rater IS NULL OR rater = $rater)
          AND ($queue IS NULL OR queue = $queue)
          AND ($item IS NULL OR item_id = $item) AND ($ids IS NULL OR list_contains($ids, id))
        ORDER BY seq
        """,
        {
            "run": run,
            "rater": rater,
            "queue": queue,
            "item": item,
            "ids": list(ids) if ids is not None else None,
        },
    ).df()
    table["at_"] = table["at_"].dt.tz_convert("UTC")
    known = {name: _objects(table[name]) for name in ("queue", "reasoning", "answer_correct")}
    table = table.assign(
        modes=pd.Series([tuple(map(str, modes)) for modes in table["modes"]], dtype=object), **known
    )
    targets = [
        target(reasoning, correct)
        for reasoning, correct in zip(table["reasoning"], table["answer_correct"], strict=True)
    ]
    return table.assign(target=pd.Series(targets, index=table.index, dtype=object))


def as_labels(table: pd.DataFrame) -> list[Label]:
    """Return the rows of a ``label_table`` as ``Label`` objects."""
    return [
        Label(
            row["id"],
            row["run"],
            row["item_id"],
            row["rater"],
            cast("Verdict | None", row["reasoning"]),
            row["answer_correct"],
            row["at_"].to_pydatetime(),
            tuple(row["modes"]),
            row["note"],
            bool(row["flagged"]),
            bool(row["withdrawn"]),
            row["queue"],
            row["origin"],
        )
        for row in table.to_dict("records")
    ]


def known_items(connection: duckdb.DuckDBPyConnection, runs: Sequence[str]) -> dict[str, set[str]]:
    """Return run → ids of its scored items, without runs that the store does not have."""
    items_by_run: dict[str, set[str]] = {
        row[0]: set()
        for row in connection.execute(
            "SELECT id FROM runs WHERE list_contains(?, id)", [list(runs)]
        ).fetchall()
    }
    rows = connection.execute(
        "SELECT DISTINCT run, item_id FROM scores WHERE list_contains(?, run)", [list(items_by_run)]
    ).fetchall()
    for run, item in rows:
        items_by_run[run].add(item)
    return items_by_run


def add_queue(
    connection: duckdb.DuckDBPyConnection,
    queue: str,
    name: str,
    items: Sequence[Queued],
    *,
    kind: str = "label",
    by: str,
    params: Any = None,
) -> None:
    """Store a queue and its items, in order."""
    connection.execute(
        "INSERT INTO queues VALUES (?, ?, ?, ?, ?, ?)",
        [queue, name, kind, datetime.now(UTC), by, canonical_json(params or {})],
    )
    rows = [(queue, position, *item) for position, item in enumerate(items)]
    names = ("queue", "position", "run", "item_id", "raters", "gold", "reason")
    types = (
        pa.string(),
        pa.int32(),
        pa.string(),
        pa.string(),
        pa.int32(),
        pa.string(),
        pa.string(),
    )
    columns = zip(*rows, strict=True) if rows else ([] for _ in names)
    arrays = [pa.array(list(column), kind) for column, kind in zip(columns, types, strict=True)]
    connection.register("batch", pa.table(arrays, names=list(names)))
    connection.execute("INSERT INTO queue_items SELECT * FROM batch")
    connection.unregister("batch")


def queues(store: Store) -> pd.DataFrame:
    """Return the queues that have items, newest first.

    A queue of another store, whose labels were imported, has none here; ``queue_kinds`` knows it.

    Returns
    -------
    DataFrame
        ``id, name, kind, made_at, made_by, params`` (JSON) and ``n``, the number of items.
    """
    with store.reading() as connection:
        return connection.execute(
            "SELECT * FROM (SELECT q.*, (SELECT count(*) FROM queue_items i WHERE i.queue = q.id)"
            " AS n FROM queues q) WHERE n > 0 ORDER BY made_at DESC, id DESC"
        ).df()


def queue_kinds(store: Store) -> dict[str, str]:
    """Return queue id → kind, imported queues included."""
    with store.reading() as connection:
        return dict(connection.execute("SELECT id, kind FROM queues").fetchall())


def queue_kind(connection: duckdb.DuckDBPyConnection, queue: str) -> str | None:
    """Return the kind of a queue, None where there is none of this id."""
    row = connection.execute("SELECT kind FROM queues WHERE id = ?", [queue]).fetchone()
    return str(row[0]) if row else None


def queue_items(store: Store, queue: str) -> pd.DataFrame:
    """Return the items of a queue in order, gold included: not for raters to see.

    Returns
    -------
    DataFrame
        ``position, run, item_id, raters, gold, reason``.
    """
    with store.reading() as connection:
        table = connection.execute(
            "SELECT position, run, item_id, raters, gold, reason FROM queue_items WHERE queue = ?"
            " ORDER BY position",
            [queue],
        ).df()
    return table.assign(gold=_objects(table["gold"]))


def queue_entries(connection: duckdb.DuckDBPyConnection, queue: str) -> list[Queued]:
    """Return the items of a queue in order."""
    rows = connection.execute(
        "SELECT run, item_id, raters, gold, reason FROM queue_items WHERE queue = ? ORDER BY"
        " position",
        [queue],
    ).fetchall()
    return [Queued(*row) for row in rows]


def labelled_in_queue(
    connection: duckdb.DuckDBPyConnection, queue: str
) -> set[tuple[str, str, str]]:
    """Return the (run, item, rater) whose last label in this queue is not withdrawn."""
    rows = connection.execute(
        "SELECT run, item_id, rater FROM (SELECT * FROM labels WHERE queue = ? QUALIFY row_number()"
        " OVER (PARTITION BY run, item_id, rater ORDER BY seq DESC) = 1) WHERE NOT withdrawn",
        [queue],
    ).fetchall()
    return {(run, item, rater) for run, item, rater in rows}


def count_label_rows(
    connection: duckdb.DuckDBPyConnection, queue: str, rater: str
) -> dict[tuple[str, str], int]:
    """Return (run, item) → rows that a rater wrote of it in this queue, undone ones too."""
    rows = connection.execute(
        "SELECT run, item_id, count(*) FROM labels WHERE queue = ? AND rater = ? GROUP BY ALL",
        [queue, rater],
    ).fetchall()
    return {(run, item): count for run, item, count in rows}


def score_values(
    connection: duckdb.DuckDBPyConnection, pairs: Sequence[tuple[str, str]], metric: str
) -> dict[tuple[str, str], set[float]]:
    """Return (run, item) → values of one metric, for those that have any."""
    runs, items = ([pair[k] for pair in pairs] for k in (0, 1))
    rows = connection.execute(
        "SELECT run, item_id, list(value) FROM scores JOIN (SELECT unnest(?::VARCHAR[]) AS run,"
        " unnest(?::VARCHAR[]) AS item_id) USING (run, item_id) WHERE metric = ? AND value IS NOT"
        " NULL GROUP BY ALL",
        [runs, items, metric],
    ).fetchall()
    return {(run, item): {float(value) for value in values} for run, item, values in rows}


def _objects(column: pd.Series) -> pd.Series:
    """Return a column as Python objects: missing values are None, truth values bool."""
    plain = [
        None if pd.isna(value) else bool(value) if isinstance(value, bool) else value
        for value in column.tolist()
    ]
    return pd.Series(plain, index=column.index, dtype=object)
