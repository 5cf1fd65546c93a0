"""A rater's actions in a queue: labels, skips and undos, in order.

A page may send the same action twice, or late: each names what it applies to, so that it is done
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
    """Leave an item for later."""

    run: str
    """Id of the run."""
    item_id: str
    """Id of the item."""


@dataclass(frozen=True, slots=True)
class Undo:
    """Take back a label, if it is the rater's last one."""

    of: str
    """Id of the label."""


Action = Label | Skip | Undo


@dataclass
class ActionResult:
    """What became of the actions."""

    written: int = 0
    """Labels that are new in the store."""
    undone: Label | None = None
    """The last label that was taken back; None without one."""
    refused: list[str] = field(default_factory=list)
    """Message for each action that was not done."""


def apply_actions(store: Store, queue: str, rater: str, actions: Iterable[Action]) -> ActionResult:
    """Apply a rater's actions in order; consecutive labels are written in one transaction.

    A label is written if its id is the one that the item's next label by this rater has
    (``QueueItem.label_id``, ``Given.correction_id``): so a repeated one is recognised, and one of
    an
    item that was labelled elsewhere meanwhile is refused. No label is lost silently: it is stored
    after its lease ran out, and where the item has all labels that it needs.

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
    """Write the labels that are new; refuse those whose id is not the item's next one."""
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
    """A label that a rater gave in a queue."""

    label: Label
    """The label."""
    correction_id: str
    """Id of the label that would correct it."""


def undo(store: Store, queue: str, rater: str, *, of: str | None = None) -> Label | None:
    """Take back the rater's last label in a queue, by a new row; None where there is none.

    The new row repeats the rater's label of the item before, or withdraws. Undoing again takes back
    the one before.

    Parameters
    ----------
    store : Store
    queue, rater : str
    of : str, optional
        The id of the label to take back. One that was taken back already, or was never written, is
        left: a repeated call undoes once.

    Returns
    -------
    Label or None
        The label that was taken back.

    Raises
    ------
    QueueError
        If the label ``of`` is current, but another was given in the queue since; or if the rater
        labelled the item again elsewhere since: that one has to be corrected there.
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
        if at and history[at - 1].queue != queue:  # an earlier label elsewhere is current again
            rows.append(_as_undo(history[at - 1], f"{last.id} elsewhere"))
        label_store.add_labels(connection, rows)
    return last


def latest_labels(store: Store, queue: str, rater: str, n: int = 10) -> list[Given]:
    """Return the rater's last current labels in a queue, newest first.

    The first is the next to be undone. Each can be corrected by a label of its ``correction_id``.
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
    """Return a rater's labels of a queue that were not taken back, oldest first."""
    ids = {label.id for label in mine}
    return [label for label in mine if label.origin != "undo" and undo_id(label.id) not in ids]
