"""Queues of items to label. No rater gets an item twice, and no item gets too many raters."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from cotlab.core.errors import CotlabError, UnknownName
from cotlab.core.keys import canonical_json, digest
from cotlab.core.labels import MAX_RATERS
from cotlab.store import labels as label_store
from cotlab.store.database import Store
from cotlab.store.labels import EVERY_RATER, QueuedItem
from cotlab.store.live import ItemKey, Leases

QUEUE_KINDS = ("label", "adjudication", "flagged", "audit")
"""What a queue is for. Labels of an adjudication settle what raters disagree on."""
GOLD_VERDICTS = ("acceptable", "not_acceptable")
"""Verdicts that can be expected of a gold item."""
_UNLIMITED_RATERS = 10**9


class QueueError(CotlabError):
    """A queue that cannot be made, or a label that cannot be changed."""


@dataclass(frozen=True, slots=True)
class LeasedItem:
    """An item that is leased to one rater."""

    queue: str
    """Id of the queue."""
    kind: str
    """Kind of the queue."""
    run: str
    """Id of the run."""
    item_id: str
    """Id of the item."""
    rater: str
    """Name of the rater."""
    label_id: str
    """Id of the label to be given: the same however often the item is displayed, so that it is
    stored once."""
    prefilled_correct: bool | None
    """Whether the answer is right, where the run knows that; None: the rater decides."""
    lease_end: float
    """End of the lease, in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class QueueProgress:
    """How far a queue is, and one rater in it."""

    n_items: int
    """Items of the queue."""
    n_complete: int
    """Items that have all labels they need."""
    n_labels: int
    """Labels given, of an item no more than it needs."""
    n_requested: int
    """Labels that the items need."""
    n_rater_labelled: int
    """Items that the rater has labelled."""
    n_rater_left: int
    """Items that are left for the rater."""
    n_rater_skipped: int
    """Items that the rater left for later."""


def make_queue(
    store: Store,
    name: str,
    items: Iterable[tuple[str, str, str]],
    *,
    raters: int = 1,
    overlap: float = 0.0,
    gold: Mapping[ItemKey, Mapping[str, Any]] | None = None,
    kind: str = "label",
    author: str,
) -> str:
    """Make a queue and return its id.

    Parameters
    ----------
    store : Store
    name : str
    items : iterable of (run, item id, reason)
        In the order of the queue; repeated items are left out.
    raters : int, 1 to ``MAX_RATERS``
        Labels that an item needs, each from another rater.
    overlap : float in [0, 1]
        That share of the items, chosen by their hash, needs ``max(raters, 2)`` labels and the
        others one; 0: every item needs ``raters``.
    gold : mapping of (run, item id) to ``{"reasoning": …, "answer_correct": …}``
        Expected labels; each rater gets all of these items. Those that are not among ``items`` are
        inserted at random positions.
    kind : one of ``QUEUE_KINDS``
    author : str
        Who makes it.

    Raises
    ------
    QueueError
        If the queue would be empty, or a number or an expected label is invalid.
    UnknownName
        If a run or an item is not in the store.
    """
    if kind not in QUEUE_KINDS:
        raise UnknownName("kind of queue", kind, QUEUE_KINDS)
    if not 1 <= raters <= MAX_RATERS or not 0 <= overlap <= 1:
        raise QueueError(
            f"A queue needs 1 to {MAX_RATERS} raters and an overlap from 0 to 1, got {raters} and"
            f" {overlap}."
        )
    if not name.strip():
        raise QueueError("A queue needs a name.")
    reason_by_item: dict[ItemKey, str] = {}
    for run, item, reason in items:
        reason_by_item.setdefault((run, item), reason)
    item_order = list(reason_by_item)
    gold_by_item = {
        key: _expected_label_json(key, gold_label) for key, gold_label in (gold or {}).items()
    }
    rng = random.Random(digest(["gold", name, item_order]))
    n_labels_by_item = _n_labels_by_item(name, item_order, raters, overlap)
    for key in (gold_key for gold_key in gold_by_item if gold_key not in reason_by_item):
        item_order.insert(rng.randint(0, len(item_order)), key)
    if not item_order:
        raise QueueError(f"The queue {name!r} would be empty: nothing to label was chosen.")
    n_labels_by_item |= dict.fromkeys(gold_by_item, EVERY_RATER)
    entries = [
        QueuedItem(*key, n_labels_by_item[key], gold_by_item.get(key), reason_by_item.get(key, ""))
        for key in item_order
    ]
    queue = f"queue-{digest([name, datetime.now(UTC).isoformat(), item_order])[:10]}"
    with store.writing() as connection:
        items_by_run = label_store.scored_items_by_run(
            connection, sorted({run for run, _ in item_order})
        )
        for run, item in item_order:
            if run not in items_by_run:
                raise UnknownName("run", run, sorted(items_by_run))
            if item not in items_by_run[run]:
                raise UnknownName(f"item of run {run}", item, sorted(items_by_run[run])[:20])
        params = {"raters": raters, "overlap": overlap, "gold": len(gold_by_item)}
        label_store.add_queue(
            connection, queue, name, entries, kind=kind, author=author, params=params
        )
    return queue


