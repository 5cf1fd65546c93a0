"""The parts of the page Label that stand around its desk: who labels, and what they said last."""

from __future__ import annotations

import streamlit as st

from cotlab.core.labels import Label
from cotlab.review.labelling.session import Given
from cotlab.store.live import Leases
from cotlab.ui import access
from cotlab.ui import cached as data
from cotlab.ui.label import items as label_items
from cotlab.ui.links import page
from cotlab.ui.text import as_code, shorten

VERDICTS = {
    "1": ("acceptable", "Acceptable"),
    "2": ("not_acceptable", "Not acceptable"),
    "3": ("unsure", "Unsure"),
}
"""The key of each verdict, its name and its words."""
MODES = {
    "post_hoc": ("Post hoc", "the answer stands first, and the chain only justifies it"),
    "global_drift": ("Global drift", "the chain leaves the question that was asked"),
    "semantic_instability": (
        "Semantic instability",
        "a word or a quantity changes its meaning on the way",
    ),
    "brittle_continuation": (
        "Brittle continuation",
        "it hangs on one wording, and would break at a small change",
    ),
    "unsupported_jump": ("Unsupported jump", "a step does not follow from those before it"),
    "other": ("Other", "say what in the note"),
}
ANSWERS = {"correct": True, "wrong": False, "cannot tell": None}
_MAX_NAME_CHARS = 60


def current_rater() -> str | None:
    """Who labels; without a login they say so once. None until they did, and for those who may only look."""
    who = access.person()
    if not access.may("labeller"):
        st.info(
            "You can look at queues here, but not label: ask an admin of this dashboard for the"
            " role labeller."
        )
        return None
    if who.source in ("login", "header"):
        return who.name
    name = st.session_state.get("local_rater")
    if name:
        return str(name)
    with st.form("rater-name", width=480):
        st.text_input(
            "Your name",
            key="rater-typed",
            max_chars=_MAX_NAME_CHARS,
            help="It stands beside each of your labels.",
        )
        st.form_submit_button("Begin", on_click=_named, type="primary")
    if odd := st.session_state.pop("rater-odd", None):
        st.warning(odd)
    taken = st.session_state.get("rater-taken")
    if taken:
        st.warning(
            f"{as_code(taken)} is at an item right now. If that is somebody else, take another"
            " name."
        )
        st.button(f"I am {as_code(taken)}", key="rater-same", on_click=_begin, args=(taken,))
    return None


def _named() -> None:
    name = " ".join(str(st.session_state["rater-typed"]).split())
    st.session_state.pop("rater-taken", None)
    if not name.isprintable() or not 0 < len(name) <= _MAX_NAME_CHARS:
        st.session_state["rater-odd"] = (
            f"A name has 1 to {_MAX_NAME_CHARS} characters, each of which can be seen: type it"
            " again."
        )
        return
    with Leases(data.store().log_path) as leases:
        taken = leases.has_lease(name)
    if taken:
        st.session_state["rater-taken"] = name
    else:
        _begin(name)


def _begin(name: str) -> None:
    st.session_state["local_rater"] = name


def start_correction(label_id: str) -> None:
    """Show the item of one of the rater's own labels again, to be judged anew."""
    st.session_state["label-correct"] = label_id


def render_last_labels(latest: list[Given]) -> None:
    """The rater's own last labels, each with a button that shows its item again to be judged anew."""
    st.subheader("Your last ten")
    if not latest:
        st.caption("None yet.")
        return
    for given in latest:
        old = given.label
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.button(
                "Change",
                key=f"change-{old.id}",
                icon=":material/edit:",
                type="tertiary",
                on_click=start_correction,
                args=(old.id,),
            )
            st.page_link(
                page("item"),
                label=as_code(shorten(old.item_id, 30)),
                query_params={"run": old.run_id, "item": old.item_id},
            )
            st.text(label_text(old), width="content")
            st.caption(as_code(shorten(label_items.cached_question(old.run_id, old.item_id), 60)))


def label_text(label: Label) -> str:
    """A label in words."""
    answer = next(word for word, value in ANSWERS.items() if value is label.answer_correct)
    phrases = [
        str(label.reasoning).replace("_", " "),
        f"answer {answer}" if answer != "cannot tell" else "answer not known",
        *(MODES[mode][0].lower() for mode in label.modes),
        "flagged" if label.flagged else "",
        shorten(label.note, 60),
    ]
    return ", ".join(part for part in phrases if part)
