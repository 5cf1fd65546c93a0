"""Item: one question, its chain step by step, and every request and reply behind its scores."""

import streamlit as st

from cotlab.core.resources import page_path
from cotlab.ui import components
from cotlab.ui.item import item

run_and_item = item.load_run_and_item(st.query_params.get("run"), st.query_params.get("item"))
if run_and_item is None:
    components.render_heading(
        "Item", "What was the question, what did the model reply, and how does it score?"
    )
    components.render_empty_state(
        "No scored item is named in the address.", page_path("runs"), "All runs"
    )
else:
    item.render_item_page(*run_and_item)
