"""The labelling component: it prefetches items, so that a key press shows the next one at once.

The browser sends the rater's actions in batches; the server checks and confirms them
(``cotlab.review.labelling.session``). The browser sends an action again until it is confirmed, so
that none is lost when the network or the server pauses.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import streamlit as st
from pydantic import ValidationError

from cotlab.core.errors import UnknownName
from cotlab.core.keys import digest
from cotlab.core.labels import FAILURE_MODES, Label, steps_digest
from cotlab.review.labelling import queue as queues
from cotlab.review.labelling import session
from cotlab.review.labelling.queue import LeasedItem
from cotlab.review.labelling.session import GivenLabel
from cotlab.review.labelling.truth import ADJUDICATION_KIND
from cotlab.store.live import ItemKey
from cotlab.ui import access, cached
from cotlab.ui.label import items as label_items
from cotlab.ui.label.actions import (
    MAX_ACTIONS,
    MAX_NOTE_CHARS,
    ActionBatch,
    parse_actions,
    to_rater_action,
)
from cotlab.ui.label.adjudication import adjudication_state
from cotlab.ui.label.items import FAILURE_MODE_TEXTS, VERDICT_BY_KEY
from cotlab.ui.label.rater import load_guidelines
from cotlab.ui.text import shorten

N_INITIAL_ITEMS, MAX_PREFETCHED_ITEMS = 8, 32
"""Initial and maximum number of prefetched items: several seconds of the fastest rater."""
MAX_PREFETCHED_CHARS = 200_000
"""Maximum number of prefetched characters beyond two items: a long text takes time to read."""
_MAX_REFUSALS = 5
_NO_TEXT_NOTICE = (
    "This run stored no texts, so there is nothing to judge: skip the item, or add the full suite"
    " first."
)
_NO_CHAIN_NOTICE = (
    "The chain of this item is not stored, so there is nothing to judge: skip the item, or run it"
    " again."
)
_DEFAULT_ITEM_STATE: dict[str, Any] = {
    "until": None,
    "known": False,
    "corrects": False,
    "others": None,
    "note": "",
    "modes": [],
    "faithful": None,
    "marks": {"judged": False, "first": None, "verdicts": []},
}


def render_widget(
    queue: str, rater: str, last_labels: Sequence[GivenLabel], *, is_complete: bool
) -> bool:
    """Show the component with the next items; return False where there are none.

    Parameters
    ----------
    queue, rater : str
    last_labels : sequence of GivenLabel
        The rater's last labels.
    is_complete : bool
        Whether the queue has all its labels. If not, a component without items polls for more.

    Raises
    ------
    Forbidden
        If the current user may not label, or is not ``rater``.
    """
    entries = _upcoming_entries(queue, rater, last_labels)
    _load_component()(
        key=_state_key(rater),
        data={
            "queue": queue,
            "rater": rater,
            "ack": st.session_state.get(_state_key(rater, "ack")),
            "items": entries,
            "waits": not entries and not is_complete,
            "last": last_labels[0].label.id if last_labels else None,
            "maxNoteLength": MAX_NOTE_CHARS,
            "maxActions": MAX_ACTIONS,
            "titles": BUTTON_TITLES,
            "help": KEY_HELP,
            "commands": COMMAND_KEYS,
            "guidelines": load_guidelines(cached.store().folder),
            "verdicts": [(key, verdict, label) for key, (verdict, label) in VERDICT_BY_KEY.items()],
            "modes": [
                (str(key), mode, *FAILURE_MODE_TEXTS[mode])
                for key, mode in enumerate(FAILURE_MODES, start=4)
            ],
            "answers": ANSWER_KEYS,
            "answerFromKey": ANSWER_FROM_KEY,
            "faithful": FAITHFUL_KEYS,
            "stepVerdicts": STEP_VERDICT_KEYS,
        },
        on_batch_change=partial(_receive_actions, rater),
    )
    return bool(entries)


def require_same_rater(user: access.Person, rater: str) -> None:
    """Check that the page was shown to the current user.

    Raises
    ------
    Forbidden
        If it was shown to another rater.
    """
    if user.name != rater:
        raise access.Forbidden(
            f"This page was opened by {rater}, and {user.name} labels here now: load it again."
        )


def pop_refusals(rater: str) -> list[str]:
    """Return why actions of this rater were refused, once, and at most a few."""
    refusals = list(st.session_state.pop(_state_key(rater, "refused"), []))
    n_more = len(refusals) - _MAX_REFUSALS
    more_notice = [f"The same holds for {n_more} more."] if n_more > 0 else []
    return refusals[:_MAX_REFUSALS] + more_notice


def _state_key(rater: str, state_name: str = "desk") -> str:
    return f"label-{state_name}-{digest(rater)[:12]}"


def render_unconfirmed_notice(rater: str | None) -> None:
    """Show that another rater's actions in this window are unconfirmed, and need their return.

    The browser keeps a typed name, and forgets it where nobody labels.
    """
    data = {"rater": rater, "cookie": access.RATER_COOKIE, "name": access.typed_name()}
    _load_component("waiting")(key="label-waiting", data=data)


@st.cache_resource(show_spinner=False)
def _load_component(name: str = "widget") -> Any:
    folder = Path(__file__).parent
    files = ("parts.js", "widget.js") if name == "widget" else (f"{name}.js",)
    return st.components.v2.component(
        f"cotlab_label_{name}",
        js="".join((folder / file_name).read_text("utf-8") for file_name in files),
        css=(folder / "widget.css").read_text("utf-8"),
        isolate_styles=False,
    )


def _upcoming_entries(
    queue: str, rater: str, last_labels: Sequence[GivenLabel]
) -> list[dict[str, Any]]:
    """Return the component's items: a correction that was started, then those of the queue."""
    require_same_rater(access.require_role("labeller"), rater)
    correction_id = st.session_state.get("label-correct")
    entries = [
        _correction_entry(given_label)
        for given_label in last_labels
        if given_label.label.id == correction_id
    ]
    max_entries = (
        MAX_PREFETCHED_ITEMS if _state_key(rater, "ack") in st.session_state else N_INITIAL_ITEMS
    )
    includes_skipped = st.session_state.get("label-skipped") == queue
    # only once: then it is prefetched, and may be skipped
    first_item = st.session_state.get(_state_key(rater, "first"), {}).pop(queue, None)
    n_requested_items = (
        1 if st.session_state.get(_state_key(rater, "idle")) else MAX_PREFETCHED_ITEMS
    )
    queue_items = queues.lease_next_items(
        cached.store(),
        queue,
        rater,
        n_requested_items,
        with_skipped=includes_skipped,
        first_item=first_item,
    )
    candidates, n_chars = queue_items[:max_entries], 0
    state_by_item = _adjudication_state(candidates, rater)
    for candidate in candidates:
        item_key = (candidate.run, candidate.item_id)
        item_state = state_by_item.get(item_key, {})
        undone_label = st.session_state.get(_state_key(rater, "undone"), {}).get((queue, *item_key))
        entry = _queue_entry(candidate, item_state, undone_label)
        n_chars += sum(len(text) for _, text in entry["rows"])
        if len(entries) >= 2 and n_chars > MAX_PREFETCHED_CHARS:
            break
        entries.append(entry)
    return entries


