"""Labels and their queues. Labels are only added: a correction or an undo is a new row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa

from cotlab.core.keys import canonical_json
from cotlab.core.labels import Label, label_target
from cotlab.store.database import Connection, Store, Writer
from cotlab.store.tables import SCHEMAS

EVERY_RATER = 0
"""``raters`` of an item that every rater labels."""
LABEL_COLUMNS: tuple[str, ...] = tuple(SCHEMAS["labels"].names)
_LABEL_FIELDS = {field.name for field in fields(Label)} & set(LABEL_COLUMNS) - {"modes"}
"""Fields of a label that are columns of the same name and type."""
_OBJECT_COLUMNS = (
    *("queue", "reasoning", "answer_correct", "first_wrong_step", "faithful", "steps_digest"),
)


class QueuedItem(NamedTuple):
    """One item of a queue."""

    run: str
    """Id of the run."""
    item_id: str
    """Id of the item."""
    raters: int = 1
    """Number of labels that it needs; ``EVERY_RATER`` for one of each rater."""
    gold: str | None = None
    """Expected label as JSON, hidden from raters; None for most items."""
    reason: str = ""
    """Why it is in the queue."""


def add_labels(connection: Writer, labels: Iterable[Label]) -> int:
    """Add labels in order, in the transaction of ``connection``; return how many were new.

    A label whose id is stored already is not written again, whatever it says: pressing a key twice
    adds one row.
    """
    first_label_by_id: dict[str, Label] = {}
    for label in labels:
        first_label_by_id.setdefault(label.id, label)
    stored_ids = {
        row[0]
        for row in connection.execute(
            "SELECT id FROM labels WHERE list_contains(?, id)", [list(first_label_by_id)]
        ).fetchall()
    }
    new_labels = [label for label in first_label_by_id.values() if label.id not in stored_ids]
    if not new_labels:
        return 0
    [(last_seq,)] = connection.execute("SELECT coalesce(max(seq), 0) FROM labels").fetchall()
    rows = [
        {
            **asdict(label),
            "run": label.run_id,
            "note": label.note.encode("utf-8", "replace").decode(),
            "at_": label.at,
            "seq": seq,
        }
        for seq, label in enumerate(new_labels, start=last_seq + 1)
    ]
    connection.insert("labels", pa.Table.from_pylist(rows, schema=SCHEMAS["labels"]))
    return len(new_labels)


def list_labels(
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
        The table's columns and ``target``: answer correct and chain adequate. ``answer_correct``,
        ``faithful`` and ``target`` hold True, False or None, ``modes`` and ``step_verdicts``
        tuples, ``first_wrong_step`` int or None, ``queue``, ``reasoning`` and ``steps_digest`` str
        or None, ``steps_judged`` bool, ``at_`` times in UTC.
    """
    with store.reading() as connection:
        return select_labels(connection, run=run, rater=rater, queue=queue, history=history)


