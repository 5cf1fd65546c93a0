"""What people said of one item, on its own page: hidden from those who may still be asked for it."""

from __future__ import annotations

from typing import Any

import streamlit as st

from cotlab.core.types import Item
from cotlab.store import labels as label_store
from cotlab.ui import access
from cotlab.ui import cached as data
from cotlab.ui.label import blinding as blind
from cotlab.ui.label.page import label_text
from cotlab.ui.links import page


def render_item_labels(row: dict[str, Any], item: Item) -> None:
    """The current labels of an item of a run: at once for who labelled it, else on demand; others' are not shown to a rater
    whom a queue may still ask for the item."""
    table = label_store.label_table(data.store(), run=row["id"])
    labels = label_store.as_labels(table[table["item_id"] == item.id])
    me = access.person().name
    visible = (
        [entry for entry in labels if entry.rater == me]
        if (row["id"], item.id) in blind.hidden_items()
        else labels
    )
    st.subheader("Labels")
    if not labels:
        st.caption("Nobody labelled this item.")
    if len(visible) < len(labels):
        gone = blind.hidden_notice(
            len(labels) - len(visible), "label of another rater", "labels of other raters"
        )
        st.caption(f":material/visibility_off: {gone}")
    if visible:
        mine = any(label.rater == me for label in visible)
        help_ = "Others' labels are hidden, so that a label that you may still give is your own."
        some = "1 label" if len(visible) == 1 else f"{len(visible)} labels"
        if st.toggle(f"Show {some}", mine, key=f"labels-{row['id']}-{item.id}", help=help_):
            for label in visible:
                st.text(f"{label.rater}: {label_text(label)}")
    st.page_link(page("label"), label="Label", icon=":material/rate_review:")
