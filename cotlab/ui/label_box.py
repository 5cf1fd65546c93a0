"""What people said of one item, on its own page: hidden from those who may still be asked, until they want to see it."""

from __future__ import annotations

from typing import Any

import streamlit as st

from cotlab.core.types import Item
from cotlab.store import labels as kept
from cotlab.ui import access, data
from cotlab.ui.label import said_of
from cotlab.ui.links import page


def show(row: dict[str, Any], item: Item) -> None:
    """The current labels of an item of a run: at once for who labelled it, else on demand."""
    table = kept.labels(data.store(), run=row["id"])
    found = kept.as_labels(table[table["item_id"] == item.id])
    st.subheader("Labels")
    if not found:
        st.caption("Nobody labelled this item.")
    else:
        mine = any(label.rater == access.person().name for label in found)
        help_ = "Others' labels are hidden, so that a label that you may still give is your own."
        if st.toggle(f"Show {len(found)} labels", mine, key=f"labels-{row['id']}-{item.id}", help=help_):
            for label in found:
                st.text(f"{label.rater}: {said_of(label)}")
    st.page_link(page("label"), label="Label", icon=":material/rate_review:")
