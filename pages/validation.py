"""Validation: which metrics can be trusted, by the shipped models and by your labels."""

from cotlab.ui import components
from cotlab.ui.address import open_tab

components.render_heading("Validation", "Which metrics can be trusted?")
tab, panel = open_tab("validation")
with panel:
    if tab == "shipped":
        from cotlab.ui.validation import render_shipped_tab as render
    else:
        from cotlab.ui.evaluation import render_evaluation_tab as render
    render()
