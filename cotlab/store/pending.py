"""What waits for a person: labels that queues need, outdated labels, and drift alerts."""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from cotlab.core.labels import OUTDATED_NOTE, Label, undo_id
from cotlab.store.database import Store, Writer
from cotlab.store.decisions import add_audit
from cotlab.store.labels import add_labels, labels_from_table, select_labels
from cotlab.store.responses import ResponseLog

_QUEUE_STATE_SQL = """
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

    An item needs a label of this rater where the rater has none in the queue and fewer others than
    it needs have one; one that every rater labels (``raters`` 0) until this one has labelled it.

    Returns
    -------
    DataFrame
        ``id, name, kind, made_at, n`` (items of the queue), ``due`` (items left for this rater, at
        least 1) and ``mine`` (what this rater has labelled in it).
    """
    return store.query_frame(
        f"""
        {_QUEUE_STATE_SQL}
        SELECT q.id, q.name, q.kind, q.made_at, count(*)::INTEGER AS n,
               count_if(NOT mine AND (needed = 0 OR have < needed))::INTEGER AS due,
               count_if(mine)::INTEGER AS mine
        FROM queues q JOIN state s ON s.queue = q.id
        GROUP BY q.id, q.name, q.kind, q.made_at
        HAVING due > 0
        ORDER BY q.made_at DESC, q.id DESC
        """,
        {"rater": rater},
    )


def pending_items(store: Store, rater: str) -> pd.DataFrame:
    """Return the items that queues need of ``rater``, as ``pending_queues`` counts them.

    Returns
    -------
    DataFrame
        ``queue, kind, run, item_id`` and ``labelled`` (how many items of the queue this rater has
        labelled), a row for each queue that needs an item.
    """
    return store.query_frame(
        f"""
        {_QUEUE_STATE_SQL}
        SELECT s.queue, q.kind, s.run, s.item_id,
               (SELECT count(*) FROM state o
                WHERE o.queue = s.queue AND o.mine)::INTEGER AS labelled
        FROM state s JOIN queues q ON q.id = s.queue
        WHERE NOT s.mine AND (s.needed = 0 OR s.have < s.needed)
        ORDER BY s.queue, s.position
        """,
        {"rater": rater},
    )


def last_label_number(store: Store) -> int:
    """Return the sequence number of the newest label, 0 without one; a key for caches."""
    [(seq,)] = store.query_rows("SELECT coalesce(max(seq), 0) FROM labels")
    return int(seq)


def labelled_runs(store: Store) -> set[str]:
    """Return the runs that have a current label."""
    return {str(row[0]) for row in store.query_rows("SELECT DISTINCT run FROM current_labels")}


def list_drift_alerts(store: Store) -> pd.DataFrame:
    """Return alerts that no later check of the same runs has cleared, newest first.

    Returns
    -------
    DataFrame
        ``id, reference, current`` (lists of run ids), ``at_, by_, reason``.
    """
    table = store.query_frame("""
        SELECT id, reference, current, at_, by_, reason FROM drift_checks
        WHERE alert
          AND rowid IN (SELECT max(rowid) FROM drift_checks GROUP BY reference, current)
        ORDER BY at_ DESC, id DESC
        """)
    return table.assign(
        **{
            column: [json.loads(text) for text in table[column]]
            for column in ("reference", "current")
        }
    )


ANSWER_METRICS = ("answer_correct", "baseline_correct")
"""Metrics whose evidence is what a rater reads of the model: its answer and, where it wrote one,
its chain."""


def withdraw_outdated_labels(
    connection: Writer, log_path: Path, run: str, items: Collection[str]
) -> int:
    """Withdraw the labels of items whose reply came later than the label.

    A label is of the reply that its rater read. A refusal that was requested again, or a request
    that failed and was answered on a resume, puts another reply in its place, and scores of it. The
    time is that of the reply: scores that are computed again from the same reply leave every label
    as it is, and so does a refusal that is followed by a refusal. Labels stay in the history: each
    gets a row that withdraws it, as an undo does, with the note ``OUTDATED_NOTE``. The item
    needs a label again wherever a queue had its label.

    Parameters
    ----------
    connection : Writer
        From ``Store.writing()``: the transaction that writes the new scores.
    log_path : Path
        The response log.
    run : str
    items : collection of str
        Ids of the items whose scores were written.

    Returns
    -------
    int
        Labels that were withdrawn.
    """
    rows = select_labels(connection, run=run, history=True)
    rows = rows[rows["item_id"].isin(list(items))]
    if rows.empty:
        return 0
    keys_by_item: dict[str, list[str]] = dict(
        connection.execute(
            "SELECT item_id, evidence FROM scores WHERE run = ? AND list_contains(?, item_id) AND"
            " list_contains(?, metric) AND len(evidence) > 0 QUALIFY row_number() OVER (PARTITION"
            " BY item_id ORDER BY metric, scorer, facet, step, sample) = 1",
            [run, sorted(set(rows["item_id"])), list(ANSWER_METRICS)],
        ).fetchall()
    )
    with closing(ResponseLog(log_path)) as log:
        time_by_key = log.reply_time_by_key([key for keys in keys_by_item.values() for key in keys])
    withdrawals: list[Label] = []
    for (item, _), group in rows.groupby(["item_id", "rater"], sort=False):
        times = [time_by_key[key] for key in keys_by_item.get(item, ()) if key in time_by_key]
        given_labels = labels_from_table(group)
        if times and given_labels[-1].at < max(times):
            last_by_queue = {label.queue: label for label in given_labels}
            withdrawals += [
                label.withdrawal(
                    id=undo_id(label.id), note=OUTDATED_NOTE, origin="undo", at=datetime.now(UTC)
                )
                for label in given_labels
                if label.origin != "undo" and not last_by_queue[label.queue].withdrawn
            ]
    n_withdrawn = add_labels(connection, withdrawals)
    if n_withdrawn:
        value = {"labels": n_withdrawn, "items": sorted({label.item_id for label in withdrawals})}
        add_audit(
            connection, "cotlab", "take back labels", f"run {run}", None, value, OUTDATED_NOTE
        )
    return n_withdrawn
