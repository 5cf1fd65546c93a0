"""New run: suite, model, scorers and limits; what it would ask and cost; a pilot of five, or all of it."""

import streamlit as st

from cotlab.ui import components as parts
from cotlab.ui.new_run import form as new_run
from cotlab.ui.new_run import planner

parts.head("New run", "What will be asked of which model, and what will it cost?")
suite_choice, config = new_run.render_run_form(st.query_params.get("from"))
if suite_choice is not None:
    counted = new_run.render_estimate(suite_choice, config)
    new_run.render_start_buttons(suite_choice, config, counted)
planner.render_planner()
