"""Suites: the suites that a run can use, and uploads of new ones."""

from cotlab.ui import components, suite_split, suites
from cotlab.ui.address import show_tabs

components.render_heading("Suites", "Which questions, chains and answers can a run use?")
stored_tab, upload_tab = show_tabs(["Stored and shipped", suites.UPLOAD_TAB_LABEL])
with upload_tab:  # first, so that the list of the other tab has what was uploaded
    uploaded_suite = suites.render_upload()
    if uploaded_suite is not None:
        suite_split.render_split(uploaded_suite, "upload")
        suites.render_suite(uploaded_suite, "upload")
with stored_tab:
    suite = suites.select_suite(uploaded_suite)
    if suite is not None:
        suite_split.render_split(suite, "kept")
        suites.render_suite(suite, "kept")
