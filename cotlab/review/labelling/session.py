"""A rater's actions in a queue: labels, skips and undos, in order.

A page may send the same action twice, or late: each names what it applies to, so that it is done
once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import groupby

from cotlab.core.labels import Label, undo_id
from cotlab.review.labelling.queue import QueueError, next_label_id, require_queue_kind
from cotlab.store import labels as label_store
from cotlab.store.database import Store
from cotlab.store.live import ItemKey, Leases


@dataclass(frozen=True, slots=True)
class SkipAction:
    """Leave an item for later."""

    run: str
    """Id of the run."""
    item_id: str
    """Id of the item."""


@dataclass(frozen=True, slots=True)
class UndoAction:
    """Take back a label, if it is the rater's last one."""

    undone_id: str
    """Id of the label."""


RaterAction = Label | SkipAction | UndoAction


@dataclass
class ActionResult:
    """What became of the actions."""

    n_written: int = 0
    """Labels that are new in the store."""
    undone_label: Label | None = None
    """The last label that was taken back; None without one."""
    refusals: list[str] = field(default_factory=list)
    """Message for each action that was not done."""


def apply_actions(
    store: Store, queue: str, rater: str, actions: Iterable[RaterAction]
) -> ActionResult:
    """Apply a rater's actions in order; consecutive labels are written in one transaction.

    A label is written if its id is the one that the item's next label by this rater has
    (``LeasedItem.label_id``, ``GivenLabel.correction_id``): so a repeated one is recognised, and
    one of an item that was labelled elsewhere meanwhile is refused. No label is lost silently: it
    is stored after its lease ran out, and where the item has all labels that it needs.

    Raises
    ------
    UnknownName
        If there is no such queue.
    """
    result = ActionResult()
    for _, group in groupby(actions, type):
        actions_of_type = list(group)
        if labels := [action for action in actions_of_type if isinstance(action, Label)]:
            _write_labels(store, queue, rater, labels, result)
        if skips := [action for action in actions_of_type if isinstance(action, SkipAction)]:
            _skip_items(store, queue, rater, skips, result)
        for undo_action in (action for action in actions_of_type if isinstance(action, UndoAction)):
            try:
                result.undone_label = (
                    undo_label(store, queue, rater, undone_id=undo_action.undone_id)
                    or result.undone_label
                )
            except QueueError as error:
                result.refusals.append(str(error))
    return result


def _write_labels(
    store: Store, queue: str, rater: str, labels: Sequence[Label], result: ActionResult
) -> None:
    """Write the labels that are new; refuse those whose id is not the item's next one."""
    with store.writing() as connection:
        require_queue_kind(connection, queue)
        queue_items = {entry[:2] for entry in label_store.get_queue_items(connection, queue)}
        n_rows_by_item = label_store.count_label_rows(connection, queue, rater)
        rows = label_store.select_labels(
            connection, label_ids=[label.id for label in labels], history=True
        )
        stored_label_by_id = {label.id: label for label in label_store.labels_from_table(rows)}
        new_labels = []
        for label in labels:
            item_key: ItemKey = (label.run_id, label.item_id)
            if (stored_label := stored_label_by_id.get(label.id)) is not None:
                said = replace(  # where and when it was said may differ
                    stored_label,
                    at=label.at,
                    queue=label.queue,
                    origin=label.origin,
                    steps_digest=label.steps_digest,
                )
                if said != label:
                    result.refusals.append(
                        f"You labelled {label.item_id!r} already, in another window:"
                        f" {stored_label.reasoning}."
                    )
            elif item_key not in queue_items or label.id != next_label_id(
                queue, *item_key, rater, n_rows_by_item.get(item_key, 0)
            ):
                result.refusals.append(
                    f"Your label of {label.item_id!r} was not kept: you labelled it elsewhere"
                    " meanwhile."
                )
            else:
                new_labels.append(label)
                stored_label_by_id[label.id] = label
                n_rows_by_item[item_key] = n_rows_by_item.get(item_key, 0) + 1
        result.n_written += label_store.add_labels(connection, new_labels)
    with Leases(store.log_path) as leases:
        for label in labels:
            leases.release(queue, label.run_id, label.item_id, rater)