def select_labels(
    connection: Connection,
    *,
    run: str | None = None,
    rater: str | None = None,
    queue: str | None = None,
    item: str | None = None,
    label_ids: Sequence[str] | None = None,
    history: bool = False,
) -> pd.DataFrame:
    """Return ``list_labels`` in a transaction; ``item`` and ``label_ids`` narrow it."""
    table = connection.execute(
        f"""
        SELECT {", ".join(LABEL_COLUMNS)} FROM {"labels" if history else "current_labels"}
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
            "ids": list(label_ids) if label_ids is not None else None,
        },
    ).df()
    table["at_"] = table["at_"].dt.tz_convert("UTC")
    object_columns = {name: _as_objects(table[name]) for name in _OBJECT_COLUMNS}
    table = table.assign(
        modes=pd.Series([tuple(map(str, modes)) for modes in table["modes"]], dtype=object),
        step_verdicts=pd.Series(
            [_as_verdicts(verdicts) for verdicts in table["step_verdicts"]], dtype=object
        ),
        steps_judged=pd.Series(
            [value is True for value in table["steps_judged"].tolist()], dtype=bool
        ),
        **object_columns,
    )
    targets = [
        label_target(reasoning, is_correct)
        for reasoning, is_correct in zip(table["reasoning"], table["answer_correct"], strict=True)
    ]
    return table.assign(target=pd.Series(targets, index=table.index, dtype=object))


def labels_from_table(table: pd.DataFrame) -> list[Label]:
    """Return the rows of a ``list_labels`` as ``Label`` objects."""
    return [
        Label(
            run_id=row["run"],
            at=row["at_"].to_pydatetime(),
            modes=tuple(row["modes"]),
            **{str(name): row[name] for name in _LABEL_FIELDS},
        )
        for row in table.to_dict("records")
    ]


def scored_items_by_run(connection: Connection, run_ids: Sequence[str]) -> dict[str, set[str]]:
    """Return run → ids of its scored items, without runs that the store does not have."""
    items_by_run: dict[str, set[str]] = {
        row[0]: set()
        for row in connection.execute(
            "SELECT id FROM runs WHERE list_contains(?, id)", [list(run_ids)]
        ).fetchall()
    }
    rows = connection.execute(
        "SELECT DISTINCT run, item_id FROM scores WHERE list_contains(?, run)", [list(items_by_run)]
    ).fetchall()
    for run, item in rows:
        items_by_run[run].add(item)
    return items_by_run


def runs_with_scores(store: Store) -> set[str]:
    """Return the runs of which some item was scored."""
    return {str(row[0]) for row in store.query_rows("SELECT DISTINCT run FROM scores")}


def add_queue(
    connection: Writer,
    queue: str,
    queue_name: str,
    items: Sequence[QueuedItem],
    *,
    kind: str = "label",
    author: str,
    params: Any = None,
) -> None:
    """Store a queue and its items, in order."""
    connection.record(
        "INSERT INTO queues VALUES (?, ?, ?, ?, ?, ?)",
        [queue, queue_name, kind, datetime.now(UTC), author, canonical_json(params or {})],
    )
    rows = [
        {"queue": queue, "position": position, **item._asdict()}
        for position, item in enumerate(items)
    ]
    connection.insert("queue_items", pa.Table.from_pylist(rows, schema=SCHEMAS["queue_items"]))


def list_label_queues(store: Store) -> pd.DataFrame:
    """Return the queues that have items, newest first.

    A queue of another store, whose labels were imported, has none here; ``kinds_by_queue`` knows
    it.

    Returns
    -------
    DataFrame
        ``id, name, kind, made_at, made_by, params`` (JSON) and ``n``, the number of items.
    """
    return store.query_frame(
        "SELECT * FROM (SELECT q.*, (SELECT count(*) FROM queue_items i WHERE i.queue = q.id)"
        " AS n FROM queues q) WHERE n > 0 ORDER BY made_at DESC, id DESC"
    )


def kinds_by_queue(store: Store) -> dict[str, str]:
    """Return queue id → kind, imported queues included."""
    return dict(store.query_rows("SELECT id, kind FROM queues"))


def get_queue_kind(connection: Connection, queue: str) -> str | None:
    """Return the kind of a queue, None where there is none of this id."""
    row = connection.execute("SELECT kind FROM queues WHERE id = ?", [queue]).fetchone()
    return str(row[0]) if row else None


def list_queue_items(store: Store, queue: str) -> pd.DataFrame:
    """Return the items of a queue in order, gold included: not for raters to see.

    Returns
    -------
    DataFrame
        ``position, run, item_id, raters, gold, reason``.
    """
    table = store.query_frame(
        "SELECT position, run, item_id, raters, gold, reason FROM queue_items WHERE queue = ?"
        " ORDER BY position",
        [queue],
    )
    return table.assign(gold=_as_objects(table["gold"]))


def get_queue_items(connection: Connection, queue: str) -> list[QueuedItem]:
    """Return the items of a queue in order."""
    rows = connection.execute(
        "SELECT run, item_id, raters, gold, reason FROM queue_items WHERE queue = ? ORDER BY"
        " position",
        [queue],
    ).fetchall()
    return [QueuedItem(*row) for row in rows]


def find_labelled_items(connection: Connection, queue: str) -> set[tuple[str, str, str]]:
    """Return the (run, item, rater) whose last label in this queue is not withdrawn."""
    rows = connection.execute(
        "SELECT run, item_id, rater FROM (SELECT * FROM labels WHERE queue = ? QUALIFY row_number()"
        " OVER (PARTITION BY run, item_id, rater ORDER BY seq DESC) = 1) WHERE NOT withdrawn",
        [queue],
    ).fetchall()
    return {(run, item, rater) for run, item, rater in rows}


def count_label_rows(connection: Connection, queue: str, rater: str) -> dict[tuple[str, str], int]:
    """Return (run, item) → rows that a rater wrote of it in this queue, undone ones too."""
    rows = connection.execute(
        "SELECT run, item_id, count(*) FROM labels WHERE queue = ? AND rater = ? GROUP BY ALL",
        [queue, rater],
    ).fetchall()
    return {(run, item): count for run, item, count in rows}


def score_values_by_item(
    connection: Connection, run_item_pairs: Sequence[tuple[str, str]], metric: str
) -> dict[tuple[str, str], set[float]]:
    """Return (run, item) → values of one metric, for those that have any."""
    runs, items = ([pair[index] for pair in run_item_pairs] for index in (0, 1))
    rows = connection.execute(
        "SELECT run, item_id, list(value) FROM scores JOIN (SELECT unnest(?::VARCHAR[]) AS run,"
        " unnest(?::VARCHAR[]) AS item_id) USING (run, item_id) WHERE metric = ? AND value IS NOT"
        " NULL GROUP BY ALL",
        [runs, items, metric],
    ).fetchall()
    return {(run, item): {float(value) for value in values} for run, item, values in rows}


def _as_objects(column: pd.Series) -> pd.Series:
    """Return a column as Python objects: missing values are None, whole numbers int."""
    objects = [
        None if pd.isna(value) else int(value) if isinstance(value, float) else value
        for value in column.tolist()
    ]
    return pd.Series(objects, index=column.index, dtype=object)


def _as_verdicts(verdicts: Any) -> tuple[str | None, ...]:
    """Return the verdicts on steps as strings or None; none of a label without them."""
    if not isinstance(verdicts, Iterable):
        return ()
    return tuple(None if verdict is None else str(verdict) for verdict in verdicts)
