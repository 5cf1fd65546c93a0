"""Settle what raters disagree on: the queue of it, and what each rater said of a chain."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

import pandas as pd

from cotlab.review.labelling.agreement import find_items_to_adjudicate
from cotlab.review.labelling.current_labels import (
    ADJUDICATION_KIND,
    ITEM_COLUMNS,
    load_current_labels,
)
from cotlab.review.labelling.queue import make_queue
from cotlab.review.labelling.step_agreement import with_first_mistakes
from cotlab.store import labels as label_store
from cotlab.store.database import Store
from cotlab.store.live import ItemKey

ADJUDICATION_NAME = "disagreements"


class Settlement(NamedTuple):
    """The label that settles an item, and who gave it."""

    rater: str
    """Name of the adjudicator."""
    at: datetime
    """When they gave it."""
    verdict: str
    """The settled verdict on the chain."""
    first_mistake: str | None
    """Where the first mistake is, as ``with_first_mistakes`` names it; None where not said."""
    faithful: bool | None
    """Whether the chain is faithful; None where not said."""


def open_adjudication(store: Store, *, queue: str | None = None, author: str) -> str:
    """Return a queue of the disagreements that nobody settled, made where there is none.

    The newest adjudication that has just these items unlabelled is used again.

    Parameters
    ----------
    store : Store
    queue : str, optional
        Only disagreements of labels that were given in this queue.
    author : str
        Who makes it.

    Raises
    ------
    QueueError
        If nothing is left to settle.
    UnknownName
        If there is no such queue.
    """
    items = find_items_to_adjudicate(store, queue=queue)
    unsettled = {(run, item_id) for run, item_id, _ in items}
    queues = label_store.list_label_queues(store)
    for queue_id in queues.loc[queues["kind"] == ADJUDICATION_KIND, "id"]:
        with store.reading() as connection:
            labelled = {key[:2] for key in label_store.find_labelled_items(connection, queue_id)}
            entries = label_store.get_queue_items(connection, queue_id)
        if items and {entry[:2] for entry in entries} - labelled == unsettled:
            return str(queue_id)
    name = f"{ADJUDICATION_NAME} of {queue}" if queue else ADJUDICATION_NAME
    return make_queue(store, name, items, kind=ADJUDICATION_KIND, author=author)


def load_rater_labels(store: Store, runs: list[str]) -> dict[ItemKey, pd.DataFrame]:
    """Return what raters said of each item of these runs, adjudications left out.

    Returns
    -------
    dict
        (run, item id) → rows of ``with_first_mistakes``, in the order in which they were given.
    """
    table = with_first_mistakes(store, load_current_labels(store, runs).rater_labels)
    return {(str(run), str(item)): group for (run, item), group in table.groupby(ITEM_COLUMNS)}


def list_settlements(store: Store) -> dict[ItemKey, Settlement]:
    """Return the label that settles each adjudicated item: its last adjudication."""
    table = with_first_mistakes(store, load_current_labels(store).adjudications)
    return {
        (row["run"], row["item_id"]): Settlement(
            row["rater"],
            row["at_"].to_pydatetime(),
            row["reasoning"],
            row["first_mistake"],
            row["faithful"],
        )
        for row in table.sort_values("seq").to_dict("records")
    }
