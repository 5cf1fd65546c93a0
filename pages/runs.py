"""Runs: every run with its progress, main estimates and cost; ticked ones can be compared."""

import streamlit as st

from cotlab.core.resources import page
from cotlab.ui import components
from cotlab.ui.runs import list as runs

components.head("Runs", "Which runs are there, and what did they find?")
table = runs.filter_runs()
if table.empty:
    components.empty("No run matches.", page("new_run"), "Start one")
else:
    ticked = runs.render_runs(table)
    if len(ticked) > 1:
        runs.compare_link(table, ticked)
    if len(ticked) == 2:
        runs.render_side_by_side(*ticked)
    elif len(ticked) < 2:
        st.caption("Tick two runs to compare them, or several to compare them with the oldest.")