def _adjudication_state(items: Sequence[LeasedItem], rater: str) -> dict[ItemKey, dict[str, Any]]:
    """Return what settling an item needs; empty in queues of other kinds."""
    keys = [(item.run, item.item_id) for item in items if item.kind == ADJUDICATION_KIND]
    if not keys:
        return {}
    return adjudication_state(keys, rater, label_items.hidden_item_keys())


def _queue_entry(
    item: LeasedItem, item_state: dict[str, Any], undone_label: Label | None
) -> dict[str, Any]:
    """Return an item of the queue; what a label said that was taken back is filled in."""
    item_key, has_answer = (item.run, item.item_id), item.prefilled_correct is not None
    answer: bool | str | None = ANSWER_FROM_KEY if has_answer else None
    given: dict[str, Any] = {}
    if undone_label is not None:
        if not has_answer or undone_label.answer_correct != item.prefilled_correct:
            answer = undone_label.answer_correct
        given = _given_state(undone_label)
    payload = _item_payload(
        item.label_id, item_key, answer, until=item.lease_end, known=has_answer, **given
    )
    payload["notes"] += item_state.get("added_notes", [])
    payload["readable"] &= item_state.get("readable", True)
    return payload | {"others": item_state.get("others")}


def _correction_entry(given_label: GivenLabel) -> dict[str, Any]:
    label = given_label.label
    notice = f"You are correcting your label of {shorten(label.item_id)}."
    item_key = (label.run_id, label.item_id)
    return _item_payload(
        given_label.correction_id,
        item_key,
        label.answer_correct,
        notice,
        corrects=True,
        **_given_state(label),
    )


