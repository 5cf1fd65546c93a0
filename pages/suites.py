"""Suites: the suites that a run can use, and uploads of new ones."""

from cotlab.ui import components, suites
from cotlab.ui.address import open_tab

components.render_heading("Suites", "Questions, chains and answers to test on")
tab, panel = open_tab("suites")
with panel:
    suite = suites.render_upload() if tab == "upload" else suites.select_suite()
    if suite is not None:
        suites.render_split(suite)
        suites.render_suite(suite)
