"""The form that makes a queue of a run's chains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from cotlab.core.errors import CotlabError
from cotlab.core.keys import digest
from cotlab.core.resources import page_path
from cotlab.review.labelling import queue as queues
from cotlab.review.labelling.readable_chains import require_readable, runs_to_label
from cotlab.store import labels as label_store
from cotlab.store import read
from cotlab.ui import access, cached, components
from cotlab.ui.address import write_address
from cotlab.ui.more import render_more
from cotlab.ui.pickers import run_labels
from cotlab.ui.text import escape_markdown

MAX_QUEUE_ITEMS = 2000
"""Maximum number of items of a queue that this page makes."""
_OVERLAP_HELP = (
    "Share of the items that two raters label (or as many as set); one rater labels the rest."
)
_NAME_HELP = "Raters read it: name no model, so that they label blind."
_SELECTION_LABELS = {
    "hash": "A random choice of the run's items",
    "order": "The first ones, in the suite's order",
    "new": "A random choice of unlabelled items",
}
_REASON_BY_SELECTION = {
    "hash": "chosen at random",
    "order": "in the suite's order",
    "new": "chosen at random, without a label",
}
"""Stored reason of each item, by how the items were chosen."""


def render_queue_form(*, is_open: bool) -> None:
    """Show the form of a new queue; under More where there is a queue already."""
    if not access.has_role("admin"):
        return
    if is_open:
        _render_form()
    else:
        render_more("make a queue", _render_form)


def _render_form() -> None:
    readable = {row["id"] for row in runs_to_label(cached.store())}
    rows = [run for run in cached.stored_runs() if run.id in readable]
    if not rows:
        has_runs = bool(cached.stored_runs())
        components.render_empty_state(
            "No run has replies that can be read, so there is nothing to label: wait for one, or"
            " start one that stores its texts."
            if has_runs
            else "There is no run yet, so there is nothing to label.",
            page_path("new_run"),
            "Start one",
        )
        return
    run_options = run_labels(rows)
    st.header("Make a queue")
    with st.form("queue-form", width=720):
        st.selectbox(
            "Run",
            list(run_options),
            _default_run_index(list(run_options)),
            format_func=run_options.__getitem__,
            key="queue-run",
        )
        st.text_input(
            "Name",
            key="queue-name",
            max_chars=80,
            placeholder="required: pilot, October",
            help=_NAME_HELP,
        )
        with st.container(horizontal=True):
            st.number_input("Items", 1, MAX_QUEUE_ITEMS, 60, key="queue-n", width=160)
            st.number_input("Raters per item", 1, 20, 1, key="queue-raters", width=160)
            st.number_input(
                "Overlap (%)", 0, 100, 0, 5, key="queue-overlap", width=160, help=_OVERLAP_HELP
            )
        st.caption("A run with fewer items than asked for gives all that it has.")
        st.selectbox(
            "Items to choose",
            list(_SELECTION_LABELS),
            format_func=_SELECTION_LABELS.__getitem__,
            key="queue-which",
        )
        st.form_submit_button("Make the queue", type="primary", on_click=_make_queue_from_form)
    if error_message := st.session_state.pop("queue-told", None):
        st.error(escape_markdown(error_message))
    st.caption(
        "Runs without replies, and items whose chain is not stored, are left out. From a terminal,"
        " with items whose label is known (gold): `cotlab labels queue RUN --name NAME --gold"
        " FILE`."
    )


def _default_run_index(run_ids: Sequence[str]) -> int:
    """Return the place of the address's run, else of the newest that measured something."""
    requested_id = st.query_params.get("run")
    if requested_id in run_ids:
        return run_ids.index(requested_id)
    unmeasured = cached.unmeasured_runs()
    return next((i for i, run_id in enumerate(run_ids) if run_id not in unmeasured), 0)


def _make_queue_from_form() -> None:
    """Make the queue that the form describes, and open it."""
    user = access.require_role("admin")
    field_names = ("run", "name", "n", "raters", "overlap", "which")
    form = {name: st.session_state[f"queue-{name}"] for name in field_names}
    overlap = form["overlap"] / 100
    try:
        items = _select_queue_items(form)
        queue_id = queues.make_queue(
            cached.store(),
            form["name"],
            items,
            raters=form["raters"],
            overlap=overlap,
            author=user.name,
        )
    except CotlabError as error:
        st.session_state["queue-told"] = str(error)
        return
    write_address({"queue": queue_id})
    st.session_state["more"] = False


def _select_queue_items(form: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the items that the form selects, as (run, item, reason); all can be read."""
    run, selection = str(form["run"]), form["which"]
    item_ids = [str(i) for i in read.list_run_items(cached.store(), run)["id"]]
    if selection == "new":
        labelled_ids = set(label_store.list_labels(cached.store(), run=run)["item_id"])
        item_ids = [i for i in item_ids if i not in labelled_ids]
    if selection != "order":
        item_ids.sort(key=lambda i: digest(["queue", str(form["name"]), run, i]))
    entries = [(run, i, _REASON_BY_SELECTION[selection]) for i in item_ids]
    return require_readable(cached.store(), entries, int(form["n"])).items
