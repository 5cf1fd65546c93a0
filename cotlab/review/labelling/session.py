"""What raters do at a screen that holds several items: verdicts, items left for later, labels taken back, in their order.

A screen may tell the same thing twice, or late: each act names what it is of, so that it is done
once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from cotlab.core.labels import Label
from cotlab.review.labelling.queue import QueueError, label_id, require_queue_kind, undo
from cotlab.store import labels as label_store
from cotlab.store.database import Store
from cotlab.store.leases import ItemKey, Leases


@dataclass(frozen=True, slots=True)
class Skip:
    """An item is left for later."""

    run: str
    item_id: str


@dataclass(frozen=True, slots=True)
class Undo:
    """The label ``of`` this id is taken back, if it is the rater's last one."""

    of: str


Action = Label | Skip | Undo


@dataclass
class ActionResult:
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


def apply_actions(store: Store, queue: str, rater: str, actions: Iterable[Action]) -> ActionResult:
    """Do what a rater did at the screen, in its order; labels that follow each other are written at once.

    A label is written if its id is the one that the item's next label by this rater has
    (``QueueItem.label_id``, ``Given.correction_id``): so one that is told again is known, and one
    of an item that was labelled elsewhere meanwhile is refused. What was said is never lost in
    silence: a label lands after its lease ran out, and where the item has all that it wants.

    Raises
    ------
    UnknownName
        If there is no such queue.
    """
    result = ActionResult()
    for _, group in groupby(actions, type):
        batch = list(group)
        if labels := [act for act in batch if isinstance(act, Label)]:
            _write(store, queue, rater, labels, result)
        if skips := [act for act in batch if isinstance(act, Skip)]:
            _skip(store, queue, rater, skips, result)
        for undo_action in (act for act in batch if isinstance(act, Undo)):
            try:
                result.undone = undo(store, queue, rater, of=undo_action.of) or result.undone
            except QueueError as error:
                result.refused.append(str(error))
    return result


def _write(
    store: Store, queue: str, rater: str, labels: Sequence[Label], result: ActionResult
) -> None:
    """Write the labels that are new; what was said of an item by another id than its next one is refused."""
    with store.writing() as connection:
        require_queue_kind(connection, queue)
        keys = {
            (entry.run, entry.item_id) for entry in label_store.queue_entries(connection, queue)
        }
        counts = label_store.count_label_rows(connection, queue, rater)
        stored = {
            entry.id: entry
            for entry in label_store.as_labels(
                label_store.select_labels(
                    connection, ids=[entry.id for entry in labels], history=True
                )
            )
        }
        new = []
        for label in labels:
            key: ItemKey = (label.run_id, label.item_id)
            if (old := stored.get(label.id)) is not None:
                if _label_content(old) != _label_content(label):
                    result.refused.append(
                        f"You labelled {label.item_id!r} already, in another window:"
                        f" {old.reasoning}."
                    )
            elif key not in keys or label.id != label_id(queue, *key, rater, counts.get(key, 0)):
                result.refused.append(
                    f"Your label of {label.item_id!r} was not kept: you labelled it elsewhere"
                    " meanwhile."
                )
            else:
                new.append(label)
                stored[label.id] = label
                counts[key] = counts.get(key, 0) + 1
        result.written += label_store.add_labels(connection, new)
    with Leases(store.log_path) as leases:
        for label in labels:
            leases.release(queue, label.run_id, label.item_id, rater)


def _skip(
    store: Store, queue: str, rater: str, skips: Sequence[Skip], result: ActionResult
) -> None:
    with store.reading() as connection:
        require_queue_kind(connection, queue)
        keys = {
            (skipped.run, skipped.item_id)
            for skipped in label_store.queue_entries(connection, queue)
        }
    with Leases(store.log_path) as leases:
        for skipped in skips:
            if (skipped.run, skipped.item_id) in keys:
                leases.skip(queue, skipped.run, skipped.item_id, rater)
            else:
                result.refused.append(
                    f"{skipped.item_id!r} was not skipped: it is not in this queue."
                )


def _label_content(label: Label) -> tuple[object, ...]:
    return (
        label.rater,
        label.reasoning,
        label.answer_correct,
        label.modes,
        label.note,
        label.flagged,
    )
