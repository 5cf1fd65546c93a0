"""Current labels of raters, and what they settle on: an adjudication first, else the majority."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import pandas as pd

from cotlab.core.errors import UnknownName
from cotlab.core.labels import OUTDATED_NOTE
from cotlab.store import labels as label_store
from cotlab.store.database import Store
from cotlab.store.live import ItemKey

TIE_REASON = "raters are tied"
UNSURE_REASON = "nobody is sure"
"""Why a labelled item has no target."""
ADJUDICATION_KIND = "adjudication"
"""Kind of queue whose labels decide, and are given in view of other labels."""
ITEM_COLUMNS = ["run", "item_id"]


_ROW_COLUMNS = (
    *("seq", "id", "run", "item_id", "reasoning", "answer_correct", "target", "faithful"),
    *("steps_judged", "first_wrong_step", "steps_digest"),
)


class CurrentLabels(NamedTuple):
    """Current labels, with the columns of ``cotlab.store.labels.list_labels``."""

    rater_labels: pd.DataFrame
    """The last label of each (run, item, rater) outside of adjudications."""
    adjudications: pd.DataFrame
    """The last label of each (run, item, rater) in adjudications; an item's last one counts."""
    outdated_rows: pd.DataFrame
    """Rows that withdrew a label because another reply has taken the place of its own."""


def load_current_labels(
    store: Store,
    runs: Sequence[str] | None = None,
    queue: str | None = None,
    *,
    until: datetime | None = None,
) -> CurrentLabels:
    """Return the current labels of these runs or of all.

    A rater's label in an adjudication does not change their earlier one.

    Parameters
    ----------
    store : Store
    runs : sequence of str, optional
    queue : str, optional
        Labels that are current in this queue, which must be known or have labels.
    until : datetime, optional
        The labels that were current at that time.
    """
    rows = label_store.list_labels(store, history=True)
    if runs is not None:
        rows = rows[rows["run"].isin(runs)]
    if until is not None:
        rows = rows[rows["at_"] <= until]
    kind_by_queue = label_store.kinds_by_queue(store)
    is_adjudication = rows["queue"].isin(
        [name for name, kind in kind_by_queue.items() if kind == ADJUDICATION_KIND]
    )
    is_in_scope = rows["queue"] == queue if queue is not None else ~is_adjudication
    if queue is not None and not is_in_scope.any() and queue not in kind_by_queue:
        raise UnknownName("queue", queue, list(kind_by_queue)[:20])

    def select_current_rows(table: pd.DataFrame) -> pd.DataFrame:
        newest_rows = table.drop_duplicates([*ITEM_COLUMNS, "rater"], keep="last")
        return newest_rows[~newest_rows["withdrawn"].astype(bool)].reset_index(drop=True)

    outdated_rows = rows[
        rows["withdrawn"].astype(bool)
        & (rows["note"] == OUTDATED_NOTE)
        & (is_in_scope | is_adjudication)
    ]
    return CurrentLabels(
        select_current_rows(rows[is_in_scope]),
        select_current_rows(rows[is_adjudication]),
        outdated_rows.drop_duplicates(ITEM_COLUMNS),
    )


class LabelRows(NamedTuple):
    """Current labels as rows of what raters say, to be settled several times."""

    raters: list[dict[str, Any]]
    """The last label of each (run, item, rater) outside of adjudications, in their order."""
    adjudications: list[dict[str, Any]]
    """The last label of each (run, item, rater) in adjudications, in their order."""


class Settled(NamedTuple):
    """What the raters of an item settle on."""

    value: Any
    """The value; None where there is none."""
    n_raters: int
    """Labels that it rests on; 1 where an adjudication decides, 0 without a value."""
    is_adjudicated: bool
    """Whether an adjudication decides."""
    reason: str
    """Why there is no value; "" where there is one."""


def as_rows(labels: CurrentLabels) -> LabelRows:
    """Return labels as rows with the columns of ``list_labels`` that say something of an item."""

    def to_rows(table: pd.DataFrame) -> list[dict[str, Any]]:
        columns = [table[name].tolist() for name in _ROW_COLUMNS]
        return [dict(zip(_ROW_COLUMNS, row, strict=True)) for row in zip(*columns, strict=True)]

    return LabelRows(to_rows(labels.rater_labels), to_rows(labels.adjudications))


def settle_labels(
    labels: LabelRows, value_of: Callable[[Mapping[str, Any]], Hashable | None]
) -> dict[ItemKey, Settled]:
    """Return what raters settle on of each labelled item, in the order of the first labels.

    Parameters
    ----------
    labels : LabelRows
    value_of : callable
        Value of a row; None where it says nothing.

    Returns
    -------
    dict
        The last adjudication decides where there is one, also by saying nothing; else the value of
        more than half of the raters who say something.
    """
    adjudicated = {(row["run"], row["item_id"]): value_of(row) for row in labels.adjudications}
    rows = sorted([*labels.raters, *labels.adjudications], key=lambda row: row["seq"])
    votes: dict[ItemKey, Counter[Hashable]] = {
        (row["run"], row["item_id"]): Counter() for row in rows
    }
    for row in labels.raters:
        if (value := value_of(row)) is not None:
            votes[row["run"], row["item_id"]][value] += 1
    settled_by_item = {}
    for key, counts in votes.items():
        if key in adjudicated:
            value, n_raters = adjudicated[key], 1
        else:
            leading = counts.most_common(1)
            has_majority = bool(leading) and 2 * leading[0][1] > counts.total()
            value, n_raters = (leading[0][0] if has_majority else None), counts.total()
        reason = UNSURE_REASON if key in adjudicated or not counts else TIE_REASON
        settled_by_item[key] = (
            Settled(None, 0, key in adjudicated, reason)
            if value is None
            else Settled(value, n_raters, key in adjudicated, "")
        )
    return settled_by_item