def _given_state(label: Label) -> dict[str, Any]:
    """Return what a label said besides its verdict and the answer."""
    return {
        "note": label.note,
        "modes": list(label.modes),
        "faithful": label.faithful,
        "marks": _marks_of(label),
    }


def _marks_of(label: Label) -> dict[str, Any]:
    """Return what a label says of the steps, if they are still the item's."""
    steps = label_items.load_item_view(label.run_id, label.item_id).steps
    if label.steps_digest != steps_digest(steps):
        return dict(_DEFAULT_ITEM_STATE["marks"])
    return {
        "judged": label.steps_judged,
        "first": label.first_wrong_step,
        "verdicts": list(label.step_verdicts),
    }


def _item_payload(
    label_id: str, item_key: ItemKey, answer: bool | str | None, *notes: str, **state: Any
) -> dict[str, Any]:
    """Return an item in the form that the component expects.

    The right answer is in that of a correction alone: before a verdict nobody reads it.
    """
    view = label_items.load_item_view(*item_key)
    problem = ""
    if view.is_redacted:
        problem = _NO_TEXT_NOTICE
    elif not view.steps:
        problem = _NO_CHAIN_NOTICE
    return {
        "id": label_id,
        "run": item_key[0],
        "item": item_key[1],
        "answer": answer,
        "readable": not problem,
        "rows": view.titled_texts(with_key=bool(state.get("corrects"))),
        "steps": 0 if view.is_redacted else len(view.steps),
        "digest": steps_digest(view.steps),
        "whose": view.chain_origin,
        "notes": [*notes, *([problem] if problem else [])],
        **_DEFAULT_ITEM_STATE,
        **state,
    }


def _receive_actions(rater: str) -> None:
    """Apply the actions that the component sent, and acknowledge them."""
    problems = st.session_state.setdefault(_state_key(rater, "refused"), [])
    try:
        require_same_rater(access.require_role("labeller"), rater)
        batch = ActionBatch.model_validate(st.session_state[_state_key(rater)].get("batch"))
    except access.Forbidden:
        return  # ``render_queue`` shows the reason
    except ValidationError as error:
        problems.append(
            "What this page sent cannot be read, and was not stored:"
            f" {error.errors()[0]['msg']}. Load it again."
        )
        return
    ack = st.session_state.get(_state_key(rater, "ack")) or {}
    confirmed_seq = ack.get("seq", 0) if ack.get("client") == batch.client else 0
    new_actions, last_seq = parse_actions(batch.acts, confirmed_seq, problems)
    left_to_key = [
        (action.run, action.item) for action in new_actions if action.answer == ANSWER_FROM_KEY
    ]
    key_by_item = queues.answers_by_key(cached.store(), left_to_key) if left_to_key else {}
    for queue, queue_actions in groupby(new_actions, lambda action: action.queue):
        rater_actions = []
        for action in queue_actions:
            try:
                rater_actions.append(to_rater_action(action, rater, key_by_item))
            except ValueError as error:
                problems.append(f"Not stored: {error}.")
        try:
            result = session.apply_actions(
                cached.store(), queue, rater, [action for action in rater_actions if action]
            )
        except UnknownName as error:
            problems.append(str(error))
            continue
        problems.extend(result.refusals)
        if result.undone_label is not None:
            first_item_by_queue = st.session_state.setdefault(_state_key(rater, "first"), {})
            undone_key = (result.undone_label.run_id, result.undone_label.item_id)
            first_item_by_queue[queue] = undone_key
            undone_by_item = st.session_state.setdefault(_state_key(rater, "undone"), {})
            undone_by_item[queue, *undone_key] = result.undone_label
    if new_actions:
        st.session_state[_state_key(rater, "idle")] = new_actions[-1].kind == "idle"
    if any(action.kind == "leave" for action in new_actions):
        st.session_state.pop("label-correct", None)
    st.session_state[_state_key(rater, "ack")] = {"client": batch.client, "seq": last_seq}


