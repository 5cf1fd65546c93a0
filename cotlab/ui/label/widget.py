"""The desk of the page Label: a component that holds the next items, so that a key brings the next one at once.

What a rater does there is told to the server, which asks who tells it, checks it and confirms it
(``review.desk``). The component tells it again until it is confirmed, so nothing that was said is
lost when the network or the server pauses.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal

import streamlit as st
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cotlab.core.errors import UnknownName
from cotlab.core.keys import digest
from cotlab.core.labels import FAILURE_MODES, Label, Verdict
from cotlab.review.labelling import queue as queues
from cotlab.review.labelling import session as desk
from cotlab.review.labelling.queue import QueueItem
from cotlab.review.labelling.session import Given
from cotlab.store.live import ItemKey
from cotlab.ui import access
from cotlab.ui import cached as data
from cotlab.ui.label import items as label_items
from cotlab.ui.label.page import ANSWERS, MODES, VERDICTS
from cotlab.ui.text import shorten

INITIAL_ITEMS, PREFETCHED_ITEMS = 8, 32
"""So many items the component gets to begin with, and holds then: several seconds of the fastest
rater."""
MAX_PREFETCHED_CHARS = 200_000
"""So many characters of texts it holds at most, where it has two items: what is long is not read in
a second."""
MAX_ACTIONS = 64
"""So many acts are told at once: more than a desk holds items."""
MAX_NOTE_CHARS = 2000
_HELP = (
    ("1", "Acceptable: each step follows, and the chain leads to the answer that was given."),
    ("2", "Not acceptable."),
    ("3", "Unsure."),
    *(
        (str(key), f"{MODES[mode][0]}: {MODES[mode][1]}.")
        for key, mode in enumerate(FAILURE_MODES, start=4)
    ),
    ("S", "Leaves the item for later."),
    ("F", "Flags an item that is itself wrong: it is kept as unsure."),
    ("Z", "Takes back your last label."),
    ("H", "Closes this. Keys rest while you type."),
    (
        "",
        (
            "A label counts as good only where the answer is correct and the chain acceptable. You"
            " see no score and no label of others before yours is given."
        ),
    ),
)
_TITLES = {
    "skip": "Leaves the item for later",
    "undo": "Takes back your last label",
    "flag": "Something is wrong with the item itself: it is kept as unsure",
}
_MAX_REFUSALS = 5
_Text = Annotated[str, Field(max_length=MAX_NOTE_CHARS)]


class Action(BaseModel):
    """One act as the component tells it: a browser may send anything."""

    model_config = ConfigDict(strict=True, extra="forbid")
    seq: int
    queue: _Text
    kind: Literal["label", "skip", "leave", "undo", "renew", "idle"]
    id: _Text = ""
    run: _Text = ""
    item: _Text = ""
    verdict: Verdict | None = None
    answer: bool | None = None
    modes: list[str] = []
    note: _Text = ""
    flagged: bool = False
    of: _Text = ""


class ActionBatch(BaseModel):
    """What the component tells: what the server has not confirmed, in its order. Each act is read by itself (``Said``)."""

    model_config = ConfigDict(strict=True)
    client: _Text
    acts: Annotated[list[Any], Field(max_length=MAX_ACTIONS)]


def render_widget(queue: str, rater: str, latest: Sequence[Given], *, complete: bool) -> bool:
    """The component over the items that come next; False where none does.

    ``latest`` are the rater's last labels. While a queue is not ``complete`` a desk without an item
    asks again by itself.

    Raises
    ------
    Forbidden
        If whoever asks now may not label, or is not ``rater``.
    """
    items = _items(queue, rater, latest)
    _component()(
        key=_key(rater),
        data={
            "queue": queue,
            "rater": rater,
            "ack": st.session_state.get(_key(rater, "ack")),
            "items": items,
            "waits": not items and not complete,
            "last": latest[0].label.id if latest else None,
            "longest": MAX_NOTE_CHARS,
            "most": MAX_ACTIONS,
            "titles": _TITLES,
            "help": _HELP,
            "verdicts": [(key, verdict, label) for key, (verdict, label) in VERDICTS.items()],
            "modes": [
                (str(key), mode, *MODES[mode]) for key, mode in enumerate(FAILURE_MODES, start=4)
            ],
            "answers": list(ANSWERS.items()),
        },
        on_told_change=partial(_receive_actions, rater),
    )
    return bool(items)


def require_same_rater(who: access.Person, rater: str) -> None:
    """Whoever asks now is the one whom the page was drawn for.

    Raises
    ------
    Forbidden
        If they are not.
    """
    if who.name != rater:
        raise access.Forbidden(
            f"This page was drawn for {rater}, and {who.name} labels here now: load it again."
        )


def pop_refusals(rater: str) -> list[str]:
    """Why something that this rater said was not done; told once, and no more of it than can be read."""
    refusals = list(st.session_state.pop(_key(rater, "refused"), []))
    more = len(refusals) - _MAX_REFUSALS
    return refusals if more <= 0 else [*refusals[:_MAX_REFUSALS], f"So it is with {more} more."]


def _key(rater: str, part: str = "desk") -> str:
    return f"label-{part}-{digest(rater)[:12]}"


def render_unconfirmed(rater: str | None) -> None:
    """What others than ``rater`` said in this window and no server confirmed: whose name brings it to the store."""
    _component("waiting")(key="label-waiting", data={"rater": rater})


@st.cache_resource(show_spinner=False)
def _component(name: str = "widget") -> Any:
    here = Path(__file__)
    script, style = (
        here.with_name(f"{name}.js").read_text("utf-8"),
        here.with_name("widget.css").read_text("utf-8"),
    )
    return st.components.v2.component(
        f"cotlab_label_{name}", js=script, css=style, isolate_styles=False
    )


def _items(queue: str, rater: str, latest: Sequence[Given]) -> list[dict[str, Any]]:
    """What the component shows, the item to be judged first: a correction that was asked for, then what the queue asks."""
    require_same_rater(access.need("labeller"), rater)
    correction_id = st.session_state.get("label-correct")
    entries = [
        _correction(candidate) for candidate in latest if candidate.label.id == correction_id
    ]
    most = PREFETCHED_ITEMS if _key(rater, "ack") in st.session_state else INITIAL_ITEMS
    skipped = st.session_state.get("label-skipped") == queue
    first = st.session_state.get(_key(rater, "first"), {}).pop(
        queue, None
    )  # once: it is held then, and may be skipped
    all_ = 1 if st.session_state.get(_key(rater, "idle")) else PREFETCHED_ITEMS
    upcoming = queues.next_items(data.store(), queue, rater, all_, skipped=skipped, first=first)[
        :most
    ]
    size = 0
    for candidate in upcoming:
        entry = _queue_entry(candidate)
        size += sum(len(text) for _, text in entry["rows"])
        if len(entries) >= 2 and size > MAX_PREFETCHED_CHARS:
            break
        entries.append(entry)
    return entries


def _queue_entry(item: QueueItem) -> dict[str, Any]:
    return _item_payload(
        item.label_id,
        (item.run, item.item_id),
        item.prefilled,
        until=item.until,
        known=item.prefilled is not None,
    )


def _correction(given: Given) -> dict[str, Any]:
    old = given.label
    notice = f"You correct your label of {shorten(old.item_id)}."
    location = (old.run_id, old.item_id)
    return _item_payload(
        given.correction_id,
        location,
        old.answer_correct,
        notice,
        corrects=True,
        note=old.note,
        modes=list(old.modes),
    )


def _item_payload(
    label_id: str, location: ItemKey, answer: bool | None, *notes: str, **more: Any
) -> dict[str, Any]:
    """An item as the component reads it."""
    view = label_items.load_item_view(*location)
    gone = (
        "This run kept no texts, so there is nothing to judge: skip the item, or add the suite in"
        " full first."
    )
    plain: dict[str, Any] = {
        "until": None,
        "known": False,
        "corrects": False,
        "note": "",
        "modes": [],
    }
    return {
        "id": label_id,
        "run": location[0],
        "item": location[1],
        "answer": answer,
        "readable": not view.redacted,
        "rows": view.rows(),
        "whose": f"{view.chain_origin} Model {shorten(view.model)}.",
        "notes": [*notes, *([gone] if view.redacted else [])],
        **plain,
        **more,
    }


def _receive_actions(rater: str) -> None:
    """Do what the component told, and note how much of it, for the component to know."""
    problems = st.session_state.setdefault(_key(rater, "refused"), [])
    try:
        require_same_rater(access.need("labeller"), rater)
        batch = ActionBatch.model_validate(st.session_state[_key(rater)].get("told"))
    except access.Forbidden:
        return  # the page says so
    except ValidationError as error:
        problems.append(
            f"What this page sent cannot be read, and was not kept: {error.errors()[0]['msg']}."
            " Load it again."
        )
        return
    ack = st.session_state.get(_key(rater, "ack")) or {}
    confirmed_seq = ack.get("seq", 0) if ack.get("client") == batch.client else 0
    new, last = _parse_actions(batch.acts, confirmed_seq, problems)
    for queue, group in groupby(new, lambda action: action.queue):
        try:
            done = desk.apply_actions(
                data.store(),
                queue,
                rater,
                [act for action in group if (act := _stored_action(action, rater)) is not None],
            )
        except UnknownName as error:
            problems.append(str(error))
            continue
        problems.extend(done.refused)
        if done.undone is not None:
            first = st.session_state.setdefault(_key(rater, "first"), {})
            first[queue] = (done.undone.run_id, done.undone.item_id)
    if new:
        st.session_state[_key(rater, "idle")] = new[-1].kind == "idle"
    if any(action.kind == "leave" for action in new):
        st.session_state.pop("label-correct", None)
    st.session_state[_key(rater, "ack")] = {"client": batch.client, "seq": last}


def _parse_actions(
    acts: Sequence[Any], confirmed_seq: int, problems: list[str]
) -> tuple[list[Action], int]:
    """The acts after ``upto``, and the number of the last. One that cannot be read is told of, and keeps no other back."""
    parsed, last = [], confirmed_seq
    for raw in acts:
        seq = raw.get("seq") if isinstance(raw, dict) else None
        if isinstance(seq, int) and seq <= confirmed_seq:
            continue
        try:
            parsed.append(Action.model_validate(raw))
        except ValidationError as error:
            what = error.errors()[0]
            where = str(next(iter(what["loc"]), "all of it"))
            problems.append(
                f"Something you did cannot be read, and was not kept: {where}: {what['msg']}. Do it"
                " again."
            )
        last = max(last, seq) if isinstance(seq, int) else last
    return parsed, last


def _stored_action(action: Action, rater: str) -> desk.Action | None:
    """What an act asks of the store; None for one that only the page minds."""
    match action.kind:
        case "label" if action.verdict is not None:
            modes = tuple(mode for mode in FAILURE_MODES if mode in action.modes)
            return Label(
                action.id,
                action.run,
                action.item,
                rater,
                action.verdict,
                action.answer,
                datetime.now(UTC),
                modes,
                action.note.strip(),
                action.flagged,
                queue=action.queue,
            )
        case "skip":
            return desk.Skip(action.run, action.item)
        case "undo":
            return desk.Undo(action.of)
    return None
