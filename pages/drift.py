"""Drift: today's items against those that the calibrator saw, feature by feature and jointly."""

from cotlab.ui import components as parts
from cotlab.ui import drift

parts.head("Drift", "Are today's items still like those that the calibrator saw?")
view = drift.select_drift_runs()
if view is not None:
    drift.render_drift_verdict(view)
    drift.render_drift_figures(view)
    drift.render_drift_over_time(view)
    drift.render_drift_actions(view)
    drift.render_drift_notes(view)
drift.render_past_checks()
