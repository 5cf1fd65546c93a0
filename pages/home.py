"""Home: active runs, pending reviews, the latest results, and the first steps of a new user."""

import streamlit as st

from cotlab.ui import components, home

components.head("cotlab", "Can this model's chain of thought be trusted?")
if home.is_empty():
    home.first_use()
else:
    home.render_totals()
    home.render_running_runs()
    home.render_pending_reviews()
    home.render_recent_runs()
    with st.expander("The three steps of a first use"):
        home.render_first_steps()
