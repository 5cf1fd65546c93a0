"""Home: the verdict on the newest run, what to do next, the latest runs, and the first steps."""

import streamlit as st

from cotlab.ui import cached, home, home_run, next_steps, server_check, verdict
from cotlab.ui.demo_pair import find_demo_pair
from cotlab.ui.opened_run import opened_run, remember_run

with st.container(key="home-question"):
    st.title("Can this model's chain of thought be trusted?")
if home.is_store_empty():
    home.render_first_use()
else:
    all_rows = cached.stored_runs()
    rows = [row for row in all_rows if not row.is_archived]
    pair = find_demo_pair(rows)
    opening = home_run.find_opening_run(rows)
    label = "" if opening is None else opening.label
    row = None if opening is None else opening.row
    is_demo_first = home.is_demo_first(rows)
    if pair is not None and is_demo_first:
        home.render_demo_question(pair)
    if opening is not None and row is not None:
        if opened_run() is None:  # the pages of the sidebar are about the run that Home shows
            remember_run(row.id)
        verdict.render_context(row, label)
        home_run.render_opening_notes(opening, rows)
        verdict.render_verdict(row)
    home.render_running_runs(rows)
    if row is not None:
        server_check.render_run_checks(row.id)
        verdict.render_picture(row)
        next_steps.render_next_steps(row, rows)
    if pair is not None and not is_demo_first:
        home.render_demo_line(pair)
    home.render_recent_runs(rows, len(all_rows) - len(rows), row)
    reviews = home.load_pending_reviews()
    home.render_totals(reviews)
    home.render_pending_reviews(reviews)
    verdict.render_explanation()
    with st.expander("The three steps of a first use"):
        home.render_first_steps()
