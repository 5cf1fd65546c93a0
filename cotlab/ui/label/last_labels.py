"""The rater's last labels, and what was hidden from them before they gave these."""

from __future__ import annotations

from functools import partial

import streamlit as st

from cotlab.review.labelling.session import GivenLabel
from cotlab.ui import components
from cotlab.ui.label import items as label_items
from cotlab.ui.label.items import label_text
from cotlab.ui.text import escape_markdown, shorten

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
