"""A queue asks people for labels, one item at a time: nobody is asked twice, and no two for the place that one can fill."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from cotlab.core.errors import CotlabError, UnknownName
from cotlab.core.keys import canonical_json, digest
from cotlab.core.labels import MOST_RATERS, Label, Verdict, undo_id
from cotlab.store import labels as kept
from cotlab.store.database import Store
from cotlab.store.labels import EVERYONE, Queued
from cotlab.store.leases import Leases, Place

KINDS = ("label", "adjudication", "flagged", "audit")
"""What a queue is for. The labels of an adjudication settle what raters disagree on."""
GOLD_VERDICTS = ("acceptable", "not_acceptable")
_ALWAYS = 10**9


class QueueError(CotlabError):
    """A queue that cannot be made, or a label that has no place in it."""


@dataclass(frozen=True, slots=True)
class QueueItem:
    """An item that is kept for one rater.

    Attributes
    ----------
    label_id : str
        The id of the label that is given of it: the same however often the item is shown, so that it is given once.
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
        self, reasoning: Verdict, answer_correct: bool | None, *, modes: Iterable[str] = (), note: str = "",
        flagged: bool = False,
    ) -> Label:  # fmt: skip
        """The rater's label of this item, given now."""
        return Label(
            self.label_id, self.run, self.item_id, self.rater, reasoning, answer_correct, datetime.now(UTC), tuple(modes), note,
            flagged, queue=self.queue,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Given:
    """A label that a rater gave in a queue, and the id of the label that would correct it."""

    label: Label
    correction_id: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a queue is. ``labels`` of ``wanted`` count no more of an item than it wants; ``mine``, ``mine_left`` and
    ``mine_skipped`` are one rater's items: labelled, still to be asked, left for later."""

    items: int
    complete: int
    labels: int
    wanted: int
    mine: int
    mine_left: int
    mine_skipped: int


def make_queue(
    store: Store, name: str, items: Iterable[tuple[str, str, str]], *, raters: int = 1, overlap: float = 0.0,
    gold: Mapping[Place, Mapping[str, Any]] | None = None, kind: str = "label", by: str,
) -> str:  # fmt: skip
    """Make a queue and return its id.

    Parameters
    ----------
    items : iterable of (run, item id, why it is asked for)
        In the order in which they are asked for; an item that comes again is left out.
    raters : int, 1 to ``MOST_RATERS``
        Labels that an item wants, each from another rater.
    overlap : float in [0, 1]
        With it that share of the items, chosen by their hash, wants ``max(raters, 2)`` and the others one; without it every
        item wants ``raters``.
    gold : mapping of (run, item id) to ``{"reasoning": …, "answer_correct": …}``
        What is expected of these; each rater is asked for all of them. Those that are not among ``items`` are strewn in.
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
    if not 1 <= raters <= MOST_RATERS or not 0 <= overlap <= 1:
        raise QueueError(f"A queue needs 1 to {MOST_RATERS} raters and an overlap from 0 to 1, got {raters} and {overlap}.")
    if not name.strip():
        raise QueueError("A queue needs a name.")
    reasons: dict[Place, str] = {}
    for run, item, why in items:
        reasons.setdefault((run, item), why)
    order = list(reasons)
    expected = {place: _expected(place, said) for place, said in (gold or {}).items()}
    draw = random.Random(digest(["gold", name, order]))
    wanted = _wanted(name, order, raters, overlap)
    for place in (one for one in expected if one not in reasons):
        order.insert(draw.randint(0, len(order)), place)
    if not order:
        raise QueueError(f"The queue {name!r} would be empty: nothing to label was chosen.")
    listed = [
        Queued(*place, EVERYONE if place in expected else wanted[place], expected.get(place), reasons.get(place, ""))
        for place in order
    ]
    queue = f"queue-{digest([name, datetime.now(UTC).isoformat(), order])[:10]}"
    with store.writing() as connection:
        known = kept.known_items(connection, sorted({run for run, _ in order}))
        for run, item in order:
            if run not in known:
                raise UnknownName("run", run, sorted(known))
            if item not in known[run]:
                raise UnknownName(f"item of run {run}", item, sorted(known[run])[:20])
        told = {"raters": raters, "overlap": overlap, "gold": len(expected)}
        kept.add_queue(connection, queue, name, listed, kind=kind, by=by, params=told)
    return queue


def next_items(
    store: Store, queue: str, rater: str, most: int = 1, *, skipped: bool = False, first: Place | None = None
) -> list[QueueItem]:
    """The items that are asked of this rater next, each kept for two minutes from now; empty where none is.

    An item is offered while labels of others and leases of others leave room. Those that the rater holds come again, in the
    same order, so that a reload shows the same; where others work on the queue, everybody holds an equal share of the rest.

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
        kind, listed = kind_of(connection, queue), kept.places(connection, queue)
        given = kept.given_in(connection, queue)
    with Leases(store.log_path) as leases:
        left = leases.skipped(queue, rater)
        while True:
            open_ = _open(listed, given, rater, left, skipped=skipped)
            held = leases.claim(queue, rater, list(open_.items()), most, first=first)
            with store.reading() as connection:  # others may have labelled them, and given them back, since it was looked
                given = kept.given_in(connection, queue)
                counts = kept.counts_given(connection, queue, rater)
                right = _prefilled(connection, [(one.run, one.item_id) for one in held])
            still = _open(listed, given, rater, left, skipped=skipped)
            if all((one.run, one.item_id) in still for one in held):
                break
    places = [((one.run, one.item_id), one.until) for one in held]
    return [
        QueueItem(queue, kind, *place, rater, label_id(queue, *place, rater, counts.get(place, 0)), right[place], until)
        for place, until in places
    ]


def undo(store: Store, queue: str, rater: str, *, of: str | None = None) -> Label | None:
    """Take back the rater's last label in a queue that was not taken back, by a new row; None where there is none.

    The new row repeats what the rater had said of the item before, or withdraws. Undoing again takes back the one before.

    Parameters
    ----------
    of : str, optional
        The id of the label that is meant. One that was taken back already, or was never written, is left at that: a repeated
        call undoes once.

    Returns
    -------
    Label or None
        The label that was taken back.

    Raises
    ------
    QueueError
        If the label ``of`` holds, but another was given in the queue since; or if the rater labelled the item again elsewhere
        since: that one has to be corrected where it was given.
    """
    with store.writing() as connection:
        kind_of(connection, queue)
        mine = kept.as_labels(kept.given(connection, rater=rater, queue=queue, history=True))
        stack = _stack(mine)
        if not stack or (of is not None and stack[-1].id != of):
            if meant := next((one.item_id for one in stack if one.id == of), None):
                raise QueueError(f"The label of {meant!r} stays: you labelled {stack[-1].item_id!r} since. Take that back.")
            return None
        last = stack[-1]
        said = kept.as_labels(kept.given(connection, run=last.run_id, rater=rater, item=last.item_id, history=True))
        at = next(k for k, one in enumerate(said) if one.id == last.id)
        if any(one.queue != queue for one in said[at + 1 :]):
            raise QueueError(f"{rater} labelled {last.item_id!r} again outside of this queue: correct that label instead.")
        here = [one for one in said[:at] if one.queue == queue]
        gone = replace(last, reasoning=None, answer_correct=None, modes=(), note="", flagged=False, withdrawn=True)
        rows = [_as_undo(here[-1] if here else gone, last.id)]
        if at and said[at - 1].queue != queue:  # what was said elsewhere, before this, holds again
            rows.append(_as_undo(said[at - 1], f"{last.id} elsewhere"))
        kept.add_labels(connection, rows)
    return last


def progress(store: Store, queue: str, rater: str) -> Progress:
    """How far a queue is, and one rater in it."""
    with store.reading() as connection:
        kind_of(connection, queue)
        listed, given = kept.places(connection, queue), kept.given_in(connection, queue)
    with Leases(store.log_path) as leases:
        left = leases.skipped(queue, rater)
    counts = dict.fromkeys(((one.run, one.item_id) for one in listed), 0)
    for run, item, _ in given:
        counts[run, item] = counts.get((run, item), 0) + 1
    wants = {(one.run, one.item_id): max(one.raters, 1) for one in listed}
    now, later = (_open(listed, given, rater, left, skipped=skipped) for skipped in (False, True))
    return Progress(
        items=len(listed), complete=sum(counts[place] >= wants[place] for place in wants),
        labels=sum(min(counts[place], wants[place]) for place in wants), wanted=sum(wants.values()),
        mine=sum((*place, rater) in given for place in wants), mine_left=len(now), mine_skipped=len(later) - len(now),
    )  # fmt: skip


def latest(store: Store, queue: str, rater: str, n: int = 10) -> list[Given]:
    """The rater's last labels in a queue that hold, the newest first, as they were given; the first is the next to be undone.

    Each can be corrected by a label of its ``correction_id``.
    """
    with store.reading() as connection:
        kind_of(connection, queue)
        mine = kept.as_labels(kept.given(connection, rater=rater, queue=queue, history=True))
    rows: dict[Place, int] = {}
    for one in mine:
        rows[one.run_id, one.item_id] = rows.get((one.run_id, one.item_id), 0) + 1
    stack = _stack(mine)
    last = {(one.run_id, one.item_id): one for one in stack}
    holding = [one for one in reversed(stack) if last[one.run_id, one.item_id] is one and not one.withdrawn]
    return [
        Given(one, label_id(queue, one.run_id, one.item_id, rater, rows[one.run_id, one.item_id])) for one in holding[:n]
    ]


def flagged_items(store: Store, runs: Sequence[str] | None = None) -> list[tuple[str, str, str]]:
    """What somebody flagged and did not take back, for ``make_queue(…, kind="flagged")``; of these runs or of all."""
    found = kept.labels(store)
    found = found[found["flagged"].astype(bool) & (found["run"].isin(runs) if runs is not None else True)]
    return [(row["run"], row["item_id"], f"flagged by {row['rater']}") for row in found.to_dict("records")]


def _prefilled(connection: Any, places: Sequence[Place]) -> dict[Place, bool | None]:
    """Whether the answer of an item is right, as far as its run knows: by its own score, else by the baseline of ablation;
    None where neither is there or its draws differ."""
    found: dict[Place, bool | None] = dict.fromkeys(places)
    for metric in ("baseline_correct", "answer_correct"):
        for place, values in kept.score_values(connection, places, metric).items():
            found[place] = values == {1.0} if values in ({0.0}, {1.0}) else None
    return found


def kind_of(connection: Any, queue: str) -> str:
    """What a queue is for, one of ``KINDS``; ``UnknownName`` if there is none of this id."""
    kind = kept.queue_kind(connection, queue)
    if kind is None:
        raise UnknownName("queue", queue, [row[0] for row in connection.execute("SELECT id FROM queues").fetchall()])
    return kind


def _open(
    listed: list[Queued], given: set[tuple[str, str, str]], rater: str, left: list[Place], *, skipped: bool
) -> dict[Place, int]:
    """The items that this rater can be asked for, and how many raters each has room for, in the order to be asked in."""
    others: dict[Place, int] = {}
    for run, item, who in given:
        if who != rater:
            others[run, item] = others.get((run, item), 0) + 1
    room = {
        (one.run, one.item_id): (one.raters or _ALWAYS) - others.get((one.run, one.item_id), 0)
        for one in listed
        if (one.run, one.item_id, rater) not in given
    }
    later = [place for place in left if place in room]
    first = [place for place in room if place not in set(later)]
    return {place: room[place] for place in [*first, *(later if skipped else [])] if room[place] > 0}


def label_id(queue: str, run: str, item: str, rater: str, count: int) -> str:
    """The id of a rater's next row of an item in a queue, of which ``count`` are written: the same whoever works it out."""
    return digest(["label", queue, run, item, rater, count])[:24]


def _as_undo(said: Label, of: str) -> Label:
    return replace(said, id=undo_id(of), at=datetime.now(UTC), origin="undo")


def _stack(mine: Sequence[Label]) -> list[Label]:
    """A rater's labels of a queue that were not taken back, in the order in which they were given."""
    ids = {one.id for one in mine}
    return [one for one in mine if one.origin != "undo" and undo_id(one.id) not in ids]


def _wanted(name: str, order: list[Place], raters: int, overlap: float) -> dict[Place, int]:
    """How many labels each item wants."""
    if not overlap:
        return dict.fromkeys(order, raters)
    chosen = sorted(order, key=lambda place: digest(["overlap", name, *place]))[: round(overlap * len(order))]
    return {**dict.fromkeys(order, 1), **dict.fromkeys(chosen, max(raters, 2))}


def _expected(place: Place, said: Mapping[str, Any]) -> str:
    """The expected label of a gold item as JSON."""
    odd = sorted(set(said) - {"reasoning", "answer_correct"})
    if odd or said.get("reasoning") not in GOLD_VERDICTS or not isinstance(said.get("answer_correct", True), bool):
        raise QueueError(
            f"The expected label of {place[1]!r} in run {place[0]} is {dict(said)!r}: it says reasoning "
            f"({' or '.join(GOLD_VERDICTS)}) and perhaps answer_correct (true or false)."
        )
    return canonical_json(dict(said))