def lease_next_items(
    store: Store,
    queue: str,
    rater: str,
    max_items: int = 1,
    *,
    with_skipped: bool = False,
    first_item: ItemKey | None = None,
) -> list[LeasedItem]:
    """Return the next items for this rater, each leased for two minutes; empty at the end.

    An item is offered while it needs labels beside those given and leased to others. Items that the
    rater holds come again, in the same order, so that a reload displays the same; where others work
    on the queue, everybody holds an equal share of the rest.

    Parameters
    ----------
    store : Store
    queue, rater : str
    max_items : int, at least 1
        Most items.
    with_skipped : bool
        Whether items that the rater left for later come at the end.
    first_item : (run, item id), optional
        The item to begin with, if it is left for this rater.

    Raises
    ------
    UnknownName
        If there is no such queue.
    """
    with store.reading() as connection:
        kind = require_queue_kind(connection, queue)
        entries = label_store.get_queue_items(connection, queue)
        given_labels = label_store.find_labelled_items(connection, queue)
    with Leases(store.log_path) as leases:
        skipped_items = leases.skipped_items(queue, rater)
        while True:
            n_needed_by_item = _n_needed_by_item(
                entries, given_labels, rater, skipped_items, with_skipped=with_skipped
            )
            leased_items = leases.claim(
                queue, rater, list(n_needed_by_item.items()), max_items, first_item=first_item
            )
            # Others may have labelled and released these items meanwhile.
            with store.reading() as connection:
                given_labels = label_store.find_labelled_items(connection, queue)
                n_rows_by_item = label_store.count_label_rows(connection, queue, rater)
                correct_by_item = _prefilled_answers(
                    connection, [lease[:2] for lease in leased_items]
                )
            n_still_needed_by_item = _n_needed_by_item(
                entries, given_labels, rater, skipped_items, with_skipped=with_skipped
            )
            if all(lease[:2] in n_still_needed_by_item for lease in leased_items):
                break
    items = []
    for run, item, lease_end in leased_items:
        label_id = next_label_id(queue, run, item, rater, n_rows_by_item.get((run, item), 0))
        items.append(
            LeasedItem(
                queue, kind, run, item, rater, label_id, correct_by_item[run, item], lease_end
            )
        )
    return items


def measure_progress(store: Store, queue: str, rater: str) -> QueueProgress:
    """Return how far a queue is, and one rater in it."""
    with store.reading() as connection:
        require_queue_kind(connection, queue)
        entries = label_store.get_queue_items(connection, queue)
        given_labels = label_store.find_labelled_items(connection, queue)
    with Leases(store.log_path) as leases:
        skipped_items = leases.skipped_items(queue, rater)
    n_given_by_item = Counter((run, item) for run, item, _ in given_labels)
    n_needed_by_item = {(entry.run, entry.item_id): max(entry.raters, 1) for entry in entries}
    open_items, open_or_skipped_items = (
        _n_needed_by_item(entries, given_labels, rater, skipped_items, with_skipped=with_skipped)
        for with_skipped in (False, True)
    )
    return QueueProgress(
        n_items=len(entries),
        n_complete=sum(n_given_by_item[key] >= n_needed_by_item[key] for key in n_needed_by_item),
        n_labels=sum(min(n_given_by_item[key], n_needed_by_item[key]) for key in n_needed_by_item),
        n_requested=sum(n_needed_by_item.values()),
        n_rater_labelled=sum((*key, rater) in given_labels for key in n_needed_by_item),
        n_rater_left=len(open_items),
        n_rater_skipped=len(open_or_skipped_items) - len(open_items),
    )


