"""What raters do at a screen that holds several items: verdicts, items left for later, labels taken back, in their order.

A screen may tell the same thing twice, or late: each act names what it is of, so that it is done
once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import groupby

from cotlab.core.labels import Label, undo_id
from cotlab.review.labelling.queue import QueueError, label_id, require_queue_kind
from cotlab.store import labels as label_store
from cotlab.store.database import Store
from cotlab.store.live import ItemKey, Leases


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


@dataclass(frozen=True, slots=True)
class Given:
    """A label that a rater gave in a queue, and the id of the label that would correct it."""

    label: Label
    correction_id: str


def undo(store: Store, queue: str, rater: str, *, of: str | None = None) -> Label | None:
    """Take back the rater's last label in a queue that was not taken back, by a new row; None where there is none.

    The new row repeats what the rater had said of the item before, or withdraws. Undoing again
    takes back the one before.

    Parameters
    ----------
    of : str, optional
        The id of the label that is meant. One that was taken back already, or was never written, is
        left at that: a repeated call undoes once.

    Returns
    -------
    Label or None
        The label that was taken back.

    Raises
    ------
    QueueError
        If the label ``of`` holds, but another was given in the queue since; or if the rater
        labelled the item again elsewhere since: that one has to be corrected where it was given.
    """
    with store.writing() as connection:
        require_queue_kind(connection, queue)
        mine = label_store.as_labels(
            label_store.select_labels(connection, rater=rater, queue=queue, history=True)
        )
        stack = _stack(mine)
        if not stack or (of is not None and stack[-1].id != of):
            if meant := next((label.item_id for label in stack if label.id == of), None):
                raise QueueError(
                    f"The label of {meant!r} stays: you labelled {stack[-1].item_id!r} since. Take"
                    " that back."
                )
            return None
        last = stack[-1]
        history = label_store.as_labels(
            label_store.select_labels(
                connection, run=last.run_id, rater=rater, item=last.item_id, history=True
            )
        )
        at = next(k for k, label in enumerate(history) if label.id == last.id)
        if any(label.queue != queue for label in history[at + 1 :]):
            raise QueueError(
                f"{rater} labelled {last.item_id!r} again outside of this queue: correct that label"
                " instead."
            )
        in_queue = [label for label in history[:at] if label.queue == queue]
        withdrawal = replace(
            last,
            reasoning=None,
            answer_correct=None,
            modes=(),
            note="",
            flagged=False,
            withdrawn=True,
        )
        rows = [_as_undo(in_queue[-1] if in_queue else withdrawal, last.id)]
        if (
            at and history[at - 1].queue != queue
        ):  # what was said elsewhere, before this, holds again
            rows.append(_as_undo(history[at - 1], f"{last.id} elsewhere"))
        label_store.add_labels(connection, rows)
    return last


def latest_labels(store: Store, queue: str, rater: str, n: int = 10) -> list[Given]:
    """The rater's last labels in a queue that hold, the newest first, as they were given; the first is the next to be undone.

    Each can be corrected by a label of its ``correction_id``.
    """
    with store.reading() as connection:
        require_queue_kind(connection, queue)
        mine = label_store.as_labels(
            label_store.select_labels(connection, rater=rater, queue=queue, history=True)
        )
    rows: dict[ItemKey, int] = {}
    for label in mine:
        rows[label.run_id, label.item_id] = rows.get((label.run_id, label.item_id), 0) + 1
    stack = _stack(mine)
    last = {(label.run_id, label.item_id): label for label in stack}
    holding = [
        label
        for label in reversed(stack)
        if last[label.run_id, label.item_id] is label and not label.withdrawn
    ]
    return [
        Given(
            label,
            label_id(queue, label.run_id, label.item_id, rater, rows[label.run_id, label.item_id]),
        )
        for label in holding[:n]
    ]


def _as_undo(label: Label, of: str) -> Label:
    return replace(label, id=undo_id(of), at=datetime.now(UTC), origin="undo")


def _stack(mine: Sequence[Label]) -> list[Label]:
    """A rater's labels of a queue that were not taken back, in the order in which they were given."""
    ids = {label.id for label in mine}
    return [label for label in mine if label.origin != "undo" and undo_id(label.id) not in ids]
