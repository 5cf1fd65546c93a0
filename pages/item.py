"""Item: one question, its chain with every score, and every request and reply behind them."""

import streamlit as st

from cotlab.core.resources import page
from cotlab.ui import components
from cotlab.ui.item import item
from cotlab.ui.label import items as label_items

components.head("Item", ("What was the question, what did the model reply, and how does it score?"))
selected = item.item_from_address(st.query_params.get("run"), st.query_params.get("item"))
if selected is None:
    components.empty("No scored item is named in the address.", page("runs"), "All runs")
else:
    row, chosen_item = selected
    item.render_item_links(row, chosen_item)
    item.render_item_chain(row, chosen_item, st.query_params.get("step"))
    item.render_item_scores(row, chosen_item)
    label_items.render_item_labels(row, chosen_item)
    item.render_item_requests(row, chosen_item)
