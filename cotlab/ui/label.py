"""The parts of the page Label: one item at a time, its keys, and what the rater said last."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple, cast
from zoneinfo import ZoneInfo

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from cotlab.core.labels import FAILURE_MODES, Label, Verdict
from cotlab.review import queue as queues
from cotlab.review.queue import Given, QueueItem
from cotlab.store.leases import Leases
from cotlab.ui import access, data, label_items
from cotlab.ui.label_items import Shown
from cotlab.ui.links import page
from cotlab.ui.text import as_code, shorten

VERDICTS: dict[str, tuple[str, str, str]] = {
    "1": ("acceptable", "Acceptable", "check_circle"), "2": ("not_acceptable", "Not acceptable", "cancel"),
    "3": ("unsure", "Unsure", "help"),
}  # fmt: skip
MODES = {
    "post_hoc": ("Post hoc", "the answer stands first, and the chain only justifies it"),
    "global_drift": ("Global drift", "the chain leaves the question that was asked"),
    "semantic_instability": ("Semantic instability", "a word or a quantity changes its meaning on the way"),
    "brittle_continuation": ("Brittle continuation", "it hangs on one wording, and would break at a small change"),
    "unsupported_jump": ("Unsupported jump", "a step does not follow from those before it"),
    "other": ("Other", "say what in the note"),
}
ANSWERS = {"correct": True, "wrong": False, "cannot tell": None}
_LONGEST_NAME = 60
_ANY_ROOM = 10**9


@dataclass
class Draft:
    """What a rater noted of one item before the verdict: failure modes that are on. Callbacks change it in place."""

    label_id: str
    modes: set[str] = field(default_factory=set)
    drawn: frozenset[str] = frozenset()
    """Those that were on when the page was drawn: what a press of a key turns over."""
    given: bool = False
    """The label was written; a key that is pressed again before the next item is there has nothing to do."""


class Target(NamedTuple):
    """The label that is asked for: its id was made when the item was first shown, so it is written once."""

    label_id: str
    queue: str
    run: str
    item_id: str
    rater: str
    answer: bool | None
    note: str = ""
    modes: tuple[str, ...] = ()
    until: float | None = None
    corrects: bool = False


def rater() -> str | None:
    """Who labels; without a login they say so once. None until they did, and for those who may only look."""
    who = access.person()
    if not access.may("labeller"):
        st.info("You can look at queues here, but not label: ask an admin of this dashboard for the role labeller.")
        return None
    if who.source in ("login", "header"):
        return who.name
    name = st.session_state.get("local_rater")
    if name:
        return str(name)
    with st.form("rater-name", width=480):
        st.text_input("Your name", key="rater-typed", max_chars=_LONGEST_NAME, help="It stands beside each of your labels.")
        st.form_submit_button("Begin", on_click=_named, type="primary")
    taken = st.session_state.get("rater-taken")
    if taken:
        st.warning(f"{as_code(taken)} is at an item right now. If that is somebody else, take another name.")
        st.button(f"I am {as_code(taken)}", key="rater-same", on_click=_begin, args=(taken,))
    return None


def _named() -> None:
    name = " ".join(str(st.session_state["rater-typed"]).split())
    st.session_state.pop("rater-taken", None)
    if not name or not name.isprintable():
        return
    with Leases(data.store().log_path) as leases:
        taken = leases.holds(name)
    if taken:
        st.session_state["rater-taken"] = name
    else:
        _begin(name)


def _begin(name: str) -> None:
    st.session_state["local_rater"] = name


def asked(queue: str, name: str) -> tuple[Target | None, list[Given] | None]:
    """The label that is asked for, whose item is kept for the rater, or the correction that they want to give.

    The rater's last labels come with it where they had to be read.
    """
    access.need("labeller")
    wanted = st.session_state.get("label-correct")
    latest = queues.latest(data.store(), queue, name) if wanted is not None else None
    for given in latest or ():
        if given.label.id == wanted:
            old = given.label
            said = (old.answer_correct, old.note, old.modes)
            return Target(given.correction_id, queue, old.run_id, old.item_id, name, *said, corrects=True), latest
    item = queues.next_item(data.store(), queue, name, skipped=st.session_state.get("label-skipped") == queue)
    if item is None:
        return None, latest
    return Target(item.label_id, queue, item.run, item.item_id, name, item.prefilled, until=item.until), latest


def work(target: Target) -> DeltaGenerator:
    """The item and its keys; returns the place of the key that takes back.

    The keys stand above, where they do not move with the length of a chain, and are drawn after the texts: a key that is
    still the last item's then writes nothing.
    """
    shown = label_items.shown(target.run, target.item_id)
    keys = st.container(border=True, gap="small")
    if target.corrects:
        st.warning(f"You correct your label of {as_code(shorten(target.item_id))}.", icon=":material/edit:")
    if shown.redacted:
        st.warning("This run kept no texts, so there is nothing to judge: skip the item, or add the suite in full first.")
    _texts(shown)
    st.caption(f"{shown.whose} Model {as_code(shorten(shown.model))}.")
    if st.session_state.get("label-help"):
        st.info(help_text())
    with keys:
        return _controls(target, _draft(target), readable=not shown.redacted)


def _texts(shown: Shown) -> None:
    """The item's texts, as plain elements: a component draws itself later than the keys, so they could be another item's."""
    for number, (label, text) in enumerate(shown.rows()):
        with st.container(horizontal=True, gap="medium", vertical_alignment="top", wrap=False, key=f"label-text-{number}"):
            with st.container(width=112):
                st.caption(label)
            with st.container(width="stretch"):
                st.text(text, width="stretch")


def _draft(target: Target) -> Draft:
    draft: Draft | None = st.session_state.get("label-draft")
    if draft is None or draft.label_id != target.label_id:
        draft = Draft(target.label_id, set(target.modes))
        st.session_state["label-draft"] = draft
    draft.drawn = frozenset(draft.modes)
    return draft


def _controls(target: Target, draft: Draft, *, readable: bool) -> DeltaGenerator:
    """Every widget's key carries the label's id: a press that comes late belongs to the item that it was meant for."""
    at = target.label_id
    with st.container(horizontal=True, gap="small"):
        for key, (verdict, words, icon) in VERDICTS.items():
            st.button(
                words, key=f"verdict-{verdict}-{at}", shortcut=key, icon=f":material/{icon}:",
                on_click=_give, args=(target, draft, verdict), disabled=not readable,
            )  # fmt: skip
        if target.corrects:
            st.button("Leave it as it was", key=f"leave-{at}", shortcut="S", icon=":material/close:", on_click=_correct)
        else:
            st.button("Skip", key=f"skip-{at}", shortcut="S", icon=":material/skip_next:", on_click=_skip, args=(target,))
            st.button(
                "Flag", key=f"flag-{at}", shortcut="F", icon=":material/flag:", on_click=_give,
                args=(target, draft, "unsure", True), help="Something is wrong with the item itself: it is kept as unsure.",
            )  # fmt: skip
        undo = st.container(width="content")
        st.button("Help", key=f"help-{at}", shortcut="H", icon=":material/help_outline:", on_click=_help)
    with st.container(horizontal=True, gap="small"):
        for number, mode in enumerate(FAILURE_MODES, start=4):
            on = mode in draft.modes
            st.button(
                MODES[mode][0], key=f"mode-{mode}-{at}", shortcut=str(number), help=MODES[mode][1],
                icon=f":material/{'check_box' if on else 'check_box_outline_blank'}:", on_click=_toggle,
                args=(draft, mode, not on),
            )  # fmt: skip
    known = " (by the ground truth)" if target.answer is not None and not target.corrects else ""
    first = next(word for word, value in ANSWERS.items() if value is target.answer)
    with st.container(horizontal=True, gap="medium"):
        st.segmented_control(f"Is the answer right?{known}", list(ANSWERS), default=first, key=f"answer-{at}")
        st.text_input("Note", target.note, key=f"note-{at}", max_chars=2000, placeholder="Kept with the verdict")
    if target.until is not None:
        st.caption(f"Reserved for you until {_clock(target.until)}; a label given later counts too.")
    return undo


def help_text() -> str:
    """What the keys do, and what the failure modes mean."""
    modes = "\n".join(f"- **{key}** {MODES[mode][0]}: {MODES[mode][1]}" for key, mode in enumerate(FAILURE_MODES, start=4))
    return (
        "**1** acceptable: each step follows, and the chain leads to the answer that was given. **2** not acceptable. "
        "**3** unsure.\n\n"
        f"{modes}\n\n"
        "**S** leaves the item for later, **F** flags an item that is itself wrong, **Z** takes back your last label, **H** "
        "closes this. Keys rest while you type.\n\n"
        "A label counts as good only where the answer is correct *and* the chain acceptable. You see no score and no label of "
        "others before yours is given."
    )


def _give(target: Target, draft: Draft, verdict: str, flagged: bool = False) -> None:
    """Write one label, once."""
    if draft.given:
        return
    _check_same(access.need("labeller"), target.rater)
    said = st.session_state.get(f"answer-{target.label_id}")
    label = Label(
        target.label_id, target.run, target.item_id, target.rater, cast(Verdict, verdict), ANSWERS.get(said or "cannot tell"),
        datetime.now(UTC), tuple(mode for mode in FAILURE_MODES if mode in _modes(target, draft)),
        str(st.session_state.get(f"note-{target.label_id}") or "").strip(), flagged, queue=target.queue,
    )  # fmt: skip
    queues.submit(data.store(), label)
    draft.given = True
    if target.corrects:
        _correct()


def _check_same(who: access.Person, name: str) -> None:
    """Whoever asks now is the one whom the page was drawn for."""
    if who.name != name:
        raise access.Forbidden(f"This page was drawn for {name}, and {who.name} labels here now: load it again.")


def _modes(target: Target, draft: Draft) -> set[str]:
    """The failure modes that are on; a key of one that was pressed with the verdict counts, whichever is told first."""
    pressed = {mode for mode in FAILURE_MODES if st.session_state.get(f"mode-{mode}-{target.label_id}")}
    return (draft.modes - pressed) | (pressed - draft.drawn)


def _toggle(draft: Draft, mode: str, on: bool) -> None:
    (draft.modes.add if on else draft.modes.discard)(mode)


def _skip(target: Target) -> None:
    _check_same(access.need("labeller"), target.rater)
    item = QueueItem(
        target.queue, "", target.run, target.item_id, target.rater, target.label_id, target.answer, target.until or 0.0
    )
    queues.skip(data.store(), item)


def undo_button(queue: str, name: str, latest: list[Given], at: str) -> None:
    """Take back what was the last label when the page was drawn: a key pressed twice takes back one."""
    last = latest[0].label.id if latest else None
    st.button(
        "Undo", key=f"undo-{at}", shortcut="Z", icon=":material/undo:", on_click=_undo, args=(queue, name, last),
        disabled=last is None,
    )  # fmt: skip


def _undo(queue: str, name: str, last: str | None) -> None:
    _check_same(access.need("labeller"), name)
    undone = queues.undo(data.store(), queue, name, of=last) if last is not None else None
    if undone is not None:
        with Leases(data.store().log_path) as leases:  # its item comes next, and the one that was shown is free again
            leases.claim(queue, name, [((undone.run_id, undone.item_id), _ANY_ROOM)])


def _help() -> None:
    st.session_state["label-help"] = not st.session_state.get("label-help", False)


def _correct(label_id: str | None = None) -> None:
    st.session_state["label-correct"] = label_id


def _clock(until: float) -> str:
    """A time of day as the reader's own clock shows it."""
    try:
        zone = ZoneInfo(st.context.timezone or "UTC")
    except (KeyError, ValueError):
        zone = ZoneInfo("UTC")
    return datetime.fromtimestamp(until, zone).strftime("%H:%M")


def last_ten(latest: list[Given]) -> None:
    """The rater's own last labels, each with a button that shows its item again to be judged anew."""
    st.subheader("Your last ten")
    if not latest:
        st.caption("None yet.")
        return
    for given in latest:
        old = given.label
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.button(
                "Change", key=f"change-{old.id}", icon=":material/edit:", type="tertiary", on_click=_correct, args=(old.id,)
            )
            st.page_link(
                page("item"), label=as_code(shorten(old.item_id, 30)), query_params={"run": old.run_id, "item": old.item_id}
            )
            st.text(said_of(old), width="content")
            st.caption(as_code(shorten(label_items.asked_of(old.run_id, old.item_id), 60)))


def said_of(label: Label) -> str:
    """A label in words."""
    answer = next(word for word, value in ANSWERS.items() if value is label.answer_correct)
    parts = [
        str(label.reasoning).replace("_", " "), f"answer {answer}" if answer != "cannot tell" else "answer not known",
        *(MODES[mode][0].lower() for mode in label.modes), "flagged" if label.flagged else "", shorten(label.note, 60),
    ]  # fmt: skip
    return ", ".join(part for part in parts if part)
