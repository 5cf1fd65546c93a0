"""Item: one question, its chain with every score, and every request and reply behind them."""

import streamlit as st

from cotlab.ui import components as parts
from cotlab.ui.item import item
from cotlab.ui.label import box as label_box
from cotlab.ui.links import page

parts.head("Item", "What was asked, what was answered, and what follows from it?")
found = item.from_address(st.query_params.get("run"), st.query_params.get("item"))
if found is None:
    parts.empty("No scored item is named in the address.", page("runs"), "All runs")
else:
    row, one = found
    item.links(row, one)
    item.read(row, one, st.query_params.get("step"))
    item.score_table(row, one)
    label_box.show(row, one)
    item.evidence(row, one)
