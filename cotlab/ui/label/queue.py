"""The page Label around its component: the rater, the queue, its progress, and the last labels."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from cotlab.core.errors import CotlabError
from cotlab.core.keys import digest
from cotlab.core.resources import page
from cotlab.review.labelling import queue as queues
from cotlab.review.labelling.queue import Progress
from cotlab.review.labelling.session import Given, latest_labels
from cotlab.store import labels as label_store
from cotlab.store import read
from cotlab.store.live import Leases
from cotlab.ui import access, cached, components
from cotlab.ui.label import items as label_items
from cotlab.ui.label import widget as label_widget
from cotlab.ui.label.items import label_text
from cotlab.ui.pickers import run_labels, select_option
from cotlab.ui.text import as_code, shorten

MAX_ITEMS = 2000
"""Maximum number of items of a queue that this page makes."""
_OVERLAP = (
    "Share of the items that two raters label (or as many as set); one rater labels the rest."
)
_WHICH = {
    "hash": "A random choice of the run's items",
    "order": "The first ones, in the suite's order",
    "new": "A random choice of unlabelled items",
}
_MAX_NAME_CHARS = 60


def select_queue() -> str | None:
    """Choose a queue, the newest by default; None (with a message) where there is none."""
    requested = st.query_params.get("queue")
    rows = _queues(str(cached.store().folder))
    if rows.empty or (requested is not None and requested not in set(rows["id"])):
        _queues.clear()
        rows = _queues(str(cached.store().folder))
    if rows.empty:
        st.info("There is no queue yet." + ("" if access.may("admin") else " An admin makes one."))
        return None
    names = {
        str(r["id"]): f"{r['name']} · {r['n']} items · {r['id']}" for r in rows.to_dict("records")
    }
    return select_option("Queue", names, "queue")


@st.cache_data(show_spinner=False, ttl=15)
def _queues(folder: str) -> pd.DataFrame:
    return label_store.queues(cached.store())


@st.fragment
def render_queue(queue: str, rater: str) -> None:
    """Show the labelling component, the queue's progress, and the rater's last labels.

    A fragment: what the component sends is processed without running the rest of the page.
    """
    bar = st.container()
    for problem in label_widget.pop_refusals(rater):
        st.warning(as_code(problem))
    try:
        with cached.store().reading():  # all reads within share one connection
            latest = latest_labels(cached.store(), queue, rater)
            progress = queues.progress(cached.store(), queue, rater)
            has_items = label_widget.render_widget(
                queue, rater, latest, complete=progress.complete >= progress.items
            )
    except access.Forbidden as error:
        st.error(as_code(str(error)))
        return
    with bar:
        render_queue_progress(progress)
    if not has_items:
        render_nothing_left(queue, progress)
    render_last_labels(latest)


def render_queue_progress(progress: Progress) -> None:
    """Show the progress of the queue and of this rater."""
    left = f", {progress.mine_skipped} skipped" if progress.mine_skipped else ""
    st.progress(
        progress.labels / progress.requested if progress.requested else 0.0,
        text=(
            f"You: {progress.mine} labelled, {progress.mine_left} to do{left}. All raters:"
            f" {progress.labels} of {progress.requested} labels, {progress.complete} of"
            f" {progress.items} items complete."
        ),
    )


def render_nothing_left(queue: str, progress: Progress) -> None:
    """Show why the queue has no item for this rater, and what they can do."""
    skipped = st.session_state.get("label-skipped") == queue
    if progress.complete >= progress.items:
        st.success("This queue has all its labels.", icon=":material/done_all:")
    elif progress.mine_left:
        st.info("Other raters have reserved the remaining items. This page checks again by itself.")
    elif progress.mine_skipped and not skipped:
        st.info(f"Only items that you skipped are left: {progress.mine_skipped}.")
    else:
        st.info(
            "You have labelled everything that this queue asks of you; the remaining"
            " labels are for other raters."
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
    """Show the form of a new queue; behind a toggle where there is a queue already."""
    if not access.may("admin"):
        return
    st.divider()
    if not visible and not st.toggle("Make a queue", key="queue-make"):
        return
    rows = read.list_runs(cached.store()).to_dict("records")
    if not rows:
        components.empty(
            "There is no run yet, so there is nothing to label.", page("new_run"), "Start one"
        )
        return
    names = run_labels(rows)
    st.subheader("Make a queue")
    with st.form("queue-form", width=720):
        st.selectbox("Run", list(names), format_func=names.__getitem__, key="queue-run")
        st.text_input("Name", key="queue-name", max_chars=80, placeholder="pilot, October")
        with st.container(horizontal=True):
            st.number_input("Items", 1, MAX_ITEMS, 60, key="queue-n", width=160)
            st.number_input("Raters per item", 1, 20, 1, key="queue-raters", width=160)
            st.number_input(
                "Overlap (%)", 0, 100, 0, 5, key="queue-overlap", width=160, help=_OVERLAP
            )
        st.selectbox(
            "Items to choose", list(_WHICH), format_func=_WHICH.__getitem__, key="queue-which"
        )
        st.form_submit_button("Make the queue", type="primary", on_click=_make)
    error_message = st.session_state.pop("queue-told", None)
    if error_message:
        st.error(as_code(error_message))
    st.caption(
        "From a terminal, with items whose label is known (gold): `cotlab labels queue RUN --name"
        " NAME --gold FILE`."
    )


def _make() -> None:
    """Make the queue that the form describes, and open it."""
    who = access.need("admin")
    form = {
        name: st.session_state[f"queue-{name}"]
        for name in ("run", "name", "n", "raters", "overlap", "which")
    }
    try:
        queue = queues.make_queue(
            cached.store(),
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
    """Return the items that the form selects, as (run, item, reason)."""
    run, which = str(form["run"]), form["which"]
    ids = [str(i) for i in read.items_of_run(cached.store(), run)["id"]]
    if which == "new":
        labelled = set(label_store.label_table(cached.store(), run=run)["item_id"])
        ids = [i for i in ids if i not in labelled]
    if which != "order":
        ids.sort(key=lambda i: digest(["queue", str(form["name"]), run, i]))
    reason = {
        "hash": "chosen at random",
        "order": "in the suite's order",
        "new": "chosen at random, without a label",
    }[which]
    return [(run, i, reason) for i in ids[: int(form["n"])]]


def current_rater() -> str | None:
    """Return the name of the rater; without a login, ask for it once.

    None until they gave it, and for viewers.
    """
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
            help="It is stored with each of your labels.",
        )
        st.form_submit_button("Begin", on_click=_named, type="primary")
    if odd := st.session_state.pop("rater-odd", None):
        st.warning(odd)
    taken = st.session_state.get("rater-taken")
    if taken:
        st.warning(
            f"{as_code(taken)} is labelling right now. If that is somebody else, choose"
            " another name."
        )
        st.button(f"I am {as_code(taken)}", key="rater-same", on_click=_begin, args=(taken,))
    return None


def _named() -> None:
    name = " ".join(str(st.session_state["rater-typed"]).split())
    st.session_state.pop("rater-taken", None)
    if not name.isprintable() or not 0 < len(name) <= _MAX_NAME_CHARS:
        st.session_state["rater-odd"] = (
            f"A name has 1 to {_MAX_NAME_CHARS} printable characters: type it again."
        )
        return
    with Leases(cached.store().log_path) as leases:
        taken = leases.has_lease(name)
    if taken:
        st.session_state["rater-taken"] = name
    else:
        _begin(name)


def _begin(name: str) -> None:
    st.session_state["local_rater"] = name


def start_correction(label_id: str) -> None:
    """Show the item of one of the rater's own labels again."""
    st.session_state["label-correct"] = label_id


def render_last_labels(latest: list[Given]) -> None:
    """Show the rater's own last labels, each with a button to change it."""
    st.subheader("Your last ten labels")
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
