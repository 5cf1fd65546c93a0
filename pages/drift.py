"""Drift: whether current items differ from those that the calibrator was fitted on."""

from cotlab.ui import components, drift

components.render_heading(
    "Drift", ("Are current items still like those that the calibrator was fitted on?")
)
view = drift.select_drift_runs()
if view is not None:
    drift.render_drift_verdict(view)
    drift.render_drift_figures(view)
    drift.render_drift_over_time(view)
    drift.render_drift_actions(view)
    drift.render_drift_notes(view)
drift.render_past_checks()
