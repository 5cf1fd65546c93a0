"""Runs: every run with its verdict and cost, and a search of their texts; ticks compare them."""

import streamlit as st

from cotlab.ui import components
from cotlab.ui.runs import list as runs
from cotlab.ui.runs import search
from cotlab.ui.runs.header import render_deletion_notice

components.render_heading("Runs", "Verdict, status and cost of every run")
render_deletion_notice()
found = runs.filter_runs()
n_pending = 0
if not found.rows:
    components.render_empty_state("No run matches.", "new_run", "Start a run")
else:
    ticked_ids, n_pending = runs.render_runs(found.rows)
    if len(ticked_ids) > 1:
        runs.render_compare_link(found.rows, ticked_ids)
    else:
        st.caption("Tick two runs to compare them, or several to compare them with the oldest.")
search.render_search(found.text)
if n_pending:
    st.rerun()
