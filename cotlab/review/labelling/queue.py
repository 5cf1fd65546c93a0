"""A queue asks people for labels, one item at a time: nobody is asked twice, and no two for the place that one can fill."""

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
"""What a queue is for. The labels of an adjudication settle what raters disagree on."""
GOLD_VERDICTS = ("acceptable", "not_acceptable")
_UNLIMITED = 10**9


class QueueError(CotlabError):
    """A queue that cannot be made, or a label that has no place in it."""


@dataclass(frozen=True, slots=True)
class QueueItem:
    """An item that is kept for one rater.

    Attributes
    ----------
    label_id : str
        The id of the label that is given of it: the same however often the item is shown, so that
        it is given once.
    prefilled : bool or None
        Whether the answer is right, where the run knows that; None: the rater says it.
    until : float
        When the lease ends, in seconds since 1970.
    """

    queue: str
    kind: str
    run: str
    item_id: str
    rater: str
    label_id: str
    prefilled: bool | None
    until: float

    def label(
        self,
        reasoning: Verdict,
        answer_correct: bool | None,
        *,
        modes: Iterable[str] = (),
        note: str = "",
        flagged: bool = False,
    ) -> Label:
        """The rater's label of this item, given now."""
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
    """How far a queue is. ``labels`` of ``wanted`` count no more of an item than it wants; ``mine``, ``mine_left`` and
    ``mine_skipped`` are one rater's items: labelled, still to be asked, left for later."""

    items: int
    complete: int
    labels: int
    requested: int
    mine: int
    mine_left: int
    mine_skipped: int


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
    items : iterable of (run, item id, why it is asked for)
        In the order in which they are asked for; an item that comes again is left out.
    raters : int, 1 to ``MOST_RATERS``
        Labels that an item wants, each from another rater.
    overlap : float in [0, 1]
        With it that share of the items, chosen by their hash, wants ``max(raters, 2)`` and the
        others one; without it every item wants ``raters``.
    gold : mapping of (run, item id) to ``{"reasoning": …, "answer_correct": …}``
        What is expected of these; each rater is asked for all of them. Those that are not among
        ``items`` are strewn in.
    kind : one of ``KINDS``

    Raises
    ------
    QueueError
        If there is nothing to ask, or a number or an expected label makes no sense.
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
    """The items that are asked of this rater next, each kept for two minutes from now; empty where none is.

    An item is offered while labels of others and leases of others leave room. Those that the rater
    holds come again, in the same order, so that a reload shows the same; where others work on the
    queue, everybody holds an equal share of the rest.

    Parameters
    ----------
    most : int >= 1
        So many items at most.
    skipped : bool
        With it, what the rater left for later comes at the end.
    first : (run, item id), optional
        The item to begin with, if it is still asked of this rater.

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
            with (
                store.reading() as connection
            ):  # others may have labelled them, and given them back, since it was looked
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
    """How far a queue is, and one rater in it."""
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
    """What somebody flagged and did not take back, for ``make_queue(…, kind="flagged")``; of these runs or of all."""
    flagged = label_store.label_table(store)
    flagged = flagged[
        flagged["flagged"].astype(bool) & (flagged["run"].isin(runs) if runs is not None else True)
    ]
    return [
        (row["run"], row["item_id"], f"flagged by {row['rater']}")
        for row in flagged.to_dict("records")
    ]


def _prefilled(connection: Any, keys: Sequence[ItemKey]) -> dict[ItemKey, bool | None]:
    """Whether the answer of an item is right, as far as its run knows: by its own score, else by the baseline of ablation;
    None where neither is there or its draws differ."""
    answers: dict[ItemKey, bool | None] = dict.fromkeys(keys)
    for metric in ("baseline_correct", "answer_correct"):
        for key, values in label_store.score_values(connection, keys, metric).items():
            answers[key] = values == {1.0} if values in ({0.0}, {1.0}) else None
    return answers


def require_queue_kind(connection: Any, queue: str) -> str:
    """What a queue is for, one of ``KINDS``; ``UnknownName`` if there is none of this id."""
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
    """The items that this rater can be asked for, and how many raters each has room for, in the order to be asked in."""
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
    """The id of a rater's next row of an item in a queue, of which ``count`` are written: the same whoever works it out."""
    return digest(["label", queue, run, item, rater, count])[:24]


def _labels_per_item(
    name: str, order: list[ItemKey], raters: int, overlap: float
) -> dict[ItemKey, int]:
    """How many labels each item wants."""
    if not overlap:
        return dict.fromkeys(order, raters)
    chosen = sorted(order, key=lambda key: digest(["overlap", name, *key]))[
        : round(overlap * len(order))
    ]
    return {**dict.fromkeys(order, 1), **dict.fromkeys(chosen, max(raters, 2))}


def _expected(key: ItemKey, label: Mapping[str, Any]) -> str:
    """The expected label of a gold item as JSON."""
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
