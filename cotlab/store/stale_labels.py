"""Labels that were given of a reply which has another in its place by now."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pandas as pd

from cotlab.core.labels import OUTDATED, Label, undo_id
from cotlab.store.decisions import add_audit
from cotlab.store.labels import add_labels, as_labels, select_labels
from cotlab.store.responses import ResponseLog

ANSWERED = ("answer_correct", "baseline_correct")
"""The scores whose evidence is what a rater reads of the model: its answer and, where it is its
own, its chain."""


def withdraw_outdated(
    connection: duckdb.DuckDBPyConnection, log: Path, run: str, items: Collection[str]
) -> int:
    """Take back the labels of items whose reply came later than the label, in the transaction that writes their new scores.

    A label is of the reply that its rater read. A refusal that was asked for anew, or a request
    that failed and was answered on a resume, leaves another reply in its place, and scores of it;
    what was said of the one before does not hold for these. Time is that of the reply, not that of
    the scores: scores that are computed anew from the same reply leave every label as it is, and so
    does a refusal that is followed by a refusal. What was said stays in the history: each label
    gets a row that takes it back, as an undo does, with the note ``OUTDATED``. The item is asked
    for again wherever a queue had its label.

    Parameters
    ----------
    connection : DuckDBPyConnection
        From ``Store.writing()``.
    log : Path
        The response log.
    run : str
    items : collection of str
        Ids of the items whose scores were written.

    Returns
    -------
    int
        Labels that were taken back.
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
    """A row for each label of one rater of one item that stands in its queue, so that it stands no longer."""
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
    """The keys of the requests behind what a rater reads of each item."""
    rows = connection.execute(
        "SELECT item_id, evidence FROM scores WHERE run = ? AND list_contains(?, item_id) AND"
        " list_contains(?, metric) AND len(evidence) > 0 QUALIFY row_number() OVER (PARTITION BY"
        " item_id ORDER BY metric, scorer, facet, step, sample) = 1",
        [run, items, list(ANSWERED)],
    ).fetchall()
    return {item: list(keys) for item, keys in rows}
