"""Steps: which steps of a chain the answer depends on, over the suite and in one chain."""

import streamlit as st

from cotlab.ui import components, steps
from cotlab.ui.pickers import pick_run

components.head("Steps", "Which steps does the answer depend on?")
row = pick_run("ablation")
if row is not None:
    metric = steps.select_ccs_metric(row)
    suite_tab, chain_tab = st.tabs(["Over the suite", "One chain"])
    with suite_tab:
        steps.render_by_position(row, metric)
        steps.render_modes(row)
        steps.render_redundancy(row, metric)
    with chain_tab:
        item = steps.select_item(row)
        if item is not None:
            steps.render_step_chain(row, item, metric, steps.select_mode(row))
    steps.render_step_notes(row, metric)
