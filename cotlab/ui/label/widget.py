"""The labelling component: it prefetches items, so that a key press shows the next one at once.

The browser sends the rater's actions in batches; the server checks and confirms them
(``cotlab.review.labelling.session``). The browser sends an action again until it is confirmed, so
that none is lost when the network or the server pauses.
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
from cotlab.review.labelling import session
from cotlab.review.labelling.queue import QueueItem
from cotlab.review.labelling.session import Given
from cotlab.store.live import ItemKey
from cotlab.ui import access, cached
from cotlab.ui.label import items as label_items
from cotlab.ui.label.items import ANSWERS, MODES, VERDICTS
from cotlab.ui.text import shorten

INITIAL_ITEMS, PREFETCHED_ITEMS = 8, 32
"""Initial and maximum number of prefetched items: several seconds of the fastest rater."""
MAX_PREFETCHED_CHARS = 200_000
"""Maximum number of prefetched characters beyond two items: a long text takes time to read."""
MAX_ACTIONS = 64
"""Maximum number of actions in a batch, which is more than the prefetched items."""
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
    ("F", "Flags an item that is itself wrong: its label is unsure."),
    ("Z", "Takes back your last label."),
    ("H", "Closes this help. Keys have no effect while you type."),
    (
        "",
        (
            "A label counts as good only if the answer is correct and the chain"
            " acceptable. You see no score, and no label by others before you give yours."
        ),
    ),
)
_TITLES = {
    "skip": "Leaves the item for later",
    "undo": "Takes back your last label",
    "flag": "Something is wrong with the item itself: its label is unsure",
}
_MAX_REFUSALS = 5
_Text = Annotated[str, Field(max_length=MAX_NOTE_CHARS)]


class Action(BaseModel):
    """One action of a rater, as the browser sends it. A browser may send anything."""

    model_config = ConfigDict(strict=True, extra="forbid")
    seq: int
    """Sequence number within the browser window, from 1."""
    queue: _Text
    """The queue's id."""
    kind: Literal["label", "skip", "leave", "undo", "renew", "idle"]
    """What the rater did."""
    id: _Text = ""
    """Id of the new label."""
    run: _Text = ""
    """The item's run."""
    item: _Text = ""
    """The item's id."""
    verdict: Verdict | None = None
    """The verdict on the reasoning."""
    answer: bool | None = None
    """Whether the answer is correct; None if the rater cannot tell."""
    modes: list[str] = []
    """Names of the failure modes that apply."""
    note: _Text = ""
    """The rater's note."""
    flagged: bool = False
    """Whether the item itself is wrong."""
    of: _Text = ""
    """Id of the label that an undo takes back."""


class ActionBatch(BaseModel):
    """The actions that the server has not confirmed yet, in order. Each is parsed by itself."""

    model_config = ConfigDict(strict=True)
    client: _Text
    """Random id of the browser window; sequence numbers count within it."""
    acts: Annotated[list[Any], Field(max_length=MAX_ACTIONS)]
    """The actions, unparsed."""