def find_flagged_items(
    store: Store, runs: Sequence[str] | None = None
) -> list[tuple[str, str, str]]:
    """Return flagged items, of these runs or of all, for ``make_queue(…, kind="flagged")``."""
    flagged_labels = label_store.list_labels(store)
    flagged_labels = flagged_labels[
        flagged_labels["flagged"].astype(bool)
        & (flagged_labels["run"].isin(runs) if runs is not None else True)
    ]
    return [
        (row["run"], row["item_id"], f"flagged by {row['rater']}")
        for row in flagged_labels.to_dict("records")
    ]


def answers_by_key(store: Store, items: Sequence[ItemKey]) -> dict[ItemKey, bool | None]:
    """Return whether each answer is right by the answer key of its run; None where it has none."""
    with store.reading() as connection:
        return _prefilled_answers(connection, items)


def _prefilled_answers(connection: Any, items: Sequence[ItemKey]) -> dict[ItemKey, bool | None]:
    """Return whether each answer is right, as far as its run knows.

    By its own score, else by the baseline of the ablation; None without one, or where draws differ.
    """
    correct_by_item: dict[ItemKey, bool | None] = dict.fromkeys(items)
    for metric in ("baseline_correct", "answer_correct"):
        for key, values in label_store.score_values_by_item(connection, items, metric).items():
            correct_by_item[key] = values == {1.0} if values in ({0.0}, {1.0}) else None
    return correct_by_item


def require_queue_kind(connection: Any, queue: str) -> str:
    """Return the kind of a queue; ``UnknownName`` if there is none of this id."""
    kind = label_store.get_queue_kind(connection, queue)
    if kind is None:
        queue_rows = connection.execute("SELECT id FROM queues").fetchall()
        raise UnknownName("queue", queue, [row[0] for row in queue_rows])
    return kind


def _n_needed_by_item(
    entries: list[QueuedItem],
    given_labels: set[tuple[str, str, str]],
    rater: str,
    skipped_items: list[ItemKey],
    *,
    with_skipped: bool,
) -> dict[ItemKey, int]:
    """Return the items left for this rater in order, each with the raters it still needs."""
    n_others_by_item = Counter(
        (run, item) for run, item, labeller in given_labels if labeller != rater
    )
    n_needed_by_item = {
        entry[:2]: (entry.raters or _UNLIMITED_RATERS) - n_others_by_item[entry[:2]]
        for entry in entries
        if (*entry[:2], rater) not in given_labels
    }
    remaining_skipped = [key for key in skipped_items if key in n_needed_by_item]
    unskipped_items = [key for key in n_needed_by_item if key not in set(remaining_skipped)]
    return {
        key: n_needed_by_item[key]
        for key in [*unskipped_items, *(remaining_skipped if with_skipped else [])]
        if n_needed_by_item[key] > 0
    }


def next_label_id(queue: str, run: str, item: str, rater: str, n_rows: int) -> str:
    """Return the id of a rater's next row of an item, of which ``n_rows`` are written."""
    return digest(["label", queue, run, item, rater, n_rows])[:24]


def _n_labels_by_item(
    name: str, item_order: list[ItemKey], n_raters: int, overlap_share: float
) -> dict[ItemKey, int]:
    """Return the number of labels that each item needs."""
    if not overlap_share:
        return dict.fromkeys(item_order, n_raters)
    overlap_items = sorted(item_order, key=lambda key: digest(["overlap", name, *key]))[
        : round(overlap_share * len(item_order))
    ]
    return {**dict.fromkeys(item_order, 1), **dict.fromkeys(overlap_items, max(n_raters, 2))}


def _expected_label_json(key: ItemKey, gold_label: Mapping[str, Any]) -> str:
    """Return the expected label of a gold item as JSON."""
    unknown_fields = sorted(set(gold_label) - {"reasoning", "answer_correct"})
    has_valid_answer = isinstance(gold_label.get("answer_correct", True), bool)
    if unknown_fields or gold_label.get("reasoning") not in GOLD_VERDICTS or not has_valid_answer:
        raise QueueError(
            f"The expected label of {key[1]!r} in run {key[0]} is {dict(gold_label)!r}: it says"
            f" reasoning ({' or '.join(GOLD_VERDICTS)}) and perhaps answer_correct (true or false)."
        )
    return canonical_json(dict(gold_label))
