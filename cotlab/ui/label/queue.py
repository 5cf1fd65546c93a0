"""The queue on the page Label: which one, how far it is, why nothing is left in it, and how a new one is made."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from cotlab.core.errors import CotlabError
from cotlab.core.keys import digest
from cotlab.review.labelling import queue as queues
from cotlab.review.labelling.queue import Progress
from cotlab.review.labelling.session import latest_labels
from cotlab.store import labels as label_store
from cotlab.store import read
from cotlab.ui import access
from cotlab.ui import cached as data
from cotlab.ui import components as parts
from cotlab.ui.label import page as label
from cotlab.ui.label import widget as label_desk
from cotlab.ui.links import page
from cotlab.ui.runs.picking import run_labels
from cotlab.ui.text import as_code

MAX_ITEMS = 2000
"""So many items a queue that is made here has at most."""


def select_queue() -> str | None:
    """The queue of the address, or the newest; None (after saying so) where there is none."""
    requested = st.query_params.get("queue")
    rows = _queues(str(data.store().folder))
    if rows.empty or (requested is not None and requested not in set(rows["id"])):
        _queues.clear()
        rows = _queues(str(data.store().folder))
    if rows.empty:
        st.info(
            "No queue yet: nobody is asked for labels."
            + ("" if access.may("admin") else " An admin makes one.")
        )
        return None
    names = {
        str(r["id"]): f"{r['name']} · {r['n']} items · {r['id']}" for r in rows.to_dict("records")
    }
    return parts.select_option("Queue", names, "queue")


@st.cache_data(show_spinner=False, ttl=15)
def _queues(folder: str) -> pd.DataFrame:
    return label_store.queues(data.store())


@st.fragment
def render_queue(queue: str, rater: str) -> None:
    """The desk, how far the queue is, and what the rater said last.

    A fragment: what the desk tells is taken without drawing the rest of the page again.
    """
    bar = st.container()
    for problem in label_desk.pop_refusals(rater):
        st.warning(as_code(problem))
    try:
        with data.store().reading():  # what is read inside shares the open file
            latest = latest_labels(data.store(), queue, rater)
            progress = queues.progress(data.store(), queue, rater)
            has_items = label_desk.render_widget(
                queue, rater, latest, complete=progress.complete >= progress.items
            )
    except access.Forbidden as error:
        st.error(as_code(str(error)))
        return
    with bar:
        render_queue_progress(progress)
    if not has_items:
        render_nothing_left(queue, progress)
    label.render_last_labels(latest)


def render_queue_progress(progress: Progress) -> None:
    """How far the queue is, and how far this rater."""
    left = f", {progress.mine_skipped} skipped" if progress.mine_skipped else ""
    st.progress(
        progress.labels / progress.requested if progress.requested else 0.0,
        text=(
            f"You: {progress.mine} labelled, {progress.mine_left} to do{left}. All raters:"
            f" {progress.labels} of {progress.requested} labels wanted, {progress.complete} of"
            f" {progress.items} items complete."
        ),
    )


def render_nothing_left(queue: str, progress: Progress) -> None:
    """Why the queue has no item for this rater, and what can be done."""
    skipped = st.session_state.get("label-skipped") == queue
    if progress.complete >= progress.items:
        st.success("This queue has all the labels that it wants.", icon=":material/done_all:")
    elif progress.mine_left:
        st.info("What is left is reserved by others right now. This page looks again by itself.")
    elif progress.mine_skipped and not skipped:
        st.info(f"Only what you skipped is left: {progress.mine_skipped}.")
    else:
        st.info(
            "You labelled all that this queue wants of you; the labels that are still wanted are"
            " other raters'."
        )
    with st.container(horizontal=True):
        if progress.mine_skipped and not skipped:
            st.button(
                "Show what I skipped",
                icon=":material/redo:",
                on_click=_with_skipped,
                args=(queue,),
                type="primary",
            )
        st.page_link(
            page("agreement"),
            label="Agreement",
            icon=":material/handshake:",
            query_params={"queue": queue},
        )


def _with_skipped(queue: str) -> None:
    st.session_state["label-skipped"] = queue


def render_queue_form(*, visible: bool) -> None:
    """A form for a new queue; behind a button where there is a queue already."""
    if not access.may("admin"):
        return
    st.divider()
    if not visible and not st.toggle("Make a queue", key="queue-make"):
        return
    rows = read.list_runs(data.store()).to_dict("records")
    if not rows:
        parts.empty("No run yet: there is nothing to label.", page("new_run"), "Start one")
        return
    names = run_labels(rows)
    st.subheader("Make a queue")
    with st.form("queue-form", width=720):
        st.selectbox("Run", list(names), format_func=names.__getitem__, key="queue-run")
        st.text_input("Name", key="queue-name", max_chars=80, placeholder="pilot, October")
        with st.container(horizontal=True):
            st.number_input("Items", 1, MAX_ITEMS, 60, key="queue-n", width=160)
            st.number_input("Raters of an item", 1, 20, 1, key="queue-raters", width=160)
            st.number_input(
                "Overlap (%)", 0, 100, 0, 5, key="queue-overlap", width=160, help=_OVERLAP
            )
        st.selectbox("Which", list(_WHICH), format_func=_WHICH.__getitem__, key="queue-which")
        st.form_submit_button("Make it", type="primary", on_click=_make)
    error_message = st.session_state.pop("queue-told", None)
    if error_message:
        st.error(as_code(error_message))
    st.caption(
        "From a terminal, with items whose label is known (gold): `cotlab labels queue RUN --name"
        " NAME --gold FILE`."
    )


_OVERLAP = (
    "With an overlap, that share of the items is labelled by two raters (or by as many as set), the"
    " rest by one."
)
_WHICH = {
    "hash": "A random choice of the run's items",
    "order": "The first ones, as the suite orders them",
    "new": "A random choice of items that nobody has labelled",
}


def _make() -> None:
    """Make the queue that the form describes and show it."""
    who = access.need("admin")
    form = {
        name: st.session_state[f"queue-{name}"]
        for name in ("run", "name", "n", "raters", "overlap", "which")
    }
    try:
        queue = queues.make_queue(
            data.store(),
            str(form["name"]),
            _chosen(form),
            raters=int(form["raters"]),
            overlap=form["overlap"] / 100,
            by=who.name,
        )
    except CotlabError as error:
        st.session_state["queue-told"] = str(error)
        return
    _queues.clear()
    st.query_params["queue"] = queue
    st.session_state["queue-make"] = False


def _chosen(form: dict[str, Any]) -> list[tuple[str, str, str]]:
    """The items that the form wants: (run, item, why)."""
    run, which = str(form["run"]), form["which"]
    ids = [str(i) for i in read.items_of_run(data.store(), run)["id"]]
    if which == "new":
        labelled = set(label_store.label_table(data.store(), run=run)["item_id"])
        ids = [i for i in ids if i not in labelled]
    if which != "order":
        ids.sort(key=lambda i: digest(["queue", str(form["name"]), run, i]))
    reason = {
        "hash": "chosen at random",
        "order": "in the suite's order",
        "new": "chosen at random, without a label",
    }[which]
    return [(run, i, reason) for i in ids[: int(form["n"])]]
