"""Suites: what there is to run, and what is wrong with a file that was uploaded."""

import streamlit as st

from cotlab.ui import components as parts
from cotlab.ui import suites

parts.head("Suites", "Which questions, chains and answers can a run use?")
chosen, new = st.tabs(["Kept and shipped", "Upload"])
with chosen:
    suite = suites.select_suite()
    if suite is not None:
        suites.render_suite(suite, "kept")
with new:
    suites.upload()
