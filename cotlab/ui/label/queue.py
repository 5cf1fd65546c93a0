"""The page Label around its component: the queue, its progress, and why it is empty."""

from __future__ import annotations

from functools import partial

import streamlit as st

from cotlab.review.labelling import queue as queues
from cotlab.review.labelling.queue import QueueProgress
from cotlab.review.labelling.session import GivenLabel, latest_labels
from cotlab.store import labels as label_store
from cotlab.store.pending import pending_queues
from cotlab.ui import access, cached, components
from cotlab.ui.label import adjudication
from cotlab.ui.label import items as label_items
from cotlab.ui.label import widget as label_widget
from cotlab.ui.label.items import label_text
from cotlab.ui.label.new_queue import render_queue_form
from cotlab.ui.label.rater import current_rater, render_rater
from cotlab.ui.pickers import queue_labels, select_option
from cotlab.ui.text import escape_markdown, shorten


def render_desk() -> None:
    """Show the next chain of a queue to whoever may label, and the form of a new queue."""
    name = current_rater()
    label_widget.render_unconfirmed_notice(name)
    if name is None:
        return
    render_rater(name)
    queue_id = select_queue(name)
    if queue_id is not None:
        render_queue(queue_id, name)
    render_queue_form(is_open=queue_id is None)


def select_queue(rater: str) -> str | None:
    """Choose a queue, the newest by default; None (with a message) where there is none."""
    rows = cached.read_once(label_store.list_label_queues)
    if rows.empty:
        st.info(
            "There is no queue yet." + ("" if access.has_role("admin") else " An admin makes one.")
        )
        return None
    blind_runs = label_items.runs_to_hide(rater)
    labels = {
        queue: label_items.without_names(label, blind_runs)
        for queue, label in queue_labels(rows.to_dict("records")).items()
    }
    return select_option("Queue", labels, "queue")


@st.fragment
def render_queue(queue: str, rater: str) -> None:
    """Show the labelling component, the queue's progress, and the rater's last labels.

    A fragment: what the component sends is processed without running the rest of the page.
    """
    progress_container = st.container()
    for refusal in label_widget.pop_refusals(rater):
        st.warning(escape_markdown(refusal))
    try:
        with cached.store().reading():  # all reads within share one connection
            last_labels = latest_labels(cached.store(), queue, rater)
            progress = queues.measure_progress(cached.store(), queue, rater)
            has_items = label_widget.render_widget(
                queue, rater, last_labels, is_complete=progress.n_complete >= progress.n_items
            )
    except access.Forbidden as error:
        st.error(escape_markdown(str(error)))
        return
    with progress_container:
        render_queue_progress(progress)
        adjudication.render_unsettled(queue)
    if not has_items:
        render_empty_queue(queue, rater, progress)
    render_last_labels(rater, last_labels)


def render_queue_progress(progress: QueueProgress) -> None:
    """Show the progress of the queue and of this rater."""
    skipped_text = f", {progress.n_rater_skipped} skipped" if progress.n_rater_skipped else ""
    st.progress(
        progress.n_labels / progress.n_requested if progress.n_requested else 0.0,
        text=(
            f"You: {progress.n_rater_labelled} labelled, {progress.n_rater_left} to"
            f" do{skipped_text}. All raters: {progress.n_labels} of {progress.n_requested} labels,"
            f" {progress.n_complete} of {progress.n_items} items complete."
        ),
    )


def render_empty_queue(queue: str, rater: str, progress: QueueProgress) -> None:
    """Show why the queue has no item for this rater, and what they can do."""
    includes_skipped = st.session_state.get("label-skipped") == queue
    if progress.n_complete >= progress.n_items:
        st.success("This queue has all its labels.", icon=":material/done_all:")
    elif progress.n_rater_left:
        st.info("Other raters have reserved the remaining items. This page checks again by itself.")
    elif progress.n_rater_skipped and not includes_skipped:
        st.info(f"Only items that you skipped are left: {progress.n_rater_skipped}.")
    else:
        st.info(
            "You have labelled everything that this queue asks of you; the remaining"
            " labels are for other raters."
        )
    with st.container(horizontal=True):
        if progress.n_rater_skipped and not includes_skipped:
            st.button(
                "Show what I skipped",
                icon=":material/redo:",
                on_click=_include_skipped_items,
                args=(queue,),
                type="primary",
            )
        components.page_link("agreement", "Agreement", "handshake", {"queue": queue})
        _link_next_queue(queue, rater)


def _link_next_queue(queue: str, rater: str) -> None:
    """Link the newest other queue that has something left for this rater."""
    rows = pending_queues(cached.store(), rater)
    rows = rows[rows["id"] != queue]
    if rows.empty:
        return
    row = rows.iloc[0]
    name = label_items.without_names(str(row["name"]), label_items.runs_to_hide(rater))
    label = f"{shorten(name, 40)}: {row['due']} of {row['n']} left for you"
    components.page_link(
        "label", escape_markdown(label), "arrow_forward", {"queue": str(row["id"])}
    )


def _include_skipped_items(queue: str) -> None:
    st.session_state["label-skipped"] = queue


N_OPEN = 5
"""Last labels that are always in view."""


def start_correction(label_id: str) -> None:
    """Show the item of one of the rater's own labels again."""
    st.session_state["label-correct"] = label_id


def render_last_labels(rater: str, last_labels: list[GivenLabel]) -> None:
    """Show the rater's own last labels, with the answer key, each with a button to change it.

    Which run a chain is from, and so its model, comes up once no queue may ask the rater for
    another chain of that run.
    """
    st.header("Your last labels")
    if not last_labels:
        st.caption("None yet. The answer key stands here once you gave your verdict.")
        return
    blind_runs = label_items.runs_to_hide(rater)
    for given_label in last_labels[:N_OPEN]:
        _render_label(given_label, blind_runs)
    if last_labels[N_OPEN:]:
        with st.expander("Earlier labels"):
            for given_label in last_labels[N_OPEN:]:
                _render_label(given_label, blind_runs)
    if any(given_label.label.run_id in blind_runs for given_label in last_labels):
        st.caption(
            "The model and the run of a chain stand here once no queue asks you for another chain"
            " of that run."
        )


def _render_label(given_label: GivenLabel, blind_runs: frozenset[str]) -> None:
    label = given_label.label
    view = label_items.load_item_view(label.run_id, label.item_id)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", wrap=False):
        st.button(
            "Change",
            key=f"change-{label.id}",
            icon=":material/edit:",
            type="tertiary",
            on_click=partial(start_correction, label.id),
        )
        with st.container(width="stretch", gap="xxsmall"):
            st.text(label_text(label))
            key_text = f"answer {shorten(view.answer, 20)}, right answer {view.answer_key}"
            st.caption(escape_markdown(shorten(f"{key_text}: {view.question}", 90)))
        if label.run_id not in blind_runs:
            query = {"run": label.run_id, "item": label.item_id}
            title = escape_markdown(f"{shorten(view.model, 30)}: {shorten(label.item_id, 30)}")
            components.page_link("items", title, "article", query)