def _skip_items(
    store: Store, queue: str, rater: str, skips: Sequence[SkipAction], result: ActionResult
) -> None:
    with store.reading() as connection:
        require_queue_kind(connection, queue)
        queue_items = {entry[:2] for entry in label_store.get_queue_items(connection, queue)}
    with Leases(store.log_path) as leases:
        for skip in skips:
            if (skip.run, skip.item_id) in queue_items:
                leases.skip(queue, skip.run, skip.item_id, rater)
            else:
                result.refusals.append(
                    f"{skip.item_id!r} was not skipped: it is not in this queue."
                )


@dataclass(frozen=True, slots=True)
class GivenLabel:
    """A label that a rater gave in a queue."""

    label: Label
    """The label."""
    correction_id: str
    """Id of the label that would correct it."""


def undo_label(
    store: Store, queue: str, rater: str, *, undone_id: str | None = None
) -> Label | None:
    """Take back the rater's last label in a queue, by a new row; None where there is none.

    The new row repeats the rater's label of the item before, or withdraws. Undoing again takes back
    the one before.

    Parameters
    ----------
    store : Store
    queue, rater : str
    undone_id : str, optional
        The id of the label to take back. One that was taken back already, or was never written, is
        left: a repeated call undoes once.

    Returns
    -------
    Label or None
        The label that was taken back.

    Raises
    ------
    QueueError
        If the label ``undone_id`` is current, but another was given in the queue since; or if the
        rater labelled the item again elsewhere since: that one has to be corrected there.
    """
    with store.writing() as connection:
        require_queue_kind(connection, queue)
        rater_labels = label_store.labels_from_table(
            label_store.select_labels(connection, rater=rater, queue=queue, history=True)
        )
        undoable_labels = _undoable_labels(rater_labels)
        if not undoable_labels or (undone_id is not None and undoable_labels[-1].id != undone_id):
            if meant_item := next(
                (label.item_id for label in undoable_labels if label.id == undone_id), None
            ):
                raise QueueError(
                    f"The label of {meant_item!r} stays: you labelled"
                    f" {undoable_labels[-1].item_id!r} since. Take that back."
                )
            return None
        last_label = undoable_labels[-1]
        item_history = label_store.labels_from_table(
            label_store.select_labels(
                connection,
                run=last_label.run_id,
                rater=rater,
                item=last_label.item_id,
                history=True,
            )
        )
        last_index = next(
            index for index, label in enumerate(item_history) if label.id == last_label.id
        )
        if any(label.queue != queue for label in item_history[last_index + 1 :]):
            raise QueueError(
                f"{rater} labelled {last_label.item_id!r} again outside of this queue: correct that"
                " label instead."
            )
        earlier_queue_labels = [
            label for label in item_history[:last_index] if label.queue == queue
        ]
        rows = [
            _undo_row(
                earlier_queue_labels[-1] if earlier_queue_labels else last_label.withdrawal(),
                last_label.id,
            )
        ]
        if (
            last_index and item_history[last_index - 1].queue != queue
        ):  # an earlier label elsewhere is current again
            rows.append(_undo_row(item_history[last_index - 1], f"{last_label.id} elsewhere"))
        label_store.add_labels(connection, rows)
    return last_label


def latest_labels(store: Store, queue: str, rater: str, max_labels: int = 10) -> list[GivenLabel]:
    """Return the rater's last current labels in a queue, newest first.

    The first is the next to be undone. Each can be corrected by a label of its ``correction_id``.
    """
    with store.reading() as connection:
        require_queue_kind(connection, queue)
        rater_labels = label_store.labels_from_table(
            label_store.select_labels(connection, rater=rater, queue=queue, history=True)
        )
    n_rows_by_item = Counter((label.run_id, label.item_id) for label in rater_labels)
    newest_by_item: dict[ItemKey, Label] = {}
    for label in reversed(_undoable_labels(rater_labels)):
        newest_by_item.setdefault((label.run_id, label.item_id), label)
    current_labels = [(key, label) for key, label in newest_by_item.items() if not label.withdrawn]
    return [
        GivenLabel(label, next_label_id(queue, *key, rater, n_rows_by_item[key]))
        for key, label in current_labels[:max_labels]
    ]


def _undo_row(label: Label, undone_id: str) -> Label:
    return replace(label, id=undo_id(undone_id), at=datetime.now(UTC), origin="undo")


def _undoable_labels(rater_labels: Sequence[Label]) -> list[Label]:
    """Return a rater's labels of a queue that were not taken back, oldest first."""
    label_ids = {label.id for label in rater_labels}
    return [
        label
        for label in rater_labels
        if label.origin != "undo" and undo_id(label.id) not in label_ids
    ]
