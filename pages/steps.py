"""Steps: which steps of the chains the answers depend on, over the suite and in one chain."""

import streamlit as st

from cotlab.ui import components as parts
from cotlab.ui import steps

parts.head("Steps", "Which steps does the answer depend on?")
row = parts.pick_run("ablation")
if row is not None:
    metric = steps.choose_metric(row)
    over_suite, one_chain = st.tabs(["Over the suite", "One chain"])
    with over_suite:
        steps.by_position(row, metric)
        steps.modes(row)
        steps.redundancy(row, metric)
    with one_chain:
        item = steps.pick_item(row)
        if item is not None:
            steps.chain(row, item, metric, steps.choose_mode(row))
    steps.fine_print(row, metric)
