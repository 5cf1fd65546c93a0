"""New run: suite, model, scorers and limits; a cost estimate; a pilot or the whole run."""

import streamlit as st

from cotlab.ui import components
from cotlab.ui.new_run import form as new_run
from cotlab.ui.new_run import planner

components.head("New run", "What will be measured on which model, and what will it cost?")
suite_choice, config = new_run.render_run_form(st.query_params.get("from"))
if suite_choice is not None:
    counted = new_run.render_estimate(suite_choice, config)
    new_run.render_start_buttons(suite_choice, config, counted)
planner.render_planner()
