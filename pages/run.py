"""Run: one run's progress, its findings, and how to repeat it."""

import streamlit as st

from cotlab.core.resources import page
from cotlab.ui import components
from cotlab.ui.runs import run

components.head("Run", "How far is this run, and what did it find?")
run_id = st.query_params.get("run")
if not run_id:
    components.empty("No run is named in the address.", page("runs"), "All runs")
else:
    row = run.wait_for_run(run_id)
    if row is not None:
        run.render_banner(row)
        run.render_live_progress(row)
        run.render_run_actions(row)
        run.render_cost(row)
        run.render_findings(row)
        run.render_run_items(row)
        run.render_repeat(row)
