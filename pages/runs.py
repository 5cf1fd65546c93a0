"""Runs: every run with its progress, main estimates and cost; ticked ones can be compared."""

from functools import partial

import streamlit as st

from cotlab.core.resources import page_path
from cotlab.ui import components
from cotlab.ui.more import render_more
from cotlab.ui.runs import list as runs
from cotlab.ui.runs import naming

components.render_heading("Runs", "Which runs are there, and what did they find?")
naming.render_deletion_notice()
rows = runs.filter_runs()
if not rows:
    components.render_empty_state("No run matches.", page_path("new_run"), "Start one")
else:
    ticked_ids, n_pending = runs.render_runs(rows)
    if len(ticked_ids) > 1:
        runs.render_compare_link(rows, ticked_ids)
    if len(ticked_ids) == 2:
        render_more("estimates side by side", partial(runs.render_shared_estimates, *ticked_ids))
    elif len(ticked_ids) < 2:
        st.caption("Tick two runs to compare them, or several to compare them with the oldest.")
    if n_pending:
        st.rerun()
