"""Suites: the suites that a run can use, and the upload of a new one."""

import streamlit as st

from cotlab.ui import components, suites

components.head("Suites", "Which questions, chains and answers can a run use?")
chosen, new = st.tabs(["Stored and shipped", "Upload"])
with chosen:
    suite = suites.select_suite()
    if suite is not None:
        suites.render_suite(suite, "kept")
with new:
    suites.upload()
