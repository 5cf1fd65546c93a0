"""What people said of one item, on its own page: hidden from those who may still be asked for it."""

from __future__ import annotations

from typing import Any

import streamlit as st

from cotlab.core.types import Item
from cotlab.store import labels as kept
from cotlab.ui import access
from cotlab.ui import cached as data
from cotlab.ui.label import blinding as blind
from cotlab.ui.label.page import said_of
from cotlab.ui.links import page


def show(row: dict[str, Any], item: Item) -> None:
    """The current labels of an item of a run: at once for who labelled it, else on demand; others' are not shown to a rater
    whom a queue may still ask for the item."""
    table = kept.labels(data.store(), run=row["id"])
    found = kept.as_labels(table[table["item_id"] == item.id])
    me = access.person().name
    shown = [one for one in found if one.rater == me] if (row["id"], item.id) in blind.hidden() else found
    st.subheader("Labels")
    if not found:
        st.caption("Nobody labelled this item.")
    if len(shown) < len(found):
        gone = blind.why(len(found) - len(shown), "label of another rater", "labels of other raters")
        st.caption(f":material/visibility_off: {gone}")
    if shown:
        mine = any(label.rater == me for label in shown)
        help_ = "Others' labels are hidden, so that a label that you may still give is your own."
        some = "1 label" if len(shown) == 1 else f"{len(shown)} labels"
        if st.toggle(f"Show {some}", mine, key=f"labels-{row['id']}-{item.id}", help=help_):
            for label in shown:
                st.text(f"{label.rater}: {said_of(label)}")
    st.page_link(page("label"), label="Label", icon=":material/rate_review:")