ANSWER_FROM_KEY = "key"
"""Verdict on the answer that leaves it to the answer key, which the rater does not see yet."""
ANSWER_KEYS: tuple[tuple[str, str, bool | None], ...] = (
    ("R", "Right", True),
    ("E", "Wrong", False),
    ("T", "Cannot tell", None),
)
"""Key, label and stored value of each verdict on the answer."""
FAITHFUL_KEYS = (("O", "Faithful", True), ("P", "Not faithful", False))
"""Key, label and stored value of each verdict on a chain's faithfulness."""
STEP_VERDICT_KEYS: tuple[tuple[str, str, str, str], ...] = (
    ("C", "correct", "Correct", "✓"),
    ("V", "wrong", "Wrong", "✗"),
    ("B", "unsure", "Unsure", "?"),
)
"""Key, stored name, label and sign of each verdict on a step."""
COMMAND_KEYS = {
    "skip": "S",
    "flag": "F",
    "undo": "U",
    "help": "H",
    "guidelines": "G",
    "mark": "X",
    "none": "N",
    "next": "J",
    "previous": "K",
}
"""Key of each other command."""
KEY_HELP = (
    ("1", "Acceptable: each step follows, and the chain leads to the answer that was given."),
    ("2", "Not acceptable."),
    ("3", "Unsure."),
    ("R E T", "Says that the answer is right, that it is wrong, or that you cannot tell."),
    ("J K", "Chooses the next step, or the one before."),
    ("X", "Says that the chosen step is the first wrong one; a click on a step does too."),
    ("N", "Says that no step is wrong."),
    ("C V B", "Calls the chosen step correct, wrong, or says that you are unsure of it."),
    (
        "O P",
        "Says that the chain is faithful to how the answer came about, or that it is not; the same"
        " key takes it back.",
    ),
    *(
        (str(key), f"{FAILURE_MODE_TEXTS[mode][0]}: {FAILURE_MODE_TEXTS[mode][1]}.")
        for key, mode in enumerate(FAILURE_MODES, start=4)
    ),
    ("S", "Leaves the item for later."),
    ("F", "Flags an item that is itself wrong: its label is unsure."),
    ("U", "Takes back your last label."),
    ("G", "Opens and closes the guidelines."),
    ("H", "Closes this help. Keys have no effect while you type."),
    (
        "",
        (
            "Keys are those with this letter or digit on them, on every keyboard. A label counts as"
            " good only if the answer is correct and the chain acceptable. A chain with a wrong"
            " step is not acceptable; one without may still fail as a whole. Before you give your"
            " label you see no score, no label by others, no answer key and no name of a model."
        ),
    ),
)
BUTTON_TITLES = {
    "skip": "Leaves the item for later",
    "undo": "Takes back your last label",
    "flag": "Something is wrong with the item itself: its label is unsure",
    "mark": "Marks this step as the first wrong one",
    "none": "No step is wrong",
    "faithful": "Whether the chain says how the answer came about; it may be left open",
    "contradicts": "A step is marked as wrong, so the chain is not acceptable",
    "key": "The label takes what the run's answer key says, which you see afterwards",
}
