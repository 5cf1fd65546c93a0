"""Labels and their queues. Labels are only added: a correction or an undo is a new row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pandas as pd

from cotlab.core.keys import canonical_json
from cotlab.core.labels import Label, label_target
from cotlab.store.database import Connection, Store, Writer
from cotlab.store.tables import SCHEMAS

EVERY_RATER = 0
"""``raters`` of an item that every rater labels."""
LABEL_COLUMNS: tuple[str, ...] = tuple(SCHEMAS["labels"].names)
_LABEL_FIELDS = {field.name for field in fields(Label)} & set(LABEL_COLUMNS)
"""Fields of a label that are columns of the same name."""
_LABEL_TYPES = {
    **dict.fromkeys(("flagged", "withdrawn", "steps_judged"), bool),
    "seq": int,
    "at_": "datetime64[us, UTC]",
}
"""Types of the columns of a table of labels that hold no Python objects."""


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
    rows = [
        {
            **asdict(label),
            "run": label.run_id,
            "note": label.note.encode("utf-8", "replace").decode(),
            "at_": label.at,
            "seq": seq,
        }
        for seq, label in enumerate(new_labels, start=connection.next_number("labels"))
    ]
    connection.insert("labels", *rows)
    return len(rows)


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
    rows = connection.execute(
        f"""
        SELECT * REPLACE (epoch_us(at_) AS at_) FROM {"labels" if history else "current_labels"}
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
    ).fetchall()
    table = pd.DataFrame(rows, columns=list(LABEL_COLUMNS), dtype=object)
    table["at_"] = pd.to_datetime(table["at_"], unit="us", utc=True)
    for name in ("modes", "step_verdicts"):
        table[name] = pd.Series([tuple(values or ()) for values in table[name]], dtype=object)
    targets = map(label_target, table["reasoning"], table["answer_correct"])
    return table.assign(target=pd.Series(list(targets), dtype=object)).astype(_LABEL_TYPES)


def labels_from_table(table: pd.DataFrame) -> list[Label]:
    """Return the rows of a ``list_labels`` as ``Label`` objects."""
    return [
        Label(
            run_id=row["run"],
            at=row["at_"].to_pydatetime(),
            **{str(name): row[name] for name in _LABEL_FIELDS},
        )
        for row in table.to_dict("records")
    ]


def scored_items_by_run(connection: Connection, run_ids: Sequence[str]) -> dict[str, set[str]]:
    """Return run → ids of its scored items, without runs that the store does not have."""
    rows = connection.execute(
        "SELECT r.id, list(DISTINCT s.item_id) FILTER (s.item_id IS NOT NULL) FROM runs r LEFT JOIN"
        " scores s ON s.run = r.id WHERE list_contains(?, r.id) GROUP BY r.id",
        [list(run_ids)],
    ).fetchall()
    return {run: set(items or ()) for run, items in rows}


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
    connection.insert(
        "queues",
        {
            "id": queue,
            "name": queue_name,
            "kind": kind,
            "made_at": datetime.now(UTC),
            "made_by": author,
            "params": canonical_json(params or {}),
        },
    )
    rows = (
        {"queue": queue, "position": position, **item._asdict()}
        for position, item in enumerate(items)
    )
    connection.insert("queue_items", *rows)


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
    rows = connection.execute("SELECT kind FROM queues WHERE id = ?", [queue]).fetchall()
    return str(rows[0][0]) if rows else None


def list_queue_items(store: Store, queue: str) -> pd.DataFrame:
    """Return the items of a queue in order, gold included: not for raters to see.

    Returns
    -------
    DataFrame
        ``position, run, item_id, raters, gold, reason``.
    """
    with store.reading() as connection:
        items = get_queue_items(connection, queue)
    table = pd.DataFrame(items, columns=list(QueuedItem._fields), dtype=object)
    return table.rename_axis("position").reset_index()


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
