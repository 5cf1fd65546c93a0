"""Home: what is running, what was found, and the three steps of a first use."""

import streamlit as st

from cotlab.ui import components as parts
from cotlab.ui import home

parts.head("cotlab", "Can this model's chain of thought be trusted?")
if home.is_empty():
    home.first_use()
else:
    home.render_totals()
    home.render_running_runs()
    home.render_pending_reviews()
    home.render_recent_runs()
    with st.expander("The three steps of a first use"):
        home.render_first_steps()
