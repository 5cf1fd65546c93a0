"""Decide: from labels to a calibrator, a policy, decisions, and drift after them."""

from cotlab.ui import components
from cotlab.ui.address import open_tab
from cotlab.ui.decisions.tab import render_road

components.render_heading("Decide", "Which answers can be released?")
render_road()
tab, panel = open_tab("decide", preserved=("run",))
with panel:
    match tab:
        case "calibrate":
            from cotlab.ui.calibration import render_calibrate_tab as render
        case "policy":
            from cotlab.ui.decisions.tab import render_policy_tab as render
        case "decisions":
            from cotlab.ui.decisions.tab import render_decisions_tab as render
        case _:
            from cotlab.ui.drift import render_drift_tab as render
    render()
