"""Run: one run's progress, its findings, and how to repeat it."""

from functools import partial

import streamlit as st

from cotlab.core.resources import page_path
from cotlab.ui import components, server_check, verdict
from cotlab.ui.more import render_more
from cotlab.ui.runs import estimates, items, naming, replies, report, run
from cotlab.ui.verdict_number import render_verdict_number

run_id = st.query_params.get("run")
heading = st.container()
row = run.load_run_row(run_id) if run_id else None
if row is None:
    with heading:
        components.render_heading("Run", "How far is this run, and what did it find?")
if not run_id:
    components.render_empty_state("No run is named in the address.", page_path("runs"), "All runs")
elif row is not None:
    run.render_banner(row)
    if verdict.REPORT_PARAM in st.query_params:
        report.render_report_downloads(row)
    naming.render_run_note(row)
    verdict.render_verdict(row)
    render_verdict_number(row.id)
    run.render_live_progress(row)
    run.render_run_actions(row)
    naming.render_run_editing(row)
    if verdict.REPORT_PARAM not in st.query_params:
        report.render_report_downloads(row)
    run.render_cost(row)
    server_check.render_run_checks(row.id)
    replies.render_reply_notes(row)
    verdict.render_picture(row)
    estimates.render_findings(row)
    items_section = partial(items.render_run_items, row)
    render_more("items", items_section, name="items", params=(items.SEARCH_PARAM,))
    run.render_repeat_command(row)
