"""Home: what is running, what was found, and the three steps of a first use."""

import streamlit as st

from cotlab.ui import components as parts
from cotlab.ui import home

parts.head("cotlab", "Can this model's chain of thought be trusted?")
if home.is_empty():
    home.first_use()
else:
    home.totals()
    home.running()
    home.waiting()
    home.recent()
    with st.expander("The three steps of a first use"):
        home.steps()
