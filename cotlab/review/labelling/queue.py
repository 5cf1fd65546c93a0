"""Queues of items to label. No rater gets an item twice, and no item gets too many raters."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from cotlab.core.errors import CotlabError, UnknownName
from cotlab.core.keys import canonical_json, digest
from cotlab.core.labels import MAX_RATERS, Label, Verdict
from cotlab.store import labels as label_store
from cotlab.store.database import Store
from cotlab.store.labels import EVERYONE, Queued
from cotlab.store.live import ItemKey, Leases

KINDS = ("label", "adjudication", "flagged", "audit")
"""What a queue is for. Labels of an adjudication settle what raters disagree on."""
GOLD_VERDICTS = ("acceptable", "not_acceptable")
"""Verdicts that can be expected of a gold item."""
_UNLIMITED = 10**9


class QueueError(CotlabError):
    """A queue that cannot be made, or a label that cannot be changed."""


@dataclass(frozen=True, slots=True)
class QueueItem:
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
    prefilled: bool | None
    """Whether the answer is right, where the run knows that; None: the rater decides."""
    until: float
    """End of the lease, in seconds since 1970."""

    def label(
        self,
        reasoning: Verdict,
        answer_correct: bool | None,
        *,
        modes: Iterable[str] = (),
        note: str = "",
        flagged: bool = False,
    ) -> Label:
        """Return the rater's label of this item, given now."""
        return Label(
            self.label_id,
            self.run,
            self.item_id,
            self.rater,
            reasoning,
            answer_correct,
            datetime.now(UTC),
            tuple(modes),
            note,
            flagged,
            queue=self.queue,
        )


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a queue is, and one rater in it."""

    items: int
    """Items of the queue."""
    complete: int
    """Items that have all labels they need."""
    labels: int
    """Labels given, of an item no more than it needs."""
    requested: int
    """Labels that the items need."""
    mine: int
    """Items that the rater has labelled."""
    mine_left: int
    """Items that are left for the rater."""
    mine_skipped: int
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
    by: str,
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
    kind : one of ``KINDS``
    by : str
        Who makes it.

    Raises
    ------
    QueueError
        If the queue would be empty, or a number or an expected label is invalid.
    UnknownName
        If a run or an item is not in the store.
    """
    if kind not in KINDS:
        raise UnknownName("kind of queue", kind, KINDS)
    if not 1 <= raters <= MAX_RATERS or not 0 <= overlap <= 1:
        raise QueueError(
            f"A queue needs 1 to {MAX_RATERS} raters and an overlap from 0 to 1, got {raters} and"
            f" {overlap}."
        )
    if not name.strip():
        raise QueueError("A queue needs a name.")
    reasons: dict[ItemKey, str] = {}
    for run, item, reason in items:
        reasons.setdefault((run, item), reason)
    order = list(reasons)
    expected = {key: _expected(key, gold_label) for key, gold_label in (gold or {}).items()}
    draw = random.Random(digest(["gold", name, order]))
    n_labels = _labels_per_item(name, order, raters, overlap)
    for key in (gold_key for gold_key in expected if gold_key not in reasons):
        order.insert(draw.randint(0, len(order)), key)
    if not order:
        raise QueueError(f"The queue {name!r} would be empty: nothing to label was chosen.")
    listed = [
        Queued(
            *key,
            EVERYONE if key in expected else n_labels[key],
            expected.get(key),
            reasons.get(key, ""),
        )
        for key in order
    ]
    queue = f"queue-{digest([name, datetime.now(UTC).isoformat(), order])[:10]}"
    with store.writing() as connection:
        known = label_store.known_items(connection, sorted({run for run, _ in order}))
        for run, item in order:
            if run not in known:
                raise UnknownName("run", run, sorted(known))
            if item not in known[run]:
                raise UnknownName(f"item of run {run}", item, sorted(known[run])[:20])
        params = {"raters": raters, "overlap": overlap, "gold": len(expected)}
        label_store.add_queue(connection, queue, name, listed, kind=kind, by=by, params=params)
    return queue


def next_items(
    store: Store,
    queue: str,
    rater: str,
    limit: int = 1,
    *,
    skipped: bool = False,
    first: ItemKey | None = None,
) -> list[QueueItem]:
    """Return the next items for this rater, each leased for two minutes; empty at the end.

    An item is offered while it needs labels beside those given and leased to others. Items that the
    rater holds come again, in the same order, so that a reload displays the same; where others work
    on the queue, everybody holds an equal share of the rest.

    Parameters
    ----------
    store : Store
    queue, rater : str
    limit : int, at least 1
        Most items.
    skipped : bool
        Whether items that the rater left for later come at the end.
    first : (run, item id), optional
        The item to begin with, if it is left for this rater.

    Raises
    ------
    UnknownName
        If there is no such queue.
    """
    with store.reading() as connection:
        kind, listed = (
            require_queue_kind(connection, queue),
            label_store.queue_entries(connection, queue),
        )
        given = label_store.labelled_in_queue(connection, queue)
    with Leases(store.log_path) as leases:
        skipped_items = leases.skipped(queue, rater)
        while True:
            open_ = _open_items(listed, given, rater, skipped_items, skipped=skipped)
            leased = leases.claim(queue, rater, list(open_.items()), limit, first=first)
            # Others may have labelled and released these items meanwhile.
            with store.reading() as connection:
                given = label_store.labelled_in_queue(connection, queue)
                counts = label_store.count_label_rows(connection, queue, rater)
                prefilled = _prefilled(connection, [(entry.run, entry.item_id) for entry in leased])
            still = _open_items(listed, given, rater, skipped_items, skipped=skipped)
            if all((entry.run, entry.item_id) in still for entry in leased):
                break
    keyed = [((entry.run, entry.item_id), entry.until) for entry in leased]
    return [
        QueueItem(
            queue,
            kind,
            *key,
            rater,
            label_id(queue, *key, rater, counts.get(key, 0)),
            prefilled[key],
            until,
        )
        for key, until in keyed
    ]


