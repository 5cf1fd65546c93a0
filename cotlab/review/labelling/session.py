"""What raters do at a screen that holds several items: verdicts, items left for later, labels taken back, in their order.

A screen may tell the same thing twice, or late: each act names what it is of, so that it is done once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from cotlab.core.labels import Label
from cotlab.review.labelling.queue import QueueError, kind_of, label_id, undo
from cotlab.store import labels as kept
from cotlab.store.database import Store
from cotlab.store.leases import Leases, Place


@dataclass(frozen=True, slots=True)
class Skip:
    """An item is left for later."""

    run: str
    item_id: str


@dataclass(frozen=True, slots=True)
class Undo:
    """The label ``of`` this id is taken back, if it is the rater's last one."""

    of: str


Act = Label | Skip | Undo


@dataclass
class Taken:
    """What became of acts.

    Attributes
    ----------
    written : int
        Labels that are new in the store.
    undone : Label or None
        The last label that was taken back.
    refused : list of str
        For each act that was not done, why, in words.
    """

    written: int = 0
    undone: Label | None = None
    refused: list[str] = field(default_factory=list)


def take(store: Store, queue: str, rater: str, acts: Iterable[Act]) -> Taken:
    """Do what a rater did at the screen, in its order; labels that follow each other are written at once.

    A label is written if its id is the one that the item's next label by this rater has (``QueueItem.label_id``,
    ``Given.correction_id``): so one that is told again is known, and one of an item that was labelled elsewhere meanwhile is
    refused. What was said is never lost in silence: a label lands after its lease ran out, and where the item has all that it
    wants.

    Raises
    ------
    UnknownName
        If there is no such queue.
    """
    done = Taken()
    for _, some in groupby(acts, type):
        alike = list(some)
        if labels := [act for act in alike if isinstance(act, Label)]:
            _write(store, queue, rater, labels, done)
        if skips := [act for act in alike if isinstance(act, Skip)]:
            _skip(store, queue, rater, skips, done)
        for taken_back in (act for act in alike if isinstance(act, Undo)):
            try:
                done.undone = undo(store, queue, rater, of=taken_back.of) or done.undone
            except QueueError as error:
                done.refused.append(str(error))
    return done


def _write(store: Store, queue: str, rater: str, labels: Sequence[Label], done: Taken) -> None:
    """Write the labels that are new; what was said of an item by another id than its next one is refused."""
    with store.writing() as connection:
        kind_of(connection, queue)
        places = {(one.run, one.item_id) for one in kept.places(connection, queue)}
        counts = kept.counts_given(connection, queue, rater)
        there = {one.id: one for one in kept.as_labels(kept.given(connection, ids=[one.id for one in labels], history=True))}
        new = []
        for label in labels:
            place: Place = (label.run_id, label.item_id)
            if (old := there.get(label.id)) is not None:
                if _said(old) != _said(label):
                    done.refused.append(f"You labelled {label.item_id!r} already, in another window: {old.reasoning}.")
            elif place not in places or label.id != label_id(queue, *place, rater, counts.get(place, 0)):
                done.refused.append(f"Your label of {label.item_id!r} was not kept: you labelled it elsewhere meanwhile.")
            else:
                new.append(label)
                there[label.id] = label
                counts[place] = counts.get(place, 0) + 1
        done.written += kept.add_labels(connection, new)
    with Leases(store.log_path) as leases:
        for label in labels:
            leases.release(queue, label.run_id, label.item_id, rater)


def _skip(store: Store, queue: str, rater: str, skips: Sequence[Skip], done: Taken) -> None:
    with store.reading() as connection:
        kind_of(connection, queue)
        places = {(one.run, one.item_id) for one in kept.places(connection, queue)}
    with Leases(store.log_path) as leases:
        for one in skips:
            if (one.run, one.item_id) in places:
                leases.skip(queue, one.run, one.item_id, rater)
            else:
                done.refused.append(f"{one.item_id!r} was not skipped: it is not in this queue.")


def _said(label: Label) -> tuple[object, ...]:
    return (label.rater, label.reasoning, label.answer_correct, label.modes, label.note, label.flagged)