def render_widget(queue: str, rater: str, latest: Sequence[Given], *, complete: bool) -> bool:
    """Show the component with the next items; return False where there are none.

    Parameters
    ----------
    queue, rater : str
    latest : sequence of Given
        The rater's last labels.
    complete : bool
        Whether the queue has all its labels. If not, a component without items polls for more.

    Raises
    ------
    Forbidden
        If the current user may not label, or is not ``rater``.
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
            "maxNoteLength": MAX_NOTE_CHARS,
            "maxActions": MAX_ACTIONS,
            "titles": _TITLES,
            "help": _HELP,
            "verdicts": [(key, verdict, label) for key, (verdict, label) in VERDICTS.items()],
            "modes": [
                (str(key), mode, *MODES[mode]) for key, mode in enumerate(FAILURE_MODES, start=4)
            ],
            "answers": list(ANSWERS.items()),
        },
        on_batch_change=partial(_receive_actions, rater),
    )
    return bool(items)


def require_same_rater(who: access.Person, rater: str) -> None:
    """Check that the page was shown to the current user.

    Raises
    ------
    Forbidden
        If it was shown to another rater.
    """
    if who.name != rater:
        raise access.Forbidden(
            f"This page was opened by {rater}, and {who.name} labels here now: load it again."
        )


def pop_refusals(rater: str) -> list[str]:
    """Return why actions of this rater were refused, once, and at most a few."""
    refusals = list(st.session_state.pop(_key(rater, "refused"), []))
    more = len(refusals) - _MAX_REFUSALS
    return (
        refusals if more <= 0 else [*refusals[:_MAX_REFUSALS], (f"The same holds for {more} more.")]
    )


def _key(rater: str, part: str = "desk") -> str:
    return f"label-{part}-{digest(rater)[:12]}"


def render_unconfirmed(rater: str | None) -> None:
    """Show that another rater's actions in this window are unconfirmed, and need their return."""
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
    """Return the component's items: a correction that was started, then those of the queue."""
    require_same_rater(access.need("labeller"), rater)
    correction_id = st.session_state.get("label-correct")
    entries = [
        _correction(candidate) for candidate in latest if candidate.label.id == correction_id
    ]
    most = PREFETCHED_ITEMS if _key(rater, "ack") in st.session_state else INITIAL_ITEMS
    skipped = st.session_state.get("label-skipped") == queue
    first = st.session_state.get(_key(rater, "first"), {}).pop(
        queue, None
    )  # only once: then it is prefetched, and may be skipped
    all_ = 1 if st.session_state.get(_key(rater, "idle")) else PREFETCHED_ITEMS
    upcoming = queues.next_items(cached.store(), queue, rater, all_, skipped=skipped, first=first)[
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
    notice = f"You are correcting your label of {shorten(old.item_id)}."
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
    """Return an item in the form that the component expects."""
    view = label_items.load_item_view(*location)
    gone = (
        "This run stored no texts, so there is nothing to judge: skip the item, or add the"
        " full suite first."
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
    """Apply the actions that the component sent, and acknowledge them."""
    problems = st.session_state.setdefault(_key(rater, "refused"), [])
    try:
        require_same_rater(access.need("labeller"), rater)
        batch = ActionBatch.model_validate(st.session_state[_key(rater)].get("batch"))
    except access.Forbidden:
        return  # ``render_queue`` shows the reason
    except ValidationError as error:
        problems.append(
            "What this page sent cannot be read, and was not stored:"
            f" {error.errors()[0]['msg']}. Load it again."
        )
        return
    ack = st.session_state.get(_key(rater, "ack")) or {}
    confirmed_seq = ack.get("seq", 0) if ack.get("client") == batch.client else 0
    new, last = _parse_actions(batch.acts, confirmed_seq, problems)
    for queue, group in groupby(new, lambda action: action.queue):
        try:
            done = session.apply_actions(
                cached.store(),
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
    """Parse the actions after ``confirmed_seq``, and return them with the last sequence number.

    An action that cannot be parsed is reported, and does not hold up the others.
    """
    parsed, last = [], confirmed_seq
    for raw in acts:
        seq = raw.get("seq") if isinstance(raw, dict) else None
        if isinstance(seq, int) and seq <= confirmed_seq:
            continue
        try:
            parsed.append(Action.model_validate(raw))
        except ValidationError as error:
            what = error.errors()[0]
            where = str(next(iter(what["loc"]), "the whole action"))
            problems.append(
                f"An action cannot be read, and was not stored: {where}: {what['msg']}. Repeat it."
            )
        last = max(last, seq) if isinstance(seq, int) else last
    return parsed, last


def _stored_action(action: Action, rater: str) -> session.Action | None:
    """Return the change that an action makes in the store; None where it makes none."""
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
            return session.Skip(action.run, action.item)
        case "undo":
            return session.Undo(action.of)
    return None