def progress(store: Store, queue: str, rater: str) -> Progress:
    """Return how far a queue is, and one rater in it."""
    with store.reading() as connection:
        require_queue_kind(connection, queue)
        listed, given = (
            label_store.queue_entries(connection, queue),
            label_store.labelled_in_queue(connection, queue),
        )
    with Leases(store.log_path) as leases:
        skipped_items = leases.skipped(queue, rater)
    counts = dict.fromkeys(((entry.run, entry.item_id) for entry in listed), 0)
    for run, item, _ in given:
        counts[run, item] = counts.get((run, item), 0) + 1
    wants = {(entry.run, entry.item_id): max(entry.raters, 1) for entry in listed}
    now, later = (
        _open_items(listed, given, rater, skipped_items, skipped=skipped)
        for skipped in (False, True)
    )
    return Progress(
        items=len(listed),
        complete=sum(counts[key] >= wants[key] for key in wants),
        labels=sum(min(counts[key], wants[key]) for key in wants),
        requested=sum(wants.values()),
        mine=sum((*key, rater) in given for key in wants),
        mine_left=len(now),
        mine_skipped=len(later) - len(now),
    )


def flagged_items(store: Store, runs: Sequence[str] | None = None) -> list[tuple[str, str, str]]:
    """Return flagged items, of these runs or of all, for ``make_queue(…, kind="flagged")``."""
    flagged = label_store.label_table(store)
    flagged = flagged[
        flagged["flagged"].astype(bool) & (flagged["run"].isin(runs) if runs is not None else True)
    ]
    return [
        (row["run"], row["item_id"], f"flagged by {row['rater']}")
        for row in flagged.to_dict("records")
    ]


def _prefilled(connection: Any, keys: Sequence[ItemKey]) -> dict[ItemKey, bool | None]:
    """Return whether each answer is right, as far as its run knows.

    By its own score, else by the baseline of the ablation; None without one, or where draws differ.
    """
    answers: dict[ItemKey, bool | None] = dict.fromkeys(keys)
    for metric in ("baseline_correct", "answer_correct"):
        for key, values in label_store.score_values(connection, keys, metric).items():
            answers[key] = values == {1.0} if values in ({0.0}, {1.0}) else None
    return answers


def require_queue_kind(connection: Any, queue: str) -> str:
    """Return the kind of a queue; ``UnknownName`` if there is none of this id."""
    kind = label_store.queue_kind(connection, queue)
    if kind is None:
        raise UnknownName(
            "queue",
            queue,
            [row[0] for row in connection.execute("SELECT id FROM queues").fetchall()],
        )
    return kind


def _open_items(
    listed: list[Queued],
    given: set[tuple[str, str, str]],
    rater: str,
    skipped_items: list[ItemKey],
    *,
    skipped: bool,
) -> dict[ItemKey, int]:
    """Return the items left for this rater in order, each with the raters it still needs."""
    others: dict[ItemKey, int] = {}
    for run, item, who in given:
        if who != rater:
            others[run, item] = others.get((run, item), 0) + 1
    room = {
        (entry.run, entry.item_id): (
            (entry.raters or _UNLIMITED) - others.get((entry.run, entry.item_id), 0)
        )
        for entry in listed
        if (entry.run, entry.item_id, rater) not in given
    }
    later = [key for key in skipped_items if key in room]
    first = [key for key in room if key not in set(later)]
    return {key: room[key] for key in [*first, *(later if skipped else [])] if room[key] > 0}


def label_id(queue: str, run: str, item: str, rater: str, count: int) -> str:
    """Return the id of a rater's next row of an item, of which ``count`` are written."""
    return digest(["label", queue, run, item, rater, count])[:24]


def _labels_per_item(
    name: str, order: list[ItemKey], raters: int, overlap: float
) -> dict[ItemKey, int]:
    """Return the number of labels that each item needs."""
    if not overlap:
        return dict.fromkeys(order, raters)
    chosen = sorted(order, key=lambda key: digest(["overlap", name, *key]))[
        : round(overlap * len(order))
    ]
    return {**dict.fromkeys(order, 1), **dict.fromkeys(chosen, max(raters, 2))}


def _expected(key: ItemKey, label: Mapping[str, Any]) -> str:
    """Return the expected label of a gold item as JSON."""
    unknown = sorted(set(label) - {"reasoning", "answer_correct"})
    if (
        unknown
        or label.get("reasoning") not in GOLD_VERDICTS
        or not isinstance(label.get("answer_correct", True), bool)
    ):
        raise QueueError(
            f"The expected label of {key[1]!r} in run {key[0]} is {dict(label)!r}: it says"
            f" reasoning ({' or '.join(GOLD_VERDICTS)}) and perhaps answer_correct (true or false)."
        )
    return canonical_json(dict(label))
