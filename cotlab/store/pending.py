"""What waits for a person: labels that queues need, outdated labels, and drift alerts."""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pandas as pd

from cotlab.core.labels import OUTDATED, Label, undo_id
from cotlab.store.database import Store
from cotlab.store.decisions import add_audit
from cotlab.store.labels import add_labels, as_labels, select_labels
from cotlab.store.responses import ResponseLog

_QUEUE_STATE = """
WITH given AS (
    SELECT queue, run, item_id, rater FROM (
        SELECT * FROM labels WHERE queue IS NOT NULL
        QUALIFY row_number() OVER (PARTITION BY queue, run, item_id, rater ORDER BY seq DESC) = 1
    ) WHERE NOT withdrawn
), state AS (
    SELECT i.queue, i.position, any_value(i.run) AS run, any_value(i.item_id) AS item_id,
           any_value(i.raters) AS needed,
           count(g.rater) AS have, coalesce(bool_or(g.rater = $rater), false) AS mine
    FROM queue_items i
    LEFT JOIN given g ON g.queue = i.queue AND g.run = i.run AND g.item_id = i.item_id
    GROUP BY i.queue, i.position
)
"""
"""Each item of each queue: how many labels it needs and has, and whether $rater gave one."""


def pending_queues(store: Store, rater: str) -> pd.DataFrame:
    """Return the queues that need labels of ``rater``, newest first.

    An item is due where this rater has no label in the queue and fewer others than it needs have
    one; an item that every rater labels (``raters`` 0) is due until this one has labelled it.

    Returns
    -------
    DataFrame
        ``id, name, kind, made_at, n`` (items of the queue), ``due`` (items left for this rater, at
        least 1) and ``mine`` (what this rater has labelled in it).
    """
    with store.reading() as connection:
        return connection.execute(
            f"""
            {_QUEUE_STATE}
            SELECT q.id, q.name, q.kind, q.made_at, count(*)::INTEGER AS n,
                   count_if(NOT mine AND (needed = 0 OR have < needed))::INTEGER AS due,
                   count_if(mine)::INTEGER AS mine
            FROM queues q JOIN state s ON s.queue = q.id
            GROUP BY q.id, q.name, q.kind, q.made_at
            HAVING due > 0
            ORDER BY q.made_at DESC, q.id DESC
            """,
            {"rater": rater},
        ).df()


def pending_items(store: Store, rater: str) -> pd.DataFrame:
    """Return the items that queues need of ``rater``, as ``pending_queues`` counts them.

    Returns
    -------
    DataFrame
        ``queue, kind, run, item_id`` and ``labelled`` (how many items of the queue this rater has
        labelled), a row for each queue that needs an item.
    """
    with store.reading() as connection:
        return connection.execute(
            f"""
            {_QUEUE_STATE}
            SELECT s.queue, q.kind, s.run, s.item_id,
                   (SELECT count(*) FROM state o
                    WHERE o.queue = s.queue AND o.mine)::INTEGER AS labelled
            FROM state s JOIN queues q ON q.id = s.queue
            WHERE NOT s.mine AND (s.needed = 0 OR s.have < s.needed)
            ORDER BY s.queue, s.position
            """,
            {"rater": rater},
        ).df()


def last_label(store: Store) -> int:
    """Return the sequence number of the newest label, 0 without one; a key for caches."""
    with store.reading() as connection:
        row = connection.execute("SELECT coalesce(max(seq), 0) FROM labels").fetchone()
    return int(row[0]) if row else 0


def labelled_runs(store: Store) -> set[str]:
    """Return the runs that have a current label."""
    with store.reading() as connection:
        return {
            str(row[0])
            for row in connection.execute("SELECT DISTINCT run FROM current_labels").fetchall()
        }


def drift_alerts(store: Store) -> pd.DataFrame:
    """Return alerts that no later check of the same runs has cleared, newest first.

    Returns
    -------
    DataFrame
        ``id, reference, current`` (lists of run ids), ``at_, by_, reason``.
    """
    with store.reading() as connection:
        table = connection.execute("""
            SELECT id, reference, current, at_, by_, reason FROM drift_checks
            WHERE alert
              AND rowid IN (SELECT max(rowid) FROM drift_checks GROUP BY reference, current)
            ORDER BY at_ DESC, id DESC
            """).df()
    return table.assign(
        **{side: [json.loads(text) for text in table[side]] for side in ("reference", "current")}
    )


ANSWERED = ("answer_correct", "baseline_correct")
"""Metrics whose evidence is what a rater reads of the model: its answer and, where it wrote one,
its chain."""


def withdraw_outdated(
    connection: duckdb.DuckDBPyConnection, log: Path, run: str, items: Collection[str]
) -> int:
    """Withdraw the labels of items whose reply came later than the label.

    A label is of the reply that its rater read. A refusal that was requested again, or a request
    that
    failed and was answered on a resume, puts another reply in its place, and scores of it. The time
    is
    that of the reply: scores that are computed again from the same reply leave every label as it
    is,
    and so does a refusal that is followed by a refusal. Labels stay in the history: each gets a row
    that withdraws it, as an undo does, with the note ``OUTDATED``. The item is due again wherever a
    queue had its label.

    Parameters
    ----------
    connection : DuckDBPyConnection
        From ``Store.writing()``: the transaction that writes the new scores.
    log : Path
        The response log.
    run : str
    items : collection of str
        Ids of the items whose scores were written.

    Returns
    -------
    int
        Labels that were withdrawn.
    """
    table = select_labels(connection, run=run, history=True)
    table = table[table["item_id"].isin(list(items))]
    if table.empty:
        return 0
    keys = _reply_keys(connection, run, sorted(set(table["item_id"])))
    with closing(ResponseLog(log)) as replies:
        at = replies.answered_at(sorted({key for each in keys.values() for key in each}))
    rows: list[Label] = []
    for (item, _), group in table.groupby(["item_id", "rater"], sort=False):
        newest = max((at[key] for key in keys.get(str(item), ()) if key in at), default=None)
        if newest is not None and group["at_"].iloc[-1] < newest:
            rows += _withdrawal_rows(group)
    new = add_labels(connection, rows)
    if new:
        after = {"labels": new, "items": sorted({label.item_id for label in rows})}
        add_audit(connection, "cotlab", "take back labels", f"run {run}", None, after, OUTDATED)
    return new


def _withdrawal_rows(group: pd.DataFrame) -> list[Label]:
    """Return rows that withdraw each current label of one rater of one item."""
    given_labels = as_labels(group)
    last = {label.queue: label for label in given_labels}
    return [
        replace(
            label,
            id=undo_id(label.id),
            reasoning=None,
            answer_correct=None,
            modes=(),
            note=OUTDATED,
            flagged=False,
            withdrawn=True,
            origin="undo",
            at=datetime.now(UTC),
        )
        for label in given_labels
        if label.origin != "undo" and not last[label.queue].withdrawn
    ]


def _reply_keys(
    connection: duckdb.DuckDBPyConnection, run: str, items: list[str]
) -> dict[str, list[str]]:
    """Return item → keys of the requests behind what a rater reads of it."""
    rows = connection.execute(
        "SELECT item_id, evidence FROM scores WHERE run = ? AND list_contains(?, item_id) AND"
        " list_contains(?, metric) AND len(evidence) > 0 QUALIFY row_number() OVER (PARTITION BY"
        " item_id ORDER BY metric, scorer, facet, step, sample) = 1",
        [run, items, list(ANSWERED)],
    ).fetchall()
    return {item: list(keys) for item, keys in rows}
